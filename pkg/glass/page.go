package glass

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/samplecrd/network-controller/pkg/observe"
)

// Page shows the controllers of a process. The zero Page shows nothing and costs nothing:
// whatever it would wrap, it returns as it is.
type Page struct {
	clock   clock.WithTicker // nil if the page shows nothing
	process Process
	streams atomic.Int32 // that are open

	mu          sync.Mutex
	leader      Leader
	informers   []*informer
	servers     []*external
	controllers []*Controller
}

// Leader tells a page whether its replica leads. Without one, it does.
type Leader struct {
	// Holder returns the holder of the Lease, as far as it is known.
	Holder func() string
	// Leads returns whether this replica reconciles.
	Leads func() bool
}

// New returns a Page.
func New(process Process) *Page { return newPage(clock.RealClock{}, process) }

func newPage(clock clock.WithTicker, process Process) *Page {
	process.Started = clock.Now()
	alone := Leader{Holder: func() string { return "" }, Leads: func() bool { return true }}
	return &Page{clock: clock, process: process, leader: alone}
}

func (p *Page) isOff() bool { return p.clock == nil }

// Leader shows who leads.
func (p *Page) Leader(leader Leader) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leader = leader
}

// Kubernetes wraps a transport to the API server. Pass it to rest.Config.Wrap.
func (p *Page) Kubernetes(next http.RoundTripper) http.RoundTripper {
	if p.isOff() {
		return next
	}
	return observe.Transport(pageObserver{p: p}, observe.Kubernetes, observe.KubernetesOperation)(next)
}

// Server shows another server that the controllers use, and returns a function that wraps
// a transport to it.
func (p *Page) Server(of Server) func(http.RoundTripper) http.RoundTripper {
	if p.isOff() {
		return func(next http.RoundTripper) http.RoundTripper { return next }
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.serverOf(of.Name).Server = of
	if of.Operation == nil {
		of.Operation = func(request *http.Request) string { return request.Method }
	}
	return observe.Transport(pageObserver{p: p}, of.Name, of.Operation)
}

// Informer shows an informer, and the calls of the event handlers that are added to the
// informer that it returns. The resource is the end of the path of its requests, such as
// networks, or namespaces/shop/networks for those of one namespace.
func (p *Page) Informer(resource string, of cache.SharedIndexInformer) cache.SharedIndexInformer {
	if p.isOff() {
		return of
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.informers = append(p.informers, newInformer(resource, of))
	return observe.Informer(pageObserver{p: p}, of)
}

// pageObserver is the observer of the transports and informers of a page, which do not know
// what controller an event is for.
type pageObserver struct {
	observe.Nothing
	p *Page
}

func (o pageObserver) Begin(ctx context.Context, begun observe.Work) (context.Context, func(observe.Result)) {
	return ctx, o.p.beginRequest(ctx, begun)
}

func (o pageObserver) Happened(key cache.ObjectName, event observe.Event) {
	o.p.mu.Lock()
	controllers := slices.Clone(o.p.controllers)
	o.p.mu.Unlock()
	for _, c := range controllers {
		c.Happened(key, event)
	}
}

// Controller shows a controller. For the same name, it returns the same Controller.
func (p *Page) Controller(config Config) *Controller {
	if p.isOff() {
		return &Controller{page: p}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.controllerOf(config.Name); c != nil {
		return c
	}
	c := newController(p, config)
	p.controllers = append(p.controllers, c)
	return c
}

// controllerOf returns the controller with a name, or nil.
func (p *Page) controllerOf(name string) *Controller {
	at := slices.IndexFunc(p.controllers, func(c *Controller) bool { return c.Name == name })
	if at < 0 {
		return nil
	}
	return p.controllers[at]
}
