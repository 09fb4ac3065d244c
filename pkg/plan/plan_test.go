package plan_test

import (
	"fmt"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/util/yaml"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
)

// The types that many rows change.
type (
	spec = samplecrdv1.NetworkSpec
	net  = neutron.Network
	sub  = neutron.Subnet
)

// here is the cloud that requests go to.
const here = "RegionOne/p1"

var (
	owner  = neutron.Owner{Cluster: "c1", Namespace: "default", Name: "example"}
	marker = owner.Marker()
	ours   = owner.NetworkMarker("r1", false)

	ourSubnet = []sub{subnet}
	noSubnets = []sub{}
	createdAt = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	defaults  = neutron.NetworkSettings{AdminStateUp: new(true), PortSecurity: new(true), MTU: new(1450)}
	network   = neutron.Network{ID: "net-1", Name: "default/example", Description: ours, NetworkSettings: defaults, SubnetIDs: []string{"sub-1"}, CreatedAt: createdAt, Revision: 3}
	subnet    = neutron.Subnet{ID: "sub-1", NetworkID: "net-1", Name: "default/example", Description: marker, CIDR: prefix("192.168.0.0/16"), Gateway: addr("192.168.0.1"), Pools: plan.Pools(prefix("192.168.0.0/16"), addr("192.168.0.1")), DHCP: true, CreatedAt: createdAt, Revision: 4}

	present      = desiredFor(first)
	absent       = plan.Desired{Owner: owner, Absent: true}
	retain       = plan.Desired{Owner: owner, Absent: true, Leave: plan.LeaveAll}
	adopt        = adopting(present)
	release      = adopting(plan.Desired{Owner: owner, Absent: true, Leave: plan.LeaveNetwork})
	idFilter     = neutron.NetworkFilter{ID: "net-1"}
	markerFilter = neutron.NetworkFilter{Name: "default/example"}

	unknownCloud = plan.Actual{Finalizer: true, Cloud: here}
	fresh        = unknownCloud.After(plan.FindCloud{}, here) // nothing in the status
	newObject    = plan.Actual{}.After(plan.FindCloud{}, here)
	recorded     = with(fresh, func(a *plan.Actual) { // a full status
		a.Record = plan.Record{NetworkID: "net-1", NetworkCloud: here, SubnetID: "sub-1", MTU: 1450, DefaultMTU: 1450}
	})

	unmarked     = neutron.Network{ID: "net-1", Name: "mine", Description: "mine", NetworkSettings: defaults, Revision: 3}                                                       // with the ID, without the marker
	otherCluster = neutron.Owner{Cluster: "c2", Namespace: "default", Name: "example"}.Marker()                                                                                  // of another cluster
	duplicate    = neutron.Network{ID: "net-2", Name: network.Name, Description: owner.NetworkMarker("r2", false), NetworkSettings: defaults, CreatedAt: createdAt, Revision: 1} // created by another request
	late         = with(duplicate, func(n *net) { n.CreatedAt = createdAt.Add(-time.Minute) })                                                                                   // executed before the others
	copied       = neutron.Network{ID: "net-2", Name: network.Name, Description: ours, NetworkSettings: defaults, CreatedAt: createdAt}                                          // by a person
	foreign      = neutron.Subnet{ID: "sub-9", NetworkID: "net-1", Description: "theirs", CIDR: prefix("10.9.0.0/24")}                                                           // on our network
	empty        = with(network, func(n *net) { n.SubnetIDs = nil })
	older1       = with(network, func(n *net) { n.Description = marker }) // of an older version
	retained     = with(network, func(n *net) { n.Description = owner.RetainedMarker() })
	crowded      = with(network, func(n *net) { n.SubnetIDs = []string{"sub-1", "sub-9"} })
	oldRange     = with(subnet, func(s *sub) { s.ID, s.CIDR = "sub-2", prefix("10.0.0.0/24") }) // created with ours

	newNetwork = plan.CreateNetwork{Network: neutron.NewNetwork{Name: "default/example", Description: owner.NetworkMarker("", false)}}
	newSubnet  = plan.CreateSubnet{Subnet: neutron.NewSubnet{
		NetworkID: "net-1", Name: "default/example", Description: marker,
		CIDR: prefix("192.168.0.0/16"), SubnetSettings: neutron.SubnetSettings{Gateway: new(addr("192.168.0.1"))},
	}}
)

// first is the spec of most rows, to which others can be added.
const first = "cidr: 192.168.0.0/16, gateway: 192.168.0.1, "

// desiredFor returns the desired state of a spec, with its fields in YAML.
func desiredFor(fields string) plan.Desired {
	var spec spec
	if err := yaml.UnmarshalStrict([]byte("{"+fields+"}"), &spec); err != nil {
		panic(fields + ": " + err.Error())
	}
	return plan.DesiredFor(owner, spec)
}

func prefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }
func addr(text string) netip.Addr     { return netip.MustParseAddr(text) }

// updateSubnet returns the step that changes one setting of our subnet.
func updateSubnet(change plan.Change, settings neutron.SubnetSettings) plan.Step {
	return plan.UpdateSubnet{ID: "sub-1", Changes: []plan.Change{change}, Update: neutron.SubnetUpdate{SubnetSettings: settings, Revision: 4}}
}

// with returns a value with a change.
func with[T any](value T, change func(*T)) T {
	change(&value)
	return value
}

// adopting returns the desired state with the network net-1 adopted.
func adopting(desired plan.Desired) plan.Desired {
	desired.Adopted = "net-1"
	return desired
}

// foundByMarker returns the state after these networks were found by marker.
func foundByMarker(actual plan.Actual, networks ...neutron.Network) plan.Actual {
	return actual.After(findByMarker, networks)
}

// foundByID returns the state after these networks were found by their ID.
func foundByID(actual plan.Actual, networks ...neutron.Network) plan.Actual {
	return actual.After(findByID, networks)
}

// foundSubnets returns the state after our network and subnets on it were found.
func foundSubnets(subnets ...neutron.Subnet) plan.Actual {
	return foundByMarker(recorded, network).After(findSubnets, subnets)
}

// foundToAdopt returns the state after a network without a marker and subnets on
// it were found.
func foundToAdopt(actual plan.Actual, subnets ...neutron.Subnet) plan.Actual {
	return foundByID(actual, unmarked).After(findSubnets, subnets)
}

// compareValues makes cmp compare addresses as values.
var compareValues = cmp.Options{
	cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}),
	cmpopts.EquateEmpty(),
}

type row struct {
	desired plan.Desired
	actual  plan.Actual
	want    any // a step, or its text
}

