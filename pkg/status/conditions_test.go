package status_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/status"
)

// TestInProgress: an edit and a deletion become visible before their first step that
// changes Neutron, once. Nothing else costs a write.
func TestInProgress(t *testing.T) {
	theirs := metav1.Condition{Type: "Theirs", Status: "True"}
	good := ready(metav1.ConditionTrue, status.Provisioned, "good")
	pending := metav1.Condition{Type: "Ready", Status: "Unknown", Reason: "Pending"}
	deletion, deleting := plan.DeleteNetwork{ID: "net-1"}, "Deleting: The Network is being deleted. The first step is to delete the Neutron network net-1."
	change := plan.UpdateSubnet{Changes: []plan.Change{{What: "gateway", From: "10.0.0.1", To: "10.0.0.9"}}}
	for name, test := range map[string]struct {
		before     metav1.Condition
		generation int64
		deleted    bool
		step       plan.Step
		want       string // reason and message; empty if nothing is to be written
	}{
		"new":                                  {pending, 1, false, createNetwork, ""},
		"edited":                               {good, 8, false, change, "Reconciling: The spec was edited. The first step is to change gateway from 10.0.0.1 to 10.0.0.9."},
		"edited, but only looking":             {good, 8, false, plan.FindNetwork{}, ""},
		"edited while it was not ready":        {ready(metav1.ConditionFalse, "InUse", ""), 8, false, change, ""},
		"drifted":                              {good, 7, false, change, ""},
		"visible already":                      {ready(metav1.ConditionFalse, "Reconciling", ""), 7, false, change, ""},
		"deleted":                              {good, 8, true, deletion, deleting},
		"deleted, and was not ready":           {ready(metav1.ConditionFalse, "InUse", ""), 8, true, deletion, deleting},
		"deleted while new":                    {pending, 2, true, deletion, deleting},
		"deleted, but nothing was created":     {pending, 2, true, plan.RemoveFinalizer{}, ""},
		"deleted, and the deletion is blocked": {ready(metav1.ConditionFalse, "InUse", ""), 7, true, deletion, ""},
	} {
		t.Run(name, func(t *testing.T) {
			network := &samplecrdv1.Network{Status: samplecrdv1.NetworkStatus{NetworkID: "net-1", Conditions: []metav1.Condition{test.before, theirs}}}
			network.Generation = test.generation
			if test.deleted {
				network.DeletionTimestamp = &now
			}
			before := network.DeepCopy()

			got, needed := status.InProgress(network, test.step, now)

			if diff := cmp.Diff(before, network); diff != "" {
				t.Errorf("the Network was changed (-before +after):\n%s", diff)
			}
			if needed != (test.want != "") {
				t.Fatalf("InProgress() is needed: %v, want %v", needed, test.want != "")
			}
			if !needed {
				return
			}
			is, with := got.Conditions[0], got.Conditions[2]
			if text := is.Reason + ": " + is.Message; text != test.want || is.Status != "False" || is.ObservedGeneration != test.generation {
				t.Errorf("Ready is %v, want False, %s", is, test.want)
			}
			want := is
			want.Type, want.Status, want.LastTransitionTime = "Reconciling", "True", now
			if diff := cmp.Diff(want, with); diff != "" || got.Conditions[1] != theirs || got.NetworkID != "net-1" || got.ObservedGeneration != test.generation {
				t.Errorf("the status is %+v; Reconciling (-want +got):\n%s", got, diff)
			}
			network.Status = got
			if _, again := status.InProgress(network, test.step, now); again {
				t.Error("the second step needs another write")
			}
		})
	}
}

// TestIsSame: conditions of other controllers make no difference, and neither does
// the order. Only an empty status has the hash 0.
func TestIsSame(t *testing.T) {
	having := func(kinds ...string) (s samplecrdv1.NetworkStatus) {
		for _, kind := range kinds {
			s.Conditions = append(s.Conditions, metav1.Condition{Type: kind})
		}
		return s
	}
	for name, test := range map[string]struct {
		a, b samplecrdv1.NetworkStatus
		want bool
	}{
		"equal":                {having("Ready"), having("Ready"), true},
		"another order":        {having("Stalled", "Ready"), having("Ready", "Stalled"), true},
		"theirs":               {having("Theirs", "Ready"), having("Ready"), true},
		"one more of ours":     {having("Ready", "Reconciling"), having("Ready"), false},
		"another record":       {having(), samplecrdv1.NetworkStatus{NetworkID: "net-1"}, false},
		"one for a Deployment": {having("DeploymentInvalid"), having(), true},
	} {
		if got := status.IsSame(test.a, test.b); got != test.want {
			t.Errorf("%s: IsSame() = %v, want %v", name, got, test.want)
		}
		if isEmpty := status.IsSame(test.a, samplecrdv1.NetworkStatus{}); (status.Hash(test.a) == 0) != isEmpty {
			t.Errorf("%s: the hash is %d", name, status.Hash(test.a))
		}
		if got := status.Hash(test.a) == status.Hash(test.b); got != test.want {
			t.Errorf("%s: the hashes are equal: %v, want %v", name, got, test.want)
		}
	}
}

