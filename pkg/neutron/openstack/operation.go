package openstack

import (
	"cmp"
	"context"
	"net/http"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// opLogin is the Operation of a login, and the Op of its error. One with Credentials has an
// Operation of its own: alerts are for those of the administrator.
const (
	opLogin            = "login"
	opLoginOfNamespace = "login of a namespace"
)

type operationKey struct{}

// withOperation returns the context of a request with a name.
func withOperation(ctx context.Context, op string) context.Context {
	return context.WithValue(ctx, operationKey{}, op)
}

// Operation returns the name of a request, out of a fixed set, such as "list
// networks", "update subnet" or "login"; "other" for requests that this package
// does not send.
func Operation(request *http.Request) string {
	op, _ := request.Context().Value(operationKey{}).(string)
	return cmp.Or(op, "other")
}

// IsLogin reports whether a request is a login. All other requests wait for it.
func IsLogin(request *http.Request) bool {
	op := Operation(request)
	return op == opLogin || op == opLoginOfNamespace
}

// Fenced returns the error of a write that a former leader must not send, and nil for a
// request that changes nothing: a read or a login.
func Fenced(request *http.Request) error {
	if request.Method == http.MethodGet || IsLogin(request) {
		return nil
	}
	return notSent(request, "not sent, because another replica may be the leader: the Lease was not renewed in time")
}

// NotSent returns the error of a request that has waited for too long to be sent.
func NotSent(request *http.Request) error {
	return notSent(request, "not sent, because Neutron is too slow for all requests that wait; the controller tries again")
}

func notSent(request *http.Request, message string) error {
	return &neutron.Error{Op: Operation(request), Class: neutron.ErrUnavailable, Type: neutron.NotSent, Message: message}
}
