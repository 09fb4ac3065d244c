package glass

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/samplecrd/network-controller/pkg/observe"
)

// operation are the requests of one operation to Neutron.
type operation struct {
	Operation
	durations [100]time.Duration // the last ones
}

// maxOperations bounds the operations, which are about 30.
const maxOperations = 64

// noteRequest counts a request to Neutron that has ended.
func (p *Page) noteRequest(name string, took time.Duration, code int) {
	of := p.operations[name]
	if of == nil {
		if len(p.operations) >= maxOperations {
			return
		}
		of = &operation{Operation: Operation{Name: name}}
		p.operations[name] = of
	}
	of.durations[of.Count%len(of.durations)] = took
	of.Count++
	if of.LastCode = code; code == 0 || code >= 400 {
		of.Errors++
	}
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

// Informers is one informer, for the objects of one kind.
type Informers struct {
	Kind, Namespace string // all namespaces if empty
	Resource        schema.GroupVersionResource
	Informer        cache.SharedIndexInformer
}

// informer is what is known of an informer. Its fields need the lock of the Page.
type informer struct {
	Informers
	lists, watches int
	lastError      string
}

// sends reports whether a request can be one of the informer.
func (i *informer) sends(request *http.Request) bool {
	path := "/apis/" + i.Resource.Group + "/" + i.Resource.Version + "/"
	if i.Namespace != "" {
		path += "namespaces/" + i.Namespace + "/"
	}
	return request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, path+i.Resource.Resource)
}

func (i *informer) state() Informer {
	activity := "listing"
	switch {
	case i.lastError != "":
		activity = "waiting"
	case i.Informer.HasSynced():
		activity = "watching"
	}
	return Informer{
		Kind: i.Kind, Namespace: i.Namespace, Activity: activity,
		Lists: i.lists, Watches: i.watches, LastError: i.lastError,
		ResourceVersion: i.Informer.LastSyncResourceVersion(), Objects: len(i.Informer.GetStore().ListKeys()),
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
