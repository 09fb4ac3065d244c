package glass_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/samplecrd/network-controller/pkg/glass"
	"github.com/samplecrd/network-controller/pkg/observe"
)

// A program with a controller shows it in five lines.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	config := &rest.Config{}                                         // of the program
	informer := cache.NewSharedIndexInformer(nil, nil, 0, nil)       // of the program
	limiter := workqueue.DefaultTypedControllerRateLimiter[string]() // of the program
	queue := workqueue.NewTypedRateLimitingQueue(limiter)            // of the program

	page := glass.New(glass.Process{Name: "my-controller"})
	config.Wrap(page.Kubernetes)
	informer = page.Informer("things", informer) // before event handlers are added
	queue = glass.Queue(page.Controller(glass.Config{Name: "things"}), queue, limiter)
	err := page.Serve(ctx, "127.0.0.1:0")

	fmt.Println(err, informer.HasSynced(), queue.Len())
	// Output: <nil> false 0
}

// A sync names its stages, what they find, and its steps. The page shows its requests, too.
func ExampleController_Sync() {
	page := glass.New(glass.Process{})
	things := page.Controller(glass.Config{Name: "things", Stages: []glass.Stage{"compare", glass.StageApply}})
	limiter := workqueue.DefaultTypedControllerRateLimiter[string]()
	queue := glass.Queue(things, workqueue.NewTypedRateLimitingQueue(limiter), limiter)

	sync := func(ctx context.Context, key string) error {
		observe.Reach(ctx, "compare", func() string { return key + " has 2 of 3 replicas" }, nil)
		_, end := observe.BeginStep(ctx, "CreateReplica", text("create replica 3"))
		err := errors.New("no room")
		end(err)
		return err
	}

	queue.Add("a-thing")
	key, _ := queue.Get()
	ctx, end := things.Sync(context.Background(), key)
	err := sync(ctx, key)
	end(err)
	queue.AddRateLimited(key)
	queue.Done(key)

	fmt.Println(journeys(page, key))
	// Output: a-thing: compare: a-thing has 2 of 3 replicas; plan: create replica 3; apply: create replica 3; apply: no room; backoff: no room
}

// The page can be mounted anywhere, with other servers than Kubernetes and several
// controllers.
func ExamplePage_Handler() {
	page := glass.New(glass.Process{Name: "my-controller"})
	transport := page.Server(glass.Server{Name: "Billing", Limit: 4})(http.DefaultTransport)
	page.Controller(glass.Config{Name: "accounts"})
	page.Controller(glass.Config{Name: "invoices"})

	mux := http.NewServeMux()
	mux.Handle("/debug/controllers/", http.StripPrefix("/debug/controllers", page.Handler()))

	fmt.Println(transport != nil, get(mux, "/debug/controllers/api/keys?controller=invoices"))
	// Output: true []
}

// The zero Page is for a program whose user did not ask for a page: nothing is wrapped.
func ExamplePage() {
	page := new(glass.Page)
	limiter := workqueue.DefaultTypedControllerRateLimiter[int]()
	queue := workqueue.NewTypedRateLimitingQueue(limiter)
	fmt.Println(glass.Queue(page.Controller(glass.Config{Name: "numbers"}), queue, limiter) == queue)
	fmt.Println(page.Kubernetes(http.DefaultTransport) == http.DefaultTransport)
	// Output:
	// true
	// true
}

type text string

func (t text) String() string { return string(t) }

// get returns what a handler responds to this machine.
func get(handler http.Handler, path string) string {
	request := httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+path, http.NoBody)
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, request)
	return trim(response.Body.String())
}
