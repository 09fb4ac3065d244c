package openstack_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
)

// hostile is a client of a server that answers every request with a handler.
func hostile(t testing.TB, handler http.HandlerFunc, options ...openstack.Option) neutron.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return connect(t, server.URL, options...)
}

// bomb returns a handler that answers with a compressed text: a head, repetitions
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
	return answerWith(status, header("Content-Type", "application/json", "Content-Encoding", "gzip"), packed.String())
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
	foreignNetwork = `{"id": "n%d", "name": "", "description": "", "subnets": [], "admin_state_up": true, "revision_number": 1}`
	foreignSubnet  = `{"id": "s%d", "network_id": "n", "name": "", "description": "", "cidr": "10.0.0.0/24", "gateway_ip": null, "allocation_pools": [], "enable_dhcp": true, "revision_number": 1}`
)

// TestBombs: an answer that unpacks to much is an error, and takes little memory.
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

// TestLargeAnswer: an answer has at most 128 MiB.
func TestLargeAnswer(t *testing.T) {
	network := strings.Replace(foreignNetwork, `"name": ""`, `"name": "", "ignored": "`+strings.Repeat("x", 9_000)+`"`, 1)
	serve := func(size int) neutron.Client {
		return hostile(t, func(w http.ResponseWriter, _ *http.Request) {
			n := 0
			for i := 0; n < size; i++ {
				more, err := fmt.Fprintf(w, map[bool]string{true: `{"networks": [`, false: `,`}[i == 0]+network, i)
				if err != nil {
					return // the client has read enough
				}
				n += more
			}
			_, _ = io.WriteString(w, `]}`)
		}, openstack.WithTimeout(5*time.Minute)) // the race detector is slow
	}
	if found, err := serve(120<<20).Networks(t.Context(), neutron.NetworkFilter{}); err != nil || len(found) < 12_000 {
		t.Errorf("120 MiB: %d networks, error %v", len(found), err)
	}
	_, err := serve(128<<20).Networks(t.Context(), neutron.NetworkFilter{})
	wantError(t, "128 MiB", err, neutron.ErrUnavailable, "it has more than 134217728 bytes")
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

// TestEndlessPages: a list ends after a number of pages, objects, or time.
func TestEndlessPages(t *testing.T) {
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"many objects": {pages(2000, 0), "it has more than 200000 networks"},
		"few objects":  {pages(1, 0), "it has more than 10000 pages"},
		"no objects":   {pages(0, 0), "it has more than 10000 pages"},
		"slow":         {pages(1, 60*time.Millisecond), "it takes longer than 3s"},
	} {
		t.Run(name, func(t *testing.T) {
			client := hostile(t, test.handler, openstack.WithTimeout(map[bool]time.Duration{true: 300 * time.Millisecond}[name == "slow"]))
			var err error
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			total, took := allocated(func() { _, err = client.Networks(ctx, neutron.NetworkFilter{}) })
			t.Logf("%d MB allocated in %v", total>>20, took.Round(time.Millisecond))
			wantError(t, "Networks", err, neutron.ErrUnavailable, test.want)
		})
	}
}

