package plan_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math/rand/v2"
	"path/filepath"
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
		after, ok := plan.Predict(actual, step)
		switch record := actual.Ours(desired); {
		case ok:
			steps, actual = append(steps, plan.MaskUnknown(step).String()), after
		case plan.IsRead(step):
			actual = w.find(actual, step)
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

// TestPredictKnowsEveryStep: each type of step reads, ends a plan, or is predicted.
// The author of a new step decides which.
func TestPredictKnowsEveryStep(t *testing.T) {
	methods, cases := stepsInSource(t)
	if len(methods) < 18 {
		t.Fatalf("the package has the steps %q: is their method named otherwise now?", slices.Sorted(maps.Keys(methods)))
	}
	for step := range methods {
		isEnd := step == "Nothing" || step == "Blocked"
		count := 0
		for _, is := range []bool{isEnd, cases["IsRead"][step], cases["Predict"][step]} {
			if is {
				count++
			}
		}
		if count != 1 {
			t.Errorf("%s is in %d of these: an end of the plan, a case of IsRead, a case of Predict (see predict.go)", step, count)
		}
	}
	for _, step := range []plan.Step{plan.Nothing{}, plan.Blocked{}, plan.FindNetwork{}} {
		if _, ok := plan.Predict(plan.Actual{}, step); ok {
			t.Errorf("Predict() has a prediction for %T", step)
		}
	}
}

// stepsInSource returns the types with the method step, and the cases of each function
// in predict.go.
func stepsInSource(t *testing.T) (steps map[string]bool, cases map[string]map[string]bool) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	steps, cases = map[string]bool{}, map[string]map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			switch {
			case !ok:
			case function.Recv != nil && function.Name.Name == "step":
				steps[function.Recv.List[0].Type.(*ast.Ident).Name] = true
			case name == "predict.go":
				cases[function.Name.Name] = casesOf(function)
			}
		}
	}
	return steps, cases
}

// casesOf returns the types in the type switches of a function.
func casesOf(function *ast.FuncDecl) map[string]bool {
	types := map[string]bool{}
	ast.Inspect(function, func(node ast.Node) bool {
		if clause, ok := node.(*ast.CaseClause); ok {
			for _, expression := range clause.List {
				if name, ok := expression.(*ast.Ident); ok {
					types[name.Name] = true
				}
			}
		}
		return true
	})
	return types
}

// TestMaskUnknown: the values of an object that exists are shown.
func TestMaskUnknown(t *testing.T) {
	changes := []plan.Change{{What: "gateway", From: "0.0.0.1", To: "none"}}
	for _, test := range []struct {
		step plan.Step
		want string
	}{
		{plan.UpdateSubnet{ID: plan.KnownAfterCreate, Changes: changes}, "update subnet: gateway (known after create) → none"},
		{plan.UpdateSubnet{ID: "sub-1", Changes: changes}, "update subnet: gateway 0.0.0.1 → none"},
		{plan.UpdateNetwork{ID: plan.KnownAfterCreate, Changes: changes}, "update network (known after create): gateway (known after create) → none"},
		{plan.AddTag{ID: "net-1", Tag: "a"}, `add tag "a" to network net-1`},
	} {
		if got := plan.MaskUnknown(test.step).String(); got != test.want {
			t.Errorf("MaskUnknown() = %q, want %q", got, test.want)
		}
	}
	if changes[0].From != "0.0.0.1" {
		t.Error("MaskUnknown() has changed its argument")
	}
}
