package leaderelection

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

var someTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(monotonic, wall time.Duration) moment { return moment{monotonic, someTime.Add(wall)} }

// TestLeft: the clock that has advanced further decides for how long a Lease may be used.
func TestLeft(t *testing.T) {
	const limit = 14 * time.Second
	for name, test := range map[string]struct {
		renewed, now moment
		want         time.Duration
	}{
		"at the renewal":               {at(5, 7), at(5, 7), limit},
		"both clocks run":              {at(0, 0), at(10*time.Second, 10*time.Second), 4 * time.Second},
		"renewed later":                {at(10*time.Second, 10*time.Second), at(11*time.Second, 11*time.Second), 13 * time.Second},
		"just before the end":          {at(0, 0), at(limit-1, limit-1), 1},
		"at the end":                   {at(0, 0), at(limit, limit), 0},
		"paused":                       {at(0, 0), at(time.Minute, time.Minute), -46 * time.Second},
		"the machine was suspended":    {at(0, 0), at(time.Second, time.Hour), limit - time.Hour},
		"the wall clock was set ahead": {at(0, 0), at(0, limit), 0},
		"the wall clock was set back":  {at(0, 0), at(10*time.Second, -time.Hour), 4 * time.Second},
		"set back, and paused":         {at(0, 0), at(limit, -time.Hour), 0},
		"set back by centuries":        {at(0, 0), moment{limit, time.Time{}}, 0},
		"set ahead by centuries":       {moment{0, time.Time{}}, at(0, 0), limit - math.MaxInt64},
	} {
		if got := left(test.renewed, test.now, limit); got != test.want {
			t.Errorf("%s: left() = %v, want %v", name, got, test.want)
		}
	}
}

// TestLimit: a margin remains, also for the shortest Lease.
func TestLimit(t *testing.T) {
	for lease, want := range map[time.Duration]time.Duration{
		time.Second: 900 * time.Millisecond, 15 * time.Second: 14 * time.Second, time.Minute: 56 * time.Second,
	} {
		if got := limitOf(lease); got != want {
			t.Errorf("limitOf(%v) = %v, want %v", lease, got, want)
		}
	}
}

// TestNow: with the clocks of the program, the two times are those of the system. The wall clock
// is read without a monotonic reading, which would hide that the machine was suspended.
func TestNow(t *testing.T) {
	fence := newFence(15*time.Second, clock.RealClock{}, clock.RealClock{})
	now := fence.now()
	if now.wall != now.wall.Round(0) || time.Since(now.wall).Abs() > time.Minute || now.monotonic < 0 || now.monotonic > time.Minute {
		t.Errorf("now() = %v", now)
	}
	if later := fence.now(); later.monotonic <= now.monotonic {
		t.Errorf("monotonic: %v, then %v", now.monotonic, later.monotonic)
	}
}

// wall is the wall clock of a machine. The fence of an ended request may still read it.
type wall struct{ ahead atomic.Int64 }

func (w *wall) set(ahead time.Duration)              { w.ahead.Add(int64(ahead)) }
func (w *wall) Now() time.Time                       { return time.Now().Add(time.Duration(w.ahead.Load())) }
func (w *wall) Since(before time.Time) time.Duration { return w.Now().Sub(before) }

// trial is a fence of a Lease of 15 s, with a server behind it. The time in the bubble of the
// test passes at once.
type trial struct {
	*testing.T
	fence  *Fence
	wall   wall
	server func(*http.Request) (*http.Response, error)
}

var errRefused = errors.New("refused")

func try(t *testing.T, test func(*trial)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &trial{T: t}
		f.fence, f.server = newFence(15*time.Second, clock.RealClock{}, &f.wall), receive
		test(f)
	})
}