// TestSkippedNetworks: a list of everything skips the networks of others that are
// unusable, and counts them. A network that may be the one that the caller looks
// for is an error: otherwise the caller would create a second one.
func TestSkippedNetworks(t *testing.T) {
	const marker = "samplecrd.k8s.io owner: c1/default/example"
	const good = `{"id": "n2", "name": "x", "description": "theirs", "mtu": 1500, "tags": [], "subnets": [], "admin_state_up": true, "revision_number": 1}`
	long := strings.Repeat("x", 10_000)
	for name, test := range map[string]struct{ from, to, reason string }{
		"a negative MTU":         {`1500`, `-1`, "mtu is -1"},
		"an MTU in words":        {`1500`, `"large"`, "of another type"},
		"an enormous MTU":        {`1500`, `1e100`, "of another type"},
		"a long ID":              {`"n2"`, `"` + long + `"`, "id is a text of 10000 bytes"},
		"a path for an ID":       {`"n2"`, `"../subnets/x"`, `id is "../subnets/x"`},
		"an ID with escapes":     {`"n2"`, `"\u001b[31m\nx"`, `id is "\x1b[31m\nx"`},
		"a number for an ID":     {`"n2"`, `5`, "of another type"},
		"null for the ID":        {`"n2"`, `null`, "without id"},
		"a long name":            {`"x"`, `"` + long + `"`, "name is a text of 10000 bytes"},
		"a long description":     {`"theirs"`, `"` + long + `"`, "description is a text of 10000 bytes"},
		"a list of descriptions": {`"theirs"`, `["theirs"]`, "of another type"},
		"many tags":              {`"tags": []`, `"tags": ["x"` + strings.Repeat(`,"x"`, 2000) + `]`, "2001 tags"},
		"a long tag":             {`"tags": []`, `"tags": ["` + long + `"]`, "tag is a text of 10000 bytes"},
		"a subnet without an ID": {`"subnets": []`, `"subnets": [""]`, `subnet is ""`},
		"no subnets":             {`"subnets": []`, `"subnets": null`, "without id"},
		"no revision":            {`"revision_number": 1`, `"x": 1`, "revision_number"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := strings.Replace(good, test.from, test.to, 1)
			var skipped []string
			networks := func(network string, filter neutron.NetworkFilter) ([]neutron.Network, error) {
				skipped = nil
				body := `{"networks": [` + fmt.Sprintf(foreignNetwork, 1) + `,` + network + `,` + fmt.Sprintf(foreignNetwork, 3) + `]}`
				return hostile(t, answerWith(200, nil, body), openstack.OnSkipped(func(_ context.Context, kind string, count int, reason string) {
					skipped = append(skipped, fmt.Sprint(kind, " ", count, " ", reason))
				})).Networks(t.Context(), filter)
			}
			if all, err := networks(bad, neutron.NetworkFilter{}); err != nil || len(all) != 2 || len(skipped) != 1 ||
				!strings.HasPrefix(skipped[0], "networks 1 it has ") || !strings.Contains(skipped[0], test.reason) || len(skipped[0]) > 600 {
				t.Errorf("a list of everything: %d networks, error %v, skipped %q; want 2 networks and %q", len(all), err, skipped, test.reason)
			}
			if all, err := networks(bad, neutron.NetworkFilter{ID: "n3"}); err != nil || len(all) != 1 {
				t.Errorf("another ID: %+v, %v", all, err)
			}
			if test.from != `"n2"` {
				_, err := networks(bad, neutron.NetworkFilter{ID: "n2"})
				wantError(t, "its ID", err, neutron.ErrUnavailable, test.reason)
			}
			if test.from == `"theirs"` {
				return
			}
			bad = strings.Replace(bad, `"theirs"`, `"`+marker+`"`, 1)
			for _, filter := range []neutron.NetworkFilter{{}, {Name: "x"}} {
				if test.from == `"x"` && filter.Name != "" {
					continue // certainly another name
				}
				_, err := networks(bad, filter)
				wantError(t, "with an owner marker", err, neutron.ErrUnavailable, test.reason)
			}
		})
	}
	t.Run("null for a description is an empty one", func(t *testing.T) {
		client := hostile(t, answerWith(200, nil, `{"networks": [`+strings.Replace(good, `"theirs"`, `null`, 1)+`]}`))
		if all, err := client.Networks(t.Context(), neutron.NetworkFilter{}); err != nil || len(all) != 1 || all[0].Description != "" {
			t.Errorf("Networks() = %+v, %v", all, err)
		}
	})
	t.Run("a long description that begins like an owner marker", func(t *testing.T) {
		client := hostile(t, answerWith(200, nil, `{"networks": [`+strings.Replace(good, `theirs`, marker+long, 1)+`]}`))
		_, err := client.Networks(t.Context(), neutron.NetworkFilter{})
		wantError(t, "Networks", err, neutron.ErrUnavailable, "description is a text of")
	})
}

// TestSkippedRouterPorts: an unusable port of a router does not fail the list for all
// networks, and with it each refresh of the cache. It fails the list for its network.
func TestSkippedRouterPorts(t *testing.T) {
	const good = `{"id": "p%d", "network_id": "n%[1]d", "device_id": "r1", "device_owner": "network:router_interface", "fixed_ips": [{"subnet_id": "s%[1]d", "ip_address": "10.0.0.1"}]}`
	for name, test := range map[string]struct{ from, to, reason string }{
		"no router":             {`"r1"`, `""`, "without the IDs of the router and of the subnet"},
		"null for the router":   {`"r1"`, `null`, "without id, network_id or device_id"},
		"a number for a router": {`"r1"`, `5`, "of another type"},
		"no address":            {`"10.0.0.1"`, `""`, "a port with the address"},
		"a bad address":         {`"10.0.0.1"`, `"10.0.0.256"`, "a port with the address"},
		"no subnet":             {`"s2"`, `""`, "without the IDs of the router and of the subnet"},
		"no ID":                 {`"p2"`, `""`, "without id, network_id or device_id"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := strings.Replace(fmt.Sprintf(good, 2), test.from, test.to, 1)
			var skipped []string
			client := hostile(t, func(w http.ResponseWriter, r *http.Request) {
				kind := path.Base(r.URL.Path)
				body := `{"` + kind + `": []}`
				if kind == "ports" {
					body = `{"ports": [` + fmt.Sprintf(good, 1) + `,` + bad + `,` + fmt.Sprintf(good, 3) + `]}`
				}
				answerWith(200, nil, body)(w, r)
			}, openstack.OnSkipped(func(_ context.Context, kind string, count int, reason string) {
				skipped = append(skipped, fmt.Sprint(kind, " ", count, " ", reason))
			}))
			all, err := client.RouterInterfaces(t.Context(), "")
			if err != nil || len(all) != 2 || all[0].PortID != "p1" || all[1].PortID != "p3" {
				t.Errorf("a list for all networks: %+v, %v, want the ports p1 and p3", all, err)
			}
			if len(skipped) != 1 || !strings.HasPrefix(skipped[0], "ports 1 it has ") || !strings.Contains(skipped[0], test.reason) {
				t.Errorf("skipped %q, want one port with %q", skipped, test.reason)
			}
			cache := neutron.NewCache(client, time.Now)
			cache.NeedRouterInterfaces()
			if _, err := cache.Refresh(t.Context()); err != nil {
				t.Errorf("Refresh() = %v", err)
			}
			if others, err := client.RouterInterfaces(t.Context(), "n3"); err != nil || len(others) != 1 {
				t.Errorf("another network: %+v, %v", others, err)
			}
			_, err = client.RouterInterfaces(t.Context(), "n2")
			wantError(t, "its network", err, neutron.ErrUnavailable, test.reason)
		})
	}
}
