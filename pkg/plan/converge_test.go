package plan_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
)

// world is a Neutron, as far as a plan can tell, and the object's finalizer.
type world struct {
	finalizer bool
	networks  []neutron.Network
	subnets   []neutron.Subnet
	pools     []neutron.SubnetPool
	can       []string // extensions
	made      int
	log       []string
}

// FuzzConverge puts a plan into a world that anything may have happened in,
// carries out its steps, and checks that it comes to an end which is the right
// one, and that nothing is changed or deleted that nobody asked for.
func FuzzConverge(f *testing.F) {
	for seed := range uint64(256) {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, seed uint64, absent bool) {
		random := rand.New(rand.NewPCG(seed, 0))
		w, status := randomWorld(random)
		desired := randomDesired(random, absent)
		before := w.clone()
		first := status

		end := w.settle(t, desired, &status)

		w.checkOthersUntouched(t, before, desired, first)
		switch end := end.(type) {
		case plan.Nothing:
			w.checkReached(t, desired, before)
		case plan.Blocked:
			w.checkBlocked(t, end, desired, before)
		}
		// The same again, as after a restart: an end is an end.
		changes := len(w.log)
		if again := w.settle(t, desired, &status); fmt.Sprintf("%T", again) != fmt.Sprintf("%T", end) || len(w.log) != changes {
			t.Fatalf("a second plan ended with %v after %q, the first one with %v", again, w.log[changes:], end)
		}
	})
}

// settle carries out steps until the plan ends, writes the status, and does so
// again until that changes nothing any more.
func (w *world) settle(t *testing.T, desired plan.Desired, status *plan.Actual) plan.Step {
	t.Helper()
	for range 5 {
		end, actual := w.carryOut(t, desired, *status)
		record := actual.Ours(desired)
		if reflect.DeepEqual(record, status.Record) {
			return end
		}
		status.Record = record
	}
	t.Fatalf("the status never settles: %q", w.log)
	return nil
}

func (w *world) carryOut(t *testing.T, desired plan.Desired, status plan.Actual) (plan.Step, plan.Actual) {
	t.Helper()
	actual := status.WithFinalizer(w.finalizer)
	for range 40 {
		step := plan.Next(desired, actual)
		switch step.(type) {
		case plan.Nothing, plan.Blocked:
			return step, actual
		}
		actual = w.apply(t, actual, step)
	}
	t.Fatalf("no end in sight: %q", w.log)
	return nil, actual
}

func (w *world) apply(t *testing.T, actual plan.Actual, step plan.Step) plan.Actual {
	t.Helper()
	switch step := step.(type) {
	case plan.FindNetwork:
		return actual.WithNetworks(step.Filter, w.findNetworks(step.Filter))
	case plan.FindSubnets:
		return actual.WithSubnets(step.Filter.NetworkID, w.subnetsOf(step.Filter.NetworkID))
	case plan.FindExtensions:
		return actual.WithExtensions(w.can)
	case plan.FindSubnetPool:
		return actual.WithSubnetPools(slices.DeleteFunc(slices.Clone(w.pools), func(p neutron.SubnetPool) bool {
			return step.Filter.ID != "" && p.ID != step.Filter.ID || step.Filter.Name != "" && p.Name != step.Filter.Name
		}))
	case plan.RecordTags:
		return actual.WithRecordedTags(step.Tags)
	}
	w.log = append(w.log, step.String())
	switch step := step.(type) {
	case plan.AddFinalizer:
		w.finalizer = true
		return actual.WithFinalizer(true)
	case plan.RemoveFinalizer:
		w.finalizer = false
		return actual.WithFinalizer(false)
	case plan.CreateNetwork:
		created := w.newNetwork(step.Network)
		w.networks = append(w.networks, created)
		return actual.WithNewNetwork(step.Network, created)
	case plan.UpdateNetwork:
		return actual.WithUpdatedNetwork(step.Update, w.updateNetwork(step.ID, step.Update))
	case plan.RetainNetwork:
		return actual.WithNetwork(w.updateNetwork(step.ID, step.Update))
	case plan.DeleteNetwork:
		w.networks = slices.DeleteFunc(w.networks, func(n neutron.Network) bool { return n.ID == step.ID })
		w.subnets = slices.DeleteFunc(w.subnets, func(s neutron.Subnet) bool { return s.NetworkID == step.ID })
		return actual.WithoutNetwork(step.ID)
	case plan.AddTag:
		w.setTag(t, step.ID, step.Tag, true)
		return actual.WithTag(step.ID, step.Tag, true)
	case plan.RemoveTag:
		w.setTag(t, step.ID, step.Tag, false)
		return actual.WithTag(step.ID, step.Tag, false)
	}
	return w.applyToSubnet(t, actual, step)
}

