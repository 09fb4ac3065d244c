package openstack_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
)

// hostile is a client of a server that responds to every request with a handler.
func hostile(t testing.TB, handler http.HandlerFunc, options ...openstack.Options) neutron.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return connect(t, server.URL, options...)
}

// bomb returns a handler that responds with a compressed text: a head, repetitions
// of a unit until it has the size, and a tail.
func bomb(t *testing.T, status int, head, unit, tail string, size int) http.HandlerFunc {
	t.Helper()
	var packed bytes.Buffer
	pack := gzip.NewWriter(&packed)
	_, _ = io.WriteString(pack, head)
	block := strings.Repeat(unit, max(1, 1<<16/len(unit)))
	for written := 0; written < size; written += len(block) {
		_, _ = io.WriteString(pack, block)
	}
	_, _ = io.WriteString(pack, tail)
	if err := pack.Close(); err != nil {
		t.Fatal(err)
	}
	return respondWith(status, header("Content-Encoding", "gzip"), packed.String())
}

// allocated returns how many bytes a function allocates, and how long it takes.
func allocated(f func()) (total uint64, took time.Duration) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	f()
	took = time.Since(began)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, took
}

const (
	foreignNetwork = `{"id": "n%d", "name": "x", "description": "theirs", "mtu": 1500, "tags": [], "subnets": [], "admin_state_up": true, "revision_number": 1}`
	foreignSubnet  = `{"id": "s%d", "network_id": "n%[1]d", "name": "x", "description": "theirs", "cidr": "10.0.0.0/24", "gateway_ip": "10.0.0.1", "allocation_pools": [{"start": "10.0.0.2", "end": "10.0.0.9"}], "enable_dhcp": true, "dns_nameservers": ["9.9.9.9"], "host_routes": [{"destination": "10.0.0.0/8", "nexthop": "10.0.0.9"}], "revision_number": 1}`
	foreignPort    = `{"id": "p%d", "network_id": "n%[1]d", "device_id": "r1", "device_owner": "network:router_interface", "fixed_ips": [{"subnet_id": "s%[1]d", "ip_address": "10.0.0.1"}]}`
)

