package debugpage

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/store"
	"github.com/samplecrd/network-controller/pkg/tracing"
)

func key(name string) cache.ObjectName { return cache.ObjectName{Namespace: "default", Name: name} }

func newTestRecorder(t *testing.T) (*Recorder, *testclock.FakeClock) {
	t.Helper()
	fake := testclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	return newRecorder(t.Context(), fake, Process{MaySlowDown: true}, 2), fake
}

// syncOnce records a sync as the controller calls the Recorder.
func syncOnce(r *Recorder, of cache.ObjectName, err error, retry time.Duration) {
	r.Taken(of)
	ctx, end := r.Begin(context.Background(), of, "1234")
	observer, _ := tracing.ObserverOf(ctx)
	observer.Compares(ctx, "desired", "actual")
	_, endStep := observer.Starts(ctx, "a step")
	endStep(err)
	observer.Reports(ctx, err, "Ready")
	if err != nil {
		r.Delayed(of, retry, 1)
	}
	end(err)
	r.Done(of)
}

// TestMerge: a hundred events of one key are one sync, and one journey with all of
// them.
func TestMerge(t *testing.T) {
	r, _ := newTestRecorder(t)
	for range 100 {
		r.Added(key("one"), "event")
	}
	if got := r.state().Queue; got.Adds != 100 || got.Merged != 99 || got.Depth != 1 || len(got.Front) != 1 {
		t.Errorf("the queue is %+v, want 100 adds of one key", got)
	}
	syncOnce(r, key("one"), nil, 0)
	found := r.journeysOf(key("one"))
	if len(found) != 1 || found[0].CauseCount != 100 || len(found[0].Causes) != maxCauses || found[0].Outcome != "Ready" || found[0].Ended == nil || found[0].Failed {
		t.Fatalf("the journeys are %+v, want one that ended", found)
	}
	if len(r.keys) != 0 || r.state().Queue.Depth != 0 {
		t.Errorf("%d keys are left", len(r.keys))
	}
}

// TestBackoff: a failed sync shows when its key is added again. At that time, the key is
// in the queue because of a retry.
func TestBackoff(t *testing.T) {
	r, fake := newTestRecorder(t)
	r.Added(key("one"), "event")
	syncOnce(r, key("one"), errors.New("Neutron is \x1b[31m unavailable"), time.Second)
	state := r.state().Queue
	if state.Depth != 0 || state.WaitingCount != 1 || state.Waiting[0].Reason != "backoff" || state.Waiting[0].Failures != 1 {
		t.Errorf("the queue is %+v, want a key in backoff", state)
	}
	found := r.journeysOf(key("one"))
	if len(found) != 1 || !found[0].Failed || found[0].Retry == nil || found[0].Outcome != `Neutron is \x1b[31m unavailable` {
		t.Fatalf("the journeys are %+v, want a failure with a retry", found)
	}
	fake.Step(time.Second)
	if state := r.state().Queue; state.Depth != 1 || state.WaitingCount != 0 {
		t.Errorf("the queue is %+v, want the key", state)
	}
	found = r.journeysOf(key("one"))
	if len(found) != 2 || found[0].Taken != nil || found[0].Causes[0].Type != "retry" {
		t.Errorf("the journeys are %+v, want a retry in the queue", found)
	}
}

// TestAddedWhileWorking: a key that is added while a worker has it is in the queue when
// the worker is done.
func TestAddedWhileWorking(t *testing.T) {
	r, _ := newTestRecorder(t)
	r.Added(key("one"), "event")
	r.Taken(key("one"))
	r.Added(key("one"), "drift")
	if got := r.state(); got.Queue.Depth != 0 || got.Workers[0].Key != "default/one" || len(got.Workers) != 2 {
		t.Errorf("the state is %+v, want the key at worker 1 only", got)
	}
	r.Done(key("one"))
	if got := r.state(); got.Queue.Depth != 1 || got.Workers[0].Key != "" {
		t.Errorf("the state is %+v, want the key in the queue", got)
	}
}

