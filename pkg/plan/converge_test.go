package plan_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
)

// FuzzConverge applies plans to a random world: what a Neutron may contain, and
// what a status may say. A plan must end in a bounded number of steps, in the
// state that the spec describes, and nothing of others may change. A process that
// dies after every single request must reach the same end. So must a process whose
// cache of Neutron's state is out of date, after the next list.
func FuzzConverge(f *testing.F) {
	for seed := range uint64(512) {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	f.Add(uint64(1492), true)    // a network to delete, with a port that has no address
	f.Add(uint64(3160), false)   // a subnet to replace, that somebody attached to the desired router
	f.Add(uint64(4406), false)   // a network that lost our marker after the list: the status names it
	f.Add(uint64(38244), true)   // a network without our marker to delete, and another one that the cache does not have
	f.Add(uint64(91870), true)   // the same, and the other one's marker names no request
	f.Add(uint64(138962), true)  // the same, and both are retained
	f.Add(uint64(126458), false) // a subnet that lost our marker after the list: the status names it
	f.Add(uint64(191627), false) // an adopted subnet to leave, that somebody attached to the desired router
	f.Add(uint64(247660), true)  // an adopted subnet to leave, with ports, on a router of ours
	f.Add(uint64(22185), false)  // a network that got another owner after the list, and our subnet on it
	f.Add(uint64(47065), false)  // a router with a name that another one had before
	f.Add(uint64(1263), true)    // a network to retain, with a duplicate that has another name in the cache
	f.Add(uint64(652), true)     // an adopted network of another project to leave, with a subnet that has our marker
	f.Add(uint64(2766), true)    // an adopted network to delete, with a foreign subnet of the range in the status
	f.Add(uint64(3525), true)    // an adopted network with a foreign subnet of the desired range
	f.Fuzz(func(t *testing.T, seed uint64, absent bool) {
		before, status, desired := randomWorld(rand.New(rand.NewPCG(seed, 0)), absent)
		if desired.Invalid != "" {
			t.Fatalf("the world has an invalid spec: %s", desired.Invalid)
		}
		living := run{world: before.clone(), status: status}
		end := living.converge(t, desired, false)
		checkEnd(t, end, before, living, desired, status.Record, false)
		writes := len(living.writes)
		if again := living.converge(t, desired, false); !cmp.Equal(again, end, compareValues) || len(living.writes) != writes {
			t.Errorf("a second plan ended with %v after %q, the first one with %v", again, living.writes[writes:], end)
		}

		dying := run{world: before.clone(), status: status}
		other := dying.converge(t, desired, true)
		checkEnd(t, other, before, dying, desired, status.Record, true)
		if len(before.marked()) < 2 { // out of duplicates, it may keep another one
			if diff := cmp.Diff(end, other, compareValues); diff != "" {
				t.Errorf("the end differs (-other +dying):\n%s", diff)
			}
			ignoreRevision := cmpopts.IgnoreFields(neutron.Network{}, "Revision")
			if diff := cmp.Diff(living.world, dying.world, compareValues, ignoreRevision, cmp.AllowUnexported(world{})); diff != "" {
				t.Errorf("the state differs (-other +dying):\n%s", diff)
			}
		}

		stale := before.clone()
		dice{rand.New(rand.NewPCG(seed, 1))}.makeOutdated(&stale)
		caching := run{world: before.clone(), status: status, cache: &stale}
		caching.converge(t, desired, false)
		caching.list()
		checkEnd(t, caching.converge(t, desired, false), before, caching, desired, status.Record, true)
		if t.Failed() {
			t.Logf("requests: %q\nof the dying process: %q\nof the process with a cache: %q", living.writes, dying.writes, caching.writes)
		}
	})
}

// checkEnd checks that a plan ended as it must.
func checkEnd(t *testing.T, end plan.Step, before world, after run, desired plan.Desired, status plan.Record, dies bool) {
	t.Helper()
	checkForeignObjects(t, before, after.world, desired, status, dies)
	checkForeignInterfaces(t, before, after.world, desired, status)
	blocked, isBlocked := end.(plan.Blocked)
	switch {
	case isBlocked && dies && !desired.Absent && after.mayBlock(blocked.Reason, desired, after.status.Record): // it names what was ours in the cache
	case isBlocked && (!after.mayBlock(blocked.Reason, desired, status) || desired.Absent && !after.finalizer):
		t.Errorf("blocked without this reason: %v", end)
	case isBlocked:
	case desired.Absent:
		checkAbsent(t, before, after.world, desired)
	default:
		subnet := checkPresent(t, before, after.world, desired, status)
		checkRouter(t, after.world, desired, after.status.Record, subnet)
	}
}

// run is a controller at work in a world.
type run struct {
	world
	cache  *world // of Neutron's state, if it has one
	status plan.Actual
	writes []string
	left   bool // whether a duplicate in use was left
}

// converge applies plans, and writes the status after each, until that changes
// nothing. If it crashes, it forgets everything but the status after each write.
func (r *run) converge(t *testing.T, desired plan.Desired, crashes bool) plan.Step {
	t.Helper()
	for range 5 {
		end, actual := r.runPlan(t, desired, crashes)
		record := actual.Ours(desired)
		if cmp.Equal(record, r.status.Record, compareValues) {
			return end
		}
		r.status.Record = record
	}
	t.Fatalf("the status does not settle: %q", r.writes)
	return nil
}

func (r *run) runPlan(t *testing.T, desired plan.Desired, crashes bool) (plan.Step, plan.Actual) {
	t.Helper()
	actual := r.read(desired)
	for reads, writes := 0, len(r.writes); reads <= 10 && len(r.writes) <= writes+15; {
		step := plan.Next(desired, actual)
		if plan.ActionOf(step) == "" {
			return step, actual
		}
		if plan.IsRead(step) {
			actual = actual.After(step, r.find(step))
			r.list() // what was read is in the cache
			reads++
			continue
		}
		if actual.Cached && r.isOutdated(step) {
			actual = actual.WithoutCache()
			continue
		}
		if deleted, _ := step.(plan.DeleteNetwork); r.rejects(step) && deleted.DuplicateOf != "" && desired.Absent {
			actual, r.left = actual.WithLeftDuplicate(deleted.ID), true
			reads++
			continue
		}
		if r.rejects(step) {
			detached := r.clone()
			detached.interfaces = slices.DeleteFunc(detached.interfaces, func(i neutron.RouterInterface) bool { return i.RouterID == r.status.RouterID })
			_, detaches := step.(plan.DetachRouter)
			deleted, _ := step.(plan.DeleteNetwork)
			if !detaches && deleted.DuplicateOf == "" && !detached.rejects(step) {
				t.Errorf("%s: the subnet has to be detached from router %s first", step, r.status.RouterID)
			}
			return plan.Blocked{Reason: plan.ReasonInUse, Message: "409: " + step.String()}, actual
		}
		if attach, ok := step.(plan.AttachRouter); ok && attach.Interface.RouterID != r.status.RouterID {
			t.Errorf("%s: the status does not record it", step)
		}
		if _, creates := step.(plan.CreateNetwork); creates && len(r.marked()) > 0 {
			t.Errorf("%s, but the object has a network", step)
		}
		r.writes = append(r.writes, step.String())
		actual = actual.After(step, r.apply(t, step))
		switch step := step.(type) {
		case plan.RecordTags:
			r.status.Tags = step.Tags
		case plan.RecordRouter:
			r.status.RouterID, r.status.RouterName = step.ID, step.Name
		case plan.AddFinalizer:
			r.status.Cloud = step.Cloud
		}
		if crashes {
			actual, reads = r.read(desired), 0
		}
	}
	t.Fatalf("the plan does not end: %q", r.writes)
	return nil, actual
}

// read returns what the object itself records, with the state in the cache.
func (r *run) read(desired plan.Desired) plan.Actual {
	actual := r.status
	actual.Finalizer = r.finalizer
	if r.cache == nil {
		return actual
	}
	steps := []plan.Step{findByMarker}
	id := desired.Adopted
	if id == "" {
		id = actual.NetworkID
	}
	if id != "" {
		steps = append(steps, plan.FindNetwork{Filter: neutron.NetworkFilter{ID: id}})
	}
	for _, n := range r.cache.networks {
		steps = append(steps, plan.FindSubnets{Filter: neutron.SubnetFilter{NetworkID: n.ID}}, plan.FindRouterInterfaces{NetworkID: n.ID})
	}
	for _, step := range steps {
		actual = actual.After(step, r.cache.find(step))
	}
	actual.Cached = true
	return actual
}

// list fills the cache.
func (r *run) list() {
	if r.cache != nil {
		r.cache = new(r.clone())
	}
}

// checkForeignObjects checks value by value that the objects of others did not
// change, and that nothing of ours was deleted without a reason. A process that
// restores the name or marker of a network, and dies before the status names it,
// leaves a network that may be a duplicate.
func checkForeignObjects(t *testing.T, before, after world, desired plan.Desired, status plan.Record, dies bool) {
	t.Helper()
	deletes := desired.Absent && desired.Leave == plan.LeaveNothing
	for _, n := range before.networks {
		isOurs := before.isOurs(n, status)
		mayGo := deletes && isOurs && !owner.HasRetainedMarker(n.Description) || deletes && n.ID == status.NetworkID && (isOurs || before.isAdopted(n, desired)) ||
			dies && desired.Absent && owner.HasMarker(n.Description) || // which one it copies was forgotten
			desired.Adopted == "" && before.isDuplicate(n, desired, status, dies)
		switch now := after.network(n.ID); {
		case now == nil && !mayGo:
			t.Errorf("network %s (%q) was deleted", n.ID, n.Description)
		case now != nil && (!isOurs || desired.Adopted != ""):
			if diff := cmp.Diff(n, *now, compareValues, cmpopts.IgnoreFields(neutron.Network{}, "Revision")); diff != "" {
				t.Errorf("network %s (%q) was changed:\n%s", n.ID, n.Description, diff)
			}
		}
	}
	for _, s := range before.subnets {
		n := *before.network(s.NetworkID)
		isOurs := s.Description == marker && (desired.Adopted == "" && before.isOurs(n, status) || desired.Adopted == n.ID && n.ID != before.hidden)
		wasOurs := dies && s.Description == marker // when the cache was filled, its network was ours
		isAdopted := desired.Adopted == n.ID && n.ID != before.hidden && !desired.Absent && s.CIDR == desired.CIDR && !neutron.IsMarker(s.Description)
		hasReason := desired.Absent || !hasRangeOf(s, desired) || before.hasOther(s) || after.network(n.ID) == nil
		switch now := after.subnet(s.ID); {
		case now == nil && (!isOurs || !hasReason || desired.Absent && desired.Leave == plan.LeaveAll && after.network(n.ID) != nil):
			t.Errorf("subnet %s (%q) was deleted", s.ID, s.Description)
		case now != nil && (!isOurs && !wasOurs && !isAdopted || desired.Absent):
			if diff := cmp.Diff(s, *now, compareValues); diff != "" {
				t.Errorf("subnet %s (%q) was changed:\n%s", s.ID, s.Description, diff)
			}
		}
	}
}

// checkForeignInterfaces checks that only an interface of the router in the status was
// removed, or of the desired one, and only from a subnet of ours; and that no other router
// was added than the desired one.
func checkForeignInterfaces(t *testing.T, before, after world, desired plan.Desired, status plan.Record) {
	t.Helper()
	for _, i := range before.interfaces {
		if slices.Contains(after.interfaces, i) {
			continue
		}
		s := before.subnet(i.SubnetID)
		isAdopted := desired.Adopted == s.NetworkID && s.NetworkID != before.hidden && (s.CIDR == desired.CIDR || s.ID == status.SubnetID) && !neutron.IsMarker(s.Description)
		isRecorded := i.RouterID == status.RouterID || isDesiredRouter(desired, i) // it is recorded first
		if !isRecorded || i.NetworkID == before.hidden || s.Description != marker && !isAdopted || desired.Absent && desired.Leave == plan.LeaveAll && after.network(i.NetworkID) != nil {
			t.Errorf("%+v was detached", i)
		}
		isForeign := func(j neutron.RouterInterface) bool {
			return j.NetworkID == i.NetworkID && j.RouterID != status.RouterID
		}
		wasAdopted := desired.Adopted == "" || desired.Adopted == status.NetworkID && !neutron.IsMarker(before.network(i.NetworkID).Description)
		used := s.Description == marker && before.hasPort(i.NetworkID, i.SubnetID) // an adopted one stays
		if desired.Leave == plan.LeaveNothing && wasAdopted {                      // the network is deleted
			used = len(before.ports[i.NetworkID]) > 0 || slices.ContainsFunc(before.interfaces, isForeign)
		}
		if used && desired.Absent {
			t.Errorf("%+v was detached, and ports use what is deleted", i)
		}
	}
	for _, i := range after.interfaces {
		if !slices.Contains(before.interfaces, i) && (desired.Absent || !isDesiredRouter(desired, i)) {
			t.Errorf("%+v was attached", i)
		}
	}
}

func isDesiredRouter(desired plan.Desired, i neutron.RouterInterface) bool {
	return slices.ContainsFunc(routers, func(r neutron.Router) bool {
		return desired.Router != nil && r.ID == i.RouterID && (r.ID == desired.Router.ID || r.Name == desired.Router.Name)
	})
}

// checkRouter checks that our subnet is attached to the desired router, and to no
// other one that we attached it to.
func checkRouter(t *testing.T, after world, desired plan.Desired, record plan.Record, subnet neutron.Subnet) {
	t.Helper()
	attached := after.interfacesOn(subnet.NetworkID, subnet.ID)
	isOurs := func(i neutron.RouterInterface) bool { return i.RouterID == record.RouterID }
	isDesired := func(i neutron.RouterInterface) bool { // its name may be that of another router by now
		return isDesiredRouter(desired, i) || isOurs(i) && record.RouterName != "" && record.RouterName == desired.Router.Name
	}
	switch {
	case desired.Router != nil && !slices.ContainsFunc(attached, isDesired):
		t.Errorf("our subnet is attached to %+v, want router %+v", attached, desired.Router)
	case desired.Router == nil && slices.ContainsFunc(attached, isOurs), desired.Router == nil && record.RouterID != "":
		t.Errorf("our subnet is attached to %+v, the status records %s, want none", attached, record.RouterID)
	}
}

// checkAbsent checks that nothing of the object is left, except for what it
// leaves.
func checkAbsent(t *testing.T, before, after world, desired plan.Desired) {
	t.Helper()
	if after.finalizer {
		t.Error("the finalizer is left")
	}
	if !before.finalizer {
		return // the object is already gone
	}
	isLeft := func(n neutron.Network) bool {
		isUsed := len(after.ports[n.ID]) > 0 || len(after.interfacesOn(n.ID, "")) > 0
		mayStay := max(len(before.marked()), len(after.marked())) > 1 && (isUsed || !before.isDuplicate(n, desired, plan.Record{}, false))
		return owner.HasMarker(n.Description) && !mayStay
	}
	if desired.Adopted == "" && slices.ContainsFunc(after.networks, isLeft) {
		t.Errorf("our network is left: %+v", after.networks)
	}
	isOnAdopted := func(s neutron.Subnet) bool {
		return s.NetworkID == desired.Adopted && s.NetworkID != after.hidden && s.Description == marker
	}
	adopted := before.network(desired.Adopted)
	isOther := adopted != nil && neutron.IsMarker(adopted.Description)
	if desired.Leave != plan.LeaveAll && !isOther && slices.ContainsFunc(after.subnets, isOnAdopted) {
		t.Errorf("our subnet is left: %+v", after.subnets)
	}
}

// checkPresent checks that there is exactly one network and one subnet of ours,
// and that each value is as desired. It returns the subnet.
func checkPresent(t *testing.T, before, after world, desired plan.Desired, status plan.Record) neutron.Subnet {
	t.Helper()
	if !after.finalizer {
		t.Error("the finalizer is missing")
	}
	network := after.network(desired.Adopted)
	if desired.Adopted == "" {
		ours := slices.DeleteFunc(after.marked(), func(n neutron.Network) bool { return !owner.HasMarker(n.Description) })
		if len(ours) != 1 {
			t.Fatalf("%d networks are ours: %+v", len(ours), ours)
		}
		network = &ours[0]
		want := (&world{extensions: after.extensions}).newNetwork(neutron.NewNetwork{Name: owner.String(), Description: ours[0].Description, NetworkSettings: desired.Settings})
		want.Tags = slices.Clone(desired.Tags)
		if old := before.network(network.ID); old != nil {
			for _, tag := range old.Tags {
				if !slices.Contains(want.Tags, tag) && !slices.Contains(status.Tags, tag) {
					want.Tags = append(want.Tags, tag) // from another client
				}
			}
		}
		ignore := cmpopts.IgnoreFields(neutron.Network{}, "ID", "CreatedAt", "Revision", "SubnetIDs")
		if diff := cmp.Diff(want, *network, compareValues, ignore, cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
			t.Errorf("our network is not as desired (-want +got):\n%s", diff)
		}
	}
	ours := slices.DeleteFunc(after.subnetsOf(network.ID), func(s neutron.Subnet) bool { return s.Description != marker })
	if len(ours) == 0 { // an adopted one is used
		ours = slices.DeleteFunc(after.subnetsOf(network.ID), func(s neutron.Subnet) bool {
			return s.CIDR != desired.CIDR || neutron.IsMarker(s.Description)
		})
	}
	if len(ours) != 1 {
		t.Fatalf("%d subnets are ours: %+v", len(ours), ours)
	}
	want := after.wantSubnet(desired, before.subnet(ours[0].ID), ours[0])
	ignore := cmpopts.IgnoreFields(neutron.Subnet{}, "ID", "CreatedAt", "Revision", "SubnetPoolID")
	if diff := cmp.Diff(want, ours[0], compareValues, ignore); diff != "" {
		t.Errorf("our subnet is not as desired (-want +got):\n%s", diff)
	}
	pool := slices.IndexFunc(after.pools, func(p neutron.SubnetPool) bool { return p.ID == ours[0].SubnetPoolID })
	if desired.SubnetPool != nil && (pool < 0 || after.pools[pool].Name+after.pools[pool].ID != desired.SubnetPool.Name+after.pools[pool].ID && after.pools[pool].ID != desired.SubnetPool.ID) {
		t.Errorf("our subnet is from the subnet pool %q, want %+v", ours[0].SubnetPoolID, desired.SubnetPool)
	}
	return ours[0]
}

// wantSubnet returns the subnet that Neutron would create for the desired state,
// or what an adopted one has to be like.
func (w *world) wantSubnet(desired plan.Desired, before *neutron.Subnet, got neutron.Subnet) neutron.Subnet {
	cidr := desired.CIDR
	if pool := desired.SubnetPool; pool != nil && (pool.PrefixLength == 0 || pool.PrefixLength == got.CIDR.Bits()) {
		cidr = got.CIDR
	}
	settings := neutron.SubnetSettings{Pools: desired.Pools, DHCP: desired.DHCP}
	if desired.Nameservers != nil {
		settings.Nameservers = &desired.Nameservers
	}
	if desired.HostRoutes != nil {
		settings.HostRoutes = &desired.HostRoutes
	}
	settings.Gateway = new(cidr.Addr().Next())
	if desired.Gateway.IsValid() || desired.NoGateway {
		settings.Gateway = &desired.Gateway
	}
	if before != nil && desired.Adopted != "" && got.Description != marker {
		want := *before
		if !desired.NoGateway && !desired.Gateway.IsValid() {
			settings.Gateway = nil
		}
		if settings.Gateway != nil && settings.Pools == nil && *settings.Gateway != before.Gateway {
			settings.Pools = got.Pools // the table tests check which ones are left
		}
		setSubnet(&want, settings)
		if desired.AddressMode != "" || desired.RAMode != "" {
			want.AddressMode, want.RAMode = desired.AddressMode, desired.RAMode
		}
		return want
	}
	return (&world{}).newSubnet(neutron.NewSubnet{
		NetworkID: got.NetworkID, Name: owner.String(), Description: marker, CIDR: cidr,
		AddressMode: desired.AddressMode, RAMode: desired.RAMode, SubnetSettings: settings,
	})
}
