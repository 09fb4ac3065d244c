package reconcile

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/status"
	"github.com/samplecrd/network-controller/pkg/store"
)

// TestLogFailure: a failure is an error line, what passes by itself is not, and a
// Network that stays blocked does not fill the log. No text forges a line.
func TestLogFailure(t *testing.T) {
	r, _ := newReconciler(t)
	r.Observe(key, object("uid-1", ""), plan.Desired{})
	blocked := func(message string) error {
		return status.BlockedError{Blocked: plan.Blocked{Reason: plan.ReasonAmbiguous, Message: message}}
	}
	unavailable := &neutron.Error{Op: "create network", Class: neutron.ErrUnavailable}
	for _, test := range []struct {
		name string
		err  error
		want string // how the line begins, and what it contains; empty for no line
	}{
		{"blocked", blocked("two networks"), `E "Sync failed; later" err="blocked: Ambiguous: two networks"`},
		{"still blocked", blocked("two networks"), ""},
		{"blocked otherwise", blocked("three\nI1121 networks\x1b[2J"), `E err="blocked: Ambiguous: three\\nI1121 networks\\x1b[2J"`},
		{"unavailable", unavailable, `E err="create network: unavailable"`},
		{"still unavailable", unavailable, `E err="create network: unavailable"`},
		{"blocked again", blocked("two networks"), `E two networks`},
		{"outdated", fmt.Errorf("updating: %w", errOutdated), `I "Sync ended early; later"`},
		{"outdated Deployment", fmt.Errorf("updating: %w", store.ErrOutdated), `I "Sync ended early; later"`},
		{"deleted", errDeleted, `I "Sync ended early; later"`},
		{"conflict in Kubernetes", apierrors.NewConflict(schema.GroupResource{}, "example", errors.New("changed")), `I "Sync ended early; later"`},
		{"conflict in Neutron", &neutron.Error{Class: neutron.ErrConflict}, `I "Sync ended early; later"`},
		{"waiting", r.waitError("forget", "pending", 1), `I "Sync ended early; later"`},
	} {
		var log strings.Builder
		logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log), textlogger.Verbosity(0)))
		r.LogFailure(klog.NewContext(t.Context(), logger), key, test.err, "later", "key", "value")
		line := log.String()
		level, text, _ := strings.Cut(test.want, " ")
		if test.want == "" && line != "" || !strings.HasPrefix(line, level) || !strings.Contains(line, text) || strings.Count(line, "\n") > 1 {
			t.Errorf("%s: logged %q, want %q", test.name, line, test.want)
		}
	}
}
