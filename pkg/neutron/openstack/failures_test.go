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

func wantError(t *testing.T, doing string, err, class error, texts ...string) {
	t.Helper()
	var failure *neutron.Error
	if !errors.As(err, &failure) || !errors.Is(err, class) {
		t.Errorf("%s: error is %v, want a *neutron.Error of the class %q", doing, err, class)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: error is %q, want %q in it", doing, err, text)
		}
	}
}

// TestUnusableAnswers: an unusable answer never means "none", "not found" or
// "done".
func TestUnusableAnswers(t *testing.T) {
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
	} {
		t.Run(name, func(t *testing.T) {
			server := start(t, embedded.Options{})
			server.Inject(fault)
			for op, request := range requests {
				err := request(t.Context(), connect(t, server.URL()))
				wantError(t, op, err, neutron.ErrUnavailable, op+": unavailable: ")
			}
		})
	}
}

// TestUnusableSubnets: an invalid address is an error for those who look for the
// subnet. A list of everything skips the subnet.
func TestUnusableSubnets(t *testing.T) {
	const good = `{"subnets": [{"id": "1", "network_id": "n", "name": "", "description": "", "cidr": "10.0.0.0/24",` +
		` "gateway_ip": "10.0.0.1", "allocation_pools": [{"start": "10.0.0.2", "end": "10.0.0.9"}], "enable_dhcp": true, "dns_nameservers": ["9.9.9.9"], "host_routes": [{"destination": "10.0.0.0/8", "nexthop": "10.0.0.9"}], "revision_number": 1}]}`
	for name, test := range map[string]struct{ from, to, want string }{
		"good":                  {"", "", ""},
		"no gateway":            {`"10.0.0.1"`, `null`, ""},
		"no pool":               {`{"start": "10.0.0.2", "end": "10.0.0.9"}`, ``, ""},
		"a CIDR with host bits": {"10.0.0.0/24", "10.0.0.1/24", `cidr is "10.0.0.1/24"`},
		"no CIDR":               {`"10.0.0.0/24"`, `null`, "without"},
		"not a CIDR":            {"10.0.0.0/24", "x", `cidr is "x"`},
		"not a gateway":         {"10.0.0.1", "x", `gateway_ip is "x"`},
		"a pool without an end": {`, "end": "10.0.0.9"`, ``, "pool"},
		"a name for a server":   {`"9.9.9.9"`, `"dns"`, "name server"},
		"a route over a name":   {`"nexthop": "10.0.0.9"`, `"nexthop": "router"`, "host route"},
		"no enable_dhcp":        {`"enable_dhcp": true`, `"x": 1`, "enable_dhcp"},
		"null for the pools":    {`[{"start": "10.0.0.2", "end": "10.0.0.9"}]`, `null`, "allocation_pools"},
		"no revision":           {`"revision_number"`, `"x"`, "revision_number"},
		"a revision in words":   {`"revision_number": 1`, `"revision_number": "1"`, "of another type"},
		"a negative revision":   {`"revision_number": 1`, `"revision_number": -1`, "revision_number is -1"},
		"a path for an ID":      {`"id": "1"`, `"id": "../x"`, `id is "../x"`},
		"no description":        {`"description"`, `"x"`, "description"},
	} {
		t.Run(name, func(t *testing.T) {
			server := start(t, embedded.Options{})
			server.Inject(embedded.Fault{Status: 200, Body: strings.Replace(good, test.from, test.to, 1)})
			client := connect(t, server.URL())
			found, err := client.Subnets(t.Context(), neutron.SubnetFilter{NetworkID: "n"})
			if test.want != "" {
				wantError(t, "Subnets", err, neutron.ErrUnavailable, test.want)
			} else if err != nil || len(found) != 1 {
				t.Errorf("Subnets = %v, %v; want the subnet", found, err)
			}
			all, err := client.Subnets(t.Context(), neutron.SubnetFilter{})
			if isUnknown := name == "no description"; (err != nil) != isUnknown || err == nil && len(all) != len(found) {
				t.Errorf("a list of everything: %v, %v", all, err)
			}
		})
	}
}