// TestWriter: the last field manager that wrote the status is reported, and what to
// do about it.
func TestWriter(t *testing.T) {
	entry := func(manager, subresource string, at *metav1.Time) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Time: at}
	}
	for name, test := range map[string]struct {
		fields []metav1.ManagedFieldsEntry
		want   string
	}{
		"nobody":                    {nil, ""},
		"the last one":              {[]metav1.ManagedFieldsEntry{entry("old", "status", &past), entry("new", "status", &now), entry("spec", "", &now)}, "new"},
		"not the last in the list":  {[]metav1.ManagedFieldsEntry{entry("new", "status", &now), entry("old", "status", &past)}, "new"},
		"the other one":             {[]metav1.ManagedFieldsEntry{entry("ours", "status", &now), entry("theirs", "status", &now)}, "theirs"},
		"the other one, and before": {[]metav1.ManagedFieldsEntry{entry("theirs", "status", &now), entry("ours", "status", &now)}, "theirs"},
		"one of the same name":      {[]metav1.ManagedFieldsEntry{entry("ours", "status", &now), entry("none", "status", nil)}, "ours"},
	} {
		if got := status.Writer(test.fields, "ours"); got != test.want {
			t.Errorf("%s: Writer() = %q, want %q", name, got, test.want)
		}
	}
	for writer, want := range map[string]string{
		"theirs": `The field manager "theirs" has written the status of this Network, which belongs to the controller. The controller corrects it, and waits longer each time, up to about ten minutes. If that is another controller, stop one of the two.`,
		"ours":   `Another process with the field manager "ours" has written the status of this Network, which belongs to the controller. The controller corrects it, and waits longer each time, up to about ten minutes. If two controllers run in this cluster, stop one of them, or run both with the same Lease (-leader-elect).`,
	} {
		if got := status.Overwritten(writer, "ours"); got.Note != want || got.Type != "Warning" {
			t.Errorf("Overwritten(%q) = %v, want %q", writer, got, want)
		}
	}
}

func TestWithDeployment(t *testing.T) {
	now := metav1.Now()
	before := samplecrdv1.NetworkStatus{Conditions: []metav1.Condition{{Type: samplecrdv1.ConditionReady, Status: metav1.ConditionTrue}}}
	invalid := status.WithDeployment(before, 7, "the annotation has no range", now)
	condition := meta.FindStatusCondition(invalid.Conditions, samplecrdv1.ConditionDeploymentInvalid)
	if condition == nil || condition.Status != metav1.ConditionTrue || condition.ObservedGeneration != 7 || condition.Message != "the annotation has no range" {
		t.Errorf("with a problem of the Deployment, the condition is %+v", condition)
	}
	if len(before.Conditions) != 1 {
		t.Errorf("the status that was given has changed: %+v", before.Conditions)
	}
	if valid := status.WithDeployment(invalid, 8, "", now); len(valid.Conditions) != 1 || len(invalid.Conditions) != 2 {
		t.Errorf("without a problem, the conditions are %+v", valid.Conditions)
	}
}

// TestSettled: what a status says counts only for the spec that it was written for.
func TestSettled(t *testing.T) {
	for name, test := range map[string]struct {
		reason            string
		observed, matched int64
		want              [3]bool // ready for the spec, settled, has matched
	}{
		"ready":                           {status.Provisioned, 2, 2, [3]bool{true, true, true}},
		"ready for another spec":          {status.Provisioned, 1, 1, [3]bool{}},
		"not ready":                       {status.Refused, 2, 0, [3]bool{}},
		"not ready any more":              {status.Refused, 2, 2, [3]bool{2: true}},
		"drifted":                         {"Drifted", 2, 2, [3]bool{false, true, true}},
		"drifted, and edited since":       {"Drifted", 1, 1, [3]bool{}},
		"another spec, and never matched": {status.Refused, 1, 0, [3]bool{}},
	} {
		is := ready(metav1.ConditionFalse, test.reason, "")
		if is.ObservedGeneration = test.observed; test.reason == status.Provisioned {
			is.Status = metav1.ConditionTrue
		}
		network := &samplecrdv1.Network{Status: samplecrdv1.NetworkStatus{MatchedGeneration: test.matched, Conditions: []metav1.Condition{is}}}
		network.Generation = 2
		if got := [3]bool{status.IsReadyForSpec(network), status.IsSettled(network), status.HasMatched(network)}; got != test.want {
			t.Errorf("%s: ready for the spec, settled, has matched: %v, want %v", name, got, test.want)
		}
		if status.IsReady(network.Status) != (test.reason == status.Provisioned) {
			t.Errorf("%s: IsReady() = %v", name, status.IsReady(network.Status))
		}
	}
	unknown := &samplecrdv1.Network{}
	if status.HasMatched(unknown) || status.IsReadyForSpec(unknown) {
		t.Error("an empty status matches generation 0")
	}
}
