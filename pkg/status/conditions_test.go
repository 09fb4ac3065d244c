package status_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/status"
)

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
		"equal":            {having("Ready"), having("Ready"), true},
		"another order":    {having("Stalled", "Ready"), having("Ready", "Stalled"), true},
		"theirs":           {having("Theirs", "Ready"), having("Ready"), true},
		"one more of ours": {having("Ready", "Reconciling"), having("Ready"), false},
		"another record":   {having(), samplecrdv1.NetworkStatus{NetworkID: "net-1"}, false},
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
}