// TestTexts: equal failures have equal texts, which name the server.
func TestTexts(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := listener.Addr().String()
	_ = listener.Close()
	server := start(t, embedded.Options{})
	address := strings.TrimPrefix(server.URL(), "http://")
	const create = "create network"

	for name, test := range map[string]struct {
		endpoint string
		fault    embedded.Fault
		op, want string
	}{
		"nobody listens":  {"http://" + free, embedded.Fault{}, create, "create network: unavailable: dial tcp " + free + ": connect: connection refused"},
		"no such host":    {"http://nosuch.invalid:9696", embedded.Fault{}, create, "create network: unavailable: lookup nosuch.invalid: "},
		"cut off":         {server.URL(), embedded.Fault{DropRequest: true}, create, "create network: unavailable: " + address + " closed the connection without an answer"},
		"TLS":             {"https://" + address, embedded.Fault{}, create, "create network: unavailable: " + address + ": "},
		"a time-out":      {server.URL(), embedded.Fault{Delay: time.Hour}, create, "create network: unavailable: timed out: no answer from " + address + " within 50ms"},
		"a broken proxy":  {server.URL(), embedded.Fault{Status: 502}, create, "create network: unavailable: 502: Bad Gateway"},
		"not a Neutron":   {server.URL(), embedded.Fault{Status: 200, Body: "hello"}, "list networks", "list networks: unavailable: the answer of " + address + " is unusable: it is not the JSON of an OpenStack service"},
		"an unknown kind": {server.URL(), embedded.Fault{Status: 299, Body: "x"}, create, "create network: unavailable: 299"},
		"Neutron's own words": {
			server.URL(),
			embedded.Fault{Status: 409, Body: `{"NeutronError": {"type": "OverQuota", "message": "Quota exceeded for resources: ['network'].", "detail": ""}}`},
			create, "create network: " + neutron.ErrRefused.Error() + ": 409 OverQuota: Quota exceeded for resources: ['network'].",
		},
		"a request ID": {
			server.URL(),
			embedded.Fault{Status: 500, Body: `{"NeutronError": {"type": "X", "message": "Failed (Request-ID: req-652e9646-3e55-4d17-8cee-f3c3c5cdc1ed)\n\u0000 badly.", "detail": ""}}`},
			create, "create network: unavailable: 500 X: Failed badly.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			remove := server.Inject(test.fault)
			defer remove()
			client := connect(t, test.endpoint)
			if test.fault.Delay != 0 {
				client = connect(t, test.endpoint, openstack.WithTimeout(50*time.Millisecond))
			}
			first := requests[test.op](t.Context(), client)
			if first == nil || !strings.HasPrefix(first.Error(), test.want) {
				t.Fatalf("error is %v, want %s", first, test.want)
			}
			if second := requests[test.op](t.Context(), client); second.Error() != first.Error() {
				t.Errorf("the text changes:\n%v\n%v", first, second)
			}
		})
	}
}

func TestLongMessage(t *testing.T) {
	server := start(t, embedded.Options{})
	server.Inject(embedded.Fault{Status: 400, Body: `{"NeutronError": {"type": "X", "message": "` + strings.Repeat("ä", 100_000) + `"}}`})
	err := requests["create network"](t.Context(), connect(t, server.URL()))
	wantError(t, "CreateNetwork", err, neutron.ErrRefused)
	if n := len([]rune(err.Error())); n > 600 {
		t.Errorf("the error has %d characters", n)
	}
}

// TestGivenUp: the error of a caller that gave up differs from one of Neutron.
func TestGivenUp(t *testing.T) {
	server := start(t, embedded.Options{})
	server.Inject(embedded.Fault{Delay: time.Hour})
	client := connect(t, server.URL(), openstack.WithTimeout(time.Hour))
	for op, request := range requests {
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		err := request(canceled, client)
		wantError(t, op, err, neutron.ErrUnavailable, op+": unavailable: context canceled")
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: errors.Is(%v, context.Canceled) is false", op, err)
		}
		late, cancel := context.WithDeadline(t.Context(), time.Now())
		err = request(late, client)
		cancel()
		wantError(t, op, err, neutron.ErrUnavailable, op+": unavailable: context deadline exceeded")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: errors.Is(%v, context.DeadlineExceeded) is false", op, err)
		}
	}
}

// TestRetryAfter: the error holds Retry-After; the client does not wait.
func TestRetryAfter(t *testing.T) {
	for name, test := range map[string]struct {
		header   string
		from, to time.Duration
	}{
		"seconds":         {"7", 7 * time.Second, 7 * time.Second},
		"a date":          {time.Now().Add(time.Minute).UTC().Format(http.TimeFormat), 50 * time.Second, time.Minute},
		"a date long ago": {"Mon, 02 Jan 2006 15:04:05 GMT", 0, 0},
		"for years":       {"999999999", time.Hour, time.Hour},
		"nonsense":        {"soon", 0, 0},
		"negative":        {"-5", 0, 0},
		"none":            {"", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			server := start(t, embedded.Options{})
			server.Inject(embedded.Fault{Status: 429, Header: http.Header{"Retry-After": {test.header}}})
			err := requests["create network"](t.Context(), connect(t, server.URL()))
			var failure *neutron.Error
			if !errors.As(err, &failure) || !errors.Is(err, neutron.ErrUnavailable) || failure.RetryAfter < test.from || failure.RetryAfter > test.to {
				t.Errorf("error is %+v, want ErrUnavailable and RetryAfter from %v to %v", failure, test.from, test.to)
			}
		})
	}
}
