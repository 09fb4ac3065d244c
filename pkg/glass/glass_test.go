package glass

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"

	"github.com/samplecrd/network-controller/pkg/observe"
)

func key(name string) cache.ObjectName { return cache.ObjectName{Namespace: "default", Name: name} }

func newTestPage(t *testing.T) (*Controller, *testclock.FakeClock) {
	t.Helper()
	fake := testclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	p := newPage(fake, Process{})
	p.Server(Server{Name: "Cloud", Limit: 3})
	stages := []Stage{StageDesired, StageActual, StagePlan, StageApply, StageReport}
	return p.Controller(Config{Name: "Things", Workers: 2, Stages: stages}), fake
}

func add(c *Controller, of cache.ObjectName) {
	c.Happened(of, observe.Event{Type: observe.Added, Cause: "event"})
}

// journeysOf returns what the page sends.
func journeysOf(t *testing.T, c *Controller, name string) (journeys []Journey) {
	t.Helper()
	if err := json.Unmarshal(c.journeysOf(key(name)), &journeys); err != nil {
		t.Fatal(err)
	}
	return journeys
}

// syncOnce records a sync as the queue and the reconciler call the Page.
func syncOnce(c *Controller, of cache.ObjectName) {
	ctx, end := c.Begin(context.Background(), observe.Work{Kind: observe.Sync, Key: of, ID: "1234"})
	c.Reach(ctx, observe.Desired, words("desired").String, nil)
	c.Reach(ctx, observe.Actual, words("actual").String, nil)
	stepCtx, endStep := c.Begin(ctx, observe.Work{Kind: observe.Step, Name: "Step", Text: words("a step")})
	_, endRequest := c.Begin(stepCtx, observe.Work{Kind: observe.Request, Name: "create network", Server: "Cloud"})
	endRequest(observe.Result{Code: 201})
	endStep(observe.Result{})
	c.Reach(ctx, observe.Report, words("Ready").String, nil)
	end(observe.Result{})
}

type words string

func (w words) String() string { return string(w) }

// TestMerge: a hundred events of one key are one sync, and one journey with all of
// them.
func TestMerge(t *testing.T) {
	c, _ := newTestPage(t)
	for range 100 {
		add(c, key("one"))
	}
	queued := c.state().Queue
	syncOnce(c, key("one"))
	j, s := journeysOf(t, c, "one")[0], c.state()
	var got strings.Builder
	fmt.Fprintf(&got, "queue %v, merged %d; journey: %d adds, %s at %v;", queued.Front, queued.Merged, j.Adds, j.Outcome, *j.Ended)
	for _, moment := range j.Moments[maxCauses:] {
		fmt.Fprintf(&got, " %s %s;", moment.Stage, moment.Text)
	}
	fmt.Fprintf(&got, " %+v", s.Servers)
	const want = "queue [default/one], merged 99; journey: 100 adds, Ready at 2026-01-01 00:00:00 +0000 UTC; " +
		"worker ; desired desired; actual actual; plan a step; apply a step; " +
		"server Cloud: create network: 201; report Ready; done Ready; " +
		"[{Name:Cloud Instance: InFlight:0 Limit:3 Requests:1 Cache:<nil>}]"
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("the page shows (-want +got):\n%s", diff)
	}
}

// TestHandlers: a handler's event is the cause of the add, and one that adds nothing is
// counted as skipped.
func TestHandlers(t *testing.T) {
	c, _ := newTestPage(t)
	handlers := observe.Handlers(c, cache.TypedResourceEventHandlerDetailedFuncs[*metav1.PartialObjectMetadata]{
		UpdateFunc: func(_, after *metav1.PartialObjectMetadata) {
			if after.Generation == 2 {
				add(c, cache.MetaObjectToName(after))
			}
		},
	})
	version := func(version string, generation int64) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "one", ResourceVersion: version, Generation: generation,
		}}
	}
	handlers.UpdateFunc(version("1", 1), version("2", 1))
	handlers.UpdateFunc(version("2", 1), version("3", 2))
	if got := c.state(); got.Handlers["updated"] != 2 || got.Handlers["skipped"] != 1 || !got.Process.Leads {
		t.Errorf("the handlers are %+v", got.Handlers)
	}
	if found := journeysOf(t, c, "one"); len(found) != 1 || found[0].Moments[0].Text != "updated: spec, resourceVersion 3" {
		t.Errorf("the journeys are %+v, want one because of the spec", found)
	}
}

