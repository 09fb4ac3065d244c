package reconcile

import (
	"net/netip"

	"k8s.io/client-go/tools/cache"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
)

// laterOfRange returns the keys of the Networks with the range of an older one in their
// namespace.
func laterOfRange(networks []*samplecrdv1.Network) map[cache.ObjectName]bool {
	type location struct {
		namespace string
		cidr      netip.Prefix
	}
	later := map[cache.ObjectName]bool{}
	oldest := map[location]*samplecrdv1.Network{}
	for _, network := range networks {
		cidr, err := netip.ParsePrefix(network.Spec.CIDR)
		if err != nil || network.DeletionTimestamp != nil { // err: a subnet pool allocates the range
			continue
		}
		at := location{network.Namespace, cidr.Masked()}
		older := oldest[at]
		if older == nil {
			oldest[at] = network
			continue
		}
		if age := network.CreationTimestamp.Compare(older.CreationTimestamp.Time); age < 0 ||
			age == 0 && network.Name < older.Name {
			oldest[at], network = network, older
		}
		later[cache.MetaObjectToName(network)] = true
	}
	return later
}