// receive is a server, which executes no part of a request.
func receive(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil || string(body) != "{}" {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func (f *trial) renew() { f.fence.renew(f.fence.now()) }

// pass lets a time pass by both clocks.
func (f *trial) pass(d time.Duration) { <-time.After(d) }

// send sends a request through the fence.
func (f *trial) send(method, path string, body io.ReadCloser) (*http.Response, error) {
	f.Helper()
	request, err := http.NewRequestWithContext(f.Context(), method, "http://neutron.example"+path, strings.NewReader("{}"))
	if err != nil {
		f.Fatal(err)
	}
	if body != nil {
		request.Body = body
	}
	return f.fence.Transport(roundTripper(f.server), func(r *http.Request) error {
		if r.Method == http.MethodGet || r.URL.Path == "/login" {
			return nil
		}
		return errRefused
	}).RoundTrip(request)
}

// wantPost sends a write, and checks its error.
func (f *trial) wantPost(when string, want error) {
	f.Helper()
	if _, err := f.send(http.MethodPost, "/", nil); !errors.Is(err, want) { //nolint:bodyclose // it has none
		f.Errorf("%s, the error of a write is %v, want %v", when, err, want)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestFence: a write is sent only by a leader that has renewed the Lease in time, by both
// clocks. Reads and logins are always sent.
func TestFence(t *testing.T) {
	try(t, func(f *trial) {
		var slow moment
		for _, step := range []struct {
			when string
			do   func()
			open bool
		}{
			{"before leading", func() {}, false},
			{"leading", f.renew, true},
			{"before the end", func() { f.pass(14*time.Second - 1) }, true},
			{"not renewed", func() { f.pass(1) }, false},
			{"renewed by a slow request", func() { slow = f.fence.now(); f.pass(13 * time.Second); f.fence.renew(slow) }, true},
			{"14 s after the start of that request", func() { f.pass(time.Second) }, false},
			{"by the monotonic clock alone", func() { f.renew(); f.pass(14 * time.Second); f.wall.set(-14 * time.Second) }, false},
			{"renewed again", f.renew, true},
			{"by the wall clock alone", func() { f.wall.set(14 * time.Second) }, false},
			{"lost", func() { f.renew(); f.fence.end() }, false},
			{"renewed after it was lost", f.renew, false},
		} {
			step.do()
			for _, request := range []string{"POST /", "PUT /", "DELETE /", "PATCH /", "GET /", "POST /login"} {
				method, path, _ := strings.Cut(request, " ")
				_, err := f.send(method, path, nil) //nolint:bodyclose // it has none
				if sent := step.open || request == "GET /" || request == "POST /login"; sent != (err == nil) || !sent && !errors.Is(err, errRefused) {
					t.Errorf("%s: %s: %v, want it sent: %v", step.when, request, err, sent)
				}
			}
		}
	})
}

// TestZeroFence: the zero Fence is closed, and that of a replica without leader election
// is open.
func TestZeroFence(t *testing.T) {
	try(t, func(f *trial) {
		f.fence = new(Fence)
		f.wantPost("with a zero Fence", errRefused)
		elector, err := Options{enabled: false}.New(t.Context(), nil, nil, noHealth{})
		if err != nil {
			t.Fatal(err)
		}
		f.fence = elector.Fence()
		f.wantPost("without leader election", nil)
	})
}

// TestSuspendedWhileSending: each attempt to send a body is checked when it begins, because
// to connect takes time: also one that net/http makes by itself, because the server has
// closed an idle connection. A body that has begun is sent to its end.
func TestSuspendedWhileSending(t *testing.T) {
	try(t, func(f *trial) {
		f.server = func(r *http.Request) (*http.Response, error) {
			f.wall.set(14 * time.Second) // just too long
			return receive(r)
		}
		f.renew()
		f.wantPost("suspended while connecting", errRefused)
		f.server = func(r *http.Request) (*http.Response, error) {
			if _, err := receive(r); err != nil {
				t.Errorf("the first attempt: %v", err)
			}
			f.wall.set(time.Hour)
			if rest, err := r.Body.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("%d bytes and %v follow, although the body has begun", rest, err)
			}
			again, err := r.GetBody()
			if err != nil {
				return nil, err
			}
			r.Body = again
			return receive(r)
		}
		f.renew()
		f.wantPost("suspended before another attempt", errRefused)
	})
}

// TestBodies: the body of a write that is not sent is closed, and a write without a body
// has none after the fence either.
func TestBodies(t *testing.T) {
	try(t, func(f *trial) {
		body := &closedBody{}
		if _, err := f.send(http.MethodPost, "/", body); !errors.Is(err, errRefused) || !body.closed { //nolint:bodyclose // it has none
			t.Errorf("the body is closed: %v (%v)", body.closed, err)
		}
		f.server = func(r *http.Request) (*http.Response, error) {
			if r.Body != http.NoBody {
				t.Errorf("the body is %v", r.Body)
			}
			return nil, io.ErrUnexpectedEOF
		}
		f.renew()
		if _, err := f.send(http.MethodDelete, "/", http.NoBody); !errors.Is(err, io.ErrUnexpectedEOF) { //nolint:bodyclose // it has none
			t.Error(err)
		}
	})
}

type closedBody struct {
	io.ReadCloser
	closed bool
}

func (b *closedBody) Close() error { b.closed = true; return nil }

// TestInFlight: a write in flight is canceled when the Lease ends, and not before that:
// the Lease is renewed meanwhile.
func TestInFlight(t *testing.T) {
	try(t, func(f *trial) {
		f.server = func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, context.Cause(r.Context())
		}
		begun := time.Now()
		f.renew()
		go func() {
			for range 9 { // longer than the Lease
				f.pass(13 * time.Second)
				f.renew()
			}
		}()
		f.wantPost("when the Lease ends", errLeaseEnded)
		if took := time.Since(begun); took != 131*time.Second {
			t.Errorf("the write was canceled after %v, want 14 s after the last renewal", took)
		}
	})
}

// TestEndOfRequest: what waits for the end of the Lease ends with a request that fails, and
// with the body of a response, which can be read after the transport has returned it.
func TestEndOfRequest(t *testing.T) {
	try(t, func(f *trial) {
		var sent context.Context
		failure := io.ErrUnexpectedEOF
		f.server = func(r *http.Request) (*http.Response, error) {
			sent = r.Context()
			return &http.Response{Body: http.NoBody}, failure
		}
		f.renew()
		f.wantPost("when the request fails", failure)
		if sent.Err() == nil {
			t.Error("the failed request has not ended")
		}
		failure = nil
		response, err := f.send(http.MethodPost, "/", nil)
		if err != nil || sent.Err() != nil {
			t.Fatalf("the response cannot be read: %v, %v", err, sent.Err())
		}
		if err := response.Body.Close(); err != nil || sent.Err() == nil {
			t.Errorf("the request has not ended with the body: %v", err)
		}
	})
}
