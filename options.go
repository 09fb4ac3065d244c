package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	"github.com/samplecrd/network-controller/pkg/clouds"
	"github.com/samplecrd/network-controller/pkg/commandline"
	"github.com/samplecrd/network-controller/pkg/deployments"
	"github.com/samplecrd/network-controller/pkg/drift"
	"github.com/samplecrd/network-controller/pkg/glass"
	"github.com/samplecrd/network-controller/pkg/kube"
	"github.com/samplecrd/network-controller/pkg/leaderelection"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/observe"
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
	debugPage      glass.Options
	preview        preview.Options // of the command plan
	reconcile      reconcile.Options
	drift          drift.Options
	clouds         clouds.Options

	workers         int
	maxRequests     int // to Neutron at a time
	shutdownTimeout time.Duration
	cloud           string
	neutronEndpoint string
	neutronIdentity string // of the Neutron at the endpoint; set by connectNeutron
	neutronTimeout  time.Duration
	embeddedNeutron bool
	embeddedAddress string
	onDrift         string
	deleteOrphans   bool
	loggingFormat   string

	name   string   // of the controller, in the names of its informers
	given  []string // the flags that were given, for the log
	plan   bool     // the command is plan, and not to run the controller
	logger klog.Logger
}

// The commands other than to run the controller.
const (
	planCommand   = "plan"
	followCommand = "follow"
)

// The values of -drift.
const (
	driftCorrect = "correct"
	driftReport  = "report"
)

// defaults are the options without the values of flags. They are a variable, as the wall
// clock is, for a file that test/chaos adds to this package.
var defaults = options{
	name: controllerName,
	reconcile: reconcile.Options{
		FieldManager: controllerName,
		MaxInFlight:  30 * time.Second,
		MaxLateness:  10 * time.Minute, // a database that fails over may keep a request for minutes
		MaxClockSkew: time.Minute,
		Retry:        reconcile.DefaultRetryDelays(),
	},
	drift: drift.Options{StartTimeout: 30 * time.Second}, // 10,000 networks take about 10 seconds
	clouds: clouds.Options{
		CheckPeriod: 30 * time.Second, GracePeriod: time.Minute, Workers: 8,
	},
}

// wallClock is the clock of this machine, which somebody may set.
var wallClock clock.PassiveClock = clock.RealClock{}

// maxNeutronTimeout bounds -neutron-timeout: a worker waits as long for one response.
const maxNeutronTimeout = 10 * time.Minute