func (w *world) applyToSubnet(t *testing.T, actual plan.Actual, step plan.Step) plan.Actual {
	t.Helper()
	switch step := step.(type) {
	case plan.CreateSubnet:
		created := w.newSubnet(step.Subnet)
		w.subnets = append(w.subnets, created)
		return actual.WithSubnet(created)
	case plan.UpdateSubnet:
		i := slices.IndexFunc(w.subnets, func(s neutron.Subnet) bool { return s.ID == step.ID })
		w.subnets[i].Name = cmp.Or(step.Update.Name, w.subnets[i].Name)
		w.subnets[i].Description = cmp.Or(step.Update.Description, w.subnets[i].Description)
		setSubnet(&w.subnets[i], step.Update.SubnetSettings)
		return actual.WithSubnet(w.subnets[i])
	case plan.DeleteSubnet:
		w.subnets = slices.DeleteFunc(w.subnets, func(s neutron.Subnet) bool { return s.ID == step.ID })
		return actual.WithoutSubnet(step.ID)
	}
	t.Fatalf("no such step: %T", step)
	return actual
}

func (w *world) updateNetwork(id string, update neutron.NetworkUpdate) neutron.Network {
	i := slices.IndexFunc(w.networks, func(n neutron.Network) bool { return n.ID == id })
	w.networks[i].Name = cmp.Or(update.Name, w.networks[i].Name)
	w.networks[i].Description = cmp.Or(update.Description, w.networks[i].Description)
	w.setNetwork(&w.networks[i], update.NetworkSettings)
	return w.findNetworks(neutron.NetworkFilter{ID: id})[0]
}

func (w *world) clone() world {
	before := world{networks: slices.Clone(w.networks), subnets: slices.Clone(w.subnets), pools: w.pools, can: w.can}
	for i := range before.networks {
		before.networks[i].Tags = slices.Clone(before.networks[i].Tags)
	}
	return before
}

// newNetwork makes a network as Neutron does.
func (w *world) newNetwork(asked neutron.NewNetwork) neutron.Network {
	made := neutron.Network{ID: w.newID("net"), Name: asked.Name, Description: asked.Description, NetworkSettings: w.defaults()}
	w.setNetwork(&made, asked.NetworkSettings)
	return made
}

// defaults are the settings that Neutron gives: those of the extensions that it
// has.
func (w *world) defaults() neutron.NetworkSettings {
	settings := neutron.NetworkSettings{AdminStateUp: new(true)}
	if slices.Contains(w.can, neutron.ExtensionMTU) {
		settings.MTU = new(1450)
	}
	if slices.Contains(w.can, neutron.ExtensionPortSecurity) {
		settings.PortSecurity = new(true)
	}
	if slices.Contains(w.can, neutron.ExtensionDNS) {
		settings.DNSDomain = new("")
	}
	return settings
}

// setNetwork changes settings. Neutron knows no attribute without its extension.
func (w *world) setNetwork(n *neutron.Network, to neutron.NetworkSettings) {
	if to.MTU != nil && n.MTU == nil || to.PortSecurity != nil && n.PortSecurity == nil || to.DNSDomain != nil && n.DNSDomain == nil {
		panic("400 Unrecognized attribute(s)")
	}
	if to.AdminStateUp != nil {
		n.AdminStateUp = to.AdminStateUp
	}
	if to.PortSecurity != nil {
		n.PortSecurity = to.PortSecurity
	}
	if to.DNSDomain != nil {
		n.DNSDomain = to.DNSDomain
	}
	if to.MTU != nil {
		n.MTU = new(cmp.Or(*to.MTU, 1450))
	}
}

