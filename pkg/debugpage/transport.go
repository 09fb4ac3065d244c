package debugpage

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// requests are those to Neutron.
type requests struct {
	inFlight, count int
	operations      map[string]*operation
}

// operation are the requests of one operation.
type operation struct {
	Operation
	durations [100]time.Duration // the last ones
}

// maxOperations bounds the operations, which are about 30.
const maxOperations = 64

// Neutron returns a function that wraps a transport to Neutron. The other function
// names the operation of a request.
func (r *Recorder) Neutron(operation func(*http.Request) string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		if !r.on {
			return next
		}
		return neutronTransport{r, operation, next}
	}
}

type neutronTransport struct {
	recorder  *Recorder
	operation func(*http.Request) string
	next      http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t neutronTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	r, begun := t.recorder, t.recorder.clock.Now()
	r.set(func() { r.neutron.inFlight++ })
	response, err := t.next.RoundTrip(request)
	took, name := r.clock.Since(begun), t.operation(request)
	r.set(func() { r.neutron.note(name, begun, took, codeOf(response)) })
	record(request, JourneyRequest{Server: "Neutron", Operation: name, Begun: begun, Milliseconds: milliseconds(took), Code: codeOf(response)}, name)
	return response, err
}

// record adds a request to the journey of its sync, if it has one. The text is for a
// request that belongs to no step.
func record(request *http.Request, made JourneyRequest, text string) {
	if w, ok := request.Context().Value(workKey{}).(*work); ok {
		w.addRequest(request.Context(), made, text)
	}
}

func codeOf(response *http.Response) int {
	if response == nil {
		return 0
	}
	return response.StatusCode
}

func (r *requests) note(name string, begun time.Time, took time.Duration, code int) {
	r.inFlight--
	r.count++
	of := r.operations[name]
	if of == nil {
		if len(r.operations) >= maxOperations {
			return
		}
		of = &operation{Operation: Operation{Name: name}}
		r.operations[name] = of
	}
	of.durations[of.Count%len(of.durations)] = took
	of.Count++
	if code == 0 || code >= 400 {
		of.Errors++
	}
	of.LastCode, of.Last = code, begun.Add(took)
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

// Kubernetes wraps a transport to the API server: it records the lists and watches of
// informers and the requests of syncs.
func (r *Recorder) Kubernetes(next http.RoundTripper) http.RoundTripper {
	if !r.on {
		return next
	}
	return kubernetesTransport{r, next}
}

type kubernetesTransport struct {
	recorder *Recorder
	next     http.RoundTripper
}

// WrappedRoundTripper gives client-go access to the transport inside.
func (t kubernetesTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t kubernetesTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	r, begun := t.recorder, t.recorder.clock.Now()
	of := r.informerOf(request)
	if of == nil {
		response, err := t.next.RoundTrip(request)
		name, step := wordsFor(request)
		record(request, JourneyRequest{Server: "Kubernetes", Operation: name, Begun: begun, Milliseconds: milliseconds(r.clock.Since(begun)), Code: codeOf(response)}, step)
		return response, err
	}
	query := request.URL.Query()
	isWatch, lists := query.Get("watch") != "", query.Get("watch") == "" || query.Get("sendInitialEvents") == "true"
	r.set(func() { of.began(isWatch, lists, begun) })
	response, err := t.next.RoundTrip(request)
	switch {
	case err != nil:
		r.set(func() { of.failed(clip(err.Error()), r.clock.Now()) })
	case response.StatusCode >= 400:
		r.set(func() { of.failed(clip("the API server returned "+response.Status), r.clock.Now()) })
	case isWatch:
		response.Body = &watchBody{ReadCloser: response.Body, recorder: r, informer: of, initial: lists}
	}
	return response, err
}

// informerOf returns the informer that sends a request, or nil.
func (r *Recorder) informerOf(request *http.Request) *informer {
	if request.Method != http.MethodGet {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range r.informers {
		path := map[string]string{kindNetwork: "/apis/samplecrd.k8s.io/v1/", kindDeployment: "/apis/apps/v1/"}[of.kind]
		if of.namespace != "" {
			path += "namespaces/" + of.namespace + "/"
		}
		if strings.HasSuffix(request.URL.Path, path+strings.ToLower(of.kind)+"s") && request.URL.Query().Get("limit") != "1" {
			return of
		}
	}
	return nil
}

func (i *informer) began(isWatch, lists bool, now time.Time) {
	i.activity, i.since = watching, now
	if isWatch {
		i.watches++
	}
	if lists {
		i.activity = listing
		i.lists++
	}
}

func (i *informer) failed(text string, now time.Time) {
	i.activity, i.since, i.lastError = waiting, now, text
}

// watchBody is the stream of a watch. It finds the end of the list that it begins with,
// and its own end.
type watchBody struct {
	io.ReadCloser
	recorder *Recorder
	informer *informer
	initial  bool // the list has not ended
	tail     []byte
}

// initialEventsEnd is the annotation of the event that ends the list.
const initialEventsEnd = `k8s.io/initial-events-end`

// Read implements io.Reader.
func (b *watchBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.initial {
		seen := slices.Concat(b.tail, p[:n]) // the text may span two reads
		if b.initial = !bytes.Contains(seen, []byte(initialEventsEnd)); b.initial {
			b.tail = seen[max(0, len(seen)-len(initialEventsEnd)):]
		} else {
			b.tail = nil
			b.set(watching)
		}
	}
	if err != nil {
		b.set(waiting)
	}
	return n, err
}

func (b *watchBody) set(activity string) {
	b.recorder.set(func() { b.informer.activity, b.informer.since = activity, b.recorder.clock.Now() })
}

// wordsFor returns the operation of a request to the API server, and the text of the
// step if it belongs to none.
func wordsFor(request *http.Request) (operation, step string) {
	verb := map[string]string{http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete"}[request.Method]
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	for i, part := range parts {
		if part != "namespaces" || i+2 >= len(parts) {
			continue
		}
		resource, subresource := parts[i+2], ""
		if i+4 < len(parts) {
			subresource = parts[i+4]
		}
		operation = clip(strings.TrimSpace(verb + " " + resource + " " + subresource))
		switch {
		case subresource == "status":
			return operation, "write the status"
		case verb == "get":
			return operation, "read the object again"
		}
		return operation, "write the object"
	}
	return verb, verb + " in Kubernetes"
}