// description is the beginning of the output of -help.
const description = controllerName +
	` creates and maintains a network in OpenStack Neutron for every Network object in a
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
	o, flags, printVersion := defaults, commandline.New(controllerName), false
	about := description
	if o.plan = len(args) > 0 && args[0] == planCommand; o.plan {
		args = append(preview.InheritedFlags(controllerName), args[1:]...)
		about = preview.Description(controllerName)
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
		f.StringVar(&o.loggingFormat, "logging-format", "text",
			"Log format: text or json. With json, -v is the only klog flag that has an effect.")
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
		json := slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.Level(-verbosity)})
		klog.SetSlogLogger(slog.New(json))
	}
	o.logger = klog.Background()
	return o, nil
}

// usageExitCode is the exit code after an invalid flag.
func (o options) usageExitCode() int {
	if o.plan {
		return 1 // 2 means that there is something to do
	}
	return 2
}

// addNeutronFlags adds the flags that select a Neutron.
func (o *options) addNeutronFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.cloud, "cloud", "",
		"The `name` of the cloud in clouds.yaml. Defaults to the environment variable OS_CLOUD.")
	flags.StringVar(&o.neutronEndpoint, "neutron-endpoint", "",
		"The `URL` of a Neutron API without authentication, such as http://127.0.0.1:9696.")
	flags.BoolVar(&o.embeddedNeutron, "embedded-neutron", false,
		"Use the embedded Neutron, which keeps networks in memory only. Outside of a cluster, this is the default "+
			"without -cloud, OS_CLOUD and -neutron-endpoint. In a pod, the controller then exits.")
	flags.StringVar(&o.embeddedAddress, "embedded-neutron-address", "127.0.0.1:0",
		"Loopback `address` on which the embedded Neutron listens. Port 0 selects a free port.")
	flags.DurationVar(&o.neutronTimeout, "neutron-timeout", 30*time.Second,
		fmt.Sprintf("Timeout of a single request to Neutron. At most %v.", maxNeutronTimeout))
	flags.IntVar(&o.maxRequests, "neutron-max-requests", 16,
		"Largest number of requests to Neutron at a time, from 1 to 100. The others wait for their turn.")
	o.clouds.AddFlags(flags)
}

// addFlags adds the flags that belong to no package.
func (o *options) addFlags(flags *flag.FlagSet) {
	flags.IntVar(&o.workers, "workers", 32,
		"Number of Networks that are reconciled concurrently, from 1 to 100. "+
			"-neutron-max-requests limits their requests to Neutron.")
	flags.DurationVar(&o.shutdownTimeout, "shutdown-timeout", 20*time.Second,
		"Time that requests in flight get to finish after SIGTERM or SIGINT.")
	flags.DurationVar(&o.drift.ResyncPeriod, "resync-period", 30*time.Second,
		"Longest time until the controller detects and reverts a change that was made directly in Neutron. "+
			"The period is extended if listing Neutron takes more than a tenth of it.")
	flags.Var(&o.reconcile.AllowAdoption, "allow-adoption",
		"Allow Networks to adopt an existing Neutron network with spec.networkID: in all namespaces, or in comma-separated "+
			"`namespaces`. Every user who can create Networks there can then take over any network of the OpenStack project.")
	flags.Var((*kube.CommaSeparated)(&o.reconcile.OtherClusters), "other-clusters",
		"Comma-separated cluster `names` (-cluster-name) of other clusters that share the OpenStack project. "+
			"A new Network does not wait because one of them has a Network of the same namespace and name.")
	flags.StringVar(&o.onDrift, "drift", driftCorrect,
		"What to do when somebody changes a network or subnet directly in Neutron: correct or report. "+
			"spec.driftPolicy of a Network overrides it.")
	flags.StringVar(&o.reconcile.LeaveCloud, "leave-cloud", "",
		"The `identity` of a cloud to leave, such as RegionOne/<project ID>. Networks whose network is in that cloud "+
			"get a new one in the cloud that the controller is connected to; the existing one is left unchanged. "+
			"Without the flag, the controller does not change Networks whose network is in another cloud.")
	flags.BoolVar(&o.deleteOrphans, "delete-orphans", false,
		"Delete Neutron networks that carry an owner marker of this cluster but have no Network object. "+
			"If false, the controller only logs and counts them.")
	flags.DurationVar(&o.drift.OrphanGracePeriod, "orphan-grace-period", 10*time.Minute,
		"Minimum time between the detection of an orphaned Neutron network and its deletion. "+
			"Has an effect only with -delete-orphans.")
	flags.IntVar(&o.drift.MaxOrphanDeletions, "max-orphan-deletions", 10,
		"Largest number of orphaned Neutron networks that the controller deletes. If there are more at a time, "+
			"it deletes none of them: an old backup of the cluster may have been restored. 0 means no limit. "+
			"Has an effect only with -delete-orphans.")
	flags.IntVar(&o.reconcile.MaxNetworksPerNamespace, "max-networks-per-namespace", 0,
		"Largest number of networks in Neutron for the Networks of a namespace. "+
			"It includes retained and orphaned networks, which no ResourceQuota counts. 0 means no limit.")
}

// validate returns an error that names the flag with an invalid value.
func (o options) validate(arguments []string, given map[string]bool) error {
	if len(arguments) > 0 {
		return fmt.Errorf("unexpected argument %q: the commands are %s and %s, which come first, and all options are flags",
			commandline.Redact(arguments[0]), planCommand, followCommand)
	}
	const positiveOrNone = "be positive, or 0 for no limit"
	perNamespace := o.reconcile.MaxNetworksPerNamespace
	for _, rule := range []struct {
		flag  string
		value any
		holds bool
		must  string
	}{
		{"workers", o.workers, o.workers >= 1 && o.workers <= 100, "be between 1 and 100"},
		{"neutron-max-requests", o.maxRequests, o.maxRequests >= 1 && o.maxRequests <= 100, "be between 1 and 100"},
		{"shutdown-timeout", o.shutdownTimeout, o.shutdownTimeout > 0, "be positive"},
		{"neutron-timeout", o.neutronTimeout, o.neutronTimeout > 0, "be positive"},
		{"neutron-timeout", o.neutronTimeout, o.neutronTimeout <= maxNeutronTimeout,
			fmt.Sprintf("be at most %v, because a worker waits as long for one response", maxNeutronTimeout)},
		{"resync-period", o.drift.ResyncPeriod, o.drift.ResyncPeriod >= time.Second, "be at least 1s"},
		{"orphan-grace-period", o.drift.OrphanGracePeriod, o.drift.OrphanGracePeriod > 0, "be positive"},
		{"max-orphan-deletions", o.drift.MaxOrphanDeletions, o.drift.MaxOrphanDeletions >= 0, positiveOrNone},
		{"max-networks-per-namespace", perNamespace, perNamespace >= 0, positiveOrNone},
		{"drift", strconv.Quote(o.onDrift), o.onDrift == driftCorrect || o.onDrift == driftReport, "be correct or report"},
		{"logging-format", strconv.Quote(o.loggingFormat), o.loggingFormat == "text" || o.loggingFormat == "json",
			"be text or json"},
	} {
		if !rule.holds {
			return fmt.Errorf("-%s is %v: it must %s", rule.flag, rule.value, rule.must)
		}
	}
	switch {
	case given["cloud"] && o.cloud == "":
		return errors.New("-cloud is empty: set it to the name of a cloud in clouds.yaml")
	case given["neutron-endpoint"] && o.neutronEndpoint == "":
		return errors.New("-neutron-endpoint is empty: set it to a URL such as http://127.0.0.1:9696")
	case o.reconcile.AllowAdoption != nil && o.kube.AreNamespacesLimited():
		return errors.New("-allow-adoption cannot be combined with -namespaces: " +
			"controllers of different namespaces could adopt the same Neutron network and not detect the conflict")
	}
	return errors.Join(
		o.kube.Validate(given),
		o.leaderElection.Validate(),
		o.deployments.Validate(),
		o.clouds.Validate(),
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
		return errors.New("-cloud, -neutron-endpoint and -embedded-neutron (with -embedded-neutron-address) " +
			"exclude each other: set one of them")
	case given["cloud"], given["neutron-endpoint"]:
	case embedded:
		o.embeddedNeutron = true
	case fromEnvironment != "":
		o.cloud = fromEnvironment
	case o.clouds.IsEnabled() && !given["embedded-neutron"]: // each namespace needs its own cloud
	case isInPod || given["embedded-neutron"]:
		return errors.New("no Neutron configured: set -cloud or OS_CLOUD for a cloud in clouds.yaml, " +
			"-neutron-endpoint for a Neutron without authentication, or -embedded-neutron for a trial " +
			"whose networks exist in memory only (in a pod, none of them is the default)")
	default:
		o.embeddedNeutron = true
	}
	return nil
}

// hasOwnNeutron reports whether the controller has a Neutron for all namespaces.
func (o options) hasOwnNeutron() bool {
	return o.cloud != "" || o.neutronEndpoint != "" || o.embeddedNeutron
}

// forCluster returns the options for the cluster of this name.
func (o options) forCluster(cluster string) options {
	o.reconcile.Cluster, o.drift.Cluster = cluster, cluster
	o.reconcile.ReportDrift = o.onDrift == driftReport
	o.reconcile.Alone = !o.leaderElection.IsEnabled()
	o.clouds.MoveDelay = cmp.Or(o.clouds.MoveDelay, o.neutronTimeout+o.reconcile.MaxInFlight)
	if !o.deleteOrphans {
		o.drift.OrphanGracePeriod = 0 // it never ends
	}
	return o
}

// previewCommand returns the command plan for a controller with these options.
func (o options) previewCommand() preview.Command {
	return preview.Command{
		Options: o.preview, Program: controllerName, Kube: o.kube, Explain: clients{}.resource().Explain,
		Connect: func(ctx context.Context, wrap transport) (kubernetes.Interface, clientset.Interface, error) {
			_, c, err := connectKubernetes(ctx, o, observe.Nothing{}, wrap)
			return c.kube, c.networks, err
		},
		Neutron:       func() (neutron.Client, error) { return neutronOfPlan(o) },
		Reconcile:     func(cluster string) reconcile.Options { return o.forCluster(cluster).reconcile },
		DeleteOrphans: o.deleteOrphans,

		NamespacesHaveClouds: o.clouds.IsEnabled(),
		OfNamespace: func(ctx context.Context, c kubernetes.Interface, namespace string) (neutron.Client, error) {
			return o.clouds.ClientOf(ctx, c.CoreV1().Secrets(namespace), o.neutronSettings(transportOfPlan(o)))
		},
	}
}
