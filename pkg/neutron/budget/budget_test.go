package budget

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/turns"
)

// server is a model of Neutron. A request takes a time that depends on the number of
// requests in progress.
type server struct {
	took func(inFlight int, random *rand.Rand) time.Duration
	// rejects is the number of requests at a time above which it answers 503; 0 is none.
	rejects int

	mu       sync.Mutex
	random   *rand.Rand
	inFlight int
	answers  map[int]int // by status
	order    []string    // the paths of the requests
}

// parallel is a server that works on a number of requests at a time.
func parallel(c int, base time.Duration) func(int, *rand.Rand) time.Duration {
	return func(inFlight int, _ *rand.Rand) time.Duration {
		return base * time.Duration(max(c, inFlight)) / time.Duration(c)
	}
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.inFlight++
	took, status := s.took(s.inFlight, s.random), http.StatusOK
	if s.rejects > 0 && s.inFlight > s.rejects {
		took, status = 5*time.Millisecond, http.StatusServiceUnavailable
	}
	s.order = append(s.order, r.URL.Path)
	s.mu.Unlock()
	var err error
	select {
	case <-time.After(took):
	case <-r.Context().Done():
		err = r.Context().Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
	if err != nil {
		return nil, err
	}
	s.answers[status]++
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(""))}, nil
}

// trial is a server, and a Budget for it.
type trial struct {
	*testing.T
	*server
	*Budget
	limits []int // whenever a limit is observed
}

const maxRequests = 32

func newTrial(t *testing.T, s *server) *trial {
	s.answers, s.random = map[int]int{}, rand.New(rand.NewPCG(1, 2))
	tr := &trial{T: t, server: s}
	tr.Budget = New(Options{
		Max: maxRequests,
		Describe: func(r *http.Request) (string, string, bool) {
			return "create network", r.Method, r.URL.Path != "/unlimited"
		},
		Observe: func(limit, inFlight, _ int) {
			if inFlight < 0 || limit < 1 || limit > maxRequests {
				t.Errorf("%d requests are in flight, the limit is %d", inFlight, limit)
			}
			tr.limits = append(tr.limits, limit)
		},
		Waited: func(time.Duration) {}, Now: time.Now,
	})
	return tr
}

// get sends a request, and returns the status of the response, or 0.
func (tr *trial) get(ctx context.Context, transport http.RoundTripper, path string) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://neutron.invalid"+path, http.NoBody)
	if err != nil {
		tr.Fatal(err)
	}
	response, err := transport.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	_ = response.Body.Close()
	return response.StatusCode, nil
}

// run lets 32 workers send requests for a time, one after the other. A worker whose
// request fails pauses for a second. It returns the number of successes.
func (tr *trial) run(transport http.RoundTripper, during time.Duration) int {
	before := tr.answers[http.StatusOK]
	tr.limits = nil
	end := time.Now().Add(during)
	var running sync.WaitGroup
	for range maxRequests {
		running.Go(func() {
			for time.Now().Before(end) {
				if status, _ := tr.get(tr.Context(), transport, "/"); status != http.StatusOK {
					<-time.After(time.Second)
				}
			}
		})
	}
	running.Wait()
	return tr.answers[http.StatusOK] - before
}

// average returns the average of the limits of a run.
func (tr *trial) average() float64 {
	sum := 0
	for _, limit := range tr.limits {
		sum += limit
	}
	return float64(sum) / float64(len(tr.limits))
}

// TestLimitSettles: with a server that works on c requests at a time, the limit
// settles between c and a bit more than twice that. Hardly any throughput is lost.
func TestLimitSettles(t *testing.T) {
	for _, c := range []int{1, 2, 4, 8, 12} {
		t.Run(strconv.Itoa(c), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := newTrial(t, &server{took: parallel(c, 100*time.Millisecond)})
				without := tr.run(tr.server, time.Minute)
				all := tr.run(tr.Transport(tr.server), time.Minute)
				tr.run(tr.Transport(tr.server), time.Minute)
				t.Logf("c = %d: %.3f of the throughput without a limit; limit %.1f", c, float64(all)/float64(without), tr.average())
				if float64(all) < 0.95*float64(without) {
					t.Errorf("%d requests succeeded, want as many as %d without a limit", all, without)
				}
				if limit := tr.average(); limit < float64(c) || limit > 2.5*float64(c)+1 {
					t.Errorf("the limit is %.1f on average", limit)
				}
			})
		})
	}
}

// TestNoisyHost: a server whose host is three times slower for some seconds, now and
// then, does nearly as much as without a limit.
func TestNoisyHost(t *testing.T) {
	for _, c := range []int{1, 4, 8} {
		t.Run(strconv.Itoa(c), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				even := parallel(c, 100*time.Millisecond)
				tr := newTrial(t, &server{took: func(inFlight int, random *rand.Rand) time.Duration {
					took := even(inFlight, random) + time.Duration(random.Int64N(int64(50*time.Millisecond)))
					if time.Since(begun)/(5*time.Second)%3 == 0 {
						took *= 3
					}
					return took
				}})
				without := tr.run(tr.server, 3*time.Minute)
				with := tr.run(tr.Transport(tr.server), 3*time.Minute)
				t.Logf("c = %d: %.3f of the throughput without a limit; limit %.1f", c, float64(with)/float64(without), tr.average())
				if float64(with) < 0.9*float64(without) {
					t.Errorf("%d requests succeeded, want nearly as many as %d without a limit", with, without)
				}
			})
		})
	}
}

