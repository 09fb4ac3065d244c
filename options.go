package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"time"

	"k8s.io/klog/v2"

	"github.com/samplecrd/network-controller/pkg/deployments"
	"github.com/samplecrd/network-controller/pkg/kube"
	"github.com/samplecrd/network-controller/pkg/leaderelection"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/server"
	"github.com/samplecrd/network-controller/pkg/tracing"
)

// options are the values of the flags. Each package adds the flags of its own
// options.
type options struct {
	kube           kube.Options
	leaderElection leaderelection.Options
	deployments    deployments.Options
	server         server.Options
	tracing        tracing.Options

	workers           int
	shutdownTimeout   time.Duration
	cloud             string
	neutronEndpoint   string
	neutronTimeout    time.Duration
	embeddedAddress   string
	resyncPeriod      time.Duration
	allowAdoption     bool
	drift             string
	leaveCloud        string
	otherClusters     []string
	deleteOrphans     bool
	orphanGracePeriod time.Duration
	loggingFormat     string

	given []string // the flags that were given, for the log
}

// The values of -drift.
const (
	driftCorrect = "correct"
	driftReport  = "report"
)

// maxInFlight is how long Neutron may still execute a request after the controller
// stopped waiting for its response.
const maxInFlight = 30 * time.Second

// maxNeutronTimeout bounds -neutron-timeout: only a network that was created within
// the duplicate window is recognized as a duplicate.
const maxNeutronTimeout = plan.DuplicateWindow - maxInFlight

// parseOptions reads the command line and sets up logging. It returns flag.ErrHelp
// if it has printed what the user requested.
func parseOptions(args []string) (options, error) {
	var o options
	flags, printVersion := flag.NewFlagSet(controllerName, flag.ContinueOnError), false
	o.addFlags(flags)
	o.kube.AddFlags(flags)
	o.leaderElection.AddFlags(flags, controllerName)
	o.deployments.AddFlags(flags)
	o.server.AddFlags(flags)
	o.tracing.AddFlags(flags)
	flags.BoolVar(&printVersion, "version", false, "Print the version and exit.")
	klog.InitFlags(flags)

	flags.SetOutput(io.Discard) // main prints the error in one line
	flags.Usage = func() {}
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(os.Stdout)
		fmt.Printf("%s creates and maintains a network in OpenStack Neutron for every Network object in a Kubernetes cluster.\n\nFlags:\n", controllerName)
		flags.PrintDefaults()
		return o, err
	case err != nil:
		return o, err
	case printVersion:
		fmt.Println(controllerName, version, runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH)
		return o, flag.ErrHelp
	}

	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) {
		given[f.Name] = true
		o.given = append(o.given, f.Name+"="+credentials.ReplaceAllString(f.Value.String(), "://…@"))
	})
	o.leaderElection.Default(o.kube.IsInCluster(), given)
	if err := o.validate(flags.Args(), given); err != nil {
		return o, err
	}
	if !given["cloud"] && !given["neutron-endpoint"] && !given["embedded-neutron-address"] {
		o.cloud = os.Getenv("OS_CLOUD")
	}
	if o.loggingFormat == "json" {
		verbosity, _ := strconv.Atoi(flags.Lookup("v").Value.String())
		klog.SetSlogLogger(slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.Level(-verbosity)})))
	}
	return o, nil
}

// credentials matches the credentials in a URL, which should contain none.
var credentials = regexp.MustCompile(`://.*@`)

