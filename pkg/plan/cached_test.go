package plan_test

import (
	"testing"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
)

// TestNextFromCache: a step that Neutron would not reject if the cache is out of date
// is preceded by a look.
func TestNextFromCache(t *testing.T) {
	otherRange := desiredFor("cidr: 10.9.0.0/24")
	edited := desiredFor("cidr: 192.168.0.0/16, gateway: 192.168.0.9")
	look := plan.FindNetwork{Filter: markerFilter}
	ours := foundByMarker(recorded, network).After(findSubnets, ourSubnet)
	for name, test := range map[string]struct {
		desired plan.Desired
		actual  plan.Actual
		want    plan.Step // nil for the step without a look
	}{
		"edit":   {edited, ours, nil},
		"delete": {absent, ours, nil},
		"delete the network that was just updated":   {absent, ours.After(retainNetwork, network), nil},
		"delete what is gone":                        {absent, foundByID(foundByMarker(recorded)), look},
		"delete what this plan has deleted":          {absent, ours.After(deleteNetwork, nil), nil},
		"delete a duplicate":                         {absent, foundByMarker(recorded, network, duplicate).After(findSubnets, ourSubnet), look},
		"delete a duplicate of a good network":       {present, foundByMarker(recorded, network, duplicate).After(findSubnets, ourSubnet), look},
		"replace the subnet":                         {otherRange, ours, look},
		"delete a duplicate of a subnet":             {present, ours.After(findSubnets, []neutron.Subnet{subnet, oldRange}), look},
		"create for an object that was there before": {present, foundByMarker(fresh), look},
		"create for a new object":                    {present, foundByMarker(newObject).After(plan.AddFinalizer{}, nil), nil},
		"create the subnet":                          {present, foundByMarker(recorded, empty), look},
	} {
		want, cached := test.want, test.actual
		if want == nil {
			want = plan.Next(test.desired, test.actual)
		}
		cached.Cached = true
		checkNext(t, map[string]row{name: {test.desired, cached, want}})
	}
}
