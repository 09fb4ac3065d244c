package glass

import (
	"context"
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

// ended counts a request that has ended.
func (s *server) ended(name string, code int, moment Moment) {
	s.inFlight--
	of := s.operations[name]
	if of == nil && len(s.operations) < maxOperations {
		of = &operation{Operation: Operation{Name: name}}
		s.operations[name] = of
	}
	if of == nil {
		return
	}
	of.durations[of.Count%len(of.durations)] = moment.Milliseconds
	of.Count++
	if of.LastCode = code; moment.Failed {
		of.Errors++
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
	Informer
	path   string // the end of that of its requests
	shared cache.SharedIndexInformer
}

func newInformer(path string, shared cache.SharedIndexInformer) *informer {
	namespace, resource, found := strings.Cut(strings.TrimPrefix(path, "namespaces/"), "/")
	if !found {
		namespace, resource = "", path
	}
	return &informer{Informer{Resource: resource, Namespace: namespace}, "/" + path, shared}
}

func (i *informer) state() Informer {
	state := i.Informer
	state.ResourceVersion, state.Objects = i.shared.LastSyncResourceVersion(), len(i.shared.GetStore().ListKeys())
	switch {
	case state.LastError != "":
		state.Activity = "waiting"
	case i.shared.HasSynced():
		state.Activity = "watching"
	default:
		state.Activity = "listing"
	}
	return state
}

// ended counts a list or watch that has ended, or has begun to send events.
func (i *informer) ended(request *http.Request, result observe.Result) {
	query := request.URL.Query()
	isWatch := query.Get("watch") != ""
	if isWatch {
		i.Watches++
	}
	if !isWatch || query.Get("sendInitialEvents") == "true" {
		i.Lists++
	}
	switch {
	case result.Err != nil:
		i.LastError = clip(result.Err.Error())
	case result.Code >= 400:
		i.LastError = "the API server returned " + strconv.Itoa(result.Code) + " " + http.StatusText(result.Code)
	default:
		i.LastError = ""
	}
}

// informerOf returns the informer that sends a request, or nil.
func (p *Page) informerOf(request *http.Request) *informer {
	at := slices.IndexFunc(p.informers, func(i *informer) bool {
		return request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, i.path)
	})
	if at < 0 {
		return nil
	}
	return p.informers[at]
}

// beginRequest records a request: of an informer, of a sync, or to another server than
// Kubernetes.
func (p *Page) beginRequest(ctx context.Context, sent observe.Work) func(observe.Result) {
	w, begun, name := workOf(ctx), p.clock.Now(), clip(sent.Name)
	if sent.Server != observe.Kubernetes {
		p.mu.Lock()
		p.serverOf(sent.Server).inFlight++
		p.mu.Unlock()
	}
	return func(result observe.Result) {
		code := "no response"
		if result.Code != 0 {
			code = strconv.Itoa(result.Code)
		}
		ended := Moment{
			Stage: StageKubernetes, Text: sent.Server + ": " + name + ": " + code,
			Failed: result.Code == 0 || result.Code >= 400, Milliseconds: milliseconds(p.clock.Since(begun)),
		}
		p.mu.Lock()
		if sent.Server != observe.Kubernetes {
			ended.Stage = StageServer
			p.serverOf(sent.Server).ended(name, result.Code, ended)
		} else if of := p.informerOf(sent.Request); w == nil && of != nil {
			of.ended(sent.Request, result)
		}
		p.mu.Unlock()
		if w != nil {
			w.record(&ended)
		}
	}
}
