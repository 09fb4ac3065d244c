package main

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"time"

	"k8s.io/klog/v2"

	"github.com/samplecrd/network-controller/pkg/commandline"
	"github.com/samplecrd/network-controller/pkg/debugpage"
	"github.com/samplecrd/network-controller/pkg/deployments"
	"github.com/samplecrd/network-controller/pkg/kube"
	"github.com/samplecrd/network-controller/pkg/leaderelection"
	"github.com/samplecrd/network-controller/pkg/preview"
	"github.com/samplecrd/network-controller/pkg/reconcile"
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
	debugPage      debugpage.Options
	preview        preview.Options // of the command plan

	workers           int
	maxRequests       int // to Neutron at a time
	shutdownTimeout   time.Duration
	cloud             string
	neutronEndpoint   string
	neutronTimeout    time.Duration
	embeddedNeutron   bool
	embeddedAddress   string
	resyncPeriod      time.Duration
	allowAdoption     bool
	drift             string
	leaveCloud        string
	otherClusters     []string
	deleteOrphans     bool
	orphanGracePeriod time.Duration
	orphanLimit       int // of deletions at a time
	loggingFormat     string
	maxNetworks       int // of a namespace

	given  []string // the flags that were given, for the log
	plan   bool     // the command is plan, and not to run the controller
	logger klog.Logger
}

// The values of -drift.
const (
	driftCorrect = "correct"
	driftReport  = "report"
)

// limits are the durations that no flag changes. They are variables, so that a test can
// shorten all of them.
var limits = struct {
	// maxInFlight is how long Neutron may still execute a request after the controller
	// stopped waiting for its response.
	maxInFlight time.Duration
	// maxLateness is how long after that the network of a create request may still appear:
	// a database that fails over, or a message queue, may keep a request for minutes.
	maxLateness time.Duration
	// startTimeout is how long a replica waits for the first list of Neutron's state.
	// 10,000 networks take about 10 seconds.
	startTimeout time.Duration
	maxClockSkew time.Duration // between the hosts of two replicas
	retry        reconcile.RetryDelays
}{
	maxInFlight:  30 * time.Second,
	maxLateness:  10 * time.Minute,
	startTimeout: 30 * time.Second,
	maxClockSkew: time.Minute,
	retry:        reconcile.DefaultRetryDelays(),
}

// maxNeutronTimeout bounds -neutron-timeout: a worker waits as long for one response.
const maxNeutronTimeout = 90 * time.Second

// description is the beginning of the output of -help.
const description = controllerName + ` creates and maintains a network in OpenStack Neutron for every Network object in a
Kubernetes cluster.

Examples:
  Try it with the cluster of your kubeconfig and an embedded Neutron, which keeps networks in memory only:
    ` + controllerName + `
  Use the cloud "mine" in clouds.yaml, and show metrics and health checks:
    ` + controllerName + ` -cloud=mine -metrics-bind-address=127.0.0.1:8080 -health-probe-bind-address=127.0.0.1:8081
  Use a Neutron without authentication, for the Networks of two namespaces:
    ` + controllerName + ` -kubeconfig=admin.kubeconfig -neutron-endpoint=http://127.0.0.1:9696 -namespaces=a,b
  Show what the controller would do, and change nothing:
    ` + controllerName + ` plan -cloud=mine
  Show what happens to one Network in a controller that runs with -debug-bind-address=127.0.0.1:8123:
    ` + controllerName + ` follow default/example`

