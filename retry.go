package main

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/report"
)

// retryTimes say how long to wait after a failure.
type retryTimes struct {
	// backoff is for failures that may pass any moment: it doubles, up to
	// maxBackoff, and is spread.
	backoff workqueue.TypedRateLimiter[cache.ObjectName]
	// otherStatus is for a status that somebody else has written.
	otherStatus time.Duration
	// inUse is for what somebody may clear away in Neutron: ports, a second
	// network with our mark. A look costs one request or two.
	inUse time.Duration
	// refused is for what somebody has to change first.
	refused time.Duration
}

// maxBackoff bounds the backoff, and so how long after an outage a Network may
// still be waiting for its next try.
const maxBackoff = 2 * time.Minute

func defaultRetryTimes() retryTimes {
	return retryTimes{
		backoff:     jittered{workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](200*time.Millisecond, maxBackoff)},
		otherStatus: 5 * time.Second,
		inUse:       20 * time.Second,
		refused:     5 * time.Minute,
	}
}

// after returns whether a sync with this outcome is to be repeated, and after
// which pause; 0 stands for the backoff. Pauses are spread, so that many
// Networks do not come back at once.
func (r retryTimes) after(err error) (pause time.Duration, again bool) {
	var blocked report.BlockedError
	var failure *neutron.Error
	switch {
	case err == nil:
		return 0, false
	case errors.As(err, &blocked) && (blocked.Reason == plan.ReasonInvalidSpec || blocked.Reason == plan.ReasonAdoptionNotAllowed):
		return 0, false // nothing helps but a new spec, which is an event, or another flag, which is a new process
	case errors.As(err, &blocked) && blocked.Reason == plan.ReasonNotConverging, errors.Is(err, neutron.ErrRefused):
		return wait.Jitter(r.refused, 0.5), true
	case errors.Is(err, neutron.ErrInUse), errors.As(err, &blocked):
		return wait.Jitter(r.inUse, 0.5), true
	case errors.As(err, &failure) && failure.RetryAfter > 0:
		return wait.Jitter(min(failure.RetryAfter, r.refused), 0.1), true
	}
	return 0, true
}

// jittered shortens the pauses of a rate limiter by up to a quarter, so that
// what failed together is not tried again together.
type jittered struct {
	workqueue.TypedRateLimiter[cache.ObjectName]
}

func (j jittered) When(key cache.ObjectName) time.Duration {
	pause := j.TypedRateLimiter.When(key)
	return wait.Jitter(pause*3/4, 1.0/3)
}