// TestNext has each row of the decision table above Next, in its order.
func TestNext(t *testing.T) {
	for _, rows := range []map[string]row{
		absentRows, leavingRows, presentRows, duplicateRows, adoptingRows, networkRows, tagRows, subnetRows, subnetPoolRows, routerRows,
	} {
		checkNext(t, rows)
	}
}

// checkNext checks the next step of each row.
func checkNext(t *testing.T, rows map[string]row) {
	t.Helper()
	for name, test := range rows {
		t.Run(name, func(t *testing.T) {
			var got any = plan.Next(test.desired, test.actual)
			if _, isText := test.want.(string); isText {
				got = fmt.Sprint(got)
			}
			if diff := cmp.Diff(test.want, got, compareValues); diff != "" {
				t.Errorf("Next() differs (-want +got):\n- %s\n+ %s\n%s", test.want, got, diff)
			}
		})
	}
}

// Steps and ends of many rows.
var (
	otherCloud = plan.Blocked{Reason: plan.ReasonOtherCloud, Message: `the network is in the cloud "RegionTwo/p1", but the controller is connected to "RegionOne/p1". Nothing is changed in either. ` +
		`Connect the controller to "RegionTwo/p1" again, with its own settings or with the Secret samplecrd-cloud of the namespace. To create the network in "RegionOne/p1" and leave the existing one, start the controller with -leave-cloud=RegionTwo/p1.`}
	older = plan.Blocked{Reason: plan.ReasonAmbiguous, Message: "Neutron network net-1 had a marker of this Network before this Network was created. " +
		"If they belong together, for example because this Network was deleted by force and created again, confirm it: " +
		"kubectl annotate network -n default example samplecrd.k8s.io/cloud=RegionOne/p1. Otherwise change the description of the Neutron network, or delete it."}
	findByMarker    = plan.FindNetwork{Filter: markerFilter}
	findByID        = plan.FindNetwork{Filter: idFilter}
	findSubnets2    = plan.FindSubnets{Filter: neutron.SubnetFilter{NetworkID: "net-2"}}
	findSubnets     = plan.FindSubnets{Filter: neutron.SubnetFilter{NetworkID: "net-1"}}
	renameNetwork   = updateNetwork(plan.Change{What: "name", From: `"x"`, To: `"default/example"`}, neutron.NetworkSettings{})
	deleteSubnet    = plan.DeleteSubnet{ID: "sub-1", Revision: 4, From: prefix("192.168.0.0/16")}
	retainNetwork   = plan.RetainNetwork{ID: "net-1", Update: neutron.NetworkUpdate{Name: "default/example", Description: owner.RetainedMarker(), Revision: 3}}
	deleteNetwork   = plan.DeleteNetwork{ID: "net-1", Revision: 3}
	deleteDuplicate = plan.DeleteNetwork{ID: "net-2", Revision: 1, DuplicateOf: "net-1"}

	twoNetworks = `blocked: Ambiguous: Neutron has 2 networks with an owner marker of default/example (net-1, net-2), but there must be only one. Delete the ones that are not needed.`
	twoInStatus = `blocked: Ambiguous: Neutron has 2 networks with an owner marker of default/example (net-1, net-2), but there must be only one. The status names net-1. Delete the ones that are not needed.`
	twoSubnets  = `blocked: Ambiguous: Neutron has 2 subnets with an owner marker of default/example (sub-1, sub-2), but there must be only one. The status names sub-1. Delete the ones that are not needed.`
	notOurs     = `blocked: NotOurs: network net-1, which status.networkID names, does not have the owner marker of this Network: its description does not name it. If the network belongs to this Network, set the description to "samplecrd.k8s.io owner: c1/default/example". Otherwise remove status.networkID (kubectl edit --subresource=status).`
	inUse       = "blocked: InUse: network net-1 cannot be deleted: subnets that do not belong to this Network are on it (sub-9), and Neutron would delete them too. Delete them first, or set spec.deletionPolicy to Retain."
)

var absentRows = map[string]row{
	"absent, no finalizer":                                                           {absent, plan.Actual{Record: plan.Record{NetworkID: "net-1"}}, plan.Nothing{}},
	"absent, network not looked for by marker":                                       {absent, fresh, findByMarker},
	"absent, none with our marker, ID not looked for":                                {absent, foundByMarker(recorded), findByID},
	"absent, none with our marker, ID gone":                                          {absent, foundByID(foundByMarker(recorded)), plan.RemoveFinalizer{}},
	"absent, duplicate":                                                              {absent, foundByMarker(recorded, duplicate, network), deleteDuplicate},
	"absent, duplicate, and neither in the status":                                   {absent, foundByMarker(fresh, duplicate, network), deleteDuplicate},
	"absent, several networks with our marker":                                       {absent, foundByMarker(fresh, copied, network), twoNetworks},
	"absent, several networks with our marker, one in the status":                    {absent, foundByMarker(recorded, copied, network), findSubnets},
	"absent, a network with the ID but not our marker":                               {absent, foundByID(foundByMarker(recorded), unmarked), notOurs},
	"absent, a network with the ID, without our marker, but our subnet on it":        {absent, foundByID(foundByMarker(recorded), unmarked).After(findSubnets, ourSubnet), deleteNetwork},
	"absent, a network with the ID that was retained before":                         {absent, foundByID(foundByMarker(recorded), retained).After(findSubnets, ourSubnet), deleteNetwork},
	"absent, unknown cloud":                                                          {absent, unknownCloud, plan.FindCloud{}},
	"absent, another cloud":                                                          {absent, with(foundByMarker(recorded), func(a *plan.Actual) { a.Cloud = "RegionTwo/p1" }), otherCloud},
	"absent, no cloud recorded":                                                      {absent, with(foundByMarker(fresh), func(a *plan.Actual) { a.Cloud = "" }), plan.RemoveFinalizer{}},
	"absent, network with unknown subnets":                                           {absent, foundByMarker(recorded, crowded), findSubnets},
	"absent, network with a subnet and none in the status":                           {absent, foundByMarker(fresh, network), findSubnets},
	"absent, network with a foreign subnet":                                          {absent, foundByMarker(recorded, crowded).After(findSubnets, []sub{subnet, foreign}), inUse},
	"absent, network with a subnet that we cannot see":                               {absent, foundByMarker(recorded, crowded).After(findSubnets, ourSubnet), inUse},
	"absent, network with no subnet but the one in the status":                       {absent, foundByMarker(recorded, network), findSubnets},
	"absent, network with no subnet but one that was seen with our marker":           {absent, with(foundByMarker(recorded, network), func(a *plan.Actual) { a.MarkedSubnets = []string{"sub-1"} }), deleteNetwork},
	"absent, network with another subnet than the one that was seen with our marker": {absent, with(foundByMarker(recorded, crowded), func(a *plan.Actual) { a.MarkedSubnets = []string{"sub-1"} }), findSubnets},
	"absent, network with no subnet but ours":                                        {absent, foundByMarker(fresh, network).After(findSubnets, ourSubnet), deleteNetwork},
}

