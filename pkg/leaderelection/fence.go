package leaderelection

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Fence lets writes through only while no other replica can hold the Lease. A replica
// cannot notice that it was paused. So the fence is checked right before a request is
// sent, after everything that waits. The zero Fence is closed.
type Fence struct {
	always bool // open, because leader election is disabled
	limit  time.Duration

	clock clock.Clock        // its time.Time has a monotonic reading
	wall  clock.PassiveClock // the same clock, except in tests
	epoch time.Time          // begin of the monotonic time

	mu      sync.Mutex
	leads   bool
	ended   bool // for good
	renewed moment
}

// moment is a time by two clocks. A suspended machine stops only the monotonic one, and
// only the other one can be set.
type moment struct {
	monotonic time.Duration
	wall      time.Time
}

// left returns for how long a Lease may be used that was renewed at a moment. Zero or
// less means that another replica may hold it. The clock that has advanced further
// decides.
func left(renewed, now moment, limit time.Duration) time.Duration {
	return limit - max(now.monotonic-renewed.monotonic, now.wall.Sub(renewed.wall))
}

// limitOf returns for how long after its renewal a Lease may be used. The others take it
// over after its full duration. The rest is for the way of a request to the server, and
// for clocks that run at different rates.
func limitOf(leaseDuration time.Duration) time.Duration {
	return leaseDuration - max(leaseDuration/15, 100*time.Millisecond)
}

func newFence(leaseDuration time.Duration, monotonic clock.Clock, wall clock.PassiveClock) *Fence {
	return &Fence{limit: limitOf(leaseDuration), clock: monotonic, wall: wall, epoch: monotonic.Now()}
}

func (f *Fence) now() moment {
	return moment{monotonic: f.clock.Since(f.epoch), wall: f.wall.Now().Round(0)}
}

// renew opens the fence after a renewal of the Lease that succeeded. It counts from the
// start of that request: the others may have seen its effect before the response arrived.
func (f *Fence) renew(start moment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leads, f.renewed = true, start
}

// end closes the fence for good.
func (f *Fence) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
}

// left returns for how long the fence stays open without a renewal. It is closed for zero
// or less.
func (f *Fence) left() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.leads || f.ended {
		return 0
	}
	return left(f.renewed, f.now(), f.limit)
}

// Transport returns a transport that sends a write only while the fence is open, and
// waits for its response only as long. Refuse returns the error of a write that is not
// sent, and nil for a request that changes nothing and is always sent.
func (f *Fence) Transport(next http.RoundTripper, refuse func(*http.Request) error) http.RoundTripper {
	if f.always {
		return next
	}
	return fencedTransport{f, next, refuse}
}

type fencedTransport struct {
	fence  *Fence
	next   http.RoundTripper
	refuse func(*http.Request) error
}

var (
	errClosed     = errors.New("not sent: the Lease was not renewed in time")
	errLeaseEnded = errors.New("no response before the end of the Lease")
)

// RoundTrip implements http.RoundTripper.
func (t fencedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	refused := t.refuse(request)
	if refused == nil {
		return t.next.RoundTrip(request)
	}
	if t.fence.left() <= 0 {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, refused
	}
	ctx, cancel := context.WithCancelCause(request.Context())
	go t.fence.cancelAtEnd(ctx, cancel)
	response, err := t.next.RoundTrip(t.fence.checkAgain(request.WithContext(ctx)))
	if err != nil {
		cancel(nil)
		if errors.Is(err, errClosed) {
			err = refused
		}
		return nil, err
	}
	response.Body = &cancelingBody{response.Body, cancel}
	return response, nil
}

// cancelAtEnd cancels a context when the fence closes. The Lease may be renewed before.
func (f *Fence) cancelAtEnd(ctx context.Context, cancel context.CancelCauseFunc) {
	timer := f.clock.NewTimer(f.left())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
		}
		rest := f.left()
		if rest <= 0 {
			cancel(errLeaseEnded)
			return
		}
		timer.Reset(rest)
	}
}

// checkAgain makes a request check the fence again before its body is sent, for each
// attempt of an http.Transport: to connect takes time. A server executes no request whose
// body is missing. (A request that has none, such as a DELETE, has no second check.)
func (f *Fence) checkAgain(request *http.Request) *http.Request {
	if request.Body == nil || request.Body == http.NoBody {
		return request
	}
	request.Body = &fencedBody{ReadCloser: request.Body, fence: f}
	if get := request.GetBody; get != nil {
		request.GetBody = func() (io.ReadCloser, error) {
			body, err := get()
			return &fencedBody{ReadCloser: body, fence: f}, err
		}
	}
	return request
}

// fencedBody is the body of a write. Only its begin is checked: after that, the server
// may have it.
type fencedBody struct {
	io.ReadCloser
	fence *Fence
	begun bool
}

// Read implements io.Reader.
func (b *fencedBody) Read(p []byte) (int, error) {
	if !b.begun && b.fence.left() <= 0 {
		return 0, errClosed
	}
	b.begun = true
	return b.ReadCloser.Read(p)
}

// cancelingBody releases the context of a request when its body is closed.
type cancelingBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

// Close implements io.Closer.
func (b *cancelingBody) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}
