package chaos

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/faults"
	"github.com/samplecrd/network-controller/test/neutronapi"
)

// neutronFront is the Neutron of a round, behind faults. The schedule decides the
// fate of each request.
type neutronFront struct {
	neutronapi.API // without faults

	c             *round
	url           string
	writes, reads atomic.Uint64
	held          atomic.Int64 // requests that are executed late
}

func newNeutronFront(c *round, endpoint string) *neutronFront {
	f := &neutronFront{c: c}
	f.Neutron = embedded.New(embedded.Options{With: []string{neutron.ExtensionDNS}})
	if endpoint != "" {
		proxy, err := faults.Proxy(endpoint)
		if err != nil {
			c.Fatalf("NEUTRON_ENDPOINT: %v", err)
		}
		f.Neutron = proxy
	}
	server := httptest.NewServer(f)
	c.Cleanup(server.Close)
	f.url = server.URL
	return f
}

func (f *neutronFront) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fate := f.fate(r)
	query, _ := url.QueryUnescape(r.URL.RawQuery)
	path := strings.TrimPrefix(r.URL.Path, "/v2.0/")
	what := strings.TrimSpace(r.Method + " " + path + " " + cmp.Or(query, string(body)))
	name := f.c.journal.concerns(what)
	add := func(result string) {
		if r.Method != http.MethodGet || name != "" {
			f.c.journal.add(name, "neutron: %s: %s", what, result)
		}
	}
	if fate.slow > 100*time.Millisecond {
		add(fmt.Sprintf("arrives, and is executed in %.1fs [%s]", fate.slow.Seconds(), fate.ingredient))
		f.held.Add(1)
		defer f.held.Add(-1)
	}
	if r.Method == http.MethodPost || strings.Contains(query, "name=") {
		f.c.springTrap(-1)
	}
	time.Sleep(fate.slow) //nolint:forbidigo // the fault is that it takes time
	response := httptest.NewRecorder()
	switch fate.ingredient {
	case "drop":
		add("dropped [drop]")
		panic(http.ErrAbortHandler)
	case "error-before":
		respondError(response, fate.status)
	default:
		again := r.Clone(context.WithoutCancel(r.Context()))
		again.Body = io.NopCloser(bytes.NewReader(body))
		f.Neutron.ServeHTTP(response, again)
		if r.Method == http.MethodPut && fate.slow > f.c.timeout {
			f.c.noteLateTag(path)
		}
		if id := uuids.FindString(response.Body.String()); r.Method == http.MethodPost {
			f.c.journal.learn(id, name)
			what += " → " + id
		}
	}
	if r.Method != http.MethodGet || fate.ingredient != "" {
		add(fmt.Sprint(response.Code, " ", fate.ingredient))
	}
	switch {
	case fate.ingredient == "lost":
		panic(http.ErrAbortHandler)
	case fate.ingredient == "error-after" && response.Code < 300:
		response = httptest.NewRecorder()
		respondError(response, fate.status)
	}
	copyResponse(w, response)
}

func (f *neutronFront) fate(r *http.Request) fate {
	isWrite := r.Method != http.MethodGet
	if f.c.calm.Err() != nil {
		return fate{}
	}
	if isWrite {
		return f.c.inNeutron(true, f.writes.Add(1), f.c.timeout, f.c.maxInFlight)
	}
	return f.c.inNeutron(false, f.reads.Add(1), f.c.timeout, f.c.maxInFlight)
}

// respondError responds as Neutron does; 503 comes from a proxy.
func respondError(w http.ResponseWriter, status int) {
	typ := map[int]string{
		http.StatusConflict:            "HTTPConflict",
		http.StatusPreconditionFailed:  "RevisionNumberConstraintFailed",
		http.StatusInternalServerError: "HTTPInternalServerError",
	}[status]
	w.WriteHeader(status)
	if typ != "" {
		_, _ = fmt.Fprintf(w, `{"NeutronError":{"type":%q,"message":"chaos","detail":""}}`, typ)
	}
}

func copyResponse(w http.ResponseWriter, response *httptest.ResponseRecorder) {
	for key, values := range response.Header() {
		w.Header()[key] = values
	}
	w.WriteHeader(response.Code)
	_, _ = w.Write(response.Body.Bytes())
}

