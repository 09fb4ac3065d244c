package glass

import (
	"context"
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

// external is what is known of a Server. Its fields need the lock of the Page.
type external struct {
	Server
	shown ServerState
}

// serverOf returns the server with a name.
func (p *Page) serverOf(name string) *external {
	at := slices.IndexFunc(p.servers, func(s *external) bool { return s.Name == name })
	if at >= 0 {
		return p.servers[at]
	}
	of := &external{Server: Server{Name: name}}
	p.servers = append(p.servers, of)
	return of
}

func (s *external) state() ServerState {
	s.shown.Name, s.shown.Limit = s.Name, s.Limit
	if s.Instance != nil {
		s.shown.Instance, _ = s.Instance()
	}
	if s.Cache != nil {
		cache := s.Cache()
		s.shown.Cache = &cache
	}
	return s.shown
}

// informer is what is known of an informer. Its fields need the lock of the Page.
type informer struct {
	Informer
	resource string
	path     string // the end of that of its requests
	shared   cache.SharedIndexInformer
}

func newInformer(path string, shared cache.SharedIndexInformer) *informer {
	resource := path[strings.LastIndex(path, "/")+1:]
	return &informer{resource: resource, path: "/" + path, shared: shared}
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

// ended notes whether a list or watch has failed, when it ends or begins to send events.
func (i *informer) ended(result observe.Result) {
	switch {
	case result.Err != nil:
		i.LastError = clip(result.Err.Error())
	case result.Code >= 400:
		i.LastError = "the API server returned " + strconv.Itoa(result.Code) + " " + http.StatusText(result.Code)
	default:
		i.LastError = ""
	}
}

// beginRequest records a request: of an informer, of a sync, or to another server than
// Kubernetes.
func (p *Page) beginRequest(ctx context.Context, sent observe.Work) func(observe.Result) {
	w, begun, stage := workOf(ctx), p.clock.Now(), StageKubernetes
	if sent.Server != observe.Kubernetes {
		stage = StageServer
		p.count(sent.Server, 1)
	}
	return func(result observe.Result) {
		if stage == StageServer {
			p.count(sent.Server, -1)
		} else if w == nil {
			p.endWatch(sent.Request, result)
		}
		code := "no response"
		if result.Code != 0 {
			code = strconv.Itoa(result.Code)
		}
		if w != nil {
			w.record(&Moment{
				Stage: stage, Text: sent.Server + ": " + clip(sent.Name) + ": " + code,
				Failed: result.Code == 0 || result.Code >= 400, Milliseconds: milliseconds(p.clock.Since(begun)),
			})
		}
	}
}

// count counts a request to a server that begins (1) or ends (-1).
func (p *Page) count(name string, change int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.serverOf(name)
	if of.shown.InFlight += change; change < 0 {
		of.shown.Requests++
	}
}

// endWatch passes the result of a list or watch to the informer that sent it.
func (p *Page) endWatch(request *http.Request, result observe.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, of := range p.informers {
		if request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, of.path) {
			of.ended(result)
			return
		}
	}
}
