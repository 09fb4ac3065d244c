package debugpage

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
	"mime"
	"net"
	"net/http"
	"net/url"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

//go:embed page
var page embed.FS

// serve serves the page until the context ends.
func (r *Recorder) serve(ctx context.Context, address string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listening on -debug-bind-address %s to serve the debug page: %w", address, err)
	}
	server := &http.Server{
		Handler:           r.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    1 << 14,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          log.New(io.Discard, "", 0), // clients could fill the log
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

// handler serves the page and its data to pages of this machine only.
func (r *Recorder) handler() http.Handler {
	mux := http.NewServeMux()
	files, err := fs.Sub(page, "page")
	if err != nil {
		panic(err) // the folder is embedded
	}
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /api/state", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, r.state()) })
	mux.HandleFunc("GET /api/keys", func(w http.ResponseWriter, request *http.Request) {
		writeJSON(w, r.keysWith(request.URL.Query().Get("prefix")))
	})
	mux.HandleFunc("GET /api/journeys", func(w http.ResponseWriter, request *http.Request) {
		key, err := parseKey(request.URL.Query().Get("key"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		writeJSON(w, r.journeysOf(key))
	})
	mux.Handle("GET /api/stream", &streams{recorder: r, places: make(chan struct{}, maxStreams)})
	mux.HandleFunc("POST /api/slow", r.serveSlow)
	return guard(mux)
}

// guard rejects what a page of another site could send: with a host name that leads to
// this machine (DNS rebinding), or from another origin.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		host := (&url.URL{Host: request.Host}).Hostname()
		origin, err := url.Parse(request.Header.Get("Origin"))
		site := request.Header.Get("Sec-Fetch-Site")
		switch {
		case !isLoopback(host):
			http.Error(w, "the debug page is served to this machine only: use http://127.0.0.1 or http://localhost with its port", http.StatusForbidden)
		case err != nil || origin.String() != "" && (origin.Scheme != "http" || origin.Host != request.Host), site != "" && site != "same-origin" && site != "none":
			http.Error(w, "a request from another site is rejected", http.StatusForbidden)
		default:
			next.ServeHTTP(w, request)
		}
	})
}

// serveSlow switches slow motion.
func (r *Recorder) serveSlow(w http.ResponseWriter, request *http.Request) {
	kind, _, _ := mime.ParseMediaType(request.Header.Get("Content-Type"))
	var wanted struct {
		Milliseconds *int `json:"milliseconds"`
	}
	switch {
	case !r.process.MaySlowDown:
		http.Error(w, "slow motion is for a local demo: outside of a cluster, with a Neutron on this machine", http.StatusForbidden)
	case kind != "application/json":
		http.Error(w, "the Content-Type must be application/json", http.StatusUnsupportedMediaType)
	case json.NewDecoder(http.MaxBytesReader(w, request.Body, 1024)).Decode(&wanted) != nil || wanted.Milliseconds == nil || *wanted.Milliseconds < 0 || *wanted.Milliseconds > int(maxSlow.Milliseconds()):
		http.Error(w, fmt.Sprintf(`the body must be {"milliseconds": N} with N from 0 to %d`, maxSlow.Milliseconds()), http.StatusBadRequest)
	default:
		r.slow.set(time.Duration(*wanted.Milliseconds) * time.Millisecond)
		writeJSON(w, r.state().Process)
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
	recorder *Recorder
	places   chan struct{}
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
	one := stream{recorder: s.recorder, w: w, control: http.NewResponseController(w), key: key}
	one.run(request.Context())
}

// Times of a stream.
const (
	momentsPeriod = 100 * time.Millisecond
	statePeriod   = 250 * time.Millisecond
	// writeTimeout ends the stream of a client that does not read.
	writeTimeout = 10 * time.Second
)

// stream is one stream.
type stream struct {
	recorder *Recorder
	w        io.Writer
	control  *http.ResponseController
	key      cache.ObjectName // whose journeys are sent, or empty
	journeys []byte           // that were sent last
	changes  int64            // at that time
}

// run sends events until the context ends or the client has gone.
func (s *stream) run(ctx context.Context) {
	sent, end := s.recorder.moments.read(s.key)
	defer end()
	ticker := s.recorder.clock.NewTicker(momentsPeriod)
	defer ticker.Stop()
	var stateAt time.Time
	var some []Moment
	s.changes = -1
	err := s.send("retry: 1000\n\n")
	for err == nil {
		if now := s.recorder.clock.Now(); now.Sub(stateAt) >= statePeriod {
			stateAt = now
			err = s.sendEvent("state", s.recorder.state())
		}
		if some, sent = s.recorder.moments.since(sent); err == nil && len(some) > 0 {
			err = s.sendEvent("moments", some)
		}
		if err == nil && s.key.Name != "" {
			err = s.sendJourneys()
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

func (s *stream) sendJourneys() error {
	changes := s.recorder.changes.Load()
	if changes == s.changes && s.journeys != nil && !bytes.Contains(s.journeys, []byte(`"retry":`)) {
		return nil // a retry that is due changes nothing by itself
	}
	s.changes = changes
	encoded, err := json.Marshal(s.recorder.journeysOf(s.key))
	if err != nil || bytes.Equal(encoded, s.journeys) {
		return err
	}
	s.journeys = encoded
	return s.send("event: journeys\ndata: " + string(encoded) + "\n\n")
}

func (s *stream) sendEvent(name string, value any) error {
	encoded, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", name, err)
	}
	return s.send("event: " + name + "\ndata: " + string(encoded) + "\n\n")
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
