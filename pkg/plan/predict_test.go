package plan_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samplecrd/network-controller/pkg/plan"
)

// FuzzPredict compares the steps that are predicted with those that are applied, in a
// random world. Reads of the prediction find the world as it is before all steps.
func FuzzPredict(f *testing.F) {
	for seed := range uint64(512) {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, seed uint64, absent bool) {
		before, status, desired := randomWorld(rand.New(rand.NewPCG(seed, 0)), absent)
		applied := run{world: before.clone(), status: status}
		end := applied.converge(t, desired, false)
		if applied.left {
			return // a prediction does not know ports
		}

		got, predictedEnd := predict(t, &before, status, desired)
		got = append(got, predictedEnd.String())
		want := maskNew(append(applied.writes, end.String()))
		if rejected, ok := strings.CutPrefix(want[len(want)-1], rejectedByPort); ok { // a prediction does not know ports
			want[len(want)-1] = rejected
			got = got[:min(len(got), len(want))]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the prediction differs (-applied +predicted):\n%s", diff)
		}
	})
}

// rejectedByPort begins the end of a plan of which Neutron has rejected a step.
const rejectedByPort = "blocked: InUse: 409: "

// predict returns the steps that a controller would apply, and the end.
func predict(t *testing.T, w *world, status plan.Actual, desired plan.Desired) (steps []string, end plan.Step) {
	t.Helper()
	actual := (&run{world: *w, status: status}).read(desired)
	for range 40 {
		step := plan.Next(desired, actual)
		switch record := actual.Ours(desired); {
		case plan.IsRead(step):
			actual = actual.After(step, w.find(step))
		case plan.ActionOf(step) != "":
			steps, actual = append(steps, plan.MaskUnknown(step).String()), plan.Predict(actual, step)
		case !cmp.Equal(record, actual.Record, compareValues):
			actual.Record = record // the controller writes the status
		default:
			return steps, step
		}
	}
	t.Fatalf("the prediction does not end: %q", steps)
	return nil, nil
}

// maskNew replaces what only Neutron knows in advance: the IDs of new objects, and the
// ranges from subnet pools.
func maskNew(texts []string) []string {
	unknown := regexp.MustCompile(`new-(net|sub)-\d+|\b10\.77\.\d+\.\d+|\bfd77:[0-9a-f:]+`)
	masked := slices.Clone(texts)
	for i := range masked {
		masked[i] = unknown.ReplaceAllString(masked[i], plan.KnownAfterCreate)
	}
	return masked
}

// TestEveryStep: each type of step ends a plan, reads, or has a prediction, without which
// Predict panics; and its texts are in [steps].
func TestEveryStep(t *testing.T) {
	for want, step := range steps {
		name := strings.TrimPrefix(fmt.Sprintf("%T", step), "plan.")
		isEnd := name == "Nothing" || name == "Blocked"
		if plan.IsRead(step) != strings.HasPrefix(name, "Find") {
			t.Errorf("%s: IsRead() = %v", name, plan.IsRead(step))
		}
		if !isEnd && !plan.IsRead(step) {
			plan.Predict(fresh.After(findSubnets, noSubnets), step)
		}
		isInKubernetes := strings.HasPrefix(name, "Record") || strings.HasSuffix(name, "Finalizer")
		changes := !isEnd && !plan.IsRead(step) && !isInKubernetes
		endsOurs := slices.Contains([]string{"RemoveTag", "RetainNetwork", "DeleteNetwork"}, name)
		if plan.ChangesNeutron(step) != changes || plan.MayCorrect(step) != (changes && !endsOurs) {
			t.Errorf("%s: ChangesNeutron() = %v, MayCorrect() = %v", name, plan.ChangesNeutron(step), plan.MayCorrect(step))
		}
		if got := fmt.Sprintf("%s | %s | %s | %s", plan.ActionOf(step), step, plan.Fact(step), plan.Intent(step)); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
