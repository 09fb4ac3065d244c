package glass

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

//go:embed page
var files embed.FS

// Serve serves the page in the background until the context ends. The page has no
// authentication: the address must be a loopback address, such as 127.0.0.1:8123.
func (p *Page) Serve(ctx context.Context, address string) error {
	if p.isOff() {
		return nil
	}
	if host, _, err := net.SplitHostPort(address); err != nil || !isLoopback(host) {
		return fmt.Errorf("serving the debug page on %q: it must be a loopback address with a port, such as 127.0.0.1:8123", address)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listening on %s to serve the debug page: %w", address, err)
	}
	server := &http.Server{
		Handler:           p.Handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    1 << 14,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          log.New(io.Discard, "", 0), // clients could fill the log
		ConnContext:       limitBuffer,
	}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "Server stopped", "server", "debug page")
		}
	}()
	klog.FromContext(ctx).Info("Serving the debug page", "url", "http://"+listener.Addr().String()+"/")
	return nil
}

// limitBuffer bounds what the kernel buffers for a client: otherwise, one that does not
// read keeps its stream for minutes.
func limitBuffer(ctx context.Context, connection net.Conn) context.Context {
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(64 << 10)
	}
	return ctx
}

// Handler serves the page and its data, to pages of this machine only. To mount it below a
// path that ends with a slash, use http.StripPrefix.
func (p *Page) Handler() http.Handler {
	if p.isOff() {
		return http.NotFoundHandler()
	}
	mux := http.NewServeMux()
	root, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // the folder is embedded
	}
	mux.Handle("GET /", http.FileServerFS(root))
	mux.HandleFunc("GET /api/state", p.ofController(func(w http.ResponseWriter, _ *http.Request, c *Controller) {
		writeJSON(w, c.state())
	}))
	mux.HandleFunc("GET /api/keys", p.ofController(func(w http.ResponseWriter, request *http.Request, c *Controller) {
		writeJSON(w, c.keysWith(request.URL.Query().Get("prefix")))
	}))
	mux.HandleFunc("GET /api/journeys", p.ofController(func(w http.ResponseWriter, request *http.Request, c *Controller) {
		key, err := parseKey(request.URL.Query().Get("key"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		writeJSON(w, json.RawMessage(c.journeysOf(key)))
	}))
	places := make(chan struct{}, maxStreams)
	mux.HandleFunc("GET /api/stream", p.ofController(func(w http.ResponseWriter, request *http.Request, c *Controller) {
		(&streams{controller: c, places: places}).ServeHTTP(w, request)
	}))
	mux.HandleFunc("POST /api/slow", p.serveSlow)
	return guard(mux)
}

// ofController serves what a request asks about the controller that it names, or else the
// first one.
func (p *Page) ofController(serve func(http.ResponseWriter, *http.Request, *Controller)) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		name := request.URL.Query().Get("controller")
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
		case !isLoopback((&url.URL{Host: request.Host}).Hostname()):
			http.Error(w, "the debug page is served to this machine only: "+
				"use http://127.0.0.1 or http://localhost with its port", http.StatusForbidden)
		case origin != "" && origin != "http://"+request.Host, site != "" && site != "same-origin" && site != "none":
			http.Error(w, "a request from another site is rejected", http.StatusForbidden)
		default:
			next.ServeHTTP(w, request)
		}
	})
}

// serveSlow switches slow motion.
func (p *Page) serveSlow(w http.ResponseWriter, request *http.Request) {
	milliseconds, err := strconv.ParseInt(request.URL.Query().Get("milliseconds"), 10, 64)
	switch {
	case !p.process.MaySlowDown:
		http.Error(w, "slow motion is for a local demo, and this program does not allow it",
			http.StatusForbidden)
	case err != nil || milliseconds < 0 || milliseconds > maxSlowMilliseconds:
		http.Error(w, fmt.Sprintf("milliseconds must be from 0 to %d", maxSlowMilliseconds), http.StatusBadRequest)
	default:
		p.slow.Store(milliseconds)
	}
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // it fails if the client has gone
}

// maxStreams bounds the streams at a time.
const maxStreams = 8

// streams serve server-sent events.
type streams struct {
	controller *Controller
	places     chan struct{}
}

// ServeHTTP implements http.Handler.
func (s *streams) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var key cache.ObjectName
	if text := request.URL.Query().Get("key"); text != "" {
		var err error
		if key, err = parseKey(text); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	default:
		w.Header().Set("Retry-After", "5")
		http.Error(w, fmt.Sprintf("there are %d streams already: close a page", maxStreams), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	one := stream{controller: s.controller, w: w, control: http.NewResponseController(w), key: key}
	one.run(request.Context())
}

const (
	momentsPeriod = 100 * time.Millisecond
	statePeriods  = 3 // of the moments, from one state to the next
	// writeTimeout ends the stream of a client that does not read.
	writeTimeout = 10 * time.Second
)

// stream is one stream.
type stream struct {
	controller *Controller
	w          io.Writer
	control    *http.ResponseController
	key        cache.ObjectName // whose journeys are sent, or empty
	journeys   []byte           // that were sent last
	moments    int              // that were sent, or are too old
}

// run sends events until the context ends or the client has gone.
func (s *stream) run(ctx context.Context) {
	begin, end := s.controller.moments.read(s.key)
	defer end()
	s.moments = begin
	ticker := s.controller.page.clock.NewTicker(momentsPeriod)
	defer ticker.Stop()
	err := s.send("retry: 1000\n\n")
	for period := 0; err == nil; period++ {
		err = s.sendMoments() // before the state that they lead to
		if period%statePeriods == 0 {
			err = errors.Join(err, s.sendJSON("state", s.controller.state()))
		}
		if err = errors.Join(err, s.sendJourneys()); err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

func (s *stream) sendMoments() error {
	some, count := s.controller.moments.since(s.moments)
	if s.moments = count; len(some) == 0 {
		return nil
	}
	return s.sendJSON("moments", some)
}

func (s *stream) sendJourneys() error {
	if s.key.Name == "" {
		return nil
	}
	journeys := s.controller.journeysOf(s.key)
	if bytes.Equal(journeys, s.journeys) {
		return nil
	}
	s.journeys = journeys
	return s.sendJSON("journeys", json.RawMessage(journeys))
}

func (s *stream) sendJSON(event string, value any) error {
	encoded, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", event, err)
	}
	return s.send("event: " + event + "\ndata: " + string(encoded) + "\n\n")
}

// send sends a text. It takes a bounded time.
func (s *stream) send(text string) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return fmt.Errorf("setting a deadline: %w", err)
	}
	if _, err := io.WriteString(s.w, text); err != nil {
		return fmt.Errorf("sending: %w", err)
	}
	return s.control.Flush()
}