// TestBombs: a response that unpacks to much is an error, and takes little memory.
func TestBombs(t *testing.T) {
	const size = 60 << 20
	for name, test := range map[string]struct {
		status           int
		head, unit, tail string
	}{
		"objects":              {200, `{"networks": [`, `{"id":"","description":"","tags":[]},`, `{}]}`},
		"objects of an object": {200, `{"networks": [{"description":"",`, `"a":[],`, `"b":0}]}`},
		"one text":             {200, `{"networks": [{"description":"","id":"`, `0123456789`, `"}]}`},
		"a key":                {200, `{"`, `0123456789`, `":0}`},
		"spaces":               {200, `{`, ` `, `}`},
		"spaces in the list":   {200, `{"networks": [`, ` `, `]}`},
		"another key":          {200, `{"servers": [`, `[],`, `0], "networks": []}`},
		"links":                {200, `{"networks": [], "networks_links": [`, `{"rel":"x"},`, `{}]}`},
		"extensions, ports":    {200, `{"extensions": [`, `{"alias":""},`, `{}], "networks": 5}`},
		"created":              {201, `{"network": {"id": [`, `[],`, `0]}}`},
		"a failure":            {500, `{"NeutronError": {"type": "X", "message": "`, `0123456789`, `"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			client := hostile(t, bomb(t, test.status, test.head, test.unit, test.tail, size))
			for op, request := range map[string]func(context.Context, neutron.Client) error{
				"list networks":  requests["list networks"],
				"create network": requests["create network"],
				"list extensions": func(ctx context.Context, c neutron.Client) error {
					_, err := c.Extensions(ctx)
					return err
				},
			} {
				var err error
				total, took := allocated(func() { err = request(t.Context(), client) })
				wantError(t, op, err, neutron.ErrUnavailable)
				t.Logf("%s: %d MB allocated in %v: %v", op, total>>20, took.Round(time.Millisecond), err)
				if total > 400<<20 {
					t.Errorf("%s: %d MB were allocated", op, total>>20)
				}
			}
		})
	}
}

// TestLargeQuotas: a response that is no list is as small as one object.
func TestLargeQuotas(t *testing.T) {
	c := newCloud(t)
	c.Neutron.Inject(embedded.Fault{Status: 200, Body: `{"quota": {"x": [` + strings.Repeat("[],", 1<<20) + `0]}}`})
	_, err := c.client.(neutron.QuotaReader).Quotas(t.Context())
	wantError(t, "Quotas", err, neutron.ErrUnavailable, "it has more than 1048576 bytes")
}

// pages is a server whose list never ends. Each page has some objects, or none.
func pages(objects int, delay time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		first, _ := strconv.Atoi(r.URL.Query().Get("marker"))
		select {
		case <-time.After(delay):
		case <-r.Context().Done():
		}
		var all []string
		for i := range objects {
			all = append(all, fmt.Sprintf(foreignNetwork, first+i))
		}
		_, _ = fmt.Fprintf(w, `{"networks": [%s], "networks_links": [{"rel": "next", "href": "http://x/?marker=%d"}]}`, strings.Join(all, ","), first+max(1, objects))
	}
}

// TestEndlessPages: a list ends after a number of pages, objects or bytes, or a time.
func TestEndlessPages(t *testing.T) {
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		options openstack.Options
		want    string
	}{
		"many objects": {pages(2000, 0), openstack.Options{}, "it has more than 200000 networks"},
		"many bytes":   {pages(2000, 0), openstack.Options{MaxList: 1 << 20}, " bytes"},
		"no objects":   {pages(0, 0), openstack.Options{}, "it has more than 10000 pages"},
		"slow":         {pages(1, 60*time.Millisecond), openstack.Options{Timeout: 300 * time.Millisecond}, "it takes longer than 3s"},
	} {
		t.Run(name, func(t *testing.T) {
			client := hostile(t, test.handler, test.options)
			var err error
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			total, took := allocated(func() { _, err = client.Networks(ctx, neutron.NetworkFilter{}) })
			t.Logf("%d MB allocated in %v", total>>20, took.Round(time.Millisecond))
			wantError(t, "Networks", err, neutron.ErrUnavailable, test.want)
		})
	}
}

// TestSkippedNetworks: a list of everything skips the objects of others that are
// unusable, and counts them. An object that may be the one that the caller looks
// for is an error: otherwise the caller would create a second one.
func TestSkippedNetworks(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	networks := func(c neutron.Client, id string) (int, error) {
		found, err := c.Networks(t.Context(), neutron.NetworkFilter{ID: id})
		return len(found), err
	}
	subnets := func(c neutron.Client, networkID string) (int, error) {
		found, err := c.Subnets(t.Context(), neutron.SubnetFilter{NetworkID: networkID})
		return len(found), err
	}
	interfaces := func(c neutron.Client, networkID string) (int, error) {
		found, err := c.RouterInterfaces(t.Context(), networkID)
		return len(found), err
	}
	for _, test := range []struct {
		kind, object string
		list         func(c neutron.Client, id string) (int, error)
		changes      map[string][2]string
	}{
		{"networks", foreignNetwork, networks, map[string][2]string{
			"a negative MTU":         {`1500`, `-1`},
			"an MTU in words":        {`1500`, `"large"`},
			"an enormous MTU":        {`1500`, `1e100`},
			"a long ID":              {`"n2"`, `"` + long + `"`},
			"a path for an ID":       {`"n2"`, `"../subnets/x"`},
			"an ID with escapes":     {`"n2"`, `"\u001b[31m\nx"`},
			"a number for an ID":     {`"n2"`, `5`},
			"null for the ID":        {`"n2"`, `null`},
			"a long name":            {`"x"`, `"` + long + `"`},
			"a long description":     {`"theirs"`, `"` + long + `"`},
			"a list of descriptions": {`"theirs"`, `["theirs"]`},
			"many tags":              {`"tags": []`, `"tags": ["x"` + strings.Repeat(`,"x"`, 2000) + `]`},
			"a long tag":             {`"tags": []`, `"tags": ["` + long + `"]`},
			"a subnet without an ID": {`"subnets": []`, `"subnets": [""]`},
			"no subnets":             {`"subnets": []`, `"subnets": null`},
			"no revision":            {`"revision_number": 1`, `"x": 1`},
			"a long DNS domain":      {`"mtu"`, `"dns_domain": "` + long + `", "mtu"`},
		}},
		{"subnets", foreignSubnet, subnets, map[string][2]string{
			"a CIDR with host bits": {"10.0.0.0/24", "10.0.0.1/24"},
			"no CIDR":               {`"10.0.0.0/24"`, `null`},
			"not a CIDR":            {"10.0.0.0/24", "x"},
			"not a gateway":         {"10.0.0.1", "x"},
			"a pool without an end": {`, "end": "10.0.0.9"`, ``},
			"a name for a server":   {`"9.9.9.9"`, `"dns"`},
			"a server, empty":       {`"9.9.9.9"`, `""`},
			"a route over a name":   {`"nexthop": "10.0.0.9"`, `"nexthop": "router"`},
			"a route to nowhere":    {`"destination"`, `"x"`},
			"no enable_dhcp":        {`"enable_dhcp": true`, `"x": 1`},
			"null for the pools":    {`[{"start": "10.0.0.2", "end": "10.0.0.9"}]`, `null`},
			"no revision":           {`"revision_number"`, `"x"`},
			"a revision in words":   {`"revision_number": 1`, `"revision_number": "1"`},
			"a negative revision":   {`"revision_number": 1`, `"revision_number": -1`},
			"a path for an ID":      {`"s2"`, `"../x"`},
			"a long name":           {`"x"`, `"` + long + `"`},
			"a path for a pool":     {`"cidr"`, `"subnetpool_id": "../x", "cidr"`},
			"a path for a mode":     {`"cidr"`, `"ipv6_ra_mode": "../x", "cidr"`},
		}},
		{"ports", foreignPort, interfaces, map[string][2]string{
			"no router":             {`"r1"`, `""`},
			"null for the router":   {`"r1"`, `null`},
			"a number for a router": {`"r1"`, `5`},
			"no address":            {`"10.0.0.1"`, `""`},
			"a bad address":         {`"10.0.0.1"`, `"10.0.0.256"`},
			"no subnet":             {`"s2"`, `""`},
			"no ID":                 {`"p2"`, `""`},
		}},
	} {
		for name, change := range test.changes {
			t.Run(test.kind+" with "+name, func(t *testing.T) {
				bad := strings.Replace(fmt.Sprintf(test.object, 2), change[0], change[1], 1)
				var skipped string
				serve := func(bad string) neutron.Client {
					body := fmt.Sprintf(`{"%s": [%s, %s, %s]}`, test.kind, fmt.Sprintf(test.object, 1), bad, fmt.Sprintf(test.object, 3))
					note := func(_ context.Context, kind string, count int, reason string) {
						skipped = fmt.Sprint(kind, " ", count, " ", reason)
					}
					return hostile(t, respondWith(200, nil, body), openstack.Options{Skipped: note})
				}
				client := serve(bad)
				if n, err := test.list(client, ""); n != 2 || err != nil {
					t.Errorf("a list of everything has %d objects, error %v; want 2", n, err)
				}
				if want := test.kind + " 1 it has one of the "; !strings.HasPrefix(skipped, want) || len(skipped) > 600 {
					t.Errorf("skipped %q, want %q", skipped, want)
				}
				if n, err := test.list(client, "n3"); n != 1 || err != nil {
					t.Errorf("another network: %d objects, error %v", n, err)
				}
				if change[0] != `"n2"` {
					_, err := test.list(client, "n2")
					wantError(t, "its network", err, neutron.ErrUnavailable, "with an invalid value, or without ")
				}
				if marked := strings.Replace(bad, `"theirs"`, `"samplecrd.k8s.io owner: c1/default/example"`, 1); marked != bad &&
					change[0] != `"theirs"` {
					_, err := test.list(serve(marked), "")
					wantError(t, "with an owner marker", err, neutron.ErrUnavailable)
				}
			})
		}
	}
}

// TestUnusualDescriptions: null is an empty one, and a missing one may be an owner marker.
func TestUnusualDescriptions(t *testing.T) {
	for description, want := range map[string]int{
		`"description": null`: 1, `"x": 1`: 0, `"description": "samplecrd.k8s.io owner: ` + strings.Repeat("x", 10_000) + `"`: 0,
	} {
		body := `{"networks": [` + strings.Replace(fmt.Sprintf(foreignNetwork, 1), `"description": "theirs"`, description, 1) + `]}`
		found, err := hostile(t, respondWith(200, nil, body)).Networks(t.Context(), neutron.NetworkFilter{})
		if (err == nil) != (want == 1) || len(found) != want || want == 1 && found[0].Description != "" {
			t.Errorf("with %.40s: %+v, %v", description, found, err)
		}
	}
}
