package openstack

import (
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"time"
)

// maxResponse limits the size of a list with all its pages, in bytes. A list of
// 10,000 networks has about 7 MB.
const maxResponse = 128 << 20

// boundedTransport is an http.Transport that limits the size of responses. The limit
// applies to what a compressed response unpacks to.
type boundedTransport struct {
	*http.Transport
	next http.RoundTripper // the Transport, wrapped
}

// newTransport returns a new transport: http.DefaultTransport can be changed by
// other packages. With limited addresses, there is no proxy: it would connect for this
// program, and to any address. It does not use HTTP/2: after a request that has timed out,
// its one connection would stay in use for many minutes, although it may be dead.
func newTransport(config *cloudConfig, wrap func(http.RoundTripper) http.RoundTripper) *boundedTransport {
	dialer, proxy := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}, http.ProxyFromEnvironment
	if config.addresses != nil {
		dialer.Control, proxy = config.addresses.control, nil
	}
	transport := &http.Transport{
		Proxy:                  proxy,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        config.tls,
		TLSHandshakeTimeout:    10 * time.Second,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConns:           100,
		MaxIdleConnsPerHost:    100, // one per worker
		MaxResponseHeaderBytes: 1 << 20,
	}
	return &boundedTransport{Transport: transport, next: wrap(transport)}
}

func (t *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err == nil {
		limit := int64(maxValue)
		if strings.HasPrefix(Operation(request), "list ") && response.StatusCode == http.StatusOK {
			limit = maxResponse // it is decoded as a stream
		}
		response.Body = http.MaxBytesReader(nil, response.Body, limit)
	}
	return response, err
}

// userAgent names this program, with its version.
var userAgent = func() string {
	version := "dev"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		version = info.Main.Version
	}
	return "samplecrd-controller/" + version
}()