// newSubnet makes a subnet as Neutron does.
func (w *world) newSubnet(asked neutron.NewSubnet) neutron.Subnet {
	made := neutron.Subnet{
		ID: w.newID("sub"), NetworkID: asked.NetworkID, Name: asked.Name, Description: asked.Description,
		CIDR: asked.CIDR, DHCP: true, AddressMode: asked.AddressMode, RAMode: asked.RAMode,
	}
	if pool := asked.FromPool; pool != nil {
		made.SubnetPoolID = pool.SubnetPoolID
		made.CIDR = prefix(fmt.Sprintf("10.77.%d.0/%d", w.made, cmp.Or(pool.PrefixLength, 26)))
		if pool.IPVersion == 6 {
			made.CIDR = prefix(fmt.Sprintf("fd77:%x::/%d", w.made, cmp.Or(pool.PrefixLength, 64)))
		}
	}
	made.Gateway = made.CIDR.Addr()
	if made.Gateway.Is4() || asked.FromPool != nil {
		made.Gateway = made.Gateway.Next()
	}
	if asked.Gateway != nil {
		made.Gateway = *asked.Gateway
	}
	made.Pools = plan.Pools(made.CIDR, made.Gateway)
	setSubnet(&made, asked.SubnetSettings)
	return made
}

func setSubnet(s *neutron.Subnet, to neutron.SubnetSettings) {
	if to.Gateway != nil {
		s.Gateway = *to.Gateway
	}
	if to.Pools != nil {
		s.Pools = to.Pools
	}
	if to.DHCP != nil {
		s.DHCP = *to.DHCP
	}
	if to.Nameservers != nil {
		s.Nameservers = *to.Nameservers
	}
	if to.HostRoutes != nil {
		s.HostRoutes = *to.HostRoutes
	}
	for _, pool := range s.Pools {
		if s.Gateway.IsValid() && contains(pool, s.Gateway.String()) {
			panic("409 GatewayConflictWithAllocationPools")
		}
	}
}

// setTag puts a tag on a network or takes it away, which must not be one of
// somebody else's.
func (w *world) setTag(t *testing.T, networkID, tag string, there bool) {
	t.Helper()
	if tag == "theirs" {
		t.Fatalf("somebody else's tag was touched: %q", w.log)
	}
	n := &w.networks[slices.IndexFunc(w.networks, func(n neutron.Network) bool { return n.ID == networkID })]
	n.Tags = slices.DeleteFunc(slices.Clone(n.Tags), func(s string) bool { return s == tag })
	if there {
		n.Tags = append(n.Tags, tag)
	}
}

// checkOthersUntouched: what carries no mark of ours is as it was; and nothing
// of ours is deleted unless the object goes, its range changes, or it is a twin.
func (w *world) checkOthersUntouched(t *testing.T, before world, desired plan.Desired, status plan.Actual) {
	t.Helper()
	goes := desired.Absent && desired.Leave == plan.LeaveNothing
	for _, n := range before.networks {
		i := slices.IndexFunc(w.networks, func(m neutron.Network) bool { return m.ID == n.ID })
		ours := isOurs(n) || n.ID == status.NetworkID && before.hasOurSubnet(n)
		adopted := desired.Adopted == n.ID && status.NetworkID == n.ID && !neutron.IsMarker(n.Description)
		switch {
		case i >= 0 && !sameNetwork(w.networks[i], n) && !ours:
			t.Fatalf("network %s (%q) was changed, which is not ours: %q", n.ID, n.Description, w.log)
		case i >= 0 || goes && (ours || adopted) || before.isTwin(n):
		default:
			t.Fatalf("network %s (%q) was deleted, which nobody asked for: %q", n.ID, n.Description, w.log)
		}
	}
	for _, s := range before.subnets {
		i := slices.IndexFunc(w.subnets, func(r neutron.Subnet) bool { return r.ID == s.ID })
		ours := s.Description == mark || s.ID == status.SubnetID
		adopted := s.NetworkID == desired.Adopted && s.CIDR == desired.CIDR
		same := i >= 0 && gocmp.Equal(w.subnets[i], s, compareValues)
		fits := s.CIDR == desired.CIDR && s.AddressMode == desired.AddressMode
		switch {
		case i < 0 && !ours:
			t.Fatalf("subnet %s of somebody else was deleted: %q", s.ID, w.log)
		case i < 0 && !desired.Absent && (fits || desired.Invalid != "") && !before.isOnTwin(s):
			t.Fatalf("subnet %s was deleted, which nobody asked for: %q", s.ID, w.log)
		case i >= 0 && !ours && !adopted && !same:
			t.Fatalf("subnet %s of somebody else was changed: %q", s.ID, w.log)
		}
	}
}

