package deployments

import (
	"errors"
	"flag"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/samplecrd/network-controller/pkg/kube"
)

// Which selects Deployments.
type Which string

// The values of -deployment-networks.
const (
	Annotated Which = "annotated"
	All       Which = "all"
	None      Which = "none"
)

// Options say which Deployments get which Networks.
type Options struct {
	Which Which
	// DefaultSubnetPool is the name or ID of the subnet pool of Deployments without
	// annotations, with All.
	DefaultSubnetPool string
	// ExcludedNamespaces are those whose Deployments are ignored.
	ExcludedNamespaces []string
}

// AddFlags adds the flags of the options.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	o.ExcludedNamespaces = []string{metav1.NamespaceSystem}
	flags.StringVar((*string)(&o.Which), "deployment-networks", string(Annotated),
		"Which Deployments get a Network of the same name: annotated (those with annotations that request one), all (every "+
			"Deployment that does not opt out) or none.")
	flags.StringVar(&o.DefaultSubnetPool, "default-subnet-pool", "", "The `name` or ID of the subnet pool for "+
		"Deployments without annotations. Required with -deployment-networks=all.")
	flags.Var((*kube.CommaSeparated)(&o.ExcludedNamespaces), "exclude-deployment-namespaces",
		"Comma-separated `namespaces` whose Deployments are ignored.")
}

// Validate returns an error that names the flag with an invalid value.
func (o Options) Validate() error {
	switch {
	case o.Which != Annotated && o.Which != All && o.Which != None:
		return fmt.Errorf("-deployment-networks is %q: it must be annotated, all or none", o.Which)
	case o.Which == All && o.DefaultSubnetPool == "":
		return errors.New("-deployment-networks=all requires -default-subnet-pool, the subnet pool of Deployments without " +
			"annotations")
	case o.Which != All && o.DefaultSubnetPool != "":
		return errors.New("-default-subnet-pool requires -deployment-networks=all")
	}
	return nil
}
