package openstack_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
)

// TestUnusableResponses: an unusable response never means "none", "not found" or
// "done", and no request is repeated.
func TestUnusableResponses(t *testing.T) {
	for name, fault := range map[string]embedded.Fault{
		"HTML":                    {Status: 200, Body: "<html>", Header: http.Header{"Content-Type": {"text/html"}}},
		"HTML that calls it JSON": {Status: 200, Body: "<html>"},
		"an empty object":         {Status: 200, Body: "{}"},
		"null":                    {Status: 200, Body: "null"},
		"a list":                  {Status: 200, Body: "[]"},
		"another key":             {Status: 200, Body: `{"servers": []}`},
		"null for the lists":      {Status: 200, Body: `{"networks": null, "subnets": null}`},
		"objects for the lists":   {Status: 200, Body: `{"networks": {}, "subnets": {}}`},
		"null in the lists":       {Status: 200, Body: `{"networks": [null], "subnets": [null]}`},
		"objects without members": {Status: 200, Body: `{"networks": [{}], "subnets": [{}], "network": {}, "subnet": {}}`},
		"numbers for texts":       {Status: 200, Body: `{"networks": [{"id": 5}], "subnets": [{"id": 5}]}`},
		"no content":              {Status: 200, Body: " "},
		"created, with nothing":   {Status: 201, Body: "{}"},
		"created, with null":      {Status: 201, Body: `{"network": null, "subnet": null}`},
		"created, with no object": {Status: 201, Body: `{"network": {}, "subnet": {}}`},
		"created, HTML":           {Status: 201, Body: "<html>"},
		"a redirect":              {Status: 302, Header: http.Header{"Location": {"/"}}},
		"404 out of a proxy":      {Status: 404},
		"404, empty JSON":         {Status: 404, Body: "{}"},
		"lost":                    {DropRequest: true},
		"cut off":                 {Status: 200, Body: `{"networks": [], "subnets": []}`, Truncate: true},
		"unavailable":             {Status: 503},
		"a rate limit":            {Status: 429, Header: http.Header{"Retry-After": {"0"}}},
		"without a login":         {Status: 401},
	} {
		t.Run(name, func(t *testing.T) {
			server := start(t, embedded.Options{})
			server.Inject(fault)
			for op, request := range requests {
				server.ResetRequests()
				err := request(t.Context(), connect(t, server.URL()))
				wantError(t, op, err, neutron.ErrUnavailable, op+": unavailable: ")
				if got := server.Requests(); len(got) != 1 || !strings.HasPrefix(got[0].UserAgent, "samplecrd-controller/") {
					t.Errorf("%s: the requests are %+v, want one of the controller", op, got)
				}
			}
		})
	}
}

// freeAddress returns an address at which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// TestTexts: equal failures have equal texts, which name the server.
func TestTexts(t *testing.T) {
	free := freeAddress(t)
	server := start(t, embedded.Options{})
	address := strings.TrimPrefix(server.URL(), "http://")
	const create = "create network"
	neutronError := func(status int, typ, message string) embedded.Fault {
		return embedded.Fault{Status: status, Body: `{"NeutronError": {"type": "` + typ + `", "message": "` + message + `", "detail": ""}}`}
	}
	for name, test := range map[string]struct {
		endpoint string
		fault    embedded.Fault
		op, want string // after the operation
	}{
		"nobody listens":      {"http://" + free, embedded.Fault{}, create, "unavailable: dial tcp " + free + ": connect: connection refused"},
		"no such host":        {"http://nosuch.invalid:9696", embedded.Fault{}, create, "unavailable: lookup nosuch.invalid: "},
		"no such port":        {"http://127.0.0.1:96960", embedded.Fault{}, create, "unavailable: dial tcp: address 96960: invalid port"},
		"cut off":             {server.URL(), embedded.Fault{DropRequest: true}, create, "unavailable: " + address + " closed the connection without a response"},
		"TLS":                 {"https://" + address, embedded.Fault{}, create, "unavailable: " + address + ": "},
		"a time-out":          {server.URL(), embedded.Fault{Delay: time.Hour}, create, "unavailable: timed out: no response from " + address + " within 50ms"},
		"a broken proxy":      {server.URL(), embedded.Fault{Status: 502}, create, "unavailable: 502: Bad Gateway"},
		"not a Neutron":       {server.URL(), embedded.Fault{Status: 200, Body: "hello"}, "list networks", "unavailable: the response from " + address + " is unusable: it is not the JSON of an OpenStack service"},
		"an unknown kind":     {server.URL(), embedded.Fault{Status: 299, Body: "x"}, create, "unavailable: 299"},
		"a login is required": {server.URL(), embedded.Fault{Status: 401}, create, "unavailable: 401: Unauthorized (Neutron requires a login; name a cloud of clouds.yaml with -cloud)"},
		"Neutron's own words": {server.URL(), neutronError(409, "OverQuota", "Quota exceeded for resources: ['network']."), create, neutron.ErrRefused.Error() + ": 409 OverQuota: Quota exceeded for resources: ['network']."},
		"a request ID":        {server.URL(), neutronError(500, "X", `Failed (Request-ID: req-652e9646-3e55-4d17-8cee-f3c3c5cdc1ed)\n\u0000 badly.`), create, "unavailable: 500 X: Failed badly."},
	} {
		t.Run(name, func(t *testing.T) {
			remove := server.Inject(test.fault)
			defer remove()
			client := connect(t, test.endpoint)
			if test.fault.Delay != 0 {
				client = connect(t, test.endpoint, openstack.Options{Timeout: 50 * time.Millisecond})
			}
			first := requests[test.op](t.Context(), client)
			if first == nil || !strings.HasPrefix(first.Error(), test.op+": "+test.want) {
				t.Fatalf("error is %v, want %s", first, test.want)
			}
			if second := requests[test.op](t.Context(), client); second.Error() != first.Error() {
				t.Errorf("the text changes:\n%v\n%v", first, second)
			}
		})
	}
}

// TestGivenUp: the error of a caller that gave up differs from one of Neutron.
func TestGivenUp(t *testing.T) {
	client := connect(t, start(t, embedded.Options{}).URL())
	late, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	for op, request := range requests {
		err := request(late, client)
		wantError(t, op, err, neutron.ErrUnavailable, op+": unavailable: context deadline exceeded")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: errors.Is(%v, DeadlineExceeded) is false", op, err)
		}
	}
}

// TestRetryAfter: the error holds Retry-After; the client does not wait.
func TestRetryAfter(t *testing.T) {
	server := start(t, embedded.Options{})
	for header, want := range map[string]time.Duration{
		"7": 7 * time.Second, time.Now().Add(time.Minute).UTC().Format(http.TimeFormat): time.Minute,
		"Mon, 02 Jan 2006 15:04:05 GMT": 0, "999999999": time.Hour, "soon": 0, "-5": 0, "": 0,
	} {
		server.Inject(embedded.Fault{Status: 429, Header: http.Header{"Retry-After": {header}}, Times: 1})
		err := requests["create network"](t.Context(), connect(t, server.URL()))
		var failure *neutron.Error
		if !errors.As(err, &failure) || !errors.Is(err, neutron.ErrUnavailable) ||
			failure.RetryAfter > want || failure.RetryAfter < want-10*time.Second {
			t.Errorf("with %q, the error is %+v, want ErrUnavailable and %v", header, failure, want)
		}
	}
}