func sameNetwork(a, b neutron.Network) bool {
	return a.Name == b.Name && a.Description == b.Description && gocmp.Equal(a.NetworkSettings, b.NetworkSettings)
}

func isOurs(n neutron.Network) bool {
	return n.Description == mark || n.Description == owner.RetainedMarker()
}

func (w *world) hasOurSubnet(n neutron.Network) bool {
	return slices.ContainsFunc(w.subnetsOf(n.ID), func(s neutron.Subnet) bool { return s.Description == mark })
}

// isTwin reports whether a network is what we would have made, and there is
// another one of the same time.
func (w *world) isTwin(n neutron.Network) bool {
	return n.Description == mark && n.Name == owner.String() && slices.ContainsFunc(w.networks, func(m neutron.Network) bool {
		return m.ID != n.ID && isOurs(m) && m.CreatedAt.Sub(n.CreatedAt).Abs() <= plan.DuplicateWindow
	})
}

func (w *world) isOnTwin(s neutron.Subnet) bool {
	return slices.ContainsFunc(w.networks, func(n neutron.Network) bool { return n.ID == s.NetworkID && w.isTwin(n) })
}

// checkReached: the end of a plan is what was asked for, once, and nothing of
// ours where nothing was asked for.
func (w *world) checkReached(t *testing.T, desired plan.Desired, before world) {
	t.Helper()
	ours := w.findNetworks(neutron.NetworkFilter{Descriptions: []string{mark}})
	if desired.Absent {
		if w.finalizer || len(w.log) > 0 && len(ours) > 0 && desired.Adopted == "" {
			t.Fatalf("the object went with %v left behind: %q", ours, w.log)
		}
		return
	}
	var right int
	for _, s := range w.subnets {
		if (s.Description == mark || s.NetworkID == desired.Adopted) && w.isRight(s, desired) {
			right++
		}
	}
	if !w.finalizer || right < 1 || len(w.networks) > len(before.networks)+1 {
		t.Fatalf("ended with %d networks and %d right subnets: %q", len(w.networks), right, w.log)
	}
	if desired.Adopted == "" && len(ours) != 1 {
		t.Fatalf("ended with %d networks of ours: %v: %q", len(ours), ours, w.log)
	}
	if desired.Adopted != "" {
		return
	}
	wanted := w.newNetwork(neutron.NewNetwork{NetworkSettings: desired.Settings}).NetworkSettings
	if diff := gocmp.Diff(wanted, ours[0].NetworkSettings); diff != "" {
		t.Fatalf("ended with other settings (-want +got):\n%s%q", diff, w.log)
	}
	if tags := slices.DeleteFunc(slices.Sorted(slices.Values(ours[0].Tags)), func(tag string) bool { return tag == "theirs" }); !slices.Equal(tags, desired.Tags) {
		t.Fatalf("ended with the tags %v, want %v: %q", ours[0].Tags, desired.Tags, w.log)
	}
}

// isRight reports whether a subnet is what is desired: what Neutron would have
// made, or, where it was adopted, what was said in so many words.
func (w *world) isRight(s neutron.Subnet, desired plan.Desired) bool {
	if desired.SubnetPool != nil {
		isIt := func(p neutron.SubnetPool) bool {
			return p.ID == s.SubnetPoolID && (p.ID == desired.SubnetPool.ID || p.Name == desired.SubnetPool.Name)
		}
		if length := desired.SubnetPool.PrefixLength; !slices.ContainsFunc(w.pools, isIt) || length > 0 && s.CIDR.Bits() != length {
			return false
		}
		desired.CIDR = s.CIDR
	}
	adopted := s.Description != mark
	wantGateway := s.CIDR.Addr().Next()
	switch {
	case desired.NoGateway:
		wantGateway = netip.Addr{}
	case desired.Gateway.IsValid():
		wantGateway = desired.Gateway
	case adopted:
		wantGateway = s.Gateway
	}
	return s.CIDR == desired.CIDR && s.Gateway == wantGateway &&
		(s.AddressMode == desired.AddressMode || adopted && desired.AddressMode == "") &&
		(desired.DHCP == nil && (adopted || s.DHCP) || desired.DHCP != nil && s.DHCP == *desired.DHCP) &&
		(slices.Equal(s.Nameservers, desired.Nameservers) || adopted && desired.Nameservers == nil) &&
		(slices.Equal(s.HostRoutes, desired.HostRoutes) || adopted && desired.HostRoutes == nil) &&
		(desired.Pools == nil && (adopted || gocmp.Equal(s.Pools, plan.Pools(s.CIDR, s.Gateway), compareValues)) || gocmp.Equal(s.Pools, desired.Pools, compareValues))
}