var leavingRows = map[string]row{
	"adopted network is deleted, with a foreign subnet of the desired range": {with(adopt, func(d *plan.Desired) { d.Absent = true }), foundByID(recorded, with(unmarked, func(n *net) { n.SubnetIDs = []string{"sub-1", "sub-9"} })).After(findSubnets, []sub{subnet, with(foreign, func(s *sub) { s.CIDR = subnet.CIDR })}), inUse},
	"adopted network is deleted, with an adopted subnet that the status names": {
		with(adopt, func(d *plan.Desired) { d.Absent = true }), foundByID(recorded, unmarked).
			After(findSubnets, []sub{with(subnet, func(s *sub) { s.Description = "mine" })}),
		"blocked: InUse: network net-1 cannot be deleted: subnets that do not belong to this Network are on it (sub-1), and Neutron would delete them too. Delete them first, or set spec.deletionPolicy to Retain.",
	},
	"retain, network not looked for":                                                  {retain, recorded, findByMarker},
	"retain, network with our marker":                                                 {retain, foundByMarker(recorded, network), retainNetwork},
	"retain, network that is retained":                                                {retain, foundByMarker(recorded, network).After(retainNetwork, retained), plan.RemoveFinalizer{}},
	"retain, network that was retained by an earlier attempt":                         {retain, foundByID(foundByMarker(recorded), retained), plan.RemoveFinalizer{}},
	"retain, no network":                                                              {retain, foundByMarker(fresh), plan.RemoveFinalizer{}},
	"retain, network without our marker, but our subnet on it":                        {retain, foundByID(foundByMarker(recorded), unmarked).After(findSubnets, ourSubnet), retainNetwork},
	"retain, network without our marker":                                              {retain, foundByID(foundByMarker(recorded), unmarked), plan.RemoveFinalizer{}},
	"retain, duplicate that was created later":                                        {retain, recorded.After(findByMarker, []neutron.Network{with(duplicate, func(n *net) { n.CreatedAt = createdAt.Add(10 * time.Second) }), retained}), deleteDuplicate},
	"retain, adopted":                                                                 {adopting(retain), recorded, plan.RemoveFinalizer{}},
	"leave the network, not looked for":                                               {release, recorded, findByID},
	"leave the network, none in the project":                                          {release, foundByID(recorded).After(findSubnets, ourSubnet), plan.RemoveFinalizer{}},
	"leave the network, subnets not looked for":                                       {release, foundByID(recorded, unmarked), findSubnets},
	"leave the network, our subnet on it":                                             {release, foundToAdopt(recorded, foreign, subnet), deleteSubnet},
	"leave the network, no subnet of ours":                                            {release, foundToAdopt(recorded, foreign), plan.RemoveFinalizer{}},
	"adopted network is deleted, not looked for":                                      {adopting(absent), recorded, findByID},
	"adopted network is deleted":                                                      {adopting(absent), foundByID(recorded, with(unmarked, func(n *net) { n.SubnetIDs = []string{"sub-1"} })).After(findSubnets, ourSubnet), deleteNetwork},
	"adopted network is deleted, but it never became ours":                            {adopting(absent), foundByID(fresh, unmarked), findSubnets},
	"adopted network is deleted, but it never became ours, though a subnet on it did": {adopting(absent), foundToAdopt(fresh, foreign, subnet), deleteSubnet},
	"adopted network is deleted, but it never became ours, nor a subnet on it":        {adopting(absent), foundToAdopt(fresh, foreign), plan.RemoveFinalizer{}},
	"network of an earlier object was not adopted":                                    {adopting(absent), foundToAdopt(fresh, subnet).After(findByID, []net{network}), plan.RemoveFinalizer{}},
	"adopted network is deleted, but another object has it":                           {adopting(absent), foundByID(recorded, with(unmarked, func(n *net) { n.Description = otherCluster })).After(findSubnets, []sub{foreign}), plan.RemoveFinalizer{}},
}