// TestFast: a server that is not slowed down by 32 requests at a time gets them.
func TestFast(t *testing.T) {
	fixed := func(took time.Duration) func(int, *rand.Rand) time.Duration {
		return func(int, *rand.Rand) time.Duration { return took }
	}
	for name, test := range map[string]struct {
		took  func(int, *rand.Rand) time.Duration
		least float64 // of the throughput without a limit
	}{
		"5 ms":   {fixed(5 * time.Millisecond), 0.97},
		"20 ms":  {fixed(20 * time.Millisecond), 0.97},
		"200 ms": {fixed(200 * time.Millisecond), 0.94}, // it takes four of them to learn that
		"spread": {func(_ int, random *rand.Rand) time.Duration {
			return 20*time.Millisecond + time.Duration(random.ExpFloat64()*float64(80*time.Millisecond))
		}, 0.9},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := newTrial(t, &server{took: test.took})
				without := tr.run(tr.server, 12*time.Second)
				with := tr.run(tr.Transport(tr.server), 12*time.Second)
				t.Logf("%.3f of the throughput without a limit; limit %.1f", float64(with)/float64(without), tr.average())
				if float64(with) < test.least*float64(without) {
					t.Errorf("%d requests succeeded, want as many as %d without a limit", with, without)
				}
			})
		})
	}
}

// TestSecondTenant: while 31 workers create Networks of one tenant, the three requests
// of another tenant's Network take at most about three times as long as alone (the 99th
// percentile of 100). Without a limit, they take as long as with 32 requests at a time.
func TestSecondTenant(t *testing.T) {
	for _, c := range []int{4, 8} {
		t.Run(strconv.Itoa(c), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := newTrial(t, &server{took: parallel(c, 100*time.Millisecond)})
				alone := tr.percentile(tr.server)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var running sync.WaitGroup
				crowd := func(ctx context.Context, transport http.RoundTripper) {
					for range maxRequests - 1 {
						running.Go(func() {
							for ctx.Err() == nil {
								_, _ = tr.get(turns.NewContext(ctx, "first", true), transport, "/")
							}
						})
					}
					<-time.After(time.Minute) // until the limit has settled
				}
				crowd(ctx, tr.Transport(tr.server))
				with := tr.percentile(tr.Transport(tr.server))
				cancel()
				running.Wait()
				ctx, cancel = context.WithCancel(t.Context())
				crowd(ctx, tr.server)
				without := tr.percentile(tr.server)
				cancel()
				running.Wait()
				t.Logf("c = %d: %v alone, %.1f times that with the limit, %.1f times without", c, alone, float64(with)/float64(alone), float64(without)/float64(alone))
				if with > alone*35/10 || with > without*3/4 {
					t.Errorf("it took %v with the limit, %v without, and %v alone", with, without, alone)
				}
			})
		})
	}
}

// percentile returns the 99th percentile of the time that three requests of the second
// tenant take, one after the other.
func (tr *trial) percentile(transport http.RoundTripper) time.Duration {
	var all []time.Duration
	for range 100 {
		<-time.After(500 * time.Millisecond)
		begun := time.Now()
		for range 3 {
			if _, err := tr.get(turns.NewContext(tr.Context(), "second", true), transport, "/"); err != nil {
				tr.Error(err)
			}
		}
		all = append(all, time.Since(begun))
	}
	slices.Sort(all)
	return all[98]
}

// TestRejections: a server that rejects more than 8 requests at a time rejects few,
// and does more than it does without a limit.
func TestRejections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTrial(t, &server{took: parallel(maxRequests, 100*time.Millisecond), rejects: 8})
		tr.run(tr.server, time.Minute)
		t.Logf("without a limit: %v", tr.answers)
		clear(tr.answers)
		tr.run(tr.Transport(tr.server), time.Minute)
		t.Logf("limit %.1f: %v", tr.average(), tr.answers)
		ok, rejected := tr.answers[http.StatusOK], tr.answers[http.StatusServiceUnavailable]
		if limit := tr.average(); limit < 4 || limit > 8 {
			t.Errorf("the limit is %.1f on average, want 4 to 8", limit)
		}
		if ok < 60*10*8/2 || rejected > ok/20 {
			t.Errorf("%d requests succeeded and %d were rejected, want at least %d and at most a twentieth of them", ok, rejected, 60*10*8/2)
		}
	})
}