// checkBlocked: a plan that is blocked has deleted no network but twins and what
// was to go, and the object is still held.
func (w *world) checkBlocked(t *testing.T, end plan.Blocked, desired plan.Desired, before world) {
	t.Helper()
	if end.Reason == "" || end.Message == "" {
		t.Fatalf("blocked without a reason: %v", end)
	}
	for _, n := range before.networks {
		isThere := slices.ContainsFunc(w.networks, func(m neutron.Network) bool { return m.ID == n.ID })
		mayGo := before.isTwin(n) || desired.Absent && (isOurs(n) || before.hasOurSubnet(n))
		if !isThere && !mayGo {
			t.Fatalf("blocked after %q", w.log)
		}
	}
	if slices.Contains(w.log, "remove finalizer") {
		t.Fatalf("blocked after %q", w.log)
	}
}

func (w *world) findNetworks(filter neutron.NetworkFilter) []neutron.Network {
	var found []neutron.Network
	for _, n := range w.networks {
		if (filter.ID == "" || n.ID == filter.ID) && (filter.Descriptions == nil || slices.Contains(filter.Descriptions, n.Description)) {
			for _, s := range w.subnetsOf(n.ID) {
				n.SubnetIDs = append(n.SubnetIDs, s.ID)
			}
			found = append(found, n)
		}
	}
	return found
}

func (w *world) subnetsOf(network string) []neutron.Subnet {
	return slices.DeleteFunc(slices.Clone(w.subnets), func(s neutron.Subnet) bool { return s.NetworkID != network })
}

func (w *world) newID(kind string) string {
	w.made++
	return fmt.Sprintf("new-%s-%d", kind, w.made)
}

// randomWorld returns a few networks and subnets, with our mark and without,
// and what a status may say of them, true or not.
func randomWorld(random *rand.Rand) (*world, plan.Actual) {
	w := &world{
		finalizer: random.IntN(4) > 0,
		pools:     []neutron.SubnetPool{{ID: "pool-1", Name: "one", IPVersion: 4}, {ID: "pool-2", Name: "two", IPVersion: 6}, {ID: "pool-3", Name: "two", IPVersion: 6}},
	}
	for _, extension := range []string{neutron.ExtensionMTU, neutron.ExtensionPortSecurity, neutron.ExtensionDNS, neutron.ExtensionTags, neutron.ExtensionSubnetPools} {
		if random.IntN(8) > 0 {
			w.can = append(w.can, extension)
		}
	}
	var status plan.Actual
	for i := range random.IntN(4) {
		n := neutron.Network{
			ID:          fmt.Sprintf("net-%d", i),
			Name:        oneOf(random, owner.String(), owner.String(), owner.String(), "x"),
			Description: oneOf(random, mark, mark, mark, owner.RetainedMarker(), "", "theirs", mark+"x", another),
			CreatedAt:   born.Add(time.Duration(random.IntN(3)) * plan.DuplicateWindow * 2 / 3),

			NetworkSettings: w.defaults(),
		}
		if random.IntN(8) == 0 {
			n.Tags = []string{"theirs"}
		}
		if random.IntN(4) == 0 {
			n.AdminStateUp = new(false)
		}
		w.networks = append(w.networks, n)
		for range random.IntN(3) {
			s := neutron.Subnet{
				ID:          fmt.Sprintf("sub-%d", len(w.subnets)),
				NetworkID:   n.ID,
				Name:        n.Name,
				Description: oneOf(random, n.Description, n.Description, mark, "theirs"),
				CIDR:        prefix(oneOf(random, "192.168.0.0/16", "10.0.0.0/24", "fd00::/64")),
				CreatedAt:   n.CreatedAt.Add(time.Duration(random.IntN(3)) * plan.DuplicateWindow * 2 / 3),
			}
			if overlaps := func(r neutron.Subnet) bool { return r.NetworkID == n.ID && r.CIDR == s.CIDR }; slices.ContainsFunc(w.subnets, overlaps) {
				continue // Neutron has none of that kind
			}
			s.Gateway, s.DHCP = s.CIDR.Addr().Next(), random.IntN(4) > 0
			s.Pools = plan.Pools(s.CIDR, s.Gateway)
			if random.IntN(4) == 0 {
				s.Nameservers = []netip.Addr{addr("9.9.9.9")}
			}
			if random.IntN(4) == 0 && s.CIDR.Addr().Is6() {
				s.AddressMode = "slaac"
			}
			if random.IntN(4) == 0 {
				s.SubnetPoolID = oneOf(random, "pool-1", "pool-2")
			}
			w.subnets = append(w.subnets, s)
		}
		if random.IntN(2) == 0 {
			status.NetworkID = n.ID
		}
	}
	if random.IntN(4) == 0 {
		status.NetworkID = "gone"
	}
	if subnets := w.subnetsOf(status.NetworkID); len(subnets) > 0 && random.IntN(3) > 0 {
		if s := subnets[random.IntN(len(subnets))]; s.Description == mark {
			status.SubnetID = s.ID // a status names a subnet that was ours
			if random.IntN(4) == 0 {
				w.subnets[slices.IndexFunc(w.subnets, func(r neutron.Subnet) bool { return r.ID == s.ID })].Description = ""
			}
		}
	}
	return w, status
}

