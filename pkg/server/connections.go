package server

import (
	"container/list"
	"net"
	"net/http"
	"sync"
	"time"
)

// maxConnections bounds the open connections of one server. A scraper and a kubelet
// need one each.
const maxConnections = 128

// boundedListener closes the oldest connection when there is one too many. If it
// refused the newest instead, strangers could keep out the kubelet, which would then
// restart the controller.
type boundedListener struct {
	net.Listener
	mu   sync.Mutex
	open *list.List // of *boundedConn, the oldest first
}

func newBoundedListener(l net.Listener) *boundedListener {
	return &boundedListener{Listener: l, open: list.New()}
}

// Accept implements net.Listener.
func (l *boundedListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &boundedConn{Conn: accepted}
	l.mu.Lock()
	element := l.open.PushBack(c)
	c.forget = sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open.Remove(element)
	})
	var oldest *boundedConn
	if l.open.Len() > maxConnections {
		oldest, _ = l.open.Front().Value.(*boundedConn)
	}
	l.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close()
	}
	return c, nil
}

type boundedConn struct {
	net.Conn
	forget func()
}

// Close implements net.Conn.
func (c *boundedConn) Close() error {
	c.forget()
	return c.Conn.Close()
}

// withoutBodies rejects requests with a body, which nothing here needs. It does not
// wait for the body, as net/http does to reuse the connection.
func withoutBodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 || len(r.TransferEncoding) > 0 {
			w.Header().Set("Connection", "close")
			_ = http.NewResponseController(w).SetReadDeadline(time.Now())
			http.Error(w, "a request with a body is not accepted", http.StatusRequestEntityTooLarge)
			return
		}
		next.ServeHTTP(w, r)
	})
}
