package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
)

// world is a Neutron, as far as a plan can tell, and the object's finalizer.
type world struct {
	finalizer bool
	networks  []neutron.Network
	subnets   []neutron.Subnet
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
		before := world{networks: slices.Clone(w.networks), subnets: slices.Clone(w.subnets)}
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
		networkID, subnetID := actual.OurIDs(desired)
		if networkID == status.NetworkID && subnetID == status.SubnetID {
			return end
		}
		status.NetworkID, status.SubnetID = networkID, subnetID
	}
	t.Fatalf("the status never settles: %q", w.log)
	return nil
}

func (w *world) carryOut(t *testing.T, desired plan.Desired, status plan.Actual) (plan.Step, plan.Actual) {
	t.Helper()
	actual := status.WithFinalizer(w.finalizer)
	for range 20 {
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
		created := step.Network
		created.ID = w.newID("net")
		w.networks = append(w.networks, created)
		return actual.WithNetwork(created)
	case plan.UpdateNetwork:
		return actual.WithNetwork(w.updateNetwork(step.ID, step.Update))
	case plan.RetainNetwork:
		return actual.WithNetwork(w.updateNetwork(step.ID, step.Update))
	case plan.DeleteNetwork:
		w.networks = slices.DeleteFunc(w.networks, func(n neutron.Network) bool { return n.ID == step.ID })
		w.subnets = slices.DeleteFunc(w.subnets, func(s neutron.Subnet) bool { return s.NetworkID == step.ID })
		return actual.WithoutNetwork(step.ID)
	}
	return w.applyToSubnet(t, actual, step)
}

func (w *world) applyToSubnet(t *testing.T, actual plan.Actual, step plan.Step) plan.Actual {
	t.Helper()
	switch step := step.(type) {
	case plan.CreateSubnet:
		created := step.Subnet
		created.ID = w.newID("sub")
		w.subnets = append(w.subnets, created)
		return actual.WithSubnet(created)
	case plan.UpdateSubnet:
		i := slices.IndexFunc(w.subnets, func(s neutron.Subnet) bool { return s.ID == step.ID })
		w.subnets[i].Gateway, w.subnets[i].Pools = step.Update.Gateway, step.Update.Pools
		if step.Update.Name != "" {
			w.subnets[i].Name, w.subnets[i].Description = step.Update.Name, step.Update.Description
		}
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
	w.networks[i].Name, w.networks[i].Description = update.Name, update.Description
	return w.findNetworks(neutron.NetworkFilter{ID: id})[0]
}

// checkOthersUntouched: what carries no mark of ours is as it was; and nothing
// of ours is deleted unless the object goes, its range changes, or it is a twin.
func (w *world) checkOthersUntouched(t *testing.T, before world, desired plan.Desired, status plan.Actual) {
	t.Helper()
	goes := desired.Absent && desired.Leave == plan.LeaveNothing
	for _, n := range before.networks {
		i := slices.IndexFunc(w.networks, func(m neutron.Network) bool { return m.ID == n.ID })
		ours := isOurs(n) || n.ID == status.NetworkID && slices.ContainsFunc(before.subnetsOf(n.ID), func(s neutron.Subnet) bool { return s.Description == mark })
		adopted := desired.Adopted == n.ID && status.NetworkID == n.ID && !neutron.IsMark(n.Description)
		switch {
		case i >= 0 && (w.networks[i].Name != n.Name || w.networks[i].Description != n.Description) && !ours:
			t.Fatalf("network %s (%q) was changed, which is not ours: %q", n.ID, n.Description, w.log)
		case i >= 0 || goes && (isOurs(n) || adopted) || before.isTwin(n):
		default:
			t.Fatalf("network %s (%q) was deleted, which nobody asked for: %q", n.ID, n.Description, w.log)
		}
	}
	for _, s := range before.subnets {
		i := slices.IndexFunc(w.subnets, func(r neutron.Subnet) bool { return r.ID == s.ID })
		ours := s.Description == mark || s.ID == status.SubnetID
		adopted := s.NetworkID == desired.Adopted && s.CIDR == desired.CIDR
		switch {
		case i < 0 && !ours:
			t.Fatalf("subnet %s of somebody else was deleted: %q", s.ID, w.log)
		case i < 0 && !desired.Absent && (s.CIDR == desired.CIDR || desired.Invalid != "") && !before.isOnTwin(s):
			t.Fatalf("subnet %s was deleted, which nobody asked for: %q", s.ID, w.log)
		case i >= 0 && !ours && !adopted && w.subnets[i].Gateway != s.Gateway:
			t.Fatalf("subnet %s of somebody else was changed: %q", s.ID, w.log)
		}
	}
}

func isOurs(n neutron.Network) bool {
	return n.Description == mark || n.Description == owner.RetainedMark()
}

// isTwin tells whether a network is what we would have made, and there is
// another one of the same time.
func (w *world) isTwin(n neutron.Network) bool {
	return n.Description == mark && n.Name == owner.String() && slices.ContainsFunc(w.networks, func(m neutron.Network) bool {
		return m.ID != n.ID && isOurs(m) && m.CreatedAt.Sub(n.CreatedAt).Abs() <= plan.TwinWindow
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
		if (s.Description == mark || s.NetworkID == desired.Adopted) && s.CIDR == desired.CIDR && s.Gateway == desired.Gateway {
			right++
		}
	}
	if !w.finalizer || right < 1 || len(w.networks) > len(before.networks)+1 {
		t.Fatalf("ended with %d networks and %d right subnets: %q", len(w.networks), right, w.log)
	}
	if desired.Adopted == "" && len(ours) != 1 {
		t.Fatalf("ended with %d networks of ours: %v: %q", len(ours), ours, w.log)
	}
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
		mayGo := before.isTwin(n) || desired.Absent && isOurs(n)
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
	w := &world{finalizer: random.IntN(4) > 0}
	var status plan.Actual
	for i := range random.IntN(4) {
		n := neutron.Network{
			ID:          fmt.Sprintf("net-%d", i),
			Name:        oneOf(random, owner.String(), owner.String(), owner.String(), "x"),
			Description: oneOf(random, mark, mark, mark, owner.RetainedMark(), "", "theirs", mark+"x", another),
			CreatedAt:   born.Add(time.Duration(random.IntN(3)) * plan.TwinWindow * 2 / 3),
		}
		if random.IntN(8) == 0 {
			n.Tags = []string{"theirs"}
		}
		w.networks = append(w.networks, n)
		for range random.IntN(3) {
			s := neutron.Subnet{
				ID:          fmt.Sprintf("sub-%d", len(w.subnets)),
				NetworkID:   n.ID,
				Name:        n.Name,
				Description: oneOf(random, n.Description, n.Description, mark, "theirs"),
				CIDR:        prefix(oneOf(random, "192.168.0.0/16", "10.0.0.0/24", "fd00::/64")),
				CreatedAt:   n.CreatedAt.Add(time.Duration(random.IntN(3)) * plan.TwinWindow * 2 / 3),
			}
			if overlaps := func(r neutron.Subnet) bool { return r.NetworkID == n.ID && r.CIDR == s.CIDR }; slices.ContainsFunc(w.subnets, overlaps) {
				continue // Neutron has none of that kind
			}
			s.Gateway = s.CIDR.Addr().Next()
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
	desired := plan.Want(owner,
		oneOf(random, "192.168.0.0/16", "192.168.1.0/16", "10.0.0.0/24", "fd00::/64", "nonsense"),
		oneOf(random, "", "", "192.168.1.1", "10.0.0.7", "fd00::7"))
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
