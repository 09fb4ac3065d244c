package reconcile

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/status"
	"github.com/samplecrd/network-controller/pkg/store"
)

// RetryDelays are the delays after failures that need more than a moment to pass.
type RetryDelays struct {
	// InUse is for what a user may resolve in Neutron, such as a port in use or a
	// second network with the owner marker. Each retry costs one or two requests.
	InUse time.Duration
	// Rejected is for what a user has to change first: a quota, a policy, a
	// value that Neutron does not accept.
	Rejected time.Duration
	// OverwrittenStatus is the time until a status that another client has written is
	// corrected for the first time. Two controllers that disagree must not keep each
	// other busy, so the time doubles while the other client goes on.
	OverwrittenStatus time.Duration
	// MaxBackoff is the longest delay of Backoff. A Network is retried at most this
	// long after the end of an outage.
	MaxBackoff time.Duration
}

// maxOverwrittenStatus is the longest time until an overwritten status is corrected,
// before it is spread.
const maxOverwrittenStatus = 10 * time.Minute

// correction is when a status that another client has written is corrected.
type correction struct {
	delay   time.Duration // before it was spread
	due     time.Time
	pending bool // until it is written
}

// correctionAfter returns the correction of a status that was found overwritten now, given
// the last correction. A client that overwrites that one within twice its delay goes on: a
// controller like this one waits up to 1.5 times the same delay.
func (d RetryDelays) correctionAfter(last correction, now time.Time) correction {
	delay := d.OverwrittenStatus
	switch {
	case last.pending:
		return last
	case last.delay > 0 && now.Sub(last.due) < 2*last.delay:
		delay = min(2*last.delay, maxOverwrittenStatus)
	}
	return correction{delay: delay, due: now.Add(wait.Jitter(delay, 0.5)), pending: true}
}

// DefaultRetryDelays returns the delays that suit a cloud.
func DefaultRetryDelays() RetryDelays {
	return RetryDelays{
		InUse: 20 * time.Second, Rejected: 5 * time.Minute, OverwrittenStatus: 5 * time.Second, MaxBackoff: 2 * time.Minute,
	}
}

// Retry classifies the error of a sync.
type Retry int

const (
	// RetryNever waits for a change of the object.
	RetryNever Retry = iota
	// RetrySoon retries with the queue's backoff.
	RetrySoon
	// RetryLater retries after the delay that Retry returns.
	RetryLater
)

// Retry returns whether and when a sync that ended with this error is retried. The
// delay is for RetryLater. Delays are spread, so that many Networks do not return
// at once.
func (r *Reconciler) Retry(err error) (retry Retry, delay time.Duration) {
	retry, least, jitter := r.options.Retry.classify(err)
	return retry, wait.Jitter(least, jitter)
}

// endsWithChange are the obstacles that only another spec or annotation removes, or another
// flag or cloud, which takes a new process.
var endsWithChange = []plan.Reason{
	plan.ReasonPaused, plan.ReasonInvalidSpec, plan.ReasonAdoptionNotAllowed, plan.ReasonOtherCloud,
}

// classify returns the class of an error, and for RetryLater the least delay, and by which part
// of it the delay may be longer.
func (d RetryDelays) classify(err error) (retry Retry, least time.Duration, jitter float64) {
	var blocked plan.Blocked
	var failure *neutron.Error
	var waiting status.WaitError
	switch {
	case err == nil, errors.Is(err, store.ErrElsewhere):
		return RetryNever, 0, 0
	case errors.As(err, &waiting) && waiting.Left > 0:
		return RetryLater, waiting.Left, 0.1
	case status.IsBlockedBy(err, endsWithChange...):
		return RetryNever, 0, 0
	case status.IsBlockedBy(err, plan.ReasonNotConverging, plan.ReasonNamespaceLimit), errors.Is(err, neutron.ErrRefused),
		errors.Is(err, neutron.ErrNoCloud): // a cloud comes with another controller
		return RetryLater, d.Rejected, 0.5
	case errors.Is(err, neutron.ErrInUse), errors.As(err, &blocked):
		return RetryLater, d.InUse, 0.5
	case errors.As(err, &failure) && failure.RetryAfter > 0:
		return RetryLater, min(failure.RetryAfter, d.Rejected), 0.1
	}
	return RetrySoon, 0, 0
}

// Backoff returns a rate limiter for failures that may pass any moment. Its delay doubles
// with each failure and is spread by up to a quarter, so that Networks that failed together
// are not retried together.
func (r *Reconciler) Backoff() workqueue.TypedRateLimiter[cache.ObjectName] {
	return spread{workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](200*time.Millisecond,
		r.options.Retry.MaxBackoff)}
}

type spread struct {
	workqueue.TypedRateLimiter[cache.ObjectName]
}

func (s spread) When(key cache.ObjectName) time.Duration {
	return wait.Jitter(s.TypedRateLimiter.When(key)*3/4, 1.0/3)
}

// LogFailure logs how a sync ended and what follows. What passes by itself, such as
// a concurrent change, is no error. An outcome that is the same as the one before is
// logged only with -v=2: a Network that waits for its user would fill the log.
//
//nolint:revive // the last ones are keys and values, as for any logger
func (r *Reconciler) LogFailure(ctx context.Context, key cache.ObjectName, err error, next string, values ...any) {
	logger, text := klog.FromContext(ctx), status.Printable(err.Error())
	retry, _ := r.Retry(err)
	switch isRepeated := r.isRepeated(key, text); {
	case isRepeated && retry != RetrySoon:
		logger.V(2).Info("Sync failed again; "+next, append(values, "err", text)...)
	case isHarmless(err):
		logger.Info("Sync ended early; "+next, append(values, "reason", text)...)
	default:
		logger.Error(errors.New(text), "Sync failed; "+next, values...)
	}
}

// isHarmless reports whether an error is no failure: an object changed concurrently, or a
// sync has to wait, or is paused.
func isHarmless(err error) bool {
	return status.IsBlockedBy(err, plan.ReasonPaused) || errors.Is(err, store.ErrOutdated) ||
		errors.Is(err, store.ErrElsewhere) || errors.Is(err, errDeleted) || apierrors.IsConflict(err) ||
		errors.Is(err, neutron.ErrConflict) || errors.As(err, new(status.WaitError))
}

// isRepeated reports whether the previous sync of a key ended with the same failure.
func (r *Reconciler) isRepeated(key cache.ObjectName, failure string) (repeated bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	memory, ok := r.memories[key]
	if !ok { // no object
		return false
	}
	repeated = memory.failure == failure
	memory.failure = failure
	r.memories[key] = memory
	return repeated
}
