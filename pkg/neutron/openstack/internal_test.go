package openstack

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// TestClassOf: the classes that neither the contract nor TestUnusableResponses meets.
func TestClassOf(t *testing.T) {
	for name, test := range map[string]struct {
		op     string
		status int
		typ    string
		want   error
	}{
		"a port of it is gone":           {"delete network", 404, "PortNotFound", neutron.ErrUnavailable},
		"not ours to see":                {"delete network", 404, "HTTPNotFound", neutron.ErrRefused},
		"two at once":                    {"create subnet", 409, "DBDuplicateEntry", neutron.ErrConflict},
		"a conflict without a name":      {"create subnet", 409, "", neutron.ErrUnavailable},
		"a route of a router":            {"remove router interface", 409, "RouterInterfaceInUseByRoute", neutron.ErrInUse},
		"a conflict that we do not know": {"update subnet", 409, "IpamValueInvalid", neutron.ErrRefused},
		"no Neutron at this address":     {"create network", 405, "", neutron.ErrUnavailable},
		"a revision, out of a proxy":     {"update subnet", 412, "", neutron.ErrConflict},
		"the type alone does not refuse": {"create subnet", 503, "SubnetAllocationError", neutron.ErrUnavailable},
	} {
		if got := classOf(test.op, test.status, test.typ); !errors.Is(got, test.want) {
			t.Errorf("%s: classOf(%q, %d, %q) = %v, want %v", name, test.op, test.status, test.typ, got, test.want)
		}
	}
}

// TestWithoutResponse: the text omits what varies: the port it came from, the name server, the
// time of day, and the URL.
func TestWithoutResponse(t *testing.T) {
	here := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 54321}
	there := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 9696}
	r := description{op: "list networks", host: "10.0.0.1:9696", timeout: 30 * time.Second}
	for want, failure := range map[string]error{
		"read tcp 10.0.0.1:9696: connection reset by peer": &net.OpError{Op: "read", Net: "tcp", Source: here, Addr: there, Err: syscall.ECONNRESET},
		"lookup neutron.example: the name server timed out": &net.DNSError{
			Err: "read udp 10.0.0.9:54321->10.0.0.53:53: i/o timeout", Name: "neutron.example", Server: "10.0.0.53:53", IsTimeout: true,
		},
		"10.0.0.1:9696: its certificate has expired or is not yet valid": &tls.CertificateVerificationError{
			Err: x509.CertificateInvalidError{Reason: x509.Expired, Detail: "current time 2026-11-21T03:00:00Z is after 2026-01-01T00:00:00Z"},
		},
		"10.0.0.1:9696: something new": fmt.Errorf("around: %w", errors.New("something new")),
	} {
		err := &url.Error{Op: "Get", URL: "http://10.0.0.1:9696/v2.0/networks?description=x", Err: failure}
		if got := r.withoutResponse(err); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestFenced: a former leader must send no write. The reconciler sees that a request was
// not sent, through all layers of the client.
func TestFenced(t *testing.T) {
	for request, refused := range map[string]bool{
		"GET /v2.0/networks": false, "GET /v3": false, "POST /v3/auth/tokens": false, "POST /v2.0/networks": true,
		"PUT /v2.0/networks/5f": true, "DELETE /v2.0/subnets/5f": true, "PUT /v2.0/routers/5f/add_router_interface": true,
		"PUT /v2.0/networks/5f/tags/blue": true, "PATCH /v2.0/other": true,
	} {
		method, path, _ := strings.Cut(request, " ")
		sent := httptest.NewRequest(method, path, http.NoBody)
		if path == "/v3/auth/tokens" {
			sent = sent.WithContext(withOperation(t.Context(), opLogin))
		}
		if err := Fenced(sent); (err != nil) != refused {
			t.Errorf("Fenced(%s) = %v", request, err)
		}
	}

	for name, refuse := range map[string]refusing{"of a former leader": Fenced, "that has waited for too long": NotSent} {
		client, err := New("http://127.0.0.1:1", Options{Transport: func(http.RoundTripper) http.RoundTripper { return refuse }})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.CreateNetwork(t.Context(), neutron.NewNetwork{Name: "a"})
		var failure *neutron.Error
		if !errors.As(err, &failure) || failure.Type != neutron.NotSent || !errors.Is(err, neutron.ErrUnavailable) || failure.Op != "create network" {
			t.Errorf("a request %s: CreateNetwork() = %v", name, err)
		}
	}
}

// refusing is a transport that sends nothing.
type refusing func(*http.Request) error

func (refuse refusing) RoundTrip(request *http.Request) (*http.Response, error) {
	return nil, refuse(request)
}

// TestForbiddenAddresses: no connection goes to this machine, its link or a service for metadata.
func TestForbiddenAddresses(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "::1": true, "0.0.0.0": true, "0.1.2.3": true, "::": true,
		"169.254.169.254": true, "fe80::1": true, "fe80::1%eth0": true, "fd00:ec2::254": true, "100.100.100.200": true,
		"fd20:ce::254": true, "168.63.129.16": true, "192.0.0.192": true,
		"224.0.0.1": true, "255.255.255.255": true, "ff02::1": true,
		"::ffff:127.0.0.1": true, "::ffff:169.254.169.254": true, "64:ff9b::7f00:1": true, "64:ff9b::a9fe:a9fe": true,
		"10.0.0.1": false, "192.168.1.1": false, "203.0.113.9": false, "2001:db8::1": false, "fd00::1": false,
		"64:ff9b::cb00:7109": false, "64:ff9b:1::7f00:1": true, "2002:7f00:1::": true,
	} {
		if got := isForbidden(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: forbidden is %t, want %t", address, got, want)
		}
	}
	if err := new(Addresses).control("tcp", "not an address", nil); err == nil {
		t.Error("what is no address is allowed")
	}
}