// apiFront is the way of one replica to the API server.
type apiFront struct {
	c       *round
	replica int
	next    http.Handler
	server  *httptest.Server
	writes  atomic.Uint64 // of Networks
	// Until these times, it lets no request through, and watches receive nothing.
	partitioned, stalled atomic.Int64
}

func newAPIFront(c *round, replica int) *apiFront {
	proxy, err := c.cluster.Proxy()
	if err != nil {
		c.Fatal(err)
	}
	f := &apiFront{c: c, replica: replica, next: proxy}
	proxy.ModifyResponse = func(r *http.Response) error {
		if r.Request.URL.Query().Get("watch") != "" {
			r.Body = &stallingBody{r.Body, f}
		}
		return nil
	}
	f.server = httptest.NewServer(f)
	c.Cleanup(f.server.Close)
	return f
}

// stallingBody is the body of a watch.
type stallingBody struct {
	io.ReadCloser
	front *apiFront
}

func (b *stallingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.front.waitUntil(&b.front.stalled)
	return n, err
}

// waitUntil waits until a time, or the end of the faults. It reports whether it
// waited.
func (f *apiFront) waitUntil(end *atomic.Int64) bool {
	rest := time.Until(time.Unix(0, end.Load())) // negative for 0
	if rest <= 0 || f.c.calm.Err() != nil {
		return false
	}
	select {
	case <-time.After(rest):
	case <-f.c.calm.Done():
	}
	return true
}

var nameInBody = regexp.MustCompile(`"name":"(d[0-9]+)"`) // of a Network for a Deployment

func (f *apiFront) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.waitUntil(&f.partitioned) {
		panic(http.ErrAbortHandler)
	}
	if strings.Contains(r.URL.Path, "/leases/") {
		f.serveLease(w, r)
		return
	}
	if r.Method == http.MethodGet || !strings.Contains(r.URL.Path, "/networks") {
		f.next.ServeHTTP(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	_, path, _ := strings.Cut(r.URL.Path, "/networks/")
	name, _, _ := strings.Cut(path, "/")
	if match := nameInBody.FindSubmatch(body); name == "" && match != nil {
		name = string(match[1])
	}
	var fate fate
	if f.c.calm.Err() == nil {
		fate = f.c.inKubernetes(f.c.apiWrites.Add(1))
	}
	time.Sleep(fate.slow) //nolint:forbidigo // the fault is that it takes time
	if strings.Contains(string(body), samplecrdv1.Finalizer) && path == name {
		f.c.springAmbush(name)
		defer f.c.springTrap(int64(f.replica)) // before it has the response
	}
	f.writes.Add(1)
	what := fmt.Sprintf("replica %d: %s networks/%s", f.replica, r.Method, path)
	if fate.ingredient == "api-drop" {
		f.c.journal.add(name, "%s: dropped [api-drop]", what)
		panic(http.ErrAbortHandler)
	}
	response := httptest.NewRecorder()
	f.next.ServeHTTP(response, r)
	f.c.journal.add(name, "%s: %d %s", what, response.Code, fate.ingredient)
	if fate.ingredient == "api-lost" {
		panic(http.ErrAbortHandler)
	}
	copyResponse(w, response)
}

// serveLease also notices who leads.
func (f *apiFront) serveLease(w http.ResponseWriter, r *http.Request) {
	response := httptest.NewRecorder()
	f.next.ServeHTTP(response, r)
	renewed := r.Method == http.MethodPut && response.Code == http.StatusOK
	if renewed && f.c.leader.Swap(int64(f.replica)) != int64(f.replica) {
		f.c.journal.add("", "replica %d leads", f.replica)
	}
	copyResponse(w, response)
}

// springAmbush deletes a Network, if an ambush is laid, while the caller sets the finalizer
// (kubernetes/kubernetes#77988). Its user sees that no ambush is laid any more.
func (c *round) springAmbush(name string) {
	if _, isLaid := c.ambushes.Load(name); !isLaid {
		return
	}
	c.guests.Go(func() {
		err := c.networks().Delete(c.Context(), name, metav1.DeleteOptions{})
		c.journal.add(name, "user: DELETE while the finalizer is set: %v", err)
	})
	c.ambushes.Delete(name)
}
