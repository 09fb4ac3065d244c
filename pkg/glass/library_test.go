package glass_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
)

func trim(text string) string { return strings.TrimSpace(text) }

// show decodes what the page serves.
func show[T any](page *glass.Page, path string) (value T) {
	if err := json.Unmarshal([]byte(get(page.Handler(), path)), &value); err != nil {
		panic(err)
	}
	return value
}

// journeys returns what the page has of a key, the newest journey only.
func journeys(page *glass.Page, key string) string {
	j := show[[]glass.Journey](page, "/api/journeys?key="+key)[0]
	words := []string{}
	for _, moment := range j.Moments {
		if moment.Text != "" && moment.Stage != glass.StageQueue {
			words = append(words, string(moment.Stage)+": "+moment.Text)
		}
	}
	return j.Key + ": " + strings.Join(words, "; ")
}

func state(page *glass.Page, controller string) glass.State {
	return show[glass.State](page, "/api/state?controller="+controller)
}

type queue[K comparable] = workqueue.TypedRateLimitingInterface[K]

// newQueue returns a controller on a page with its queue.
func newQueue[K comparable](page *glass.Page, name string) (*glass.Controller, queue[K]) {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[K](time.Second, time.Minute)
	controller := page.Controller(glass.Config{Name: name})
	return controller, glass.Queue(controller, workqueue.NewTypedRateLimitingQueue(limiter), limiter)
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
		page := glass.New(glass.Process{})
		things, queue := newQueue[K](page, "things")
		defer queue.ShutDown()
		shows := func(when, want string) {
			t.Helper()
			synctest.Wait()
			s := state(page, "things")
			var retries []string
			for _, retry := range s.Queue.Waiting {
				retries = append(retries, fmt.Sprint(retry.Key, " failed ", retry.Failures, ", waits ", retry.Until.Sub(retry.From)))
			}
			got := fmt.Sprint(s.Queue.Front, " queued, ", s.Queue.Merged, " merged, worker ", s.Workers[0].Key, " ", s.Workers[0].Stage, retries)
			if got != want {
				t.Errorf("%s, the page shows\n%q, want\n%q", when, got, want)
			}
		}
		take := func() {
			t.Helper()
			if got, _ := queue.Get(); got != key {
				t.Fatalf("the next key is %v", got)
			}
		}
		queue.Add(key)
		queue.Add(key)
		shows("before the sync", "["+want+"] queued, 1 merged, worker  []")
		take()
		shows("in the sync", "[] queued, 1 merged, worker "+want+" sync[]")
		_, end := things.Sync(t.Context(), key)
		end(errors.New("unavailable \x1b[31m"))
		queue.AddRateLimited(key)
		queue.AddAfter(key, time.Minute) // the queue keeps the earlier time
		queue.Done(key)
		shows("after a failure", "[] queued, 1 merged, worker  ["+want+" failed 1, waits 1s]")
		path := strings.ReplaceAll(want, " ", "%20")
		if found := journeys(page, path); found != want+": merged: event; backoff: unavailable  [31m" {
			t.Errorf("the journey is %q", found)
		}
		<-time.After(time.Second)
		take()
		begun := show[[]glass.Journey](page, "/api/journeys?key="+path)[0].Moments[0]
		if begun.Stage != glass.StageQueue || begun.Text != "retry" {
			t.Errorf("the journey begins with %+v, want a retry", begun)
		}
		queue.Add(key)
		shows("added in its retry", "["+want+"] queued, 1 merged, worker "+want+" sync[]")
		queue.Done(key)
		take()
		queue.Forget(key)
		queue.Done(key)
		shows("at the end", "[] queued, 1 merged, worker  []")
	})
}

// TestControllers: each controller has its own queue, and an event of a shared informer is the
// cause in each that adds its key. Nothing that the page serves has anything of an object but
// its name, or of a request but its operation.
func TestControllers(t *testing.T) {
	const secret = "s3cr3t-of-somebody"
	page := glass.New(glass.Process{})
	source := fcache.NewFakeControllerSource()
	informer := page.Informer("secrets", cache.NewSharedIndexInformer(source, &corev1.Secret{}, 0, nil))
	source.Add(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", Annotations: map[string]string{"a": secret}},
		StringData: map[string]string{"password": secret}, Data: map[string][]byte{"token": []byte(secret)},
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte(secret))
	}))
	defer server.Close()
	client := &http.Client{Transport: page.Server(glass.Server{Name: "Cloud"})(page.Kubernetes(http.DefaultTransport))}
	send := func(ctx context.Context) {
		body := strings.NewReader(secret)
		request, _ := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/things?password="+secret, body)
		request.Header.Set("Authorization", "Bearer "+secret)
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go informer.RunWithContext(ctx)
	for _, name := range []string{"one", "two"} {
		controller, queue := newQueue[cache.ObjectName](page, name)
		add := func(object any) { queue.Add(cache.MetaObjectToName(object.(*corev1.Secret))) }
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add}); err != nil {
			t.Fatal(err)
		}
		key, _ := queue.Get()
		sync, end := controller.Sync(t.Context(), key)
		send(sync)
		end(errors.New("the cloud said no"))
		queue.Done(key)
		served := get(page.Handler(), "/api/journeys?key=default/a&controller="+name)
		for _, want := range []string{`"text":"added, resourceVersion 1"`, "Cloud: POST: 418", "the cloud said no"} {
			if !strings.Contains(served, want) {
				t.Errorf("the journeys of %s do not have %s: %s", name, want, served)
			}
		}
		if served += get(page.Handler(), "/api/state") + get(page.Handler(), "/api/keys"); strings.Contains(served, secret) {
			t.Errorf("the page serves %s", served)
		}
	}
}