var presentRows = map[string]row{
	"invalid, nothing created": {desiredFor("cidr: nonsense"), plan.Actual{}, `blocked: InvalidSpec: spec.cidr "nonsense" is not a range in CIDR notation, such as 192.168.0.0/16 or fd00:1234::/64`},
	"invalid, all created":     {desiredFor("cidr: 192.168.0.0/16, gateway: 10.0.0.1"), recorded.After(findSubnets, ourSubnet), "blocked: InvalidSpec: spec.gateway 10.0.0.1 is not inside spec.cidr: use an address from 192.168.0.1 to 192.168.255.254"},
	"obstacle": {with(adopt, func(d *plan.Desired) {
		d.Obstacle = plan.Blocked{Reason: plan.ReasonAdoptionNotAllowed, Message: "no."}
	}), fresh, "blocked: AdoptionNotAllowed: no."},

	"present, no finalizer, network not looked for":                              {present, newObject, findByMarker},
	"present, no finalizer, no network":                                          {present, foundByMarker(newObject), plan.AddFinalizer{Cloud: here}},
	"present, no finalizer, but a retained network":                              {present, foundByMarker(newObject, retained), findSubnets},
	"present, no finalizer, but a retained network with our subnet":              {present, foundByMarker(newObject, retained).After(findSubnets, ourSubnet), plan.AddFinalizer{Cloud: here}},
	"present, no finalizer, but a retained network with a foreign subnet":        {present, foundByMarker(newObject, retained).After(findSubnets, []sub{subnet, foreign}), older},
	"present, no network, other clusters unknown":                                {present, with(foundByMarker(fresh), func(a *plan.Actual) { a.OthersUnknown = true }), plan.FindOtherClusters{Name: "default/example"}},
	"present, drift to report, but two subnets of ours":                          {with(present, func(d *plan.Desired) { d.ReportDrift = true }), foundSubnets(subnet, with(oldRange, func(s *sub) { s.CIDR = subnet.CIDR })), plan.DeleteSubnet{Duplicate: true, ID: "sub-2", Revision: 4, From: subnet.CIDR, For: "192.168.0.0/16"}},
	"absent, drift was to be reported":                                           {with(absent, func(d *plan.Desired) { d.ReportDrift = true }), foundByMarker(recorded, network).After(findSubnets, ourSubnet), deleteNetwork},
	"present, drift to report, but a duplicate":                                  {with(present, func(d *plan.Desired) { d.ReportDrift = true }), foundByMarker(recorded, network, duplicate).After(findSubnets, ourSubnet).After(findSubnets2, noSubnets), deleteDuplicate},
	"present, no finalizer, but a network with our marker that names no request": {present, foundByMarker(newObject, older1), older},
	"present, no finalizer, but a network with our marker and another name":      {present, foundByMarker(newObject, with(network, func(n *net) { n.Name = "x" })), older},
	"present, no finalizer, but a network with our marker":                       {present, foundByMarker(newObject, network), findSubnets},
	"present, no finalizer, but a network with our marker and our subnet":        {present, foundByMarker(newObject, network).After(findSubnets, ourSubnet), plan.AddFinalizer{Cloud: here}},
	"present, no finalizer, but a network with our marker and a foreign subnet":  {present, foundByMarker(newObject, network).After(findSubnets, []sub{subnet, foreign}), older},
	"present, no finalizer, a network with our marker, restored with the cloud":  {present, with(foundByMarker(newObject, network), func(a *plan.Actual) { a.Cloud = here }), plan.AddFinalizer{Cloud: here}},
	"present, no finalizer, a network with our marker, restored with the status": {present, with(foundByMarker(newObject, network), func(a *plan.Actual) { a.NetworkID = "net-1" }), plan.AddFinalizer{Cloud: here}},
	"present, no network, but one of another cluster": {
		present, with(foundByMarker(fresh), func(a *plan.Actual) { a.OtherClusters = []string{"c2"} }),
		plan.Blocked{Reason: plan.ReasonOtherCluster, Message: `Neutron has a network of a Network default/example that belongs to the cluster "c2", but this cluster is "c1". ` +
			`If this cluster replaces that one, start the controller with -cluster-name=c2. If both clusters share the OpenStack project, start it with -other-clusters=c2.`},
	},
	"present, our network, and one of another cluster":           {present, with(foundByMarker(recorded, network).After(findSubnets, ourSubnet), func(a *plan.Actual) { a.OtherClusters = []string{"c2"} }), plan.Nothing{}},
	"present, unknown cloud":                                     {present, unknownCloud, plan.FindCloud{}},
	"present, no cloud recorded":                                 {present, with(recorded, func(a *plan.Actual) { a.Cloud = "" }), plan.AddFinalizer{Cloud: here}},
	"present, another cloud":                                     {present, with(recorded, func(a *plan.Actual) { a.Cloud = "RegionTwo/p1" }), otherCloud},
	"retain, another cloud":                                      {retain, with(recorded, func(a *plan.Actual) { a.Cloud = "RegionTwo/p1" }), otherCloud},
	"adopting, another cloud":                                    {adopt, with(recorded, func(a *plan.Actual) { a.Cloud = "RegionTwo/p1" }), otherCloud},
	"present, network not looked for by marker":                  {present, recorded, findByMarker},
	"present, none with our marker, ID not looked for":           {present, foundByMarker(recorded), findByID},
	"present, no network":                                        {present, foundByMarker(fresh), newNetwork},
	"present, several networks with our marker":                  {present, foundByMarker(fresh, network, copied), twoNetworks},
	"present, a network with the ID but not our marker":          {present, foundByID(foundByMarker(recorded), unmarked), notOurs},
	"present, a network with the ID and another object's marker": {present, foundByID(foundByMarker(recorded), with(network, func(n *net) { n.Description = otherCluster + "-2" })), notOurs},
	"present, a network with the ID and our marker, but of another cluster": {present, foundByID(foundByMarker(recorded), with(network, func(n *net) { n.Description = otherCluster })),
		`blocked: NotOurs: network net-1, which status.networkID names, has an owner marker of the cluster "c2", but this cluster is "c1". If both are the same cluster, restore its name with -cluster-name. Otherwise remove status.networkID (kubectl edit --subresource=status).`},
	"present, a network with the ID, without our marker, subnets not looked for": {present, foundByID(foundByMarker(recorded), with(unmarked, func(n *net) { n.SubnetIDs = []string{"sub-1"} })), findSubnets},
	"present, a network with the ID, without our marker, but our subnet on it": {present, foundByID(foundByMarker(recorded), unmarked).After(findSubnets, ourSubnet),
		plan.UpdateNetwork{ID: "net-1", Changes: []plan.Change{{What: "name", From: strconv.Quote("mine"), To: `"default/example"`}, {What: "description", From: strconv.Quote("mine"), To: strconv.Quote(owner.NetworkMarker("", false))}}, Update: neutron.NetworkUpdate{Name: "default/example", Description: owner.NetworkMarker("", false), Revision: 3}}},
	"present, our network, with another name": {present, foundByMarker(recorded, with(network, func(n *net) { n.Name = "x" })), renameNetwork},
	"present, our network, retained before": {
		present, foundByMarker(fresh.After(plan.FindExtensions{}, allExtensions), retained),
		plan.UpdateNetwork{
			ID:      "net-1",
			Changes: []plan.Change{{What: "description", From: strconv.Quote(owner.RetainedMarker()), To: strconv.Quote(owner.NetworkMarker("", true))}, {What: "MTU", From: "1450", To: "the largest allowed"}},
			Update:  neutron.NetworkUpdate{Name: "default/example", Description: owner.NetworkMarker("", true), NetworkSettings: neutron.NetworkSettings{MTU: new(0)}, Revision: 3},
		},
	},
	"present, our network, subnets not looked for":                 {present, foundByMarker(recorded, network), findSubnets},
	"present, our network, without subnets":                        {present, foundByMarker(recorded, empty), newSubnet},
	"present, our network, just created":                           {present, foundByMarker(fresh).After(retainNetwork, empty), newSubnet},
	"present, our subnet, with another CIDR that overlaps":         {desiredFor("cidr: 192.168.0.0/24"), foundSubnets(subnet), plan.DeleteSubnet{ID: "sub-1", Revision: 4, From: prefix("192.168.0.0/16"), For: "192.168.0.0/24"}},
	"present, our subnet, with another CIDR, ports not looked for": {desiredFor("cidr: 10.0.0.0/24"), foundSubnets(subnet), plan.FindPorts{NetworkID: "net-1"}},
	"present, our subnet, with another CIDR, in use": {desiredFor("cidr: 10.0.0.0/24"), foundSubnets(subnet).After(findPorts, []neutron.Port{{ID: "port-1", SubnetIDs: []string{"sub-1"}}, {ID: "port-2"}}),
		"blocked: InUse: cannot replace subnet 192.168.0.0/16 by 10.0.0.0/24: ports use subnet sub-1 (port-1). Delete the ports, or restore the previous spec."},
	"present, our subnet, with another CIDR, not in use": {desiredFor("cidr: 10.0.0.0/24"), foundSubnets(subnet).After(findPorts, noPorts), with(newSubnet, func(s *plan.CreateSubnet) {
		s.Subnet.CIDR, s.Subnet.Gateway = prefix("10.0.0.0/24"), new(addr("10.0.0.1"))
	})},
	"present, our subnet, and the one that replaces it":          {desiredFor("cidr: 10.0.0.0/24"), foundSubnets(subnet, with(oldRange, func(s *sub) { s.Gateway = addr("10.0.0.1") })), plan.DeleteSubnet{ID: "sub-1", Revision: 4, From: prefix("192.168.0.0/16"), For: "10.0.0.0/24"}},
	"present, our subnet, without its marker, and another range": {desiredFor("cidr: 10.0.0.0/24"), foundSubnets(with(subnet, func(s *sub) { s.Description = "" })), `blocked: NotOurs: subnet sub-1 with the range 192.168.0.0/16 is on network net-1, but does not have the owner marker of this Network. If it belongs to this Network, set its description to "samplecrd.k8s.io owner: c1/default/example". Otherwise delete it.`},
	"present, only a foreign subnet of another range":            {present, foundSubnets(foreign), newSubnet},
	"present, our subnet, without its marker": {present, foundSubnets(with(subnet, func(s *sub) { s.Name, s.Description = "x", "" })),
		`blocked: NotOurs: subnet sub-1 with the range 192.168.0.0/16 is on network net-1, but does not have the owner marker of this Network. If it belongs to this Network, set its description to "samplecrd.k8s.io owner: c1/default/example". Otherwise delete it.`},
	"present, all as desired":                {present, foundSubnets(foreign, subnet), plan.Nothing{}},
	"present, all as desired with host bits": {desiredFor("cidr: 192.168.1.0/16"), foundSubnets(subnet), plan.Nothing{}},
}

