package reconcile

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/status"
	"github.com/samplecrd/network-controller/pkg/store"
)

// TestRetry: each class of failure has its delay. Only failures that need another
// spec or another flag are not retried.
func TestRetry(t *testing.T) {
	blocked := func(reason plan.Reason) error { return plan.Blocked{Reason: reason} }
	withoutCloud := &neutron.Error{Class: neutron.ErrUnavailable, Cause: neutron.ErrNoCloud}
	failed := func(kind error, after time.Duration) error { return &neutron.Error{Class: kind, RetryAfter: after} }
	for name, test := range map[string]struct {
		err         error
		retry       Retry
		least, most time.Duration
	}{
		"done":                    {err: nil},
		"invalid":                 {err: blocked(plan.ReasonInvalidSpec)},
		"adoption not allowed":    {err: blocked(plan.ReasonAdoptionNotAllowed)},
		"ambiguous":               {blocked(plan.ReasonAmbiguous), RetryLater, 20 * time.Second, 30 * time.Second},
		"not there":               {blocked(plan.ReasonNotFound), RetryLater, 20 * time.Second, 30 * time.Second},
		"not converging":          {blocked(plan.ReasonNotConverging), RetryLater, 5 * time.Minute, 8 * time.Minute},
		"in use":                  {failed(neutron.ErrInUse, 0), RetryLater, 20 * time.Second, 30 * time.Second},
		"refused":                 {failed(neutron.ErrRefused, 0), RetryLater, 5 * time.Minute, 8 * time.Minute},
		"unavailable":             {failed(neutron.ErrUnavailable, 0), RetrySoon, 0, 0},
		"unavailable for so long": {failed(neutron.ErrUnavailable, 10*time.Second), RetryLater, 10 * time.Second, 11 * time.Second},
		"unavailable for ever":    {failed(neutron.ErrUnavailable, time.Hour), RetryLater, 5 * time.Minute, 6 * time.Minute},
		"without a cloud":         {withoutCloud, RetryLater, 5 * time.Minute, 8 * time.Minute},
		"waiting":                 {status.WaitError{Left: time.Minute}, RetryLater, time.Minute, 66 * time.Second},
		"waiting, who knows":      {status.WaitError{}, RetrySoon, 0, 0},
		"changed concurrently":    {failed(neutron.ErrConflict, 0), RetrySoon, 0, 0},
		"anything else":           {errors.New("what is this"), RetrySoon, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for range 50 {
				retry, delay := (&Reconciler{options: Options{Retry: DefaultRetryDelays()}}).Retry(test.err)
				if retry != test.retry || delay < test.least || delay > test.most {
					t.Fatalf("Retry() = %v, %v, want %v, from %v to %v", retry, delay, test.retry, test.least, test.most)
				}
			}
		})
	}
}

// TestLogFailure: a failure is an error line, what passes by itself is not, and a
// Network that stays blocked does not fill the log. No text forges a line.
func TestLogFailure(t *testing.T) {
	r, _ := newReconciler(t)
	if _, err := r.Begin(key, object("uid-1", "")); err != nil {
		t.Fatal(err)
	}
	blocked := func(message string) error {
		return plan.Blocked{Reason: plan.ReasonAmbiguous, Message: message}
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
		{"waiting", status.WaitError{Reason: "pending", Left: 1}, `I "Sync ended early; later"`},
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

// TestBackoff: the delay grows, is bounded, and differs between keys that failed
// together.
func TestBackoff(t *testing.T) {
	const longest = 2 * time.Minute
	backoff := (&Reconciler{options: Options{Retry: RetryDelays{MaxBackoff: longest}}}).Backoff()
	first := map[time.Duration]bool{}
	for i := range 100 {
		key := cache.NewObjectName("default", string(rune('a'+i)))
		pause := backoff.When(key)
		first[pause] = true
		if pause < 150*time.Millisecond || pause > 200*time.Millisecond {
			t.Errorf("the first pause is %v", pause)
		}
		last := pause
		for range 30 {
			last = backoff.When(key)
		}
		if last < longest*3/4 || last > longest {
			t.Errorf("after 30 failures the pause is %v", last)
		}
	}
	if len(first) < 50 {
		t.Errorf("100 first pauses have %d lengths", len(first))
	}
}
