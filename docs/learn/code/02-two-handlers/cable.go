package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"

	"k8s.io/client-go/rest"
)

// cable is the connection to the API server.
type cable struct {
	mu          sync.Mutex
	pulled      bool
	historyLost bool // the next watch begins at a resourceVersion of long ago
	connections []net.Conn
}

// ServeHTTP pulls or plugs the cable.
func (c *cable) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Println("cable:", r.URL)
	c.pulled, c.historyLost = r.URL.Path == "/pull", r.URL.Query().Get("history") == "lost"
	for _, connection := range c.connections {
		_ = connection.Close()
	}
	c.connections = nil
}

// attach makes a client use the cable, and prints its requests.
func (c *cable) attach(config *rest.Config) {
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.pulled {
			return nil, fmt.Errorf("the cable is pulled: %w", syscall.ECONNREFUSED)
		}
		connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			c.connections = append(c.connections, connection)
		}
		return connection, err
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &printing{c, next} })
}

// printing prints what the Reflector requests.
type printing struct {
	*cable
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (p *printing) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	query, historyLost := r.URL.Query(), false
	if query.Get("sendInitialEvents") == "true" {
		fmt.Println("request: list and watch in one")
	} else {
		fmt.Println("request: watch what came after resourceVersion", query.Get("resourceVersion"))
		if historyLost = p.historyLost; historyLost { // as if the cable had been out for a day
			query.Set("resourceVersion", "1")
			r = r.Clone(r.Context())
			r.URL.RawQuery = query.Encode()
		}
	}
	p.historyLost = false
	p.mu.Unlock()
	response, err := p.next.RoundTrip(r)
	if err == nil && historyLost {
		response.Body = reading{response.Body}
	}
	return response, err
}

// reading prints that a watch ends with an error: it comes as an event.
type reading struct{ io.ReadCloser }

// Read implements io.Reader.
func (r reading) Read(buffer []byte) (int, error) {
	n, err := r.ReadCloser.Read(buffer)
	if bytes.Contains(buffer[:n], []byte(`"code":410`)) {
		fmt.Println("answer: 410, the history does not go back that far")
	}
	return n, err
}