// TestRecovery: after an outage, and after Neutron itself has become slower, the
// limit grows again.
func TestRecovery(t *testing.T) {
	for name, change := range map[string]func(*trial){
		"an outage": func(tr *trial) {
			tr.run(tr.Transport(rejecting{}), time.Minute)
			if limit := tr.places(); limit != 1 {
				tr.Errorf("the limit is %d in the outage, want 1", limit)
			}
		},
		"slower": func(tr *trial) { tr.took = parallel(maxRequests, 400*time.Millisecond) },
		"faster": func(tr *trial) { tr.took = parallel(maxRequests, 20*time.Millisecond) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := newTrial(t, &server{took: parallel(maxRequests, 100*time.Millisecond)})
				tr.run(tr.Transport(tr.server), 20*time.Second)
				change(tr)
				tr.run(tr.Transport(tr.server), time.Minute)
				tr.run(tr.Transport(tr.server), 20*time.Second)
				if limit := tr.average(); limit < 0.9*maxRequests {
					t.Errorf("the limit is %.1f on average, want nearly %d", limit, maxRequests)
				}
			})
		})
	}
}

func (b *Budget) places() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limit.places()
}

// rejecting rejects all requests at once.
type rejecting struct{}

func (rejecting) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: http.NoBody}, nil
}

// TestOrder: of the requests that wait, urgent ones are sent first, and tenants
// alternate. Requests that are not limited do not wait.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTrial(t, &server{took: parallel(maxRequests, time.Second)})
		tr.limit.change(1)
		tr.limit.max = 1
		var running sync.WaitGroup
		send := func(ctx context.Context, path string) {
			running.Go(func() {
				if _, err := tr.get(ctx, tr.Transport(tr.server), path); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			})
			synctest.Wait()
		}
		send(t.Context(), "/first")
		send(t.Context(), "/list")
		send(turns.NewContext(t.Context(), "a", false), "/retry")
		send(turns.NewContext(t.Context(), "a", true), "/edit1")
		send(turns.NewContext(t.Context(), "a", true), "/edit2")
		send(turns.NewContext(t.Context(), "b", true), "/another")
		send(t.Context(), "/unlimited")
		running.Wait()
		if diff := cmp.Diff([]string{"/first", "/unlimited", "/edit1", "/another", "/edit2", "/list", "/retry"}, tr.order); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

// TestNotSent: a request waits for at most half of its time. Then it is not sent, and
// proves that nothing was created. A canceled one returns that.
func TestNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTrial(t, &server{took: parallel(maxRequests, 25*time.Second)})
		tr.limit.change(1)
		var running sync.WaitGroup
		running.Go(func() { _, _ = tr.get(t.Context(), tr.Transport(tr.server), "/slow") })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		begun := time.Now()
		_, err := tr.get(ctx, tr.Transport(tr.server), "/waits")
		var failure *neutron.Error
		if !errors.As(err, &failure) || !errors.Is(err, neutron.ErrUnavailable) || failure.Type == "" || failure.Op != "create network" {
			t.Errorf("error %#v, want one of Neutron that has a type", err)
		}
		if waited := time.Since(begun); waited != 15*time.Second {
			t.Errorf("it waited %v, want 15s", waited)
		}
		canceled, cancel := context.WithCancel(t.Context())
		running.Go(func() {
			if _, err := tr.get(canceled, tr.Transport(tr.server), "/canceled"); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v, want that it was canceled", err)
			}
		})
		synctest.Wait()
		cancel()
		running.Wait()
		if _, err := tr.get(t.Context(), tr.Transport(tr.server), "/next"); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"/slow", "/next"}, tr.order); diff != "" || tr.Budget.inFlight != 0 || tr.line.Len() != 0 {
			t.Errorf("%d requests are in flight and %d wait; those sent (-want +got):\n%s", tr.Budget.inFlight, tr.line.Len(), diff)
		}
	})
}

// TestHungRequests: requests without a response take their places and no more, also during a
// probe, until they time out.
func TestHungRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTrial(t, &server{took: parallel(maxRequests, 20*time.Millisecond)})
		hanging := &server{took: parallel(1, time.Hour), answers: map[int]int{}}
		tr.run(tr.Transport(tr.server), time.Second)
		var running sync.WaitGroup
		for range 8 {
			running.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				_, _ = tr.get(ctx, tr.Transport(hanging), "/")
			})
		}
		synctest.Wait()
		all := tr.run(tr.Transport(tr.server), 20*time.Second)
		if want := 20 * 50 * maxRequests; all < want*4/10 {
			t.Errorf("%d requests succeeded while 8 get no response, want at least 40 percent of %d", all, want)
		}
		running.Wait()
	})
}

// BenchmarkTransport measures what the limit costs a request that does not wait.
func BenchmarkTransport(b *testing.B) {
	budget := New(Options{Max: maxRequests, Describe: func(*http.Request) (string, string, bool) { return "", "kind", true }, Observe: func(int, int, int) {}, Waited: func(time.Duration) {}, Now: time.Now})
	transport := budget.Transport(rejecting{})
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://neutron.invalid/", http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		response, err := transport.RoundTrip(r)
		if err != nil {
			b.Fatal(err)
		}
		_ = response.Body.Close()
	}
}