// TestDuplicates checks when a second network with our marker is deleted.
func TestDuplicates(t *testing.T) {
	described := func(text string) func(*net) { return func(n *net) { n.Description = text } }
	withSubnet := func(id string) func(*net) { return func(n *net) { n.SubnetIDs = []string{id} } }
	retainAgain := with(retainNetwork, func(s *plan.RetainNetwork) { s.ID, s.Update.Revision = "net-2", 1 })
	for name, test := range map[string]struct {
		change  func(*net)       // of the second network
		subnets []neutron.Subnet // on it
		want    any
	}{
		"all as we create it":           {func(*net) {}, nil, deleteDuplicate},
		"created much later":            {func(n *net) { n.CreatedAt = createdAt.Add(240 * time.Hour) }, nil, deleteDuplicate},
		"unknown creation time":         {func(n *net) { n.CreatedAt = time.Time{} }, nil, deleteDuplicate},
		"the same request":              {described(ours), nil, twoInStatus},
		"no request":                    {described(marker), nil, twoInStatus},
		"another cluster":               {described(neutron.Owner{Cluster: "c2", Namespace: "default", Name: "example"}.NetworkMarker("r2", false)), nil, plan.Nothing{}},
		"another name":                  {func(n *net) { n.Name = "x" }, nil, twoInStatus},
		"a foreign tag":                 {func(n *net) { n.Tags = []string{"x"} }, nil, twoInStatus},
		"retained":                      {described(owner.RetainedMarker()), nil, plan.Nothing{}},
		"taken over":                    {described(owner.NetworkMarker("r2", true)), nil, retainAgain},
		"subnets not looked for":        {withSubnet("sub-2"), nil, findSubnets2},
		"a subnet of ours":              {withSubnet("sub-1"), ourSubnet, deleteDuplicate},
		"a foreign subnet":              {withSubnet("sub-9"), []sub{foreign}, twoInStatus},
		"a subnet that we cannot see":   {withSubnet("sub-9"), []sub{}, twoInStatus},
		"a subnet of ours, and another": {func(n *net) { n.SubnetIDs = []string{"sub-1", "sub-9"} }, ourSubnet, twoInStatus},
	} {
		actual := foundByMarker(recorded, with(duplicate, test.change), network).After(findSubnets, ourSubnet)
		if test.subnets != nil {
			actual = actual.After(findSubnets2, test.subnets)
		}
		checkNext(t, map[string]row{name: {present, actual, test.want}})
	}
}

var duplicateRows = map[string]row{
	"duplicate, and the status names none yet":                                          {present, foundByMarker(fresh, duplicate, network).After(findSubnets, ourSubnet), plan.Nothing{}},
	"duplicate that is older, and the status names none yet: that with subnets is ours": {present, foundByMarker(fresh, with(duplicate, func(n *net) { n.CreatedAt = createdAt.Add(-time.Minute) }), network), findSubnets},
	"late network of a former object, and a retained one":                               {present, foundByMarker(newObject, late, retained).After(findSubnets, ourSubnet), plan.AddFinalizer{Cloud: here}},
	"late network of a former object, and one that was taken over":                      {present, foundByMarker(recorded, late, network).After(findSubnets, ourSubnet).After(findSubnets2, noSubnets), deleteDuplicate},
	"late network of a former object, and one that was taken over without a status":     {present, foundByMarker(fresh, late, with(empty, func(n *net) { n.Description = owner.NetworkMarker("r3", true) })), newSubnet},
	"network of ours with subnets, and a retained one":                                  {present, foundByMarker(fresh, with(late, func(n *net) { n.SubnetIDs = []string{"sub-1"} }), retained).After(findSubnets2, []sub{with(subnet, func(s *sub) { s.NetworkID = "net-2" })}), plan.Nothing{}},
	"retain, late network of a former object, and a retained one":                       {retain, foundByMarker(fresh, late, retained).After(findSubnets2, noSubnets), plan.DeleteNetwork{ID: "net-2", Revision: 1, DuplicateOf: "net-1"}},
	"duplicate, and neither has subnets: the older one is ours":                         {present, foundByMarker(fresh, with(duplicate, func(n *net) { n.CreatedAt = createdAt.Add(time.Second) }), empty), newSubnet},
	"ours is updated although a copy has its description":                               {present, foundByMarker(recorded, copied, with(network, func(n *net) { n.Name = "x" })), renameNetwork},
	"two subnets with our marker, one with another range":                               {present, foundSubnets(subnet, oldRange), plan.DeleteSubnet{ID: "sub-2", Revision: 4, From: prefix("10.0.0.0/24"), For: "192.168.0.0/16"}},
	"two subnets with our marker, one with another name":                                {present, foundSubnets(subnet, with(oldRange, func(s *sub) { s.Name = "x" })), twoSubnets},
	"two subnets with our marker, neither as desired":                                   {desiredFor("cidr: 172.16.0.0/24"), foundSubnets(subnet, oldRange), plan.DeleteSubnet{ID: "sub-2", Revision: 4, From: prefix("10.0.0.0/24"), For: "172.16.0.0/24"}},
	"three networks, two of them of one request": {present, foundByMarker(recorded, network, duplicate, with(duplicate, func(n *net) { n.ID = "net-3" })).After(findSubnets, ourSubnet),
		`blocked: Ambiguous: Neutron has 3 networks with an owner marker of default/example (net-1, net-2, net-3), but there must be only one. The status names net-1. Delete the ones that are not needed.`},
}