// TestBounds: what is kept is bounded, however much happens and however long texts are.
func TestBounds(t *testing.T) {
	c, _ := newTestPage(t)
	_, end := c.moments.read(key("0"))
	defer end()
	failure := errors.New(strings.Repeat("\x00é", 1<<16))
	for i := range 3 * maxKeys {
		add(c, key(strconv.Itoa(i)))
		c.Happened(key(strconv.Itoa(i)), observe.Event{Type: observe.Delayed, Delay: time.Hour})
	}
	if len(c.pending) != maxKeys || len(c.waiting) != maxKeys {
		t.Errorf("%d and %d keys are kept", len(c.pending), len(c.waiting))
	}
	for i := range maxJourneys + 50 {
		ctx, end := c.Begin(t.Context(), observe.Work{Kind: observe.Sync, Key: key(strconv.Itoa(i)), ID: "1234"})
		for range maxMoments {
			_, endStep := c.Begin(ctx, observe.Work{Kind: observe.Step, Text: words(failure.Error())})
			endStep(observe.Result{Err: failure})
		}
		end(observe.Result{Err: failure})
	}
	if kept := len(c.journeysOf(key("100"))) * len(c.journeys); len(c.journeys) != maxJourneys || kept > 6<<20 {
		t.Errorf("%d journeys of %d bytes are kept", len(c.journeys), kept)
	}
	if text := c.journeys[0].Outcome; len(text) > maxTextBytes || strings.Contains(text, "\x00") {
		t.Errorf("an outcome has %d bytes: %q", len(text), text)
	}
	for range 2 * maxJourneysOfKey {
		syncOnce(c, key("often"))
	}
	if found := journeysOf(t, c, "often"); len(found) != maxJourneysOfKey {
		t.Errorf("%d journeys of one key are kept", len(found))
	}
}

// TestSampling: under load, the stages of a followed key are complete, and those of the
// others are sampled.
func TestSampling(t *testing.T) {
	c, fake := newTestPage(t)
	sent, end := c.moments.read(key("followed"))
	defer end()
	for i := range 10_000 {
		c.moments.add(Moment{Time: fake.Now(), Stage: StageQueue}, key(strconv.Itoa(i)))
	}
	_, count := c.moments.since(sent)
	if count < momentsPerSecond || count > 8*momentsPerSecond {
		t.Errorf("%d moments were recorded", count)
	}
	c.moments.add(Moment{Time: fake.Now(), Stage: StageDone}, key("followed"))
	if some, _ := c.moments.since(count); len(some) != 1 || some[0].Key != "default/followed" {
		t.Errorf("the moments are %v, want that of the followed key", some)
	}
}

