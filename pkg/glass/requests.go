package glass

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/samplecrd/network-controller/pkg/observe"
)

// Server is a server that controllers use, beside Kubernetes.
type Server struct {
	Name string
	// Operation returns what a request does, out of a fixed set, such as "create network".
	// Defaults to the method.
	Operation func(*http.Request) string
	// Limit is the largest number of requests at a time, if there is one.
	Limit int
	// Instance returns which one it is, in words, and whether that is known.
	Instance func() (string, bool)
	// Cache returns the cache of its state, if the program has one.
	Cache func() Cache
}

// server is what is known of a Server. Its fields need the lock of the Page.
type server struct {
	Server
	inFlight   int
	operations map[string]*operation
}

// maxServers bounds the servers, and maxOperations the operations of each.
const (
	maxServers    = 16
	maxOperations = 64
)

// serverOf returns the server with a name.
func (p *Page) serverOf(name string) *server {
	at := slices.IndexFunc(p.servers, func(s *server) bool { return s.Name == name })
	if at >= 0 {
		return p.servers[at]
	}
	of := &server{Server: Server{Name: name}, operations: map[string]*operation{}}
	if len(p.servers) < maxServers {
		p.servers = append(p.servers, of)
	}
	return of
}

// operation are the requests of one operation to a server.
type operation struct {
	Operation
	durations [100]time.Duration // the last ones
}

// note counts a request that has ended.
func (s *server) note(name string, took time.Duration, code int) {
	of := s.operations[name]
	if of == nil {
		if len(s.operations) >= maxOperations {
			return
		}
		of = &operation{Operation: Operation{Name: name}}
		s.operations[name] = of
	}
	of.durations[of.Count%len(of.durations)] = took
	of.Count++
	if of.LastCode = code; code == 0 || code >= 400 {
		of.Errors++
	}
}

func (s *server) state() ServerState {
	state := ServerState{Name: s.Name, InFlight: s.inFlight, Limit: s.Limit, Operations: []Operation{}}
	for _, name := range slices.Sorted(maps.Keys(s.operations)) {
		state.Operations = append(state.Operations, s.operations[name].summary())
	}
	if s.Instance != nil {
		state.Instance, _ = s.Instance()
	}
	if s.Cache != nil {
		of := s.Cache()
		state.Cache = &of
	}
	return state
}

// summary returns the operation with its latencies.
func (o *operation) summary() Operation {
	some := slices.Clone(o.durations[:min(o.Count, len(o.durations))])
	slices.Sort(some)
	summary := o.Operation
	summary.P50Milliseconds = milliseconds(some[(len(some)-1)/2])
	summary.P99Milliseconds = milliseconds(some[(len(some)-1)*99/100])
	return summary
}

// informer is what is known of an informer. Its fields need the lock of the Page.
type informer struct {
	path           string // the end of that of its requests
	informer       cache.SharedIndexInformer
	lists, watches int
	lastError      string
}

// sends reports whether a request can be one of the informer.
func (i *informer) sends(request *http.Request) bool {
	return request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, i.path)
}

// resource returns the name of the resource.
func (i *informer) resource() string { return i.path[strings.LastIndex(i.path, "/")+1:] }

func (i *informer) state() Informer {
	activity := "listing"
	switch {
	case i.lastError != "":
		activity = "waiting"
	case i.informer.HasSynced():
		activity = "watching"
	}
	namespace, _, _ := strings.Cut(strings.TrimPrefix(i.path, "/namespaces/"), "/")
	return Informer{
		Resource: i.resource(), Namespace: namespace, Activity: activity,
		Lists: i.lists, Watches: i.watches, LastError: i.lastError,
		ResourceVersion: i.informer.LastSyncResourceVersion(), Objects: len(i.informer.GetStore().ListKeys()),
	}
}

// beginRequest records a request: of an informer, of a sync, or to another server than
// Kubernetes. A request of a sync that belongs to no step is a step of its own.
func (p *Page) beginRequest(ctx context.Context, sent observe.Work) func(observe.Result) {
	w := workOf(ctx)
	if w == nil && sent.Server == observe.Kubernetes {
		return p.beginList(sent.Request)
	}
	begun, name := p.clock.Now(), clip(sent.Name)
	end := func(time.Duration, int) {}
	if sent.Server != observe.Kubernetes {
		end = p.beginCall(sent.Server, name)
	}
	return func(result observe.Result) {
		took := p.clock.Since(begun)
		p.mu.Lock()
		defer p.mu.Unlock()
		end(took, result.Code)
		if w == nil {
			return
		}
		step, inStep := ctx.Value(stepKey{}).(*JourneyStep)
		if !inStep {
			step = &JourneyStep{Text: name, Begun: begun, Milliseconds: milliseconds(took)}
			w.journey.addStep(step)
		}
		if len(step.Requests) < maxRequestsOfStep {
			step.Requests = append(step.Requests, JourneyRequest{
				Server: sent.Server, Operation: name, Begun: begun, Milliseconds: milliseconds(took), Code: result.Code,
			})
		}
	}
}

// beginCall counts a request to a server. The function that it returns needs the lock.
func (p *Page) beginCall(name, operation string) (end func(time.Duration, int)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.serverOf(name)
	of.inFlight++
	return func(took time.Duration, code int) {
		of.inFlight--
		of.note(operation, took, code)
	}
}

// beginList counts a list or watch, if an informer sends it. The function that it returns
// records the result.
func (p *Page) beginList(request *http.Request) func(observe.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.IndexFunc(p.informers, func(i *informer) bool { return i.sends(request) })
	if at < 0 {
		return func(observe.Result) {}
	}
	of, query := p.informers[at], request.URL.Query()
	isWatch := query.Get("watch") != ""
	if isWatch {
		of.watches++
	}
	if !isWatch || query.Get("sendInitialEvents") == "true" {
		of.lists++
	}
	return func(result observe.Result) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case result.Err != nil:
			of.lastError = clip(result.Err.Error())
		case result.Code >= 400:
			of.lastError = "the API server returned " + strconv.Itoa(result.Code) + " " + http.StatusText(result.Code)
		default:
			of.lastError = ""
		}
	}
}
