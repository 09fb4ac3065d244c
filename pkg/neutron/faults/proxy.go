package faults

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

// maxProxied limits the time that another Neutron needs for a request.
const maxProxied = time.Minute

// Proxy returns a handler that passes requests on to the Neutron at an endpoint
// such as http://127.0.0.1:9696.
func Proxy(endpoint string) (http.Handler, error) {
	target, err := url.Parse(endpoint)
	if err != nil || target.Host == "" {
		return nil, fmt.Errorf("%q is not the URL of a Neutron, such as http://127.0.0.1:9696", endpoint)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = maxProxied
	return &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // Neutron puts it into links, which then lead back here
		},
	}, nil
}
