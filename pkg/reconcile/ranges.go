package reconcile

import (
	"cmp"
	"net/netip"

	"k8s.io/client-go/tools/cache"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
)

// NoteRanges finds the Networks with the range of an older one in their namespace: their
// status says so. Two networks may have one range, but hardly ever on purpose.
func (r *Reconciler) NoteRanges(networks []*samplecrdv1.Network) {
	later := laterOfRange(networks)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.laterOfRange = later
}

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
		switch {
		case older == nil:
			oldest[at] = network
			continue
		case byAge(network, older) < 0:
			oldest[at], network = network, older
		}
		later[cache.MetaObjectToName(network)] = true
	}
	return later
}

func byAge(a, b *samplecrdv1.Network) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// sharesRange reports whether an older Network of the namespace had the range of a Network
// when the Networks were last compared.
func (r *Reconciler) sharesRange(key cache.ObjectName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.laterOfRange[key]
}
