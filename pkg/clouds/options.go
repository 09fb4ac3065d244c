package clouds

import (
	"flag"
	"fmt"
	"time"

	"github.com/samplecrd/network-controller/pkg/kube"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
)

// SecretName is the name of the Secret that gives a namespace a cloud of its own. The
// controller may have the right to read this one, and no other.
const SecretName = "samplecrd-cloud" //nolint:gosec // a name

// The keys of the Secret. Cluster API and ORC use the same ones.
const (
	keyCloudsYAML    = "clouds.yaml"
	keyCACertificate = "cacert" // optional
)

// Options configure a Set.
type Options struct {
	// AllowedURLs are the Identity services that a Secret may name. Without one, no Secret
	// is read.
	AllowedURLs []string
	// CheckPeriod is how often a Secret is read again.
	CheckPeriod time.Duration
	// GracePeriod is how long a namespace keeps its cloud after its Secret has disappeared.
	GracePeriod time.Duration
	// MoveDelay is how long nobody reconciles a namespace that gets new credentials for the
	// project that it had: as long as Neutron may execute a request. Defaults to that.
	MoveDelay time.Duration
	// Workers is the number of Networks of a cloud that are reconciled concurrently.
	Workers int
}

// AddFlags adds the flags of the options.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	flags.Var((*kube.CommaSeparated)(&o.AllowedURLs), "allowed-auth-urls",
		"Comma-separated `URLs` of the Identity services (auth_url) that the Secret "+SecretName+" of a namespace may name. "+
			"The Networks of a namespace with this Secret are made in the cloud of its clouds.yaml. "+
			"Without the flag, no Secret is read.")
}

// Validate returns an error that names the flag with an invalid value.
func (o Options) Validate() error {
	if _, err := openstack.ParseAddresses(o.AllowedURLs); err != nil {
		return fmt.Errorf("-allowed-auth-urls: %w", err)
	}
	return nil
}

// IsEnabled reports whether namespaces can have clouds of their own.
func (o Options) IsEnabled() bool { return len(o.AllowedURLs) > 0 }
