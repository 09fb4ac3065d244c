package openstack

import (
	"net/http"
	"strings"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// opLogin is the Operation of a login, and the Op of its error.
const opLogin = "login"

// Operation returns the name of a request, out of a fixed set, such as "list
// networks", "update subnet" or "login"; "other" for requests that this package
// does not send.
func Operation(request *http.Request) string {
	path := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	for i, part := range path {
		kind, known := kinds[part]
		switch rest := len(path) - i - 1; {
		case !known:
		case part == "tokens" && request.Method == http.MethodPost:
			return opLogin
		case kind == "" || rest == 3 && path[i+2] != "tags" || rest > 3 || part == "routers" && rest == 2 && routerActions[path[i+2]] == "":
			return "other"
		case rest == 3:
			return named(tagVerbs, request.Method, kind+" tag")
		case rest == 0 && request.Method == http.MethodGet:
			return "list " + part
		case rest < 2:
			return named(verbs, request.Method, kind)
		case part == "routers" && request.Method == http.MethodPut:
			return routerActions[path[i+2]]
		}
	}
	return "other"
}

// kinds maps the collections in paths to the name of one object.
var kinds = map[string]string{"networks": "network", "subnets": "subnet", "subnetpools": "subnet pool", "extensions": "extension", "ports": "port", "routers": "router", "tokens": ""}

// routerActions maps the last parts of paths to names.
var routerActions = map[string]string{"add_router_interface": "add router interface", "remove_router_interface": "remove router interface"}

var (
	verbs    = map[string]string{http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodDelete: "delete"}
	tagVerbs = map[string]string{http.MethodPut: "add", http.MethodDelete: "remove"}
)

func named(verbs map[string]string, method, what string) string {
	if verb, ok := verbs[method]; ok {
		return verb + " " + what
	}
	return "other"
}

// Fenced returns the error of a write that a former leader must not send, and nil for a
// request that changes nothing: a read or a login.
func Fenced(request *http.Request) error {
	operation := Operation(request)
	if request.Method == http.MethodGet || operation == "login" {
		return nil
	}
	return &neutron.Error{
		Op: operation, Class: neutron.ErrUnavailable, Type: neutron.NotSent,
		Message: "not sent, because another replica may be the leader: the Lease was not renewed in time",
	}
}