// TestGuards: only this machine, and pages of this origin, are served.
func TestGuards(t *testing.T) {
	const host = "127.0.0.1:8123"
	for _, test := range []struct {
		name, request, host, origin, site string
		want                              int
	}{
		{"state", "GET /api/state", host, "", "", 200},
		{"IPv6", "GET /api/state", "[::1]:8123", "", "", 200},
		{"localhost", "GET /", "localhost:8123", "", "", 200},
		{"DNS rebinding", "GET /api/state", "evil.example:8123", "", "", 403},
		{"foreign origin", "GET /api/state", host, "http://evil.example", "", 403},
		{"another port", "GET /api/state", host, "http://127.0.0.1:1", "", 403},
		{"a null origin", "GET /api/state", host, "null", "", 403},
		{"own origin", "GET /api/state", host, "http://" + host, "same-origin", 200},
		{"cross-site", "GET /api/state", host, "", "cross-site", 403},
		{"all keys", "GET /api/journeys", host, "", "", 200},
		{"a controller", "GET /api/journeys?key=one&controller=Things", host, "", "", 200},
		{"another controller", "GET /api/journeys?key=one&controller=Others", host, "", "", 404},
		{"another method", "DELETE /api/state", host, "", "", 405},
		{"a file that is absent", "GET /absent", host, "", "", 404},
	} {
		c, _ := newTestPage(t)
		method, path, _ := strings.Cut(test.request, " ")
		request := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
		request.Host = test.host
		request.Header.Set("Origin", test.origin)
		request.Header.Set("Sec-Fetch-Site", test.site)
		response := httptest.NewRecorder()
		c.page.Handler().ServeHTTP(response, request)
		if response.Code != test.want {
			t.Errorf("%s: the response is %d %s, want %d", test.name, response.Code, response.Body, test.want)
		}
		if !strings.HasPrefix(response.Header().Get("Content-Security-Policy"), "default-src 'self'") {
			t.Errorf("%s: the headers are %v", test.name, response.Header())
		}
	}
}

// TestStream: a stream sends the state, the journeys of its key, and moments. There are
// at most eight, and they end with the client.
func TestStream(t *testing.T) {
	p := newPage(clock.RealClock{}, Process{})
	c := p.Controller(Config{Name: "Things"})
	server := httptest.NewServer(p.Handler())
	defer server.Close()
	ctx, stop := context.WithCancel(t.Context())
	open := func() (status int, body io.Reader) {
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
	_, body := open()
	seen := map[string]bool{}
	for event, data := range Events(body) {
		if seen[event] = true; event == "journeys" && string(data) == "[]" {
			add(c, key("one"))
			syncOnce(c, key("one"))
		}
		if strings.Contains(string(data), `"stage":"done"`) && seen["state"] && seen["moments"] {
			break
		}
	}
	if !seen["state"] || !seen["moments"] || !seen["journeys"] {
		t.Errorf("the stream sends only %v", seen)
	}
	for range maxStreams - 1 {
		open()
	}
	if status, _ := open(); status != http.StatusServiceUnavailable {
		t.Errorf("stream %d has the status %d", maxStreams+1, status)
	}
	stop()
	for c.moments.readers.Load() > 0 {
		<-time.After(time.Millisecond)
	}
}

// TestInformers: the requests of an informer show what it does. An error stays until a
// request succeeds.
func TestInformers(t *testing.T) {
	c, _ := newTestPage(t)
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{}, &metav1.PartialObjectMetadata{}, 0, nil)
	c.page.Informer("namespaces/a/networks", informer)
	for _, step := range []struct {
		path   string
		result observe.Result
		want   string // activity and error
	}{
		{"a/networks?watch=true&sendInitialEvents=true", observe.Result{Code: 200}, "listing "},
		{"b/networks?watch=true", observe.Result{Code: 410}, "listing "}, // of another one
		{"a/networks?watch=true", observe.Result{Code: 410}, "waiting the API server returned 410 Gone"},
		{"a/networks", observe.Result{Err: errors.New("refused")}, "waiting refused"},
		{"a/networks", observe.Result{Code: 200}, "listing "},
	} {
		path := "/apis/g/v1/namespaces/" + step.path
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
		_, end := c.Begin(t.Context(), observe.Work{Kind: observe.Request, Server: observe.Kubernetes, Request: request})
		end(step.result)
		i := c.state().Informers[0]
		if got := fmt.Sprint(i.Activity, " ", i.LastError); got != step.want {
			t.Errorf("after %s, the informer is %q, want %q", step.path, got, step.want)
		}
	}
}

// TestValidate: only loopback addresses are accepted.
func TestValidate(t *testing.T) {
	for address, valid := range map[string]bool{
		"": true, "127.0.0.1:8123": true, "127.0.0.1:0": true, "localhost:0": true, "[::1]:8123": true,
		":8123": false, "0.0.0.0:8123": false, "10.0.0.1:8123": false, "example.com:80": false, "127.0.0.1": false,
		"127.0.0.1:": false, "127.0.0.1:99999": false,
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
