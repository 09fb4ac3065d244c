package glass_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"
	"k8s.io/client-go/util/workqueue"

	"github.com/samplecrd/network-controller/pkg/glass"
	"github.com/samplecrd/network-controller/pkg/observe"
)

func trim(text string) string { return strings.TrimSpace(text) }

// journeys returns what the page has of a key, the newest journey only.
func journeys(page *glass.Page, key string) string {
	var found []glass.Journey
	if err := json.Unmarshal([]byte(get(page.Handler(), "/api/journeys?key="+key)), &found); err != nil || len(found) == 0 {
		return fmt.Sprint("no journey: ", err)
	}
	j := found[0]
	words := []string{}
	for _, moment := range j.Moments {
		if moment.Text != "" && moment.Stage != glass.StageQueue {
			words = append(words, string(moment.Stage)+": "+moment.Text)
		}
	}
	return j.Key + ": " + strings.Join(words, "; ")
}

// state returns the state of a controller.
func state(t *testing.T, page *glass.Page, controller string) (s glass.State) {
	t.Helper()
	if err := json.Unmarshal([]byte(get(page.Handler(), "/api/state?controller="+controller)), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

type structKey struct{ zone, name string }

// TestQueue: any queue is shown, whatever its keys are: what waits, who works, and the retry
// of a sync that AddRateLimited says has failed.
func TestQueue(t *testing.T) {
	t.Run("string", func(t *testing.T) { testQueue(t, "a-thing", "a-thing") })
	t.Run("int", func(t *testing.T) { testQueue(t, 42, "42") })
	t.Run("struct", func(t *testing.T) { testQueue(t, structKey{"z", "a"}, "{z a}") })
	t.Run("name", func(t *testing.T) { testQueue(t, cache.NewObjectName("default", "a"), "default/a") })
	t.Run("pathlike", func(t *testing.T) { testQueue(t, "a/b/c", "a/b/c") })
	t.Run("cluster", func(t *testing.T) { testQueue(t, "/a", "a") })
}

func testQueue[K comparable](t *testing.T, key K, want string) {
	synctest.Test(t, func(t *testing.T) {
		page := glass.New(t.Context(), glass.Process{})
		limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[K](time.Second, time.Minute)
		queue := glass.Queue(page.Controller(glass.Config{Name: "things"}), workqueue.NewTypedRateLimitingQueue(limiter), limiter)
		defer queue.ShutDown()
		queue.Add(key)
		queue.Add(key)
		if got := state(t, page, "things").Queue; got.Depth != 1 || got.Merged != 1 || got.Front[0] != want {
			t.Fatalf("the queue is %+v, want one key", got)
		}
		got, _ := queue.Get()
		if workers := state(t, page, "things").Workers; got != key || workers[0].Key != want || workers[0].Stage != glass.StageSync {
			t.Errorf("the workers are %+v", workers)
		}
		queue.AddRateLimited(key)
		queue.Done(key)
		if waiting := state(t, page, "things").Queue; waiting.WaitingCount != 1 || waiting.Waiting[0].Key != want || waiting.Waiting[0].Failures != 1 {
			t.Errorf("the queue is %+v, want a retry", waiting)
		}
		if found := journeys(page, strings.ReplaceAll(want, " ", "%20")); !strings.HasPrefix(found, want+": merged: event; backoff: the sync has failed") {
			t.Errorf("the journey is %q", found)
		}
		<-time.After(time.Second)
		synctest.Wait()
		if again, _ := queue.Get(); again != key || queue.NumRequeues(key) != 1 {
			t.Errorf("the retry is that of %v", again)
		}
		queue.Forget(key)
		queue.Done(key)
		if s := state(t, page, "things"); s.Queue.WaitingCount+s.Queue.Depth != 0 || s.Workers[0].Key != "" {
			t.Errorf("the state is %+v, want one at rest", s)
		}
	})
}

// TestControllers: each controller has its own queue, and an event of a shared informer is the
// cause in each that adds its key.
func TestControllers(t *testing.T) {
	page := glass.New(t.Context(), glass.Process{})
	source := fcache.NewFakeControllerSource()
	informer := page.Informer("configmaps", cache.NewSharedIndexInformer(source, &corev1.ConfigMap{}, 0, nil))
	for _, name := range []string{"one", "two"} {
		limiter := workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()
		queue := glass.Queue(page.Controller(glass.Config{Name: name}), workqueue.NewTypedRateLimitingQueue(limiter), limiter)
		add := func(object any) { queue.Add(cache.MetaObjectToName(object.(*corev1.ConfigMap))) }
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add}); err != nil {
			t.Fatal(err)
		}
	}
	source.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go informer.RunWithContext(ctx)
	for _, name := range []string{"one", "two"} {
		for state(t, page, name).Queue.Depth == 0 {
			<-time.After(time.Millisecond)
		}
		var found []glass.Journey
		body := get(page.Handler(), "/api/journeys?key=default/a&controller="+name)
		if err := json.Unmarshal([]byte(body), &found); err != nil || len(found) != 1 || found[0].Moments[0].Text != "added, resourceVersion 1" {
			t.Errorf("the journeys of %s are %s, want one because of the event", name, body)
		}
	}
}

