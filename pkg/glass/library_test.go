package glass_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
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
		things := page.Controller(glass.Config{Name: "things"})
		queue := glass.Queue(things, workqueue.NewTypedRateLimitingQueue(limiter), limiter)
		defer queue.ShutDown()
		take := func() {
			t.Helper()
			synctest.Wait()
			if got, _ := queue.Get(); got != key {
				t.Fatalf("the next key is %v", got)
			}
		}
		queue.Add(key)
		queue.Add(key)
		if got := state(t, page, "things").Queue; got.Depth != 1 || got.Merged != 1 || got.Front[0] != want {
			t.Fatalf("the queue is %+v, want one key", got)
		}
		take()
		if workers := state(t, page, "things").Workers; workers[0].Key != want || workers[0].Stage != glass.StageSync {
			t.Errorf("the workers are %+v", workers)
		}
		_, end := things.Sync(t.Context(), key)
		end(errors.New("unavailable \x1b[31m"))
		queue.AddRateLimited(key)
		queue.AddAfter(key, time.Minute) // the queue keeps the earlier time
		queue.Done(key)
		retry := state(t, page, "things").Queue.Waiting
		if len(retry) != 1 || retry[0].Key != want || retry[0].Failures != 1 || retry[0].Until.Sub(retry[0].From) != time.Second {
			t.Errorf("%+v waits, want the key for a second", retry)
		}
		path := strings.ReplaceAll(want, " ", "%20")
		if found := journeys(page, path); found != want+": merged: event; backoff: unavailable  [31m" {
			t.Errorf("the journey is %q", found)
		}
		<-time.After(time.Second)
		take()
		if found := get(page.Handler(), "/api/journeys?key="+path); !strings.Contains(found, `"stage":"queue","key":"`+want+`","text":"retry"`) {
			t.Errorf("the journeys are %s, want one that begins with a retry", found)
		}
		queue.Add(key)
		if s := state(t, page, "things"); s.Queue.Depth != 1 || s.Workers[0].Key != want || queue.NumRequeues(key) != 1 {
			t.Errorf("the state is %+v, want a key that is at a worker, and waits", s)
		}
		queue.Done(key)
		take()
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
	for name, page := range map[string]*glass.Page{
		"off": {}, "on": glass.New(b.Context(), glass.Process{}), "stream": glass.New(b.Context(), glass.Process{}),
	} {
		controller := page.Controller(glass.Config{Name: "things"})
		limiter := workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()
		queue := glass.Queue(controller, workqueue.NewTypedRateLimitingQueue(limiter), limiter)
		transport := page.Server(glass.Server{Name: "Cloud"})(answer{})
		keys := make([]cache.ObjectName, 1000)
		for i := range keys {
			keys[i] = cache.NewObjectName("default", fmt.Sprint("thing-", i))
		}
		b.Run(name, func(b *testing.B) {
			if name == "stream" {
				server := httptest.NewServer(page.Handler())
				defer server.Close()
				response, err := http.Get(server.URL + "/api/stream")
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = response.Body.Close() }()
				go func() { _, _ = io.Copy(io.Discard, response.Body) }() // as a browser does
			}
			b.ReportAllocs()
			for i := range b.N {
				queue.Add(keys[i%len(keys)])
				key, _ := queue.Get()
				ctx, end := controller.Sync(b.Context(), key)
				observe.Reach(ctx, glass.StageActual, func() string { return "found" }, nil)
				request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://cloud.example/things", http.NoBody)
				_, err := transport.RoundTrip(request) //nolint:bodyclose // there is none
				end(err)
				queue.Forget(key)
				queue.Done(key)
			}
		})
	}
}

// answer is a server that costs nothing.
type answer struct{}

var ok = &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}

func (answer) RoundTrip(*http.Request) (*http.Response, error) { return ok, nil }