// addFlags adds the flags that belong to no package.
func (o *options) addFlags(flags *flag.FlagSet) {
	flags.IntVar(&o.workers, "workers", 5, "Number of Networks that are reconciled concurrently, from 1 to 100.")
	flags.DurationVar(&o.shutdownTimeout, "shutdown-timeout", 20*time.Second, "Time that requests in flight get to finish after SIGTERM or SIGINT.")
	flags.StringVar(&o.cloud, "cloud", "", "The `name` of the cloud in clouds.yaml. Defaults to the environment variable OS_CLOUD. If neither is set, the controller uses an embedded Neutron that keeps networks in memory only.")
	flags.StringVar(&o.neutronEndpoint, "neutron-endpoint", "", "The `URL` of a Neutron API without authentication, such as http://127.0.0.1:9696. Cannot be combined with -cloud.")
	flags.DurationVar(&o.neutronTimeout, "neutron-timeout", 30*time.Second, fmt.Sprintf("Timeout of a single request to Neutron. At most %v.", maxNeutronTimeout))
	flags.StringVar(&o.embeddedAddress, "embedded-neutron-address", "127.0.0.1:0", "Loopback `address` on which the embedded Neutron listens. Port 0 selects a free port.")
	flags.DurationVar(&o.resyncPeriod, "resync-period", 30*time.Second, "Longest time until the controller detects and reverts a change that was made directly in Neutron. The period is extended if listing Neutron takes more than a tenth of it.")
	flags.BoolVar(&o.allowAdoption, "allow-adoption", false, "Allow Networks to adopt an existing Neutron network with spec.networkID. Every user who can create Networks can then take over any network of the OpenStack project.")
	flags.Var((*kube.CommaSeparated)(&o.otherClusters), "other-clusters", "Comma-separated cluster `names` (-cluster-name) of other clusters that share the OpenStack project. A new Network does not wait because one of them has a Network of the same namespace and name.")
	flags.StringVar(&o.drift, "drift", driftCorrect, "What to do when somebody changes a network or subnet directly in Neutron: correct or report. spec.driftPolicy of a Network overrides it.")
	flags.StringVar(&o.leaveCloud, "leave-cloud", "", "The `identity` of a cloud to leave, such as RegionOne/<project ID>. Networks whose network is in that cloud get a new one in the cloud that the controller is connected to; the existing one is left unchanged. Without the flag, the controller does not change Networks whose network is in another cloud.")
	flags.BoolVar(&o.deleteOrphans, "delete-orphans", false, "Delete Neutron networks that carry an owner marker of this cluster but have no Network object. If false, the controller only logs and counts them.")
	flags.DurationVar(&o.orphanGracePeriod, "orphan-grace-period", 10*time.Minute, "Minimum time between the detection of an orphaned Neutron network and its deletion. Has an effect only with -delete-orphans.")
	flags.StringVar(&o.loggingFormat, "logging-format", "text", "Log format: text or json. With json, -v is the only klog flag that has an effect.")
}

// validate returns an error that names the flag with an invalid value.
func (o options) validate(arguments []string, given map[string]bool) error {
	switch {
	case len(arguments) > 0:
		return fmt.Errorf("unexpected argument %q: all options are flags", arguments[0])
	case given["cloud"] && given["neutron-endpoint"], given["cloud"] && given["embedded-neutron-address"], given["neutron-endpoint"] && given["embedded-neutron-address"]:
		return errors.New("-cloud, -neutron-endpoint and -embedded-neutron-address exclude each other: set at most one of them")
	case given["cloud"] && o.cloud == "":
		return errors.New("-cloud is empty: set it to the name of a cloud in clouds.yaml")
	case o.workers < 1 || o.workers > 100:
		return fmt.Errorf("-workers is %d: it must be between 1 and 100", o.workers)
	case o.shutdownTimeout <= 0:
		return fmt.Errorf("-shutdown-timeout is %v: it must be positive", o.shutdownTimeout)
	case o.neutronTimeout <= 0:
		return fmt.Errorf("-neutron-timeout is %v: it must be positive", o.neutronTimeout)
	case o.neutronTimeout > maxNeutronTimeout:
		return fmt.Errorf("-neutron-timeout is %v: it must be at most %v, so that the controller recognizes a network that was created after the timeout as its own", o.neutronTimeout, maxNeutronTimeout)
	case o.resyncPeriod < time.Second:
		return fmt.Errorf("-resync-period is %v: it must be at least 1s", o.resyncPeriod)
	case o.orphanGracePeriod <= 0:
		return fmt.Errorf("-orphan-grace-period is %v: it must be positive", o.orphanGracePeriod)
	case o.drift != driftCorrect && o.drift != driftReport:
		return fmt.Errorf("-drift is %q: it must be %s or %s", o.drift, driftCorrect, driftReport)
	case o.loggingFormat != "text" && o.loggingFormat != "json":
		return fmt.Errorf("-logging-format is %q: it must be text or json", o.loggingFormat)
	case o.allowAdoption && o.kube.AreNamespacesLimited():
		return errors.New("-allow-adoption cannot be combined with -namespaces: controllers of different namespaces could adopt the same Neutron network and not detect the conflict")
	}
	return errors.Join(
		o.kube.Validate(given),
		o.leaderElection.Validate(),
		o.deployments.Validate(),
		o.server.Validate(),
		o.tracing.Validate(),
	)
}