// TestDeletionWithDuplicates: what is no proven duplicate, or in use, does not block the
// deletion of the object, and is left.
func TestDeletionWithDuplicates(t *testing.T) {
	found := func(others ...neutron.Network) plan.Actual {
		return foundByMarker(recorded, append(others, network)...).After(findSubnets, ourSubnet)
	}
	crowdedDuplicate := with(duplicate, func(n *net) { n.SubnetIDs = []string{"sub-9"} })
	older := with(network, func(n *net) { n.Description = marker })
	checkNext(t, map[string]row{
		"a duplicate":                          {absent, found(duplicate), deleteDuplicate},
		"a duplicate in use":                   {absent, found(duplicate).WithLeftDuplicate("net-2"), deleteNetwork},
		"ours deleted, a duplicate in use":     {absent, found(duplicate).WithLeftDuplicate("net-2").After(deleteNetwork, nil), plan.RemoveFinalizer{}},
		"a foreign subnet on a duplicate":      {absent, found(crowdedDuplicate).After(findSubnets2, []sub{foreign}), deleteNetwork},
		"a copy of the marker":                 {absent, found(copied), deleteNetwork},
		"ours deleted, and a copy":             {absent, found(copied).After(deleteNetwork, nil), plan.RemoveFinalizer{}},
		"ours of an older version, and a copy": {absent, foundByMarker(recorded, older, with(copied, func(n *net) { n.Description = marker })).After(findSubnets, ourSubnet).After(deleteNetwork, nil), plan.RemoveFinalizer{}},
	})
}

// TestGone: of an object that does not exist, only networks with a claim are deleted, and
// one that was taken over is retained again.
func TestGone(t *testing.T) {
	takenOver := with(network, func(n *net) { n.Description = owner.NetworkMarker("r1", true) })
	olderVersion := with(network, func(n *net) { n.Description = marker })
	gone := func(claims plan.Claims) plan.Desired {
		return with(absent, func(d *plan.Desired) { d.Gone, d.Claims = true, claims })
	}
	found := func(network neutron.Network) plan.Actual {
		return foundByMarker(fresh, network).After(findSubnets, ourSubnet)
	}
	checkNext(t, map[string]row{
		"no claim":                         {gone(plan.Claims{}), found(network), plan.RemoveFinalizer{}},
		"our request":                      {gone(plan.Claims{Requests: []string{"r0", "r1"}}), found(network), deleteNetwork},
		"another request":                  {gone(plan.Claims{Requests: []string{"r2"}}), found(network), plan.RemoveFinalizer{}},
		"appeared after the deletion":      {gone(plan.Claims{Released: true, Seen: []string{"r2"}}), found(network), deleteNetwork},
		"was left by the deletion":         {gone(plan.Claims{Released: true, Seen: []string{"r1"}}), found(network), plan.RemoveFinalizer{}},
		"of an older version":              {gone(plan.Claims{Released: true}), found(olderVersion), plan.RemoveFinalizer{}},
		"an orphan":                        {gone(plan.Claims{Orphans: true}), found(network), deleteNetwork},
		"an orphan of an older version":    {gone(plan.Claims{Orphans: true}), found(olderVersion), deleteNetwork},
		"retained":                         {gone(plan.Claims{Orphans: true, Released: true}), found(retained), plan.RemoveFinalizer{}},
		"taken over by our request":        {gone(plan.Claims{Requests: []string{"r1"}}), found(takenOver), retainNetwork},
		"an orphan that had been retained": {gone(plan.Claims{Orphans: true}), found(takenOver), retainNetwork},
		"taken over, and left":             {gone(plan.Claims{Released: true, Seen: []string{"r1"}}), found(takenOver), plan.RemoveFinalizer{}},
	})
	t.Run("several", func(t *testing.T) {
		gone := gone(plan.Claims{Released: true})
		actual := foundByMarker(fresh, network, copied, with(duplicate, func(n *net) { n.ID = "net-3" })).After(findSubnets, ourSubnet)
		for range 3 {
			step, ok := plan.Next(gone, actual).(plan.DeleteNetwork)
			if !ok {
				t.Fatalf("Next() = %v, want a deletion", plan.Next(gone, actual))
			}
			actual = actual.After(step, nil)
		}
		if step := plan.Next(gone, actual); step != (plan.RemoveFinalizer{}) {
			t.Errorf("at the end, Next() = %v", step)
		}
	})
}

// TestTakenOverRouter: the object that retained a network may have attached it to a router,
// which no status records any more.
func TestTakenOverRouter(t *testing.T) {
	takenOver := with(network, func(n *net) { n.Description = owner.NetworkMarker("r1", true) })
	found := foundByMarker(recorded, takenOver).After(findSubnets, ourSubnet)
	attached := found.After(findRoutes, []neutron.RouterInterface{{RouterID: "router-1", NetworkID: "net-1", SubnetID: "sub-1", Address: subnet.Gateway}})
	routed := with(present, func(d *plan.Desired) { d.Router = &plan.Router{ID: "router-1"} })
	checkNext(t, map[string]row{
		"present, the router is desired":  {routed, attached, plan.RecordRouter{ID: "router-1"}},
		"absent, interfaces not known":    {absent, found, plan.FindRouterInterfaces{NetworkID: "net-1"}},
		"absent, no router":               {absent, found.After(findRoutes, notRouted), deleteNetwork},
		"absent, on a router":             {absent, attached, "blocked: InUse: network net-1 cannot be deleted: it is attached to routers, but not by this Network (subnet sub-1 to router router-1). Detach them first (openstack router remove subnet), or set spec.deletionPolicy to Retain."},
		"present, not taken over: others": {routed, foundByMarker(recorded, network).After(findSubnets, ourSubnet).After(findRoutes, []neutron.RouterInterface{{RouterID: "router-1", NetworkID: "net-1", SubnetID: "sub-1", Address: subnet.Gateway}}), plan.Nothing{}},
	})
}

