package leaderelection

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
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

// fenceTest is a fence of a Lease of 15 s, and a server behind it.
type fenceTest struct {
	*testing.T
	fence     *Fence
	monotonic *clocktesting.FakeClock
	wall      *clocktesting.FakePassiveClock
	client    http.Client
	url       string
	received  atomic.Int32
	handle    func(*http.Request)
}

var errRefused = errors.New("refused")

func newFenceTest(t *testing.T) *fenceTest {
	t.Helper()
	f := &fenceTest{
		T: t, monotonic: clocktesting.NewFakeClock(someTime), wall: clocktesting.NewFakePassiveClock(someTime),
		handle: func(*http.Request) {},
	}
	f.fence = newFence(15*time.Second, f.monotonic, f.wall)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err != nil || string(body) != "{}" {
			return // a server executes no part of a request
		}
		f.received.Add(1)
		f.handle(r)
	}))
	t.Cleanup(server.Close)
	f.url = server.URL
	f.connect(server.Client().Transport)
	return f
}

// connect puts the fence before a transport.
func (f *fenceTest) connect(next http.RoundTripper) {
	f.client.Transport = f.fence.Transport(next, func(r *http.Request) error {
		if r.Method == http.MethodGet || r.URL.Path == "/login" {
			return nil
		}
		return errRefused
	})
}

// lead renews the Lease, and lets a function send the requests.
func (f *fenceTest) lead(send roundTripper) {
	f.fence.renew(f.fence.now())
	f.connect(send)
}

// advance lets a time pass by both clocks.
func (f *fenceTest) advance(d time.Duration) {
	f.wall.SetTime(f.wall.Now().Add(d))
	f.monotonic.Step(d)
}

func (f *fenceTest) send(method, path string) error {
	f.Helper()
	request, err := http.NewRequestWithContext(f.Context(), method, f.url+path, strings.NewReader("{}"))
	if err != nil {
		f.Fatal(err)
	}
	response, err := f.client.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// want checks whether a request was sent.
func (f *fenceTest) want(when, method, path string, sent bool) {
	f.Helper()
	before := f.received.Load()
	err := f.send(method, path)
	if got := f.received.Load() > before; got != sent {
		f.Errorf("%s: %s %s was sent: %v, want %v", when, method, path, got, sent)
	}
	if sent && err != nil || !sent && !errors.Is(err, errRefused) {
		f.Errorf("%s: %s %s: %v", when, method, path, err)
	}
}

// TestFence: a write is sent only by a leader that has renewed the Lease in time, by both
// clocks. Reads and logins are always sent.
func TestFence(t *testing.T) {
	f := newFenceTest(t)
	want := func(when string, writes bool) {
		t.Helper()
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch} {
			f.want(when, method, "/", writes)
		}
		f.want(when, http.MethodGet, "/", true)
		f.want(when, http.MethodPost, "/login", true)
	}
	want("before leading", false)
	f.fence.renew(f.fence.now())
	want("leading", true)
	f.advance(14*time.Second - 1)
	want("before the end", true)
	f.advance(1)
	want("not renewed", false)
	start := f.fence.now()
	f.advance(13 * time.Second)
	f.fence.renew(start)
	want("renewed by a slow request", true)
	f.advance(time.Second)
	want("14 s after the start of that request", false)
	f.fence.renew(f.fence.now())
	f.monotonic.Step(14 * time.Second)
	want("by the monotonic clock alone", false)
	f.fence.renew(f.fence.now())
	want("renewed again", true)
	f.wall.SetTime(f.wall.Now().Add(14 * time.Second))
	want("by the wall clock alone", false)
	f.fence.renew(f.fence.now())
	f.fence.end()
	want("lost", false)
	f.fence.renew(f.fence.now())
	want("renewed after it was lost", false)
}

// TestSuspended: with the clocks of the program, the two times are those of the system.
// The wall clock is read without a monotonic reading, which would hide that the machine
// was suspended.
func TestSuspended(t *testing.T) {
	fence := newFence(15*time.Second, clock.RealClock{}, clock.RealClock{})
	now := fence.now()
	if now.wall != now.wall.Round(0) || time.Since(now.wall).Abs() > time.Minute || now.monotonic < 0 || now.monotonic > time.Minute {
		t.Errorf("now() = %v", now)
	}
	if later := fence.now(); later.monotonic <= now.monotonic {
		t.Errorf("monotonic: %v, then %v", now.monotonic, later.monotonic)
	}
}

// TestZeroFence: the zero Fence is closed, and that of a replica without leader election
// is open.
func TestZeroFence(t *testing.T) {
	f := newFenceTest(t)
	f.fence = new(Fence)
	f.connect(http.DefaultTransport)
	f.want("zero", http.MethodPost, "/", false)

	elector, err := Options{enabled: false}.New(t.Context(), nil, nil, noHealth{})
	if err != nil {
		t.Fatal(err)
	}
	f.fence = elector.Fence()
	f.connect(http.DefaultTransport)
	f.want("without leader election", http.MethodPost, "/", true)
}

