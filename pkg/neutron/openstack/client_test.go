package openstack_test

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
)

// start starts an embedded Neutron.
func start(t *testing.T, options embedded.Options) *embedded.Server {
	t.Helper()
	server := embedded.New(options)
	if err := server.Listen(""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server
}

func connect(t testing.TB, endpoint string, options ...openstack.Options) neutron.Client {
	t.Helper()
	client, err := openstack.New(endpoint, orDefault(options))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// orDefault returns the options of a test, if it has any.
func orDefault(options []openstack.Options) openstack.Options {
	return append(options, openstack.Options{})[0]
}

// requests has one request of each kind, for what must hold for all.
var requests = map[string]func(context.Context, neutron.Client) error{
	"list networks": func(ctx context.Context, c neutron.Client) error {
		_, err := c.Networks(ctx, neutron.NetworkFilter{})
		return err
	},
	"list subnets": func(ctx context.Context, c neutron.Client) error {
		_, err := c.Subnets(ctx, neutron.SubnetFilter{})
		return err
	},
	"create network": func(ctx context.Context, c neutron.Client) error {
		_, err := c.CreateNetwork(ctx, neutron.NewNetwork{})
		return err
	},
	"create subnet": func(ctx context.Context, c neutron.Client) error {
		_, err := c.CreateSubnet(ctx, neutron.NewSubnet{NetworkID: anID, CIDR: netip.MustParsePrefix("10.0.0.0/24")})
		return err
	},
	"update subnet": func(ctx context.Context, c neutron.Client) error {
		_, err := c.UpdateSubnet(ctx, anID, neutron.SubnetUpdate{})
		return err
	},
	"add router interface": func(ctx context.Context, c neutron.Client) error {
		_, err := c.AddRouterInterface(ctx, neutron.RouterInterface{RouterID: anID, SubnetID: anID})
		return err
	},
	"delete network": func(ctx context.Context, c neutron.Client) error { return c.DeleteNetwork(ctx, anID, 1) },
	"delete subnet":  func(ctx context.Context, c neutron.Client) error { return c.DeleteSubnet(ctx, anID, 1) },
}

const anID = "00000000-0000-4000-8000-000000000000"

func TestEndpoint(t *testing.T) {
	server := start(t, embedded.Options{})
	for _, suffix := range []string{"", "/", "/v2.0", "/v2.0/"} {
		t.Run("with "+suffix, func(t *testing.T) {
			if _, err := connect(t, server.URL()+suffix).Networks(t.Context(), neutron.NetworkFilter{}); err != nil {
				t.Error(err)
			}
		})
	}
	for name, test := range map[string]struct{ endpoint, want string }{
		"empty":                   {"", "empty"},
		"without a scheme":        {"127.0.0.1:9696", "not a URL"},
		"a name without a scheme": {"localhost:9696", "must begin with http:// or https://"},
		"another scheme":          {"ftp://127.0.0.1", "must begin with http:// or https://"},
		"without a host":          {"http://", "has no host"},
		"a port alone":            {"http://:9696", "has no host"},
		"with a password":         {"http://me:secret@127.0.0.1:9696", "user name or password"},
		"broken, with a password": {"http://me:secret@127.0.0.1:x%zz", "not a URL"},
		"with a query":            {"http://127.0.0.1:9696?token=secret", "query"},
		"with a fragment":         {"http://127.0.0.1:9696#secret", "fragment"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openstack.New(test.endpoint, openstack.Options{})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("New(%q): error is %v, want one with %q", test.endpoint, err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error holds the secret: %v", err)
			}
		})
	}
}

// TestOneRequest: a method makes one request, also if it fails.
func TestOneRequest(t *testing.T) {
	for name, request := range requests {
		for _, status := range []int{0, http.StatusFound, http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusServiceUnavailable} {
			t.Run(name+" "+http.StatusText(status), func(t *testing.T) {
				server := start(t, embedded.Options{})
				if status != 0 {
					server.Inject(embedded.Fault{Status: status, Header: http.Header{"Retry-After": {"0"}, "Location": {"/"}}})
				}
				_ = request(t.Context(), connect(t, server.URL()))
				got := server.Requests()
				if len(got) != 1 {
					t.Fatalf("%d requests, want 1: %+v", len(got), got)
				}
				if agent := got[0].UserAgent; !strings.HasPrefix(agent, "samplecrd-controller/") {
					t.Errorf("User-Agent is %q", agent)
				}
			})
		}
	}
}

// TestIDs: an ID that would change the path makes no request.
func TestIDs(t *testing.T) {
	server := start(t, embedded.Options{})
	client := connect(t, server.URL())
	for _, id := range []string{"", ".", "..", "../subnets/x", "x?force=1", "x#", "x%2f", "x y", "ä"} {
		_, update := client.UpdateSubnet(t.Context(), id, neutron.SubnetUpdate{})
		_, attach := client.AddRouterInterface(t.Context(), neutron.RouterInterface{RouterID: anID, SubnetID: id})
		for name, err := range map[string]error{
			"DeleteNetwork":         client.DeleteNetwork(t.Context(), id, 1),
			"DeleteSubnet":          client.DeleteSubnet(t.Context(), id, 1),
			"UpdateSubnet":          update,
			"AddRouterInterface":    attach,
			"RemoveRouterInterface": client.RemoveRouterInterface(t.Context(), neutron.RouterInterface{RouterID: id, SubnetID: anID}),
		} {
			wantError(t, name+" "+id, err, neutron.ErrRefused, "ID")
		}
	}
	if got := server.Requests(); len(got) != 0 {
		t.Errorf("requests were made: %+v", got)
	}
}

// TestPages: a list is complete, or an error.
func TestPages(t *testing.T) {
	server := start(t, embedded.Options{MaxPage: 2})
	client := connect(t, server.URL())
	for range 5 {
		if _, err := client.CreateNetwork(t.Context(), neutron.NewNetwork{Name: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	server.ResetRequests()
	found, err := client.Networks(t.Context(), neutron.NetworkFilter{})
	if err != nil || len(found) != 5 || len(server.Requests()) != 3 {
		t.Errorf("found %d networks with %d requests, error %v; want 5 with 3", len(found), len(server.Requests()), err)
	}
	page := `{"networks": [], "networks_links": [{"rel": "next", "href": "http://elsewhere.example/v2.0/networks?marker=x"}]}`
	for name, test := range map[string]struct {
		fault embedded.Fault
		want  string
	}{
		"cut off": {embedded.Fault{Truncate: true}, "ends too early"},
		"the last network of a page is deleted": {
			embedded.Fault{Status: 404, Body: `{"NeutronError": {"type": "NetworkNotFound", "message": "Network x could not be found.", "detail": ""}}`},
			"404 NetworkNotFound",
		},
		"a loop":         {embedded.Fault{Status: 200, Body: page}, "loop"},
		"links unusable": {embedded.Fault{Status: 200, Body: `{"networks": [], "networks_links": 5}`}, "links"},
		"a secret link":  {embedded.Fault{Status: 200, Body: strings.ReplaceAll(page, "marker=x", "marker=gAAAA_token")}, "link"},
		"link unusable":  {embedded.Fault{Status: 200, Body: strings.ReplaceAll(page, "?marker=x", "")}, "link"},
	} {
		t.Run(name, func(t *testing.T) {
			remove := server.Inject(test.fault)
			defer remove()
			found, err := client.Networks(t.Context(), neutron.NetworkFilter{})
			wantError(t, "Networks", err, neutron.ErrUnavailable, test.want)
			if found != nil {
				t.Errorf("it returned %v as well", found)
			}
		})
	}
}

// TestIgnoredFilter: the client filters a list if the server did not.
func TestIgnoredFilter(t *testing.T) {
	server := start(t, embedded.Options{})
	client := connect(t, server.URL())
	server.Inject(embedded.Fault{Path: "networks", Status: 200, Body: `{"networks": [{"id": "1", "name": "", "description": "theirs", "subnets": [], "admin_state_up": true, "revision_number": 1}]}`})
	for _, filter := range []neutron.NetworkFilter{{Name: "ours"}, {ID: "2"}} {
		if found, err := client.Networks(t.Context(), filter); err != nil || len(found) != 0 {
			t.Errorf("Networks(%+v) = %v, %v; want none", filter, found, err)
		}
	}
}