// TestClaimedByNewObject: a new object may use what the last object of its name left
// behind, whatever is on it.
func TestClaimedByNewObject(t *testing.T) {
	claiming := with(present, func(d *plan.Desired) { d.Claims.Requests = []string{"r1"} })
	actual := foundByMarker(newObject, network).After(findSubnets, []sub{subnet, foreign})
	checkNext(t, map[string]row{
		"with a claim":    {claiming, actual, plan.AddFinalizer{Cloud: here}},
		"without a claim": {present, actual, older},
	})
}

var adoptingRows = map[string]row{
	"adopting, network not looked for":                {adopt, fresh, findByID},
	"adopting, no network":                            {adopt, foundByID(fresh), "blocked: NotFound: network net-1, which spec.networkID names, does not exist, or belongs to another project than the controller."},
	"adopting, another object's network":              {adopt, foundByID(fresh, with(unmarked, func(n *net) { n.Description = otherCluster })), `blocked: NotOurs: network net-1 cannot be adopted: it has the owner marker of another Network ("samplecrd.k8s.io owner: c2/default/example").`},
	"adopting, subnets not looked for":                {adopt, foundByID(fresh, with(unmarked, func(n *net) { n.SubnetIDs = []string{"sub-9"} })), findSubnets},
	"adopting, no subnet":                             {adopt, foundByID(fresh, unmarked), newSubnet},
	"adopting, our subnet on it":                      {adopt, foundToAdopt(recorded, foreign, subnet), plan.Nothing{}},
	"adopting, a foreign subnet of the range desired": {adopt, foundToAdopt(fresh, with(subnet, func(s *sub) { s.Name, s.Description = "x", "mine" })), plan.Nothing{}},
	"adopting, a foreign subnet of the range desired, with another gateway": {
		adopt, foundToAdopt(fresh, with(subnet, func(s *sub) {
			s.Description, s.Gateway, s.Pools = "mine", addr("192.168.0.9"), pool("192.168.0.1", "192.168.0.8")
		})),
		updateSubnet(plan.Change{What: "gateway", From: "192.168.0.9", To: "192.168.0.1"}, neutron.SubnetSettings{Gateway: new(addr("192.168.0.1")), Pools: pool("192.168.0.2", "192.168.0.8")}),
	},
	"adopted, and the range of a foreign subnet is no longer desired": {adopting(desiredFor("cidr: 10.0.0.0/24")), foundToAdopt(recorded, with(subnet, func(s *sub) { s.Description = "mine" })), with(newSubnet, func(s *plan.CreateSubnet) {
		s.Subnet.CIDR, s.Subnet.Gateway = prefix("10.0.0.0/24"), new(addr("10.0.0.1"))
	})},
}

// TestOurs checks which network, subnet and router go into the status.
func TestOurs(t *testing.T) {
	later := with(subnet, func(s *sub) { s.ID, s.CreatedAt = "sub-2", createdAt.Add(time.Hour) })
	mine := with(subnet, func(s *sub) { s.Description = "mine" })
	fromOther := plan.Actual{Finalizer: true, Record: plan.Record{NetworkCloud: here, NetworkID: "net-0", SubnetID: "sub-0"}}.After(plan.FindCloud{}, here)
	full := plan.Record{NetworkCloud: here, NetworkID: "net-1", SubnetID: "sub-1", CIDR: subnet.CIDR, Gateway: subnet.Gateway, MTU: 1450, DefaultMTU: 1450}
	noSubnet := plan.Record{NetworkCloud: here, NetworkID: "net-1", MTU: 1450, DefaultMTU: 1450}
	adopted := with(full, func(r *plan.Record) { r.DefaultMTU = 0 })
	routedTo := func(record plan.Record, id, name string) plan.Record {
		record.RouterID, record.RouterName = id, name
		return record
	}
	for name, test := range map[string]struct {
		desired plan.Desired
		actual  plan.Actual
		want    plan.Record
	}{
		"not looked for":                 {present, recorded, recorded.Record},
		"not looked for by ID":           {present, foundByMarker(recorded), recorded.Record},
		"gone":                           {present, foundByID(foundByMarker(recorded)), plan.Record{NetworkCloud: here}},
		"older, and not proven":          {present, foundByMarker(newObject, older1), plan.Record{}},
		"gone, and never known":          {present, foundByMarker(fresh), plan.Record{}},
		"found":                          {present, foundByMarker(fresh, network).After(findSubnets, []sub{foreign, subnet}), full},
		"found, subnets unknown":         {present, foundByMarker(recorded, network), recorded.Record},
		"another one, subnets unknown":   {present, foundByMarker(fromOther, network), noSubnet},
		"subnet gone":                    {present, foundSubnets(foreign), noSubnet},
		"subnets ambiguous":              {present, foundSubnets(subnet, with(later, func(s *sub) { s.Name = "x" })), noSubnet},
		"subnet created":                 {present, foundByMarker(fresh).After(retainNetwork, empty).After(plan.UpdateSubnet{}, subnet), full},
		"subnet deleted":                 {present, foundSubnets(subnet).After(deleteSubnet, nil), noSubnet},
		"duplicates, one in the status":  {present, foundByMarker(recorded, duplicate, network).After(findSubnets, ourSubnet), full},
		"duplicates, none in the status": {present, foundByMarker(fresh, duplicate, network).After(findSubnets, ourSubnet), full},
		"copies, none in the status":     {present, foundByMarker(fresh, copied, network), plan.Record{}},
		"adopted":                        {adopt, foundToAdopt(fresh, mine), adopted},
		"to adopt, does not exist":       {adopt, foundByID(fresh), plan.Record{}},
		"to adopt, another's":            {adopt, foundByID(fresh, with(unmarked, func(n *net) { n.Description = otherCluster })), plan.Record{}},
		"Neutron chose the MTU":          {present, foundByMarker(fresh).After(newNetwork, empty), noSubnet},
		"the spec chose the MTU": {withMTU, foundByMarker(fresh).After(plan.CreateNetwork{Network: neutron.NewNetwork{NetworkSettings: neutron.NetworkSettings{MTU: new(1450)}}}, empty),
			plan.Record{NetworkCloud: here, NetworkID: "net-1", MTU: 1450}},
		"tags that are neither desired nor on the network": {withTags, foundByMarker(recorded, with(empty, func(n *net) { n.Tags = []string{"old", "theirs"} })).After(plan.RecordTags{Tags: []string{"blue", "gone", "old"}}, nil),
			with(noSubnet, func(r *plan.Record) { r.Tags = []string{"blue", "old"} })},
		"router recorded":               {withRouter, routedBy(attached), routedTo(full, "router-1", "edge")},
		"router by ID":                  {withRouterID, routedBy(attached), routedTo(full, "router-1", "")},
		"router renamed":                {withRouter, routed(attached).After(plan.RecordRouter{ID: "router-1", Name: "old"}, nil).After(findRouter, edgeOnly), routedTo(full, "router-1", "edge")},
		"router attached by a user":     {withRouter, routed(attached).After(findRouter, edgeOnly), full},
		"router, no network":            {withRouter, foundByMarker(recorded.After(recordEdge, nil)), routedTo(recorded.Record, "router-1", "edge")},
		"router, the object is deleted": {noRouter, routedBy(attached), routedTo(full, "router-1", "edge")},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.actual.Ours(test.desired), compareValues); diff != "" {
				t.Errorf("Ours() differs (-want +got):\n%s", diff)
			}
		})
	}
}

