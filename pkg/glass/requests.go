package glass

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

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
	durations [100]float64 // the last ones, in milliseconds
}

// begin counts a request. The function that it returns ends it, and needs the lock.
func (s *server) begin(name string) (end func(Moment, observe.Result)) {
	s.inFlight++
	return func(ended Moment, result observe.Result) {
		s.inFlight--
		of := s.operations[name]
		if of == nil && len(s.operations) < maxOperations {
			of = &operation{Operation: Operation{Name: name}}
			s.operations[name] = of
		}
		if of == nil {
			return
		}
		of.durations[of.Count%len(of.durations)] = ended.Milliseconds
		of.Count++
		if of.LastCode = result.Code; ended.Failed {
			of.Errors++
		}
	}
}

func (s *server) state() ServerState {
	state := ServerState{Name: s.Name, InFlight: s.inFlight, Limit: s.Limit, Operations: []Operation{}}
	for _, name := range slices.Sorted(maps.Keys(s.operations)) {
		of := s.operations[name]
		last := slices.Sorted(slices.Values(of.durations[:min(of.Count, len(of.durations))]))
		of.P50Milliseconds, of.P99Milliseconds = last[(len(last)-1)/2], last[(len(last)-1)*99/100]
		state.Operations = append(state.Operations, of.Operation)
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

// informer is what is known of an informer. Its fields need the lock of the Page.
type informer struct {
	path           string // the end of that of its requests
	informer       cache.SharedIndexInformer
	lists, watches int
	lastError      string
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

// begin counts a list or watch. The function that it returns ends it, and needs the lock.
func (i *informer) begin(request *http.Request) (end func(Moment, observe.Result)) {
	query := request.URL.Query()
	isWatch := query.Get("watch") != ""
	if isWatch {
		i.watches++
	}
	if !isWatch || query.Get("sendInitialEvents") == "true" {
		i.lists++
	}
	return func(ended Moment, result observe.Result) {
		switch {
		case result.Err != nil:
			i.lastError = clip(result.Err.Error())
		case ended.Failed:
			i.lastError = "the API server returned " + strconv.Itoa(result.Code) + " " + http.StatusText(result.Code)
		default:
			i.lastError = ""
		}
	}
}

// beginRequest records a request: of an informer, of a sync, or to another server than
// Kubernetes.
func (p *Page) beginRequest(ctx context.Context, sent observe.Work) func(observe.Result) {
	w, begun := workOf(ctx), p.clock.Now()
	count := p.count(sent, w == nil)
	return func(result observe.Result) {
		ended := Moment{
			Stage: StageServer, Text: fmt.Sprintf("%s: %s: %d", sent.Server, clip(sent.Name), result.Code),
			Failed: result.Code == 0 || result.Code >= 400, Milliseconds: milliseconds(p.clock.Since(begun)),
		}
		if sent.Server == observe.Kubernetes {
			ended.Stage = StageKubernetes
		}
		if result.Code == 0 {
			ended.Text = fmt.Sprintf("%s: %s: no response", sent.Server, clip(sent.Name))
		}
		p.mu.Lock()
		count(ended, result)
		p.mu.Unlock()
		if w != nil {
			w.record(&ended)
		}
	}
}

// count counts a request where it belongs. The function that it returns needs the lock.
func (p *Page) count(sent observe.Work, ofInformer bool) (end func(Moment, observe.Result)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if sent.Server != observe.Kubernetes {
		return p.serverOf(sent.Server).begin(clip(sent.Name))
	}
	for _, of := range p.informers {
		if ofInformer && sent.Request.Method == http.MethodGet && strings.HasSuffix(sent.Request.URL.Path, of.path) {
			return of.begin(sent.Request)
		}
	}
	return func(Moment, observe.Result) {}
}