// parseOptions reads the command line and sets up logging. It returns flag.ErrHelp
// if it has printed what the user requested.
func parseOptions(args []string) (options, error) {
	var o options
	flags, printVersion := commandline.New(controllerName), false
	about := description
	if o.plan = len(args) > 0 && args[0] == planCommand; o.plan {
		args, about = args[1:], planDescription
		flags.Group("Plan", o.preview.AddFlags)
	}
	flags.Group("Kubernetes", o.kube.AddFlags)
	flags.Group("Neutron", o.addNeutronFlags)
	flags.Group("Reconciling", o.addFlags)
	flags.Group("Deployments", o.deployments.AddFlags)
	flags.Group("Leader election", func(f *flag.FlagSet) { o.leaderElection.AddFlags(f, controllerName) })
	flags.Group("Health checks, metrics and profiles", o.server.AddFlags)
	flags.Group("Traces", o.tracing.AddFlags)
	flags.Group("Debug page", o.debugPage.AddFlags)
	flags.Group("Program", func(f *flag.FlagSet) {
		f.StringVar(&o.loggingFormat, "logging-format", "text", "Log format: text or json. With json, -v is the only klog flag that has an effect.")
		f.BoolVar(&printVersion, "version", false, "Print the version and exit.")
	})
	flags.Group("Logging (klog)", klog.InitFlags)

	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags.Help(os.Stdout, about)
		return o, err
	case err != nil:
		return o, err
	case printVersion:
		fmt.Println(controllerName, version, runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH)
		return o, flag.ErrHelp
	}

	var given map[string]bool
	given, o.given = flags.Given()
	if err := o.validate(flags.Args(), given); err != nil {
		return o, err
	}
	if err := o.chooseNeutron(given, os.Getenv("OS_CLOUD"), kube.IsInPod()); err != nil {
		return o, err
	}
	if o.loggingFormat == "json" {
		verbosity, _ := strconv.Atoi(flags.Value("v"))
		klog.SetSlogLogger(slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.Level(-verbosity)})))
	}
	o.logger = klog.Background()
	return o, nil
}

// addNeutronFlags adds the flags that select a Neutron.
func (o *options) addNeutronFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.cloud, "cloud", "", "The `name` of the cloud in clouds.yaml. Defaults to the environment variable OS_CLOUD.")
	flags.StringVar(&o.neutronEndpoint, "neutron-endpoint", "", "The `URL` of a Neutron API without authentication, such as http://127.0.0.1:9696.")
	flags.BoolVar(&o.embeddedNeutron, "embedded-neutron", false, "Use the embedded Neutron, which keeps networks in memory only. Outside of a cluster, this is the default without -cloud, OS_CLOUD and -neutron-endpoint. In a pod, the controller then exits.")
	flags.StringVar(&o.embeddedAddress, "embedded-neutron-address", "127.0.0.1:0", "Loopback `address` on which the embedded Neutron listens. Port 0 selects a free port.")
	flags.DurationVar(&o.neutronTimeout, "neutron-timeout", 30*time.Second, fmt.Sprintf("Timeout of a single request to Neutron. At most %v.", maxNeutronTimeout))
	flags.IntVar(&o.maxRequests, "neutron-max-requests", 32, "Largest number of requests to Neutron at a time, from 1 to 100. The controller sends fewer if Neutron becomes slow or rejects requests because of its load.")
}

// addFlags adds the flags that belong to no package.
func (o *options) addFlags(flags *flag.FlagSet) {
	flags.IntVar(&o.workers, "workers", 32, "Number of Networks that are reconciled concurrently, from 1 to 100. -neutron-max-requests limits their requests to Neutron.")
	flags.DurationVar(&o.shutdownTimeout, "shutdown-timeout", 20*time.Second, "Time that requests in flight get to finish after SIGTERM or SIGINT.")
	flags.DurationVar(&o.resyncPeriod, "resync-period", 30*time.Second, "Longest time until the controller detects and reverts a change that was made directly in Neutron. The period is extended if listing Neutron takes more than a tenth of it.")
	flags.BoolVar(&o.allowAdoption, "allow-adoption", false, "Allow Networks to adopt an existing Neutron network with spec.networkID. Every user who can create Networks can then take over any network of the OpenStack project.")
	flags.Var((*kube.CommaSeparated)(&o.otherClusters), "other-clusters", "Comma-separated cluster `names` (-cluster-name) of other clusters that share the OpenStack project. A new Network does not wait because one of them has a Network of the same namespace and name.")
	flags.StringVar(&o.drift, "drift", driftCorrect, "What to do when somebody changes a network or subnet directly in Neutron: correct or report. spec.driftPolicy of a Network overrides it.")
	flags.StringVar(&o.leaveCloud, "leave-cloud", "", "The `identity` of a cloud to leave, such as RegionOne/<project ID>. Networks whose network is in that cloud get a new one in the cloud that the controller is connected to; the existing one is left unchanged. Without the flag, the controller does not change Networks whose network is in another cloud.")
	flags.BoolVar(&o.deleteOrphans, "delete-orphans", false, "Delete Neutron networks that carry an owner marker of this cluster but have no Network object. If false, the controller only logs and counts them.")
	flags.DurationVar(&o.orphanGracePeriod, "orphan-grace-period", 10*time.Minute, "Minimum time between the detection of an orphaned Neutron network and its deletion. Has an effect only with -delete-orphans.")
	flags.IntVar(&o.orphanLimit, "max-orphan-deletions", 10, "Largest number of orphaned Neutron networks that the controller deletes. If there are more at a time, it deletes none of them: an old backup of the cluster may have been restored. 0 means no limit. Has an effect only with -delete-orphans.")
	flags.IntVar(&o.maxNetworks, "max-networks-per-namespace", 0, "Largest number of networks in Neutron for the Networks of a namespace. It includes retained and orphaned networks, which no ResourceQuota counts. 0 means no limit.")
}