// TestHandlers: a handler's event is the cause of the add, and one that adds nothing is
// counted as skipped.
func TestHandlers(t *testing.T) {
	r, _ := newTestRecorder(t)
	wrapped := r.Wrap(store.Handlers{
		UpdateFunc: func(_, after *samplecrdv1.Network) {
			if after.Generation == 2 {
				r.Added(cache.MetaObjectToName(after), "event")
			}
		},
	})
	before, status, spec := &samplecrdv1.Network{}, &samplecrdv1.Network{}, &samplecrdv1.Network{}
	for i, network := range []*samplecrdv1.Network{before, status, spec} {
		network.Namespace, network.Name, network.ResourceVersion, network.Generation = "default", "one", strconv.Itoa(i+1), 1
	}
	spec.Generation = 2
	wrapped.UpdateFunc(before, status)
	wrapped.UpdateFunc(status, spec)
	if got := r.state(); got.Handlers != (Handlers{Update: 2, Skipped: 1}) || !got.Process.Leads {
		t.Errorf("the handlers are %+v", got.Handlers)
	}
	if found := r.journeysOf(key("one")); len(found) != 1 || found[0].Causes[0].Changed != "spec" || found[0].Causes[0].ResourceVersion != "3" {
		t.Errorf("the journeys are %+v, want one because of the spec", found)
	}
}

// TestBounds: what is kept is bounded, however much happens and however long texts are.
func TestBounds(t *testing.T) {
	r, _ := newTestRecorder(t)
	_, end := r.moments.read(key("0"))
	defer end()
	failure := errors.New(strings.Repeat("\x00é", 1<<16))
	for i := range 3 * maxKeys {
		r.Added(key(strconv.Itoa(i)), "event")
	}
	if len(r.keys) != maxKeys {
		t.Errorf("%d keys are kept", len(r.keys))
	}
	for i := range 1000 {
		of := key(strconv.Itoa(i))
		r.Taken(of)
		ctx, end := r.Begin(t.Context(), of, "1234")
		observer, _ := tracing.ObserverOf(ctx)
		for range 2 * maxSteps {
			_, endStep := observer.Starts(ctx, failure.Error())
			endStep(failure)
		}
		end(failure)
		r.Done(of)
	}
	sum := 0
	for _, one := range r.journeys.all {
		sum += sizeOf(&one.journey)
	}
	if len(r.journeys.all) > maxJourneys || sum > maxJourneyBytes || sum != r.journeys.bytes || len(r.journeys.all) < 50 || len(r.plans) != maxPlans {
		t.Errorf("%d journeys of %d bytes (%d counted) and %d plans are kept", len(r.journeys.all), sum, r.journeys.bytes, len(r.plans))
	}
	if text := r.journeys.all[0].journey.Outcome; len(text) > maxTextBytes || strings.Contains(text, "\x00") {
		t.Errorf("an outcome has %d bytes: %q", len(text), text)
	}
	for range 2 * maxJourneysOfKey {
		syncOnce(r, key("often"), nil, 0)
	}
	if found := r.journeysOf(key("often")); len(found) != maxJourneysOfKey {
		t.Errorf("%d journeys of one key are kept", len(found))
	}
}

// TestSampling: under load, the stages of a followed key are complete, and those of the
// others are sampled.
func TestSampling(t *testing.T) {
	r, fake := newTestRecorder(t)
	sent, end := r.moments.read(key("followed"))
	defer end()
	for i := range 10_000 {
		r.moments.add(fake.Now(), StageQueue, key(strconv.Itoa(i)), "", 0, false)
		if i%1000 == 0 {
			r.moments.add(fake.Now(), StageQueue, key("followed"), "", 0, false)
		}
	}
	_, count := r.moments.since(sent)
	if count < momentsPerSecond || count > 8*momentsPerSecond {
		t.Errorf("%d moments were recorded", count)
	}
	r.moments.add(fake.Now(), StageDone, key("followed"), "", 0, false)
	some, _ := r.moments.since(count)
	if len(some) != 1 || some[0].Key != "default/followed" {
		t.Errorf("the moments are %v, want that of the followed key", some)
	}
}

