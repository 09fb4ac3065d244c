package glass

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/samplecrd/network-controller/pkg/observe"
	"github.com/samplecrd/network-controller/pkg/server"
)

//go:embed page
var files embed.FS

// Options configure the debug page.
type Options struct {
	address string // not served if empty
}

// AddFlags adds the flags of the options.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.address, "debug-bind-address", "",
		"Loopback `address` that serves the debug page, such as 127.0.0.1:8123: "+
			"a live picture of the path of each key through the controller. Port 0 selects a free port. "+
			"If empty, the page is not served and nothing is recorded.")
}

// Validate returns an error that names the flag with an invalid value.
func (o Options) Validate() error {
	if o.address == "" {
		return nil
	}
	return checkAddress("-debug-bind-address", o.address)
}

// checkAddress returns an error unless an address is one of this machine (or pod) only.
func checkAddress(flag, address string) error {
	host, port, err := net.SplitHostPort(address)
	_, invalid := net.ResolveTCPAddr("tcp", address)
	if err == nil && invalid == nil && port != "" && server.IsLoopback(host) {
		return nil
	}
	return fmt.Errorf("%s is %q: it must be a loopback address with a port, such as 127.0.0.1:8123, because "+
		"the page has no authentication; to see the page of another machine, use kubectl port-forward or ssh -L",
		flag, address)
}

// Serve serves a page in the background until the context ends. If no address is set, it
// returns the zero Page.
func (o Options) Serve(ctx context.Context, process Process) (*Page, error) {
	if o.address == "" {
		return new(Page), nil
	}
	page := New(process)
	if err := page.Serve(ctx, o.address); err != nil {
		return nil, fmt.Errorf("-debug-bind-address: %w", err)
	}
	return page, nil
}

// Serve serves the page in the background until the context ends. The page has no
// authentication: the address must be a loopback address, such as 127.0.0.1:8123.
func (p *Page) Serve(ctx context.Context, address string) error {
	if p.isOff() {
		return nil
	}
	if err := checkAddress("the address of the debug page", address); err != nil {
		return err
	}
	page := server.Endpoint{Name: "the debug page", Path: "/", Flag: "the address", Address: address, Handler: p.Handler()}
	return page.Serve(ctx)
}

// Handler serves the page and its data, to pages of this machine only. To mount it below a
// path that ends with a slash, use http.StripPrefix.
func (p *Page) Handler() http.Handler {
	if p.isOff() {
		return http.NotFoundHandler()
	}
	root, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // the folder is embedded
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(root))
	for path, data := range map[string]func(*Controller, *http.Request) any{
		"state":    func(c *Controller, _ *http.Request) any { return c.state() },
		"keys":     func(c *Controller, request *http.Request) any { return c.keysWith(request.FormValue("prefix")) },
		"journeys": func(c *Controller, request *http.Request) any { return c.journeysOf(keyOf(request)) },
	} {
		mux.HandleFunc("GET /api/"+path, p.ofController(func(w http.ResponseWriter, request *http.Request, c *Controller) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(data(c, request)) // it fails if the client has gone
		}))
	}
	mux.HandleFunc("GET /api/stream", p.ofController(serveStream))
	return guard(mux)
}

// keyOf returns the key that a request is about, or an empty one.
func keyOf(request *http.Request) cache.ObjectName { return observe.NameOf(request.FormValue("key")) }

// ofController serves what a request asks about the controller that it names, or else the
// first one.
func (p *Page) ofController(serve func(http.ResponseWriter, *http.Request, *Controller)) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		name := request.FormValue("controller")
		p.mu.Lock()
		c, controllers := p.controllerOf(name), p.controllers
		p.mu.Unlock()
		switch {
		case c != nil:
			serve(w, request, c)
		case len(controllers) == 0:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "the program has no controller yet", http.StatusServiceUnavailable)
		case name == "":
			serve(w, request, controllers[0])
		default:
			http.Error(w, fmt.Sprintf("there is no controller %q; /api/state lists them", name), http.StatusNotFound)
		}
	}
}

// guard rejects what a page of another site could send: with a host name that leads to
// this machine (DNS rebinding), or from another origin.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy",
			"default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		origin, site := request.Header.Get("Origin"), request.Header.Get("Sec-Fetch-Site")
		switch {
		case !server.IsForLoopback(request):
			http.Error(w, "the debug page is served to this machine only: "+
				"use http://127.0.0.1 or http://localhost with its port", http.StatusForbidden)
		case origin != "" && origin != "http://"+request.Host, site != "" && site != "same-origin" && site != "none":
			http.Error(w, "a request from another site is rejected", http.StatusForbidden)
		default:
			next.ServeHTTP(w, request)
		}
	})
}

const (
	maxStreams    = 8 // at a time
	momentsPeriod = 100 * time.Millisecond
	statePeriods  = 3 // of the moments, from one state to the next
	// writeTimeout ends the stream of a client that does not read.
	writeTimeout = 10 * time.Second
)

// serveStream serves server-sent events, with the journeys of a key if the request names one.
func serveStream(w http.ResponseWriter, request *http.Request, c *Controller) {
	open := c.page.streams.Add(1)
	defer c.page.streams.Add(-1)
	if open > maxStreams {
		w.Header().Set("Retry-After", "5")
		http.Error(w, fmt.Sprintf("there are %d streams already: close a page", maxStreams), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	s := stream{controller: c, w: w, key: keyOf(request)}
	begin, end := c.moments.read(s.key)
	defer end()
	s.moments = begin
	ticker := c.page.clock.NewTicker(momentsPeriod)
	defer ticker.Stop()
	for period := 0; s.send(period%statePeriods == 0) == nil; period++ {
		select {
		case <-request.Context().Done():
			return
		case <-ticker.C():
		}
	}
}

// stream is one stream.
type stream struct {
	controller *Controller
	w          http.ResponseWriter
	key        cache.ObjectName // whose journeys are sent, or empty
	journeys   json.RawMessage  // that were sent last
	moments    int              // that were sent, or are too old
}

// send sends what is new. It takes a bounded time.
func (s *stream) send(withState bool) error {
	var text bytes.Buffer
	add := func(event string, value any) {
		encoded, _ := json.Marshal(value) // it has only types that can be encoded
		fmt.Fprintf(&text, "event: %s\ndata: %s\n\n", event, encoded)
	}
	some, count := s.controller.moments.since(s.moments)
	if s.moments = count; len(some) > 0 {
		add("moments", some) // before the state that they lead to
	}
	if withState {
		add("state", s.controller.state())
	}
	if s.key.Name != "" {
		journeys := s.controller.journeysOf(s.key)
		if !bytes.Equal(journeys, s.journeys) {
			add("journeys", journeys)
		}
		s.journeys = journeys
	}
	control := http.NewResponseController(s.w)
	if err := control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return fmt.Errorf("setting a deadline: %w", err)
	}
	if _, err := text.WriteTo(s.w); err != nil {
		return fmt.Errorf("sending: %w", err)
	}
	return control.Flush()
}