// validate returns an error that names the flag with an invalid value.
func (o options) validate(arguments []string, given map[string]bool) error {
	switch {
	case len(arguments) > 0:
		return fmt.Errorf("unexpected argument %q: the commands are %s and %s, which come first, and all options are flags", commandline.Redact(arguments[0]), planCommand, followCommand)
	case given["cloud"] && o.cloud == "":
		return errors.New("-cloud is empty: set it to the name of a cloud in clouds.yaml")
	case o.workers < 1 || o.workers > 100:
		return fmt.Errorf("-workers is %d: it must be between 1 and 100", o.workers)
	case o.maxRequests < 1 || o.maxRequests > 100:
		return fmt.Errorf("-neutron-max-requests is %d: it must be between 1 and 100", o.maxRequests)
	case o.shutdownTimeout <= 0:
		return fmt.Errorf("-shutdown-timeout is %v: it must be positive", o.shutdownTimeout)
	case o.neutronTimeout <= 0:
		return fmt.Errorf("-neutron-timeout is %v: it must be positive", o.neutronTimeout)
	case o.neutronTimeout > maxNeutronTimeout:
		return fmt.Errorf("-neutron-timeout is %v: it must be at most %v, because a worker waits as long for one response", o.neutronTimeout, maxNeutronTimeout)
	case o.resyncPeriod < time.Second:
		return fmt.Errorf("-resync-period is %v: it must be at least 1s", o.resyncPeriod)
	case o.orphanGracePeriod <= 0:
		return fmt.Errorf("-orphan-grace-period is %v: it must be positive", o.orphanGracePeriod)
	case o.orphanLimit < 0:
		return fmt.Errorf("-max-orphan-deletions is %d: it must be positive, or 0 for no limit", o.orphanLimit)
	case o.maxNetworks < 0:
		return fmt.Errorf("-max-networks-per-namespace is %d: it must be positive, or 0 for no limit", o.maxNetworks)
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
		o.debugPage.Validate(),
	)
}

// chooseNeutron selects the Neutron. In a cluster, the embedded one is never the
// default: its networks would replace those of a cloud whose name is missing.
func (o *options) chooseNeutron(given map[string]bool, fromEnvironment string, isInPod bool) error {
	embedded := o.embeddedNeutron || given["embedded-neutron-address"]
	switch {
	case given["cloud"] && given["neutron-endpoint"], given["cloud"] && embedded, given["neutron-endpoint"] && embedded:
		return errors.New("-cloud, -neutron-endpoint and -embedded-neutron (with -embedded-neutron-address) exclude each other: set one of them")
	case given["cloud"], given["neutron-endpoint"]:
	case embedded:
		o.embeddedNeutron = true
	case fromEnvironment != "":
		o.cloud = fromEnvironment
	case isInPod || given["embedded-neutron"]:
		return errors.New("no Neutron configured: set -cloud or OS_CLOUD for a cloud in clouds.yaml, -neutron-endpoint for a Neutron without authentication, or -embedded-neutron for a trial whose networks exist in memory only (in a pod, none of them is the default)")
	default:
		o.embeddedNeutron = true
	}
	return nil
}

// isDemo reports whether the controller is outside of a cluster, with a Neutron on this
// machine.
func (o options) isDemo() bool {
	endpoint, err := url.Parse(o.neutronEndpoint)
	return !kube.IsInPod() && (o.embeddedNeutron || err == nil && net.ParseIP(endpoint.Hostname()).IsLoopback())
}