// steps has the texts of each step, for TestEveryStep: its action, what plans and logs
// show, what the log says that it did, and what a condition says that it is for.
var steps = map[string]plan.Step{
	" | nothing to do |  | do nothing":                                                                                                        plan.Nothing{},
	" | blocked: NotFound: No. |  | blocked: NotFound: No.":                                                                                   plan.Blocked{Reason: plan.ReasonNotFound, Message: "No."},
	"find | find network net-1 | Found networks | look up the Neutron network":                                                                findByID,
	`find | find networks with the name "default/example" | Found networks | look up the Neutron network`:                                     findByMarker,
	"find | find subnets of network net-1 | Found subnets | look up the subnets of the Neutron network":                                       findSubnets,
	"find | find subnet pool pool-1 | Found subnet pools | look up the subnet pool":                                                           plan.FindSubnetPool{Filter: neutron.SubnetPoolFilter{ID: "pool-1"}},
	`find | find subnet pool with name "one" | Found subnet pools | look up the subnet pool`:                                                  plan.FindSubnetPool{Filter: neutron.SubnetPoolFilter{Name: "one"}},
	"find | find extensions | Found extensions | look up the extensions of Neutron":                                                           plan.FindExtensions{},
	"find | find the cloud | Found cloud | find out to which cloud Neutron belongs":                                                           plan.FindCloud{},
	`find | find router with name "edge" | Found routers | look up the router`:                                                                findRouter,
	"find | find routers of network net-1 | Found router interfaces | look up the routers of the Neutron network":                             findRoutes,
	"find | find ports of network net-1 | Found ports | look up the ports of the Neutron network":                                             findPorts,
	`find | find networks of other clusters with the name "a/b" | Found other clusters | find networks of other clusters with the name "a/b"`: plan.FindOtherClusters{Name: "a/b"},

	"update | add finalizer | Added finalizer | add finalizer":                                            plan.AddFinalizer{},
	"update | remove finalizer | Removed finalizer | finish the deletion":                                 plan.RemoveFinalizer{},
	"update | record tags in the status: amber, blue | Recorded tags | record the tags in the status":     plan.RecordTags{Tags: []string{"amber", "blue"}},
	"update | record router in the status: router-1 | Recorded router | record the router in the status":  plan.RecordRouter{ID: "router-1"},
	"update | remove router router-1 from the status | Recorded router | record the router in the status": plan.RecordRouter{Replaces: "router-1"},

	"create | create network default/example | Created network | create the Neutron network":                                                                              newNetwork,
	"update | update network net-1: MTU 1 → 2, DHCP a → b | Changed network | change MTU from 1 to 2 and DHCP from a to b":                                                plan.UpdateNetwork{ID: "net-1", Changes: []plan.Change{{What: "MTU", From: "1", To: "2"}, {What: "DHCP", From: "a", To: "b"}}},
	`update | retain network net-1: description → "mine" | Retained network | mark the Neutron network net-1 as retained`:                                                 plan.RetainNetwork{ID: "net-1", Update: neutron.NetworkUpdate{Description: "mine"}},
	"delete | delete network net-1 | Deleted network | delete the Neutron network net-1":                                                                                  deleteNetwork,
	"delete | delete network net-2: duplicate of net-1, created by another request | Deleted duplicate network | delete the Neutron network net-2, a duplicate of net-1,": deleteDuplicate,
	`update | add tag "amber" to network net-1 | Added tag | add the tag "amber"`:                                                                                         plan.AddTag{ID: "net-1", Tag: "amber"},
	`update | remove tag "amber" from network net-1 | Removed tag | remove the tag "amber"`:                                                                               plan.RemoveTag{ID: "net-1", Tag: "amber"},

	"create | create subnet: 192.168.0.0/16, gateway 192.168.0.1 | Created subnet | create the subnet 192.168.0.0/16, gateway 192.168.0.1":                          newSubnet,
	"create | create subnet: 192.168.0.0/16, gateway none | Created subnet | create the subnet 192.168.0.0/16, gateway none":                                        with(newSubnet, func(s *plan.CreateSubnet) { s.Subnet.Gateway = new(none) }),
	"create | create subnet: a range from subnet pool pool-1 | Created subnet | create a subnet with a range from subnet pool pool-1":                               plan.CreateSubnet{Subnet: neutron.NewSubnet{FromPool: &neutron.FromPool{SubnetPoolID: "pool-1"}}},
	"update | update subnet: MTU 1 → 2 | Changed subnet | change MTU from 1 to 2":                                                                                   updateSubnet(plan.Change{What: "MTU", From: "1", To: "2"}, neutron.SubnetSettings{}),
	"delete | delete subnet: 192.168.0.0/16 | Deleted subnet | delete the subnet 192.168.0.0/16":                                                                    deleteSubnet,
	"delete | delete subnet: 192.168.0.0/16 is replaced by a /24 from subnet pool campus | Deleted subnet | change 192.168.0.0/16 to a /24 from subnet pool campus": replaced,

	"update | attach subnet to router router-1 with the address 192.168.0.1 | Attached subnet to router | attach the subnet to router router-1 with the address 192.168.0.1": plan.AttachRouter{Interface: toAttach},
	"update | detach subnet from router router-1 | Detached subnet from router | detach the subnet from router router-1":                                                     detach(""),
	"update | detach subnet from router router-1 to delete the network | Detached subnet from router | detach the subnet from router router-1":                               detach("delete the network"),
}