// TestSuspendedWhileSending: each attempt to send a body is checked when it begins, because
// to connect takes time: also one that net/http makes by itself, because the server has
// closed an idle connection. A body that has begun is sent to its end.
func TestSuspendedWhileSending(t *testing.T) {
	for name, before := range map[string]func(t *testing.T, r *http.Request, suspend func()){
		"while connecting": func(_ *testing.T, _ *http.Request, suspend func()) { suspend() },
		"before another attempt": func(t *testing.T, r *http.Request, suspend func()) {
			first, err := io.ReadAll(r.Body)
			if err != nil || string(first) != "{}" {
				t.Errorf("the first body is %q (%v)", first, err)
			}
			suspend()
			if rest, err := r.Body.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("%d bytes and %v follow, although the body has begun", rest, err)
			}
			if r.Body, err = r.GetBody(); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFenceTest(t)
			f.lead(func(r *http.Request) (*http.Response, error) {
				before(t, r, func() { f.wall.SetTime(f.wall.Now().Add(14 * time.Second)) })
				return http.DefaultTransport.RoundTrip(r)
			})
			if err := f.send(http.MethodPost, "/"); f.received.Load() != 0 || !errors.Is(err, errRefused) {
				t.Errorf("%d requests were sent, and the error is %v", f.received.Load(), err)
			}
		})
	}
}

// TestBodies: the body of a write that is not sent is closed, and a write without a body
// has none after the fence either.
func TestBodies(t *testing.T) {
	f := newFenceTest(t)
	body := &closedBody{}
	request := &http.Request{Method: http.MethodPost, URL: &url.URL{}, Body: body}
	//nolint:bodyclose // there is no response
	if _, err := f.client.Transport.RoundTrip(request); !errors.Is(err, errRefused) || !body.closed {
		t.Errorf("the body is closed: %v (%v)", body.closed, err)
	}
	f.lead(func(r *http.Request) (*http.Response, error) {
		if r.Body != nil && r.Body != http.NoBody {
			t.Errorf("the body is %v", r.Body)
		}
		return nil, io.ErrUnexpectedEOF
	})
	for _, none := range []io.ReadCloser{nil, http.NoBody} {
		request := &http.Request{Method: http.MethodDelete, URL: &url.URL{}, Body: none}
		//nolint:bodyclose // there is no response
		if _, err := f.client.Transport.RoundTrip(request.WithContext(t.Context())); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Error(err)
		}
	}
}

type closedBody struct {
	io.ReadCloser
	closed bool
}

func (b *closedBody) Close() error { b.closed = true; return nil }

// TestInFlight: a write in flight is canceled when the Lease ends, and not before that:
// the Lease is renewed meanwhile.
func TestInFlight(t *testing.T) {
	f := newFenceTest(t)
	arrived, canceled := make(chan struct{}), make(chan struct{})
	f.handle = func(r *http.Request) {
		close(arrived)
		<-r.Context().Done()
		close(canceled)
	}
	f.fence.renew(f.fence.now())
	failed := make(chan error, 1)
	go func() { failed <- f.send(http.MethodPost, "/") }()
	<-arrived
	for range 10 { // longer than the Lease
		f.awaitTimers(1)
		f.advance(13 * time.Second)
		f.fence.renew(f.fence.now())
	}
	f.awaitTimers(1)
	f.advance(13 * time.Second)
	f.awaitTimers(1)
	select {
	case err := <-failed:
		t.Fatalf("a write of a leader ended with %v", err)
	default:
	}
	f.advance(time.Second)
	if err := <-failed; !errors.Is(err, errLeaseEnded) {
		t.Errorf("the request ended with %v, want %v", err, errLeaseEnded)
	}
	<-canceled
}

// awaitTimers waits until there are so many timers.
func (f *fenceTest) awaitTimers(n int) {
	f.Helper()
	err := wait.PollUntilContextTimeout(f.Context(), time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		return f.monotonic.Waiters() == n, nil
	})
	if err != nil {
		f.Fatalf("%d timers: %v", n, err)
	}
}

// TestBodyOfResponse: a response can be read after the transport has returned it, and the
// timer of the request ends with it.
func TestBodyOfResponse(t *testing.T) {
	f := newFenceTest(t)
	f.lead(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: contextBody{r}}, nil
	})
	response, err := f.client.Post(f.url, "", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := response.Body.Read(nil); err != nil {
		t.Errorf("reading the response: %v", err)
	}
	_ = response.Body.Close()
	if _, err := response.Body.Read(nil); err == nil {
		t.Error("the request has not ended")
	}
	f.awaitTimers(0)
}

// TestFailedRequest: the timer of a request that fails ends with it.
func TestFailedRequest(t *testing.T) {
	f := newFenceTest(t)
	f.lead(func(*http.Request) (*http.Response, error) {
		f.awaitTimers(1)
		return nil, io.ErrUnexpectedEOF
	})
	if err := f.send(http.MethodPost, "/"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the request ended with %v", err)
	}
	f.awaitTimers(0)
}

// contextBody fails when the context of its request has ended.
type contextBody struct{ request *http.Request }

func (b contextBody) Read([]byte) (int, error) { return 0, b.request.Context().Err() }
func (b contextBody) Close() error             { return nil }

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
