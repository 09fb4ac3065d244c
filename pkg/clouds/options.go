package clouds

import (
	"context"
	"flag"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/samplecrd/network-controller/pkg/kube"
	"github.com/samplecrd/network-controller/pkg/neutron"
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

// ClientOf returns a client for the cloud that a namespace has of its own, or nil if it has
// none: the controller, in whose Pod this may be, may not read a Secret there.
func (o Options) ClientOf(
	ctx context.Context, secrets typedcorev1.SecretInterface, settings openstack.Options,
) (neutron.Client, error) {
	addresses, err := openstack.ParseAddresses(o.AllowedURLs)
	if err != nil {
		return nil, err
	}
	secret, err := secrets.Get(ctx, SecretName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err) && kube.IsInPod():
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("whether the namespace has a cloud of its own is unknown "+
			"(run plan in a Pod of the controller, or get the right to read the Secret): %w", err)
	}
	credentials, err := credentialsIn(secret, addresses)
	if err != nil {
		return nil, err
	}
	settings.MaxList = maxList
	return openstack.NewFromCredentials(
		func(context.Context, bool) (*openstack.Credentials, error) { return credentials, nil }, settings)
}

// maxList limits a list of Neutron's state in the cloud of a namespace, in bytes. It has room
// for about 20,000 networks.
const maxList = 16 << 20