// TestOff: a Recorder that is off allocates nothing, and wraps nothing.
func TestOff(t *testing.T) {
	r, ctx, of := Off(), t.Context(), key("one")
	allocations := testing.AllocsPerRun(100, func() {
		r.Added(of, "event")
		r.Delayed(of, time.Second, 1)
		r.Taken(of)
		_, end := r.Begin(ctx, of, "1234")
		end(nil)
		r.Done(of)
		r.Received(nil)
	})
	if allocations != 0 {
		t.Errorf("%v objects were allocated", allocations)
	}
	if r.Kubernetes(http.DefaultTransport) != http.DefaultTransport || r.Neutron(nil)(http.DefaultTransport) != http.DefaultTransport {
		t.Error("a transport was wrapped")
	}
}

// TestSlowMotion: a held stage ends after the pause, when slow motion is switched off,
// and when the process stops.
func TestSlowMotion(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(*Recorder, func())
		want time.Duration
	}{
		"the pause ends":   {func(*Recorder, func()) {}, maxSlow},
		"switched off":     {func(r *Recorder, _ func()) { r.slow.set(0) }, time.Second},
		"the process ends": {func(_ *Recorder, stop func()) { stop() }, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				r := newRecorder(ctx, clock.RealClock{}, Process{MaySlowDown: true}, 1)
				r.slow.set(time.Hour) // at most maxSlow
				begun := time.Now()
				time.AfterFunc(time.Second, func() { test.end(r, stop) })
				r.hold(t.Context())
				if took := time.Since(begun); took != test.want {
					t.Errorf("the stage was held for %v, want %v", took, test.want)
				}
			})
		})
	}
}

// TestGuards: only this machine, and pages of this origin, are served.
func TestGuards(t *testing.T) {
	r, _ := newTestRecorder(t)
	inCloud, _ := newTestRecorder(t)
	inCloud.process.MaySlowDown = false
	const host, isJSON = "127.0.0.1:8123", "application/json"
	for name, test := range map[string]struct {
		recorder                                   *Recorder
		method, path, host, origin, site, kind, in string
		want                                       int
	}{
		"state":                 {r, "GET", "/api/state", host, "", "", "", "", 200},
		"IPv6":                  {r, "GET", "/api/state", "[::1]:8123", "", "", "", "", 200},
		"localhost":             {r, "GET", "/", "localhost:8123", "", "", "", "", 200},
		"DNS rebinding":         {r, "GET", "/api/state", "evil.example:8123", "", "", "", "", 403},
		"foreign origin":        {r, "GET", "/api/state", host, "http://evil.example", "", "", "", 403},
		"another port":          {r, "GET", "/api/state", host, "http://127.0.0.1:1", "", "", "", 403},
		"a null origin":         {r, "GET", "/api/state", host, "null", "", "", "", 403},
		"own origin":            {r, "GET", "/api/state", host, "http://" + host, "same-origin", "", "", 200},
		"cross-site":            {r, "GET", "/api/state", host, "", "cross-site", "", "", 403},
		"no key":                {r, "GET", "/api/journeys", host, "", "", "", "", 400},
		"no namespace":          {r, "GET", "/api/journeys?key=one", host, "", "", "", "", 400},
		"a key":                 {r, "GET", "/api/journeys?key=default/one", host, "", "", "", "", 200},
		"slow":                  {r, "POST", "/api/slow", host, "", "", isJSON, `{"milliseconds":0}`, 200},
		"slow of another site":  {r, "POST", "/api/slow", host, "http://evil.example", "", isJSON, `{"milliseconds":1}`, 403},
		"slow as a form":        {r, "POST", "/api/slow", host, "", "", "text/plain", `{"milliseconds":1}`, 415},
		"too slow":              {r, "POST", "/api/slow", host, "", "", isJSON, `{"milliseconds":5001}`, 400},
		"no number":             {r, "POST", "/api/slow", host, "", "", isJSON, `{}`, 400},
		"slow with a cloud":     {inCloud, "POST", "/api/slow", host, "", "", isJSON, `{"milliseconds":1}`, 403},
		"another method":        {r, "DELETE", "/api/state", host, "", "", "", "", 405},
		"a file that is absent": {r, "GET", "/absent", host, "", "", "", "", 404},
	} {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequestWithContext(t.Context(), test.method, test.path, strings.NewReader(test.in))
			request.Host = test.host
			for name, value := range map[string]string{"Origin": test.origin, "Sec-Fetch-Site": test.site, "Content-Type": test.kind} {
				if value != "" {
					request.Header.Set(name, value)
				}
			}
			response := httptest.NewRecorder()
			test.recorder.handler().ServeHTTP(response, request)
			if response.Code != test.want {
				t.Errorf("the response is %d %s, want %d", response.Code, response.Body, test.want)
			}
			if !strings.HasPrefix(response.Header().Get("Content-Security-Policy"), "default-src 'self'") {
				t.Errorf("the headers are %v", response.Header())
			}
		})
	}
}

