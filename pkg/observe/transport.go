package observe

import (
	"net/http"
	"strings"
)

// Transport returns a function that wraps a transport to a server: an observer sees its
// requests. The other function returns the operation of a request, out of a fixed set.
func Transport(observer Observer, server string,
	operation func(*http.Request) string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return transport{observer, server, operation, next} }
}

type transport struct {
	observer  Observer
	server    string
	operation func(*http.Request) string
	next      http.RoundTripper
}

// WrappedRoundTripper gives client-go access to the transport inside.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }

func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, end := t.observer.Begin(request.Context(), Work{
		Kind: Request, Name: t.operation(request), Server: t.server, Request: request})
	if ctx != request.Context() {
		request = request.WithContext(ctx)
	}
	response, err := t.next.RoundTrip(request)
	result := Result{Err: err}
	if err == nil {
		result.Code = response.StatusCode
	}
	end(result)
	return response, err
}

// Kubernetes is the Server of requests to the API server.
const Kubernetes = "Kubernetes"

// KubernetesOperation returns the verb, resource and subresource of a request to the API
// server, such as "patch networks status".
func KubernetesOperation(request *http.Request) string {
	verb := map[string]string{
		http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch",
		http.MethodDelete: "delete",
	}[request.Method]
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	parts = parts[min(len(parts), map[string]int{"api": 2, "apis": 3}[parts[0]]):] // without group and version
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	switch {
	case len(parts) == 1 && verb == "get" && request.URL.Query().Get("watch") != "":
		return "watch " + parts[0]
	case len(parts) == 1 && verb == "get":
		return "list " + parts[0]
	case len(parts) == 0:
		return verb
	case len(parts) > 2:
		return verb + " " + parts[0] + " " + parts[2]
	}
	return verb + " " + parts[0]
}
