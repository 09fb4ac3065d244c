package openstack_test

import (
	"context"
	"fmt"
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
	must(t, server.Listen(""))
	t.Cleanup(func() { _ = server.Close() })
	return server
}

func connect(t testing.TB, endpoint string, options ...openstack.Options) neutron.Client {
	t.Helper()
	client, err := openstack.New(endpoint, append(options, openstack.Options{})[0])
	if err != nil {
		t.Fatal(err)
	}
	return client
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
		must(t, requests["list networks"](t.Context(), connect(t, server.URL()+suffix)))
	}
	for endpoint, want := range map[string]string{
		"":                                   "empty",
		"127.0.0.1:9696":                     "not a URL",
		"localhost:9696":                     "must begin with http:// or https://",
		"ftp://127.0.0.1":                    "must begin with http:// or https://",
		"http://":                            "has no host",
		"http://:9696":                       "has no host",
		"http://me:SECRET@127.0.0.1:9696":    "user name or password",
		"http://me:SECRET@127.0.0.1:x%zz":    "not a URL",
		"http://127.0.0.1:9696?token=SECRET": "query",
		"http://127.0.0.1:9696#SECRET":       "fragment",
	} {
		_, err := openstack.New(endpoint, openstack.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New(%q): error is %v, want one with %q", endpoint, err, want)
		}
		noSecrets(t, err)
	}
}

// TestIDs: an ID that would change the path makes no request.
func TestIDs(t *testing.T) {
	server := start(t, embedded.Options{})
	client, ctx := connect(t, server.URL()), t.Context()
	for _, id := range []string{"", ".", "..", "../subnets/x", "x?force=1", "x#", "x%2f", "x y", "ä"} {
		_, attach := client.AddRouterInterface(ctx, neutron.RouterInterface{RouterID: anID, SubnetID: id})
		for name, err := range map[string]error{
			"DeleteNetwork":         client.DeleteNetwork(ctx, id, 1),
			"AddRouterInterface":    attach,
			"RemoveRouterInterface": client.RemoveRouterInterface(ctx, neutron.RouterInterface{RouterID: id, SubnetID: anID}),
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
		must(t, requests["create network"](t.Context(), client))
	}
	server.ResetRequests()
	found, err := client.Networks(t.Context(), neutron.NetworkFilter{})
	if err != nil || len(found) != 5 || len(server.Requests()) != 3 {
		t.Errorf("found %d networks with %d requests, error %v; want 5 with 3", len(found), len(server.Requests()), err)
	}
	link := func(marker string) embedded.Fault {
		return embedded.Fault{Status: 200, Body: `{"networks": [], "networks_links": [{"rel": "next", "href": "http://elsewhere.example/` + marker + `"}]}`}
	}
	for name, test := range map[string]struct {
		fault embedded.Fault
		want  string
	}{
		"cut off": {embedded.Fault{Truncate: true}, "ends too early"},
		"the last network of a page is deleted": {
			embedded.Fault{Status: 404, Body: `{"NeutronError": {"type": "NetworkNotFound", "message": "Network x could not be found.", "detail": ""}}`},
			"404 NetworkNotFound",
		},
		"a loop":         {link("?marker=x"), "loop"},
		"links unusable": {embedded.Fault{Status: 200, Body: `{"networks": [], "networks_links": 5}`}, "links"},
		"a secret link":  {link("?marker=gAAAA_token"), "link"},
		"link unusable":  {link(""), "link"},
	} {
		t.Run(name, func(t *testing.T) {
			defer server.Inject(test.fault)()
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
	client := hostile(t, respondWith(200, nil, `{"networks": [`+fmt.Sprintf(foreignNetwork, 1)+`]}`))
	for _, filter := range []neutron.NetworkFilter{{Name: "ours"}, {ID: "2"}} {
		if found, err := client.Networks(t.Context(), filter); err != nil || len(found) != 0 {
			t.Errorf("Networks(%+v) = %v, %v; want none", filter, found, err)
		}
	}
}