// TestStream: a stream sends the state, the journeys of its key, and moments. There are
// at most eight, and they end with the client.
func TestStream(t *testing.T) {
	r := newRecorder(t.Context(), clock.RealClock{}, Process{}, 1)
	server := httptest.NewServer(r.handler())
	defer server.Close()
	open := func(ctx context.Context) (status int, body io.Reader) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/api/stream?key=default/one", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = response.Body.Close() })
		return response.StatusCode, response.Body
	}
	ctx, stop := context.WithCancel(t.Context())
	_, body := open(ctx)
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	wait := func(text string) {
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		t.Fatalf("the stream ended before %q: %v", text, lines.Err())
	}
	wait("event: state")
	wait("event: journeys")
	r.Added(key("one"), "event")
	syncOnce(r, key("one"), nil, 0)
	wait(`"stage":"done"`)
	for range maxStreams - 1 {
		open(ctx)
	}
	if status, _ := open(ctx); status != http.StatusServiceUnavailable {
		t.Errorf("stream %d has the status %d", maxStreams+1, status)
	}
	stop()
	for r.moments.readers.Load() > 0 {
		<-time.After(time.Millisecond)
	}
}

// TestWatch: a watch that begins with the list is listing until that has ended, also if
// its last line spans two reads.
func TestWatch(t *testing.T) {
	r, _ := newTestRecorder(t)
	r.AddInformer(kindNetwork, "", func() []string { return nil })
	in, out := io.Pipe()
	transport := r.Kubernetes(respond(func(*http.Request) *http.Response { return &http.Response{StatusCode: http.StatusOK, Body: in} }))
	response, err := transport.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/apis/samplecrd.k8s.io/v1/networks?watch=true&sendInitialEvents=true", http.NoBody))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	buffer := make([]byte, 100)
	for _, step := range []struct{ text, want string }{
		{`{"type":"ADDED"}`, listing}, {`k8s.io/initial-ev`, listing}, {`ents-end":"true"`, watching}, {"", waiting},
	} {
		go func() {
			if step.text == "" {
				_ = out.Close()
				return
			}
			_, _ = out.Write([]byte(step.text))
		}()
		_, _ = response.Body.Read(buffer)
		if got := r.state().Informers[0]; got.Activity != step.want || got.Lists != 1 || got.Watches != 1 {
			t.Errorf("after %q, the informer is %+v, want %s", step.text, got, step.want)
		}
	}
}

type respond func(*http.Request) *http.Response

func (f respond) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// TestValidate: only loopback addresses are accepted.
func TestValidate(t *testing.T) {
	for address, valid := range map[string]bool{
		"": true, "127.0.0.1:8123": true, "127.0.0.1:0": true, "localhost:0": true, "[::1]:8123": true,
		":8123": false, "0.0.0.0:8123": false, "10.0.0.1:8123": false, "example.com:80": false, "127.0.0.1": false, "127.0.0.1:": false, "127.0.0.1:99999": false,
	} {
		var o Options
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		o.AddFlags(flags)
		if err := flags.Parse([]string{"-debug-bind-address=" + address}); err != nil {
			t.Fatal(err)
		}
		err := o.Validate()
		if (err == nil) != valid || err != nil && !strings.Contains(err.Error(), "such as 127.0.0.1:8123") {
			t.Errorf("Validate() of %q = %v", address, err)
		}
	}
}