func randomDesired(random *rand.Rand, absent bool) plan.Desired {
	spec := samplecrdv1.NetworkSpec{
		CIDR:    oneOf(random, "192.168.0.0/16", "192.168.1.0/16", "10.0.0.0/24", "fd00::/64", "nonsense"),
		Gateway: oneOf(random, "", "", "192.168.1.1", "10.0.0.7", "fd00::7", samplecrdv1.GatewayNone),
	}
	if random.IntN(4) == 0 {
		spec.CIDR, spec.SubnetPool = "", &samplecrdv1.SubnetPoolReference{Name: oneOf(random, "one", "two", "three")}
		if random.IntN(2) == 0 {
			spec.SubnetPool = &samplecrdv1.SubnetPoolReference{ID: oneOf(random, "pool-1", "pool-2", "none"), PrefixLength: int32(random.IntN(2) * 28)}
		}
	}
	maybe := func(set func()) {
		if random.IntN(4) == 0 {
			set()
		}
	}
	maybe(func() { spec.AllocationPools = []samplecrdv1.AllocationPool{{Start: "10.0.0.100", End: "10.0.0.200"}} })
	maybe(func() { spec.DNSNameservers = []string{"1.1.1.1"} })
	maybe(func() {
		spec.HostRoutes = []samplecrdv1.HostRoute{{Destination: "10.99.0.0/16", NextHop: "10.0.0.9"}}
	})
	maybe(func() { spec.EnableDHCP = new(random.IntN(2) == 0) })
	maybe(func() { spec.IPv6 = &samplecrdv1.IPv6Options{AddressMode: "slaac"} })
	maybe(func() { spec.MTU = new(int32(1400)) })
	maybe(func() { spec.AdminStateUp = new(random.IntN(2) == 0) })
	maybe(func() { spec.PortSecurityEnabled = new(false) })
	maybe(func() { spec.DNSDomain = "example.org" })
	maybe(func() { spec.Tags = []string{"b", "a"} })
	desired := plan.DesiredFor(owner, spec)
	desired.Absent = absent
	if random.IntN(5) == 0 {
		desired.Adopted = oneOf(random, "net-0", "net-1")
	}
	switch random.IntN(4) {
	case 0:
		desired.Leave = plan.LeaveAll
	case 1:
		if desired.Adopted != "" {
			desired.Leave = plan.LeaveNetwork
		}
	}
	return desired
}

func oneOf(random *rand.Rand, choices ...string) string {
	return choices[random.IntN(len(choices))]
}
