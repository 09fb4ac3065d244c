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
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/klog/v2"

	"github.com/samplecrd/network-controller/pkg/plan"
)

// What can be said on the command line. Leader election, serving and tracing have
// their flags where they are.

// options are the values of the flags.
type options struct {
	kubeconfig, master string
	workers            int
	shutdownTimeout    time.Duration
	clusterName        string
	cloud              string
	neutronEndpoint    string
	neutronTimeout     time.Duration
	embeddedAddress    string
	resyncPeriod       time.Duration
	allowAdoption      bool
	deleteOrphans      bool
	orphanGracePeriod  time.Duration
	deployments        DeploymentOptions
	namespaces         []string // empty for all
	election           election
	serving            servingOptions
	tracing            tracingOptions
	loggingFormat      string

	settings []string // the flags that were given, for the log
}

// parseFlags reads the command line and sets up logging as it says.
func parseFlags(args []string) (options, error) {
	o := options{deployments: DeploymentOptions{ExcludedNamespaces: []string{metav1.NamespaceSystem}}}
	flags, printVersion := flag.NewFlagSet(controllerName, flag.ContinueOnError), false
	o.addFlags(flags)
	o.election.addFlags(flags)
	o.serving.addFlags(flags)
	o.tracing.addFlags(flags)
	flags.BoolVar(&printVersion, "version", false, "Print the version and exit.")
	klog.InitFlags(flags)

	flags.SetOutput(io.Discard) // the caller reports an error, in a line
	flags.Usage = func() {}
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(os.Stdout)
		fmt.Printf("%s makes networks in OpenStack Neutron of Network objects in Kubernetes.\n\nFlags:\n", controllerName)
		flags.PrintDefaults()
		return o, err
	}
	if printVersion && err == nil {
		fmt.Println(controllerName, version, runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH)
		return o, flag.ErrHelp
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if !given["leader-elect"] {
		o.election.enabled = o.inCluster()
	}
	if err == nil {
		err = o.check(flags.Args(), given)
	}
	if err != nil {
		return o, err
	}
	o.settings = settingsOf(flags)
	if !given["cloud"] && !given["neutron-endpoint"] && !given["embedded-neutron-address"] {
		o.cloud = os.Getenv("OS_CLOUD")
	}
	if o.loggingFormat == "json" {
		verbosity, _ := strconv.Atoi(flags.Lookup("v").Value.String())
		klog.SetSlogLogger(slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.Level(-verbosity)})))
	}
	return o, nil
}

// list is a flag that has commas, or spaces, between its parts.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

// Set implements flag.Value.
func (l *list) Set(text string) error {
	parts := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	slices.Sort(parts)
	*l = slices.Compact(parts)
	return nil
}

// settingsOf returns the flags that were given, without secrets: a URL may hold
// a password, though it should not.
func settingsOf(flags *flag.FlagSet) (settings []string) {
	flags.Visit(func(f *flag.Flag) {
		settings = append(settings, f.Name+"="+login.ReplaceAllString(f.Value.String(), "://…@"))
	})
	return settings
}

// login is where a URL, or something like one, names who logs in.
var login = regexp.MustCompile(`://.*@`)

// inCluster reports whether the program uses the configuration that Kubernetes
// gives to those who run in it.
func (o options) inCluster() bool {
	_, err := os.Stat(ownNamespaceFile)
	return o.kubeconfig == "" && o.master == "" && err == nil
}

// watched are the namespaces that are looked at, or metav1.NamespaceAll.
func (o options) watched() []string {
	if len(o.namespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return o.namespaces
}

// addFlags defines the flags that have no group of their own.
func (o *options) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "`path` of the kubeconfig file. Without it, the in-cluster configuration is used.")
	flags.StringVar(&o.master, "master", "", "`URL` of the API server, in place of the one in the kubeconfig file.")
	flags.IntVar(&o.workers, "workers", 5, "How many Networks are worked on at the same time, from 1 to 100.")
	flags.DurationVar(&o.shutdownTimeout, "shutdown-timeout", 20*time.Second, "How long requests in flight may take to finish after SIGTERM or SIGINT.")
	flags.StringVar(&o.clusterName, "cluster-name", "", "`name` that tells this cluster's networks from other clusters' in the same OpenStack project. It must never change. By default, the UID of the namespace kube-system.")
	flags.StringVar(&o.cloud, "cloud", "", "`name` of the cloud in clouds.yaml whose Neutron to use. By default, the one in the environment variable OS_CLOUD. Without either, an embedded Neutron is used, which has networks in memory only.")
	flags.StringVar(&o.neutronEndpoint, "neutron-endpoint", "", "`URL` of a Neutron that asks for no authentication, such as http://127.0.0.1:9696, in place of -cloud.")
	flags.DurationVar(&o.neutronTimeout, "neutron-timeout", 30*time.Second, "How long one request to Neutron may take.")
	flags.StringVar(&o.embeddedAddress, "embedded-neutron-address", "127.0.0.1:0", "Loopback `address` at which the embedded Neutron listens; port 0 stands for a free one.")
	flags.DurationVar(&o.resyncPeriod, "resync-period", 30*time.Second, "Within which time a change that somebody makes in Neutron is noticed and put right. It stretches where listing all that Neutron has takes more than a tenth of it.")
	flags.BoolVar(&o.allowAdoption, "allow-adoption", false, "Allow Networks to name a network that is in Neutron already (spec.networkID). Whoever may write Networks can then take over any network of the OpenStack project.")
	flags.BoolVar(&o.deleteOrphans, "delete-orphans", false, "Delete networks that are marked as this cluster's and whose Network does not exist. Without it, they are logged and counted.")
	flags.DurationVar(&o.orphanGracePeriod, "orphan-grace-period", 10*time.Minute, "For how long a network must have been seen to be an orphan before -delete-orphans deletes it.")
	flags.StringVar((*string)(&o.deployments.Which), "deployment-networks", string(AnnotatedDeployments), "Which Deployments get a Network of their own name: annotated, for those that ask for one by annotation; all, for each one that does not decline; or none.")
	flags.StringVar(&o.deployments.DefaultSubnetPool, "default-subnet-pool", "", "`name` or ID of the subnet pool for Deployments that do not say what they want, with -deployment-networks=all.")
	flags.Var((*list)(&o.deployments.ExcludedNamespaces), "exclude-deployment-namespaces", "`names` of the namespaces, with commas between them, whose Deployments are not looked at.")
	flags.Var((*list)(&o.namespaces), "namespaces", "`names` of the namespaces, with commas between them, whose Networks and Deployments are looked at. (default all)")
	flags.StringVar(&o.loggingFormat, "logging-format", "text", "text or json. With json, only -v of the klog flags has an effect.")
}

