package server

import (
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// maxConnections bounds the open connections of one server. A scraper and a kubelet
// need one each.
const maxConnections = 128

// boundConnections returns a hook for [http.Server] that closes the oldest connection when
// there is one too many. If the newest were refused instead, strangers could keep out the
// kubelet, which would then restart the controller.
func boundConnections() func(net.Conn, http.ConnState) {
	var mu sync.Mutex
	var open []net.Conn // the oldest first
	return func(connection net.Conn, state http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		if state == http.StateClosed {
			open = slices.DeleteFunc(open, func(other net.Conn) bool { return other == connection })
		}
		if state != http.StateNew {
			return
		}
		if open = append(open, connection); len(open) > maxConnections {
			_ = open[0].Close()
			open = open[1:]
		}
	}
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