// TestNoSecrets: nothing that the page serves has anything of an object but its name, or of a
// request but its operation.
func TestNoSecrets(t *testing.T) {
	const secret = "s3cr3t-of-somebody"
	page := glass.New(t.Context(), glass.Process{})
	controller := page.Controller(glass.Config{Name: "secrets"})
	limiter := workqueue.DefaultTypedControllerRateLimiter[string]()
	queue := glass.Queue(controller, workqueue.NewTypedRateLimitingQueue(limiter), limiter)
	source := fcache.NewFakeControllerSource()
	informer := page.Informer("secrets", cache.NewSharedIndexInformer(source, &corev1.Secret{}, 0, nil))
	added := make(chan struct{})
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { queue.Add("default/a"); close(added) }}); err != nil {
		t.Fatal(err)
	}
	source.Add(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", Annotations: map[string]string{"a": secret}},
		StringData: map[string]string{"password": secret}, Data: map[string][]byte{"token": []byte(secret)},
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go informer.RunWithContext(ctx)
	<-added
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte(secret))
	}))
	defer server.Close()
	key, _ := queue.Get()
	sync, end := controller.Sync(t.Context(), key)
	client := &http.Client{Transport: page.Server(glass.Server{Name: "Cloud"})(page.Kubernetes(http.DefaultTransport))}
	request, err := http.NewRequestWithContext(sync, http.MethodPost, server.URL+"/things?password="+secret, strings.NewReader(secret))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+secret)
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	end(errors.New("the cloud said no"))
	queue.Done(key)
	handler := page.Handler()
	served := get(handler, "/api/state") + get(handler, "/api/keys") + get(handler, "/api/journeys?key=default/a")
	if strings.Contains(served, secret) || !strings.Contains(served, "418") || !strings.Contains(served, "the cloud said no") {
		t.Errorf("the page serves %s", served)
	}
}

// BenchmarkSync is what a key costs from Add to Done, with one request: without a page, with it,
// and with a stream.
func BenchmarkSync(b *testing.B) {
	b.Run("off", func(b *testing.B) { benchmarkSync(b, new(glass.Page)) })
	b.Run("on", func(b *testing.B) { benchmarkSync(b, glass.New(b.Context(), glass.Process{})) })
	b.Run("stream", func(b *testing.B) {
		page := glass.New(b.Context(), glass.Process{})
		page.Controller(glass.Config{Name: "things"})
		server := httptest.NewServer(page.Handler())
		defer server.Close()
		request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, server.URL+"/api/stream", http.NoBody)
		if err != nil {
			b.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		go func() { // as a browser does
			buffer := make([]byte, 1<<16)
			for err := error(nil); err == nil; _, err = response.Body.Read(buffer) {
			}
		}()
		benchmarkSync(b, page)
	})
}

func benchmarkSync(b *testing.B, page *glass.Page) {
	controller := page.Controller(glass.Config{Name: "things"})
	limiter := workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()
	queue := glass.Queue(controller, workqueue.NewTypedRateLimitingQueue(limiter), limiter)
	transport := page.Server(glass.Server{Name: "Cloud"})(answer{})
	b.ReportAllocs()
	before := processorTime()
	defer func() { b.ReportMetric(float64((processorTime()-before).Nanoseconds())/float64(b.N), "cpu-ns/op") }()
	for i := range b.N {
		queue.Add(cache.NewObjectName("default", names[i%len(names)]))
		key, _ := queue.Get()
		ctx, end := controller.Sync(b.Context(), key)
		observe.Reach(ctx, glass.StageActual, func() string { return "found" }, nil)
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://cloud.example/things", http.NoBody)
		_, err := transport.RoundTrip(request) //nolint:bodyclose // there is none
		end(err)
		queue.Forget(key)
		queue.Done(key)
	}
}

// processorTime is what the process has used: unlike the time that passes, it does not depend
// on what else the machine does.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// answer is a server that costs nothing.
type answer struct{}

var ok = &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}

func (answer) RoundTrip(*http.Request) (*http.Response, error) { return ok, nil }

var names = func() (names [1000]string) {
	for i := range names {
		names[i] = fmt.Sprint("thing-", i)
	}
	return names
}()