// clusterNames are the names that fit into the mark of what we make.
var clusterNames = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)

// maxNeutronTimeout bounds how long we wait for Neutron: what it is at for
// longer is not recognized as ours any more.
const maxNeutronTimeout = plan.DuplicateWindow - maxInFlight

// check says which flag has a value that cannot be.
func (o options) check(rest []string, given map[string]bool) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("%q is not a flag", rest[0])
	case given["cloud"] && given["neutron-endpoint"], given["cloud"] && given["embedded-neutron-address"], given["neutron-endpoint"] && given["embedded-neutron-address"]:
		return errors.New("-cloud, -neutron-endpoint and -embedded-neutron-address name different Neutrons: give one of them")
	case given["cloud"] && o.cloud == "":
		return errors.New("-cloud is empty: it must be the name of a cloud in clouds.yaml")
	case o.workers < 1 || o.workers > 100:
		return fmt.Errorf("-workers is %d: it must be from 1 to 100", o.workers)
	case o.shutdownTimeout <= 0:
		return fmt.Errorf("-shutdown-timeout is %v: it must be positive", o.shutdownTimeout)
	case o.neutronTimeout <= 0:
		return fmt.Errorf("-neutron-timeout is %v: it must be positive", o.neutronTimeout)
	case o.neutronTimeout > maxNeutronTimeout:
		return fmt.Errorf("-neutron-timeout is %v: it must be at most %v, so that a request that was given up can be told from somebody else's", o.neutronTimeout, maxNeutronTimeout)
	case o.resyncPeriod < time.Second:
		return fmt.Errorf("-resync-period is %v: it must be at least 1s", o.resyncPeriod)
	case o.deployments.Which != AnnotatedDeployments && o.deployments.Which != AllDeployments && o.deployments.Which != NoDeployments:
		return fmt.Errorf("-deployment-networks is %q: it must be annotated, all or none", o.deployments.Which)
	case o.deployments.Which == AllDeployments && o.deployments.DefaultSubnetPool == "":
		return errors.New("-deployment-networks=all needs -default-subnet-pool, for the Deployments that do not say what they want")
	case o.deployments.Which != AllDeployments && o.deployments.DefaultSubnetPool != "":
		return errors.New("-default-subnet-pool has no effect without -deployment-networks=all")
	case o.orphanGracePeriod <= 0:
		return fmt.Errorf("-orphan-grace-period is %v: it must be positive", o.orphanGracePeriod)
	case o.clusterName != "" && !clusterNames.MatchString(o.clusterName):
		return fmt.Errorf("-cluster-name is %q: it must have at most 63 letters, digits, '-', '_' or '.', and begin and end with a letter or digit", o.clusterName)
	case o.loggingFormat != "text" && o.loggingFormat != "json":
		return fmt.Errorf("-logging-format is %q: it must be text or json", o.loggingFormat)
	}
	if given["namespaces"] && len(o.namespaces) == 0 {
		return errors.New("-namespaces is empty: leave it out to look at all of them")
	}
	if o.allowAdoption && len(o.namespaces) > 0 {
		return errors.New("-allow-adoption cannot be combined with -namespaces: a controller of other namespaces could adopt the same network, and neither would know")
	}
	for _, namespace := range o.namespaces {
		if problems := validation.IsDNS1123Label(namespace); problems != nil {
			return fmt.Errorf("-namespaces has %q, which no namespace can be called: %s", namespace, problems[0])
		}
	}
	return errors.Join(
		o.serving.check(),
		o.election.check(),
		o.tracing.check(),
	)
}
