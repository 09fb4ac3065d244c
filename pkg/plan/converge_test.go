package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

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
	for seed := range uint64(64) {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, seed uint64, absent bool) {
		random := rand.New(rand.NewPCG(seed, 0))
		w, status := randomWorld(random)
		desired := randomDesired(random, absent)
		before := world{networks: slices.Clone(w.networks), subnets: slices.Clone(w.subnets)}

		end := w.settle(t, desired, status)

		w.checkOthersUntouched(t, before, desired)
		switch end := end.(type) {
		case plan.Nothing:
			w.checkReached(t, desired, before)
		case plan.Blocked:
			w.checkBlocked(t, end, before)
		}
		// The same again, as after a restart: an end is an end.
		changes := len(w.log)
		if again := w.settle(t, desired, status); fmt.Sprintf("%T", again) != fmt.Sprintf("%T", end) || len(w.log) != changes {
			t.Fatalf("a second plan ended with %v after %q, the first one with %v", again, w.log[changes:], end)
		}
	})
}

// settle carries out steps until the plan ends.
func (w *world) settle(t *testing.T, desired plan.Desired, status plan.Actual) plan.Step {
	t.Helper()
	actual := status.WithFinalizer(w.finalizer)
	for range 12 {
		step := plan.Next(desired, actual)
		switch step.(type) {
		case plan.Nothing, plan.Blocked:
			return step
		}
		actual = w.apply(t, actual, step)
	}
	t.Fatalf("no end in sight: %q", w.log)
	return nil
}

func (w *world) apply(t *testing.T, actual plan.Actual, step plan.Step) plan.Actual {
	t.Helper()
	switch step := step.(type) {
	case plan.FindNetwork:
		return actual.WithNetworks(step.Filter, w.findNetworks(step.Filter))
	case plan.FindSubnets:
		return actual.WithSubnets(w.subnetsOf(step.Filter.NetworkID))
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
	case plan.CreateSubnet:
		created := step.Subnet
		created.ID = w.newID("sub")
		w.subnets = append(w.subnets, created)
		return actual.WithSubnet(created)
	case plan.UpdateSubnet:
		i := slices.IndexFunc(w.subnets, func(s neutron.Subnet) bool { return s.ID == step.ID })
		w.subnets[i].Gateway, w.subnets[i].Pools = step.Update.Gateway, step.Update.Pools
		return actual.WithSubnet(w.subnets[i])
	case plan.DeleteSubnet:
		w.subnets = slices.DeleteFunc(w.subnets, func(s neutron.Subnet) bool { return s.ID == step.ID })
		return actual.WithoutSubnet(step.ID)
	case plan.DeleteNetwork:
		w.networks = slices.DeleteFunc(w.networks, func(n neutron.Network) bool { return n.ID == step.ID })
		w.subnets = slices.DeleteFunc(w.subnets, func(s neutron.Subnet) bool { return s.NetworkID == step.ID })
		return actual.WithoutNetwork()
	}
	t.Fatalf("no such step: %T", step)
	return actual
}

// checkOthersUntouched: what carries no mark of ours is as it was; and nothing
// of ours is deleted unless the object goes, or its range changes.
func (w *world) checkOthersUntouched(t *testing.T, before world, desired plan.Desired) {
	t.Helper()
	for _, n := range before.networks {
		if !slices.ContainsFunc(w.networks, func(m neutron.Network) bool { return m.ID == n.ID }) && (n.Description != mark || !desired.Absent) {
			t.Fatalf("network %s (%q) was deleted, which nobody asked for: %q", n.ID, n.Description, w.log)
		}
	}
	for _, s := range before.subnets {
		i := slices.IndexFunc(w.subnets, func(r neutron.Subnet) bool { return r.ID == s.ID })
		switch {
		case i < 0 && s.Description != mark:
			t.Fatalf("subnet %s of somebody else was deleted: %q", s.ID, w.log)
		case i < 0 && !desired.Absent && (s.CIDR == desired.CIDR || desired.Invalid != ""):
			t.Fatalf("subnet %s was deleted, which nobody asked for: %q", s.ID, w.log)
		case i >= 0 && s.Description != mark && w.subnets[i].Gateway != s.Gateway:
			t.Fatalf("subnet %s of somebody else was changed: %q", s.ID, w.log)
		}
	}
}

// checkReached: the end of a plan is what was asked for, once, and nothing of
// ours where nothing was asked for.
func (w *world) checkReached(t *testing.T, desired plan.Desired, before world) {
	t.Helper()
	ours := w.findNetworks(neutron.NetworkFilter{Description: mark})
	if desired.Absent {
		if w.finalizer || len(w.log) > 0 && len(ours) > 0 {
			t.Fatalf("the object went with %v left behind: %q", ours, w.log)
		}
		return
	}
	var right int
	for _, s := range w.subnets {
		if s.Description == mark && s.CIDR == desired.CIDR && s.Gateway == desired.Gateway {
			right++
		}
	}
	if !w.finalizer || right < 1 || len(w.networks) > len(before.networks)+1 {
		t.Fatalf("ended with %d networks and %d right subnets: %q", len(w.networks), right, w.log)
	}
	if len(w.networks) > len(before.networks) && len(ours) != 1 {
		t.Fatalf("made a network although there was one: %v: %q", ours, w.log)
	}
}

// checkBlocked: a plan that is blocked has deleted no network, and the object
// is still held.
func (w *world) checkBlocked(t *testing.T, end plan.Blocked, before world) {
	t.Helper()
	if end.Reason == "" || end.Message == "" {
		t.Fatalf("blocked without a reason: %v", end)
	}
	if len(w.networks) < len(before.networks) || slices.Contains(w.log, "remove finalizer") {
		t.Fatalf("blocked after %q", w.log)
	}
}

func (w *world) findNetworks(filter neutron.NetworkFilter) []neutron.Network {
	var found []neutron.Network
	for _, n := range w.networks {
		if (filter.ID == "" || n.ID == filter.ID) && (filter.Description == "" || n.Description == filter.Description) {
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
		n := neutron.Network{ID: fmt.Sprintf("net-%d", i), Description: oneOf(random, mark, mark, "", "theirs", mark+"x")}
		w.networks = append(w.networks, n)
		for range random.IntN(3) {
			s := neutron.Subnet{
				ID:          fmt.Sprintf("sub-%d", len(w.subnets)),
				NetworkID:   n.ID,
				Description: oneOf(random, n.Description, n.Description, mark, "theirs"),
				CIDR:        prefix(oneOf(random, "192.168.0.0/16", "10.0.0.0/24", "fd00::/64")),
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
		}
	}
	return w, status
}

func randomDesired(random *rand.Rand, absent bool) plan.Desired {
	if absent {
		return plan.WantAbsent(owner)
	}
	return plan.Want(owner,
		oneOf(random, "192.168.0.0/16", "192.168.1.0/16", "10.0.0.0/24", "fd00::/64", "nonsense"),
		oneOf(random, "", "", "192.168.1.1", "10.0.0.7", "fd00::7"))
}

func oneOf(random *rand.Rand, choices ...string) string {
	return choices[random.IntN(len(choices))]
}
