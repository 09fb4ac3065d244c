package neutron_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

var (
	owner  = neutron.Owner{Cluster: "c1", Namespace: "default", Name: "example"}
	ours   = neutron.Network{ID: "net-1", Name: "default/example", Description: owner.Marker(), SubnetIDs: []string{"sub-1"}, Revision: 2}
	theirs = neutron.Network{ID: "net-2", Description: "theirs"}
	subnet = neutron.Subnet{ID: "sub-1", NetworkID: "net-1", Description: owner.Marker(), CIDR: netip.MustParsePrefix("10.0.0.0/24")}
)

// fake returns the objects that it holds. It does not behave like Neutron: the tests
// of the controller cover how the Cache works with Neutron.
type fake struct {
	networks         []neutron.Network
	subnets          []neutron.Subnet
	failure          error
	askedCloud       int
	listedExtensions int    // how often
	duringList       func() // runs between the list of networks and that of subnets
	routers          []neutron.Router
	interfaces       []neutron.RouterInterface
	listedInterfaces []string // the networks for which they were listed
}

func (f *fake) Networks(_ context.Context, filter neutron.NetworkFilter) ([]neutron.Network, error) {
	found := slices.DeleteFunc(slices.Clone(f.networks), func(n neutron.Network) bool {
		return filter.ID != "" && n.ID != filter.ID || filter.Name != "" && n.Name != filter.Name
	})
	return found, f.failure
}

func (f *fake) Subnets(_ context.Context, filter neutron.SubnetFilter) ([]neutron.Subnet, error) {
	found := slices.DeleteFunc(slices.Clone(f.subnets), func(s neutron.Subnet) bool {
		return filter.NetworkID != "" && s.NetworkID != filter.NetworkID
	})
	if f.duringList != nil {
		run := f.duringList
		f.duringList = nil
		run()
	}
	return found, f.failure
}

func (f *fake) SubnetPools(context.Context, neutron.SubnetPoolFilter) ([]neutron.SubnetPool, error) {
	return nil, f.failure
}

func (f *fake) Extensions(context.Context) ([]string, error) {
	f.listedExtensions++
	return []string{neutron.ExtensionTags}, f.failure
}

func (f *fake) Cloud(context.Context) (string, error) {
	f.askedCloud++
	return "RegionOne/p1", f.failure
}
func (f *fake) AddNetworkTag(context.Context, string, string) error    { return f.failure }
func (f *fake) RemoveNetworkTag(context.Context, string, string) error { return f.failure }

func (f *fake) CreateNetwork(_ context.Context, n neutron.NewNetwork) (neutron.Network, error) {
	return neutron.Network{ID: "new-" + n.Name, Name: n.Name, Description: n.Description}, f.failure
}

func (f *fake) UpdateNetwork(_ context.Context, id string, update neutron.NetworkUpdate) (neutron.Network, error) {
	return neutron.Network{ID: id, Name: update.Name, Description: update.Description}, f.failure
}
func (f *fake) DeleteNetwork(context.Context, string, int) error { return f.failure }
func (f *fake) CreateSubnet(_ context.Context, s neutron.NewSubnet) (neutron.Subnet, error) {
	return neutron.Subnet{ID: "new-" + s.Name, Name: s.Name, NetworkID: s.NetworkID}, f.failure
}

func (f *fake) UpdateSubnet(_ context.Context, id string, update neutron.SubnetUpdate) (neutron.Subnet, error) {
	changed := subnet
	changed.ID, changed.Nameservers = id, []netip.Addr{}
	if update.Gateway != nil {
		changed.Gateway = *update.Gateway
	}
	return changed, f.failure
}
func (f *fake) DeleteSubnet(context.Context, string, int) error { return f.failure }

func (f *fake) Routers(_ context.Context, filter neutron.RouterFilter) ([]neutron.Router, error) {
	return slices.DeleteFunc(slices.Clone(f.routers), func(r neutron.Router) bool { return r.Name != filter.Name }), f.failure
}

func (f *fake) RouterInterfaces(_ context.Context, networkID string) ([]neutron.RouterInterface, error) {
	f.listedInterfaces = append(f.listedInterfaces, networkID)
	return slices.DeleteFunc(slices.Clone(f.interfaces), func(i neutron.RouterInterface) bool { return networkID != "" && i.NetworkID != networkID }), f.failure
}

func (f *fake) AddRouterInterface(_ context.Context, i neutron.RouterInterface) (neutron.RouterInterface, error) {
	i.PortID = "port"
	return i, f.failure
}
func (f *fake) RemoveRouterInterface(context.Context, neutron.RouterInterface) error {
	return f.failure
}
func (f *fake) Ports(context.Context, string) ([]neutron.Port, error) { return nil, f.failure }

func full() *fake {
	return &fake{networks: []neutron.Network{ours, theirs}, subnets: []neutron.Subnet{subnet}}
}

// filled returns a cache that has been refreshed.
func filled(t *testing.T, client neutron.Client) *neutron.Cache {
	t.Helper()
	cache := neutron.NewCache(client, time.Now)
	if _, err := cache.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	return cache
}

// describe returns a line with the owner's networks and subnets in a cache.
func describe(t *testing.T, cache *neutron.Cache) string {
	t.Helper()
	got, ok := cache.Lookup(owner, "")
	if !ok {
		return "nothing was listed"
	}
	var words []string
	for _, n := range got.Marked {
		var on []string
		for _, s := range got.Subnets[n.ID] {
			word := " " + s.ID
			if s.Gateway.IsValid() {
				word += "(" + s.Gateway.String() + ")"
			}
			on = append(on, word)
		}
		slices.Sort(on)
		words = append(words, n.ID+":"+strings.Join(on, ""))
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

func TestCache(t *testing.T) {
	ctx := t.Context()
	create := func(m *neutron.Cache) error {
		_, err := m.CreateNetwork(ctx, neutron.NewNetwork{Name: "duplicate", Description: owner.Marker()})
		return err
	}
	for name, test := range map[string]struct {
		do   func(*fake, *neutron.Cache) error
		want string
	}{
		"listed": {func(*fake, *neutron.Cache) error { return nil }, "net-1: sub-1"},
		"a network is created": {
			func(_ *fake, m *neutron.Cache) error { return create(m) }, "net-1: sub-1, new-duplicate:",
		},
		"a network loses its owner marker": {
			func(_ *fake, m *neutron.Cache) error {
				_, err := m.UpdateNetwork(ctx, "net-1", neutron.NetworkUpdate{Description: "x"})
				return err
			}, "",
		},
		"a network is deleted": {
			func(_ *fake, m *neutron.Cache) error { return m.DeleteNetwork(ctx, "net-1", 1) }, "",
		},
		"a network to delete does not exist": {
			func(f *fake, m *neutron.Cache) error {
				f.failure = &neutron.Error{Class: neutron.ErrNotFound}
				_ = m.DeleteNetwork(ctx, "net-1", 1)
				return nil
			}, "",
		},
		"a subnet is created": {
			func(_ *fake, m *neutron.Cache) error {
				_, err := m.CreateSubnet(ctx, neutron.NewSubnet{Name: "x", NetworkID: "net-1"})
				return err
			}, "net-1: new-x sub-1",
		},
		"a subnet is changed": {
			func(_ *fake, m *neutron.Cache) error {
				_, err := m.UpdateSubnet(ctx, "sub-1", neutron.SubnetUpdate{SubnetSettings: neutron.SubnetSettings{Gateway: new(netip.MustParseAddr("10.0.0.9"))}})
				return err
			}, "net-1: sub-1(10.0.0.9)",
		},
		"a subnet is deleted": {
			func(_ *fake, m *neutron.Cache) error { return m.DeleteSubnet(ctx, "sub-1", 1) }, "net-1:",
		},
		"a write fails": {
			func(f *fake, m *neutron.Cache) error {
				f.failure = &neutron.Error{Class: neutron.ErrUnavailable}
				_, _ = create(m), m.DeleteNetwork(ctx, "net-1", 1)
				return nil
			}, "net-1: sub-1",
		},
		"a live list has no network": {
			func(f *fake, m *neutron.Cache) error {
				f.networks = nil
				_, err := m.Networks(ctx, neutron.NetworkFilter{Name: owner.String()})
				return err
			}, "",
		},
		"a live list by ID has no network": {
			func(f *fake, m *neutron.Cache) error {
				f.networks = nil
				_, err := m.Networks(ctx, neutron.NetworkFilter{ID: "net-1"})
				return err
			}, "",
		},
		"a live list has another subnet": {
			func(f *fake, m *neutron.Cache) error {
				f.subnets = []neutron.Subnet{{ID: "sub-2", NetworkID: "net-1"}}
				_, err := m.Subnets(ctx, neutron.SubnetFilter{NetworkID: "net-1"})
				return err
			}, "net-1: sub-2",
		},
		"a live list fails": {
			func(f *fake, m *neutron.Cache) error {
				f.networks, f.failure = nil, &neutron.Error{Class: neutron.ErrUnavailable}
				_, _ = m.Networks(ctx, neutron.NetworkFilter{ID: "net-1"})
				return nil
			}, "net-1: sub-1",
		},
		"listed again": {
			func(f *fake, m *neutron.Cache) error {
				f.networks, f.subnets = []neutron.Network{theirs}, nil
				_, err := m.Refresh(ctx)
				return err
			}, "",
		},
		"the list fails in the middle": {
			func(f *fake, m *neutron.Cache) error {
				f.networks, f.subnets = nil, nil
				f.duringList = func() { f.failure = errors.New("cut off") }
				_, err := m.Refresh(ctx)
				if err == nil {
					return errors.New("Refresh() succeeded")
				}
				return nil
			}, "net-1: sub-1",
		},
		"created during a list": {
			func(f *fake, m *neutron.Cache) error {
				f.duringList = func() { _ = create(m) }
				_, err := m.Refresh(ctx)
				return err
			}, "net-1: sub-1, new-duplicate:",
		},
		"deleted during a list": {
			func(f *fake, m *neutron.Cache) error {
				f.duringList = func() { _ = m.DeleteNetwork(ctx, "net-1", 1) }
				_, err := m.Refresh(ctx)
				return err
			}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := full()
			m := filled(t, f)
			if err := test.do(f, m); err != nil {
				t.Fatal(err)
			}
			if got := describe(t, m); got != test.want {
				t.Errorf("the cache contains %q, want %q", got, test.want)
			}
		})
	}
}

// TestCacheBeforeTheFirstList: before the first list, absence from the cache is not
// evidence, also after a write.
func TestCacheBeforeTheFirstList(t *testing.T) {
	m := neutron.NewCache(full(), time.Now)
	if _, err := m.CreateNetwork(t.Context(), neutron.NewNetwork{Name: "x", Description: owner.Marker()}); err != nil {
		t.Fatal(err)
	}
	if got, ok := m.Lookup(owner, ""); ok {
		t.Errorf("Lookup() = %+v", got)
	}
	if got, known := m.Owners("default", "example"); known {
		t.Errorf("Owners() = %v", got)
	}
	if got := m.Owned("c1"); len(got) != 0 {
		t.Errorf("Owned() = %v", got)
	}
}

// TestCacheRevision: a request for a subnet is a revision of its network, which the
// response does not contain. What another client changed meanwhile is not in it.
func TestCacheRevision(t *testing.T) {
	ctx, gateway := t.Context(), netip.MustParseAddr("10.0.0.9")
	requests := map[string]func(*neutron.Cache) error{
		"create": func(c *neutron.Cache) error {
			_, err := c.CreateSubnet(ctx, neutron.NewSubnet{NetworkID: "net-1", Name: "second"})
			return err
		},
		"update": func(c *neutron.Cache) error {
			_, err := c.UpdateSubnet(ctx, "sub-1", neutron.SubnetUpdate{SubnetSettings: neutron.SubnetSettings{Gateway: &gateway}})
			return err
		},
		"delete": func(c *neutron.Cache) error { return c.DeleteSubnet(ctx, "sub-1", 1) },
		// Neutron 26 gives the network no revision for it.
		"update of name servers": func(c *neutron.Cache) error {
			_, err := c.UpdateSubnet(ctx, "sub-1", neutron.SubnetUpdate{SubnetSettings: neutron.SubnetSettings{Nameservers: &[]netip.Addr{}}})
			return err
		},
	}
	want := map[string][]string{"create": {"sub-1", "new-second"}, "update": {"sub-1"}, "delete": nil, "update of name servers": {"sub-1"}}
	own := map[string]int{"create": 1, "update": 1, "delete": 1}
	for name, send := range requests {
		for listed, more := range map[string]int{"before the request": 0, "after the request": 1, "after another client's": 5} {
			t.Run(name+", listed "+listed, func(t *testing.T) {
				f := full()
				f.networks = slices.Clone(f.networks)
				cache := filled(t, f)
				before := f.networks[0]
				f.networks[0].SubnetIDs, f.networks[0].Revision = want[name], before.Revision+more
				if more == 0 {
					f.networks[0].SubnetIDs = before.SubnetIDs
				}
				f.duringList = func() {
					if err := send(cache); err != nil {
						t.Error(err)
					}
				}
				if _, err := cache.Refresh(ctx); err != nil {
					t.Fatal(err)
				}
				got, _ := cache.Lookup(neutron.Owner{}, "net-1")
				if revision := before.Revision + max(own[name], more); got.Named[0].Revision != revision {
					t.Errorf("the network has the revision %d, want %d", got.Named[0].Revision, revision)
				}
				if diff := cmp.Diff(want[name], got.Named[0].SubnetIDs, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("its subnets differ (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestCacheExtensions: the extensions are listed only when a caller needs them, and
// not again soon after.
func TestCacheExtensions(t *testing.T) {
	f := full()
	m := filled(t, f)
	if _, known := m.KnownExtensions(); known || f.listedExtensions != 0 {
		t.Errorf("known: %v, listed %d times before any caller needs them", known, f.listedExtensions)
	}
	for range 2 {
		if got, err := m.Extensions(t.Context()); err != nil || len(got) != 1 {
			t.Errorf("Extensions() = %v, %v", got, err)
		}
	}
	if got, known := m.KnownExtensions(); !known || len(got) != 1 || f.listedExtensions != 1 {
		t.Errorf("KnownExtensions() = %v, %v, listed %d times", got, known, f.listedExtensions)
	}
}

// TestCacheExtensionsChange: a refresh lists the extensions again, since Neutron may
// have been upgraded.
func TestCacheExtensionsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := full()
		m := filled(t, f)
		if _, err := m.Extensions(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) //nolint:forbidigo // no time passes in a bubble
		if _, err := m.Refresh(t.Context()); err != nil || f.listedExtensions != 2 {
			t.Errorf("Refresh() = %v, the extensions were listed %d times", err, f.listedExtensions)
		}
	})
}

// TestCacheTags: the cache follows tags that are added and removed.
func TestCacheTags(t *testing.T) {
	m := filled(t, full())
	if err := m.AddNetworkTag(t.Context(), "net-1", "a"); err != nil {
		t.Fatal(err)
	}
	if err := m.AddNetworkTag(t.Context(), "net-1", "b"); err != nil {
		t.Fatal(err)
	}
	if err := m.RemoveNetworkTag(t.Context(), "net-1", "a"); err != nil {
		t.Fatal(err)
	}
	if got, _ := m.Lookup(neutron.Owner{}, "net-1"); len(got.Named) != 1 || !slices.Equal(got.Named[0].Tags, []string{"b"}) {
		t.Errorf("Lookup() = %+v", got)
	}
}

// TestCacheTagDuringList: a tag that is added while a list is running is in the cache
// once, whether or not the list contains it.
func TestCacheTagDuringList(t *testing.T) {
	for name, listed := range map[string][]string{"before the list": {"a"}, "after the list": nil} {
		t.Run(name, func(t *testing.T) {
			f := full()
			m := filled(t, f)
			f.networks[0].Tags = listed
			f.duringList = func() { _ = m.AddNetworkTag(t.Context(), "net-1", "a") }
			if _, err := m.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, _ := m.Lookup(neutron.Owner{}, "net-1"); len(got.Named) != 1 || !slices.Equal(got.Named[0].Tags, []string{"a"}) {
				t.Errorf("Lookup() = %+v", got)
			}
		})
	}
}

// paged is a fake that lists page by page, one object a page. It fails after a number of
// objects, if that is not 0.
type paged struct {
	*fake
	failAfter int
	visited   []string // what was not known, by ID
}

var errCutOff = errors.New("cut off")

func (p *paged) EachNetwork(_ context.Context, isKnown func(neutron.Digest) bool, visit func(neutron.Network, neutron.Digest)) error {
	for i, network := range p.networks {
		if p.failAfter > 0 && i >= p.failAfter {
			return errCutOff
		}
		if digest := digestOf(network); !isKnown(digest) {
			p.visited = append(p.visited, network.ID)
			visit(network, digest)
		}
	}
	return nil
}

func (p *paged) EachSubnet(_ context.Context, isKnown func(neutron.Digest) bool, visit func(neutron.Subnet, neutron.Digest)) error {
	for _, subnet := range p.subnets {
		if digest := digestOf(subnet); !isKnown(digest) {
			p.visited = append(p.visited, subnet.ID)
			visit(subnet, digest)
		}
	}
	return nil
}

func digestOf(object any) neutron.Digest {
	hash := fnv.New64()
	_, _ = fmt.Fprintf(hash, "%+v", object)
	return neutron.Digest(hash.Sum64())
}

// TestCacheKnown: what has not changed since the last list is not read again, whatever
// this process has done with it.
func TestCacheKnown(t *testing.T) {
	client := &paged{fake: full()}
	m := filled(t, client)
	refresh := func(after string, wantVisited ...string) {
		t.Helper()
		client.visited = nil
		if _, err := m.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wantVisited, client.visited); diff != "" {
			t.Errorf("what is read after %s (-want +got):\n%s", after, diff)
		}
		view, _ := m.Lookup(owner, "net-2")
		if diff := cmp.Diff([][]neutron.Network{client.networks[:1], client.networks[1:]}, [][]neutron.Network{view.Marked, view.Named}); diff != "" {
			t.Errorf("networks in the cache after %s (-want +got):\n%s", after, diff)
		}
		if diff := cmp.Diff(client.subnets, view.Subnets["net-1"], cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
			t.Errorf("subnets in the cache after %s (-want +got):\n%s", after, diff)
		}
	}
	refresh("no change")

	if _, err := m.UpdateNetwork(t.Context(), "net-1", neutron.NetworkUpdate{Name: "changed"}); err != nil {
		t.Fatal(err)
	}
	refresh("an update that Neutron has reverted")
	client.networks = slices.Clone(client.networks)
	client.networks[0].Revision++
	refresh("a change of a network in Neutron", "net-1")
	client.subnets = slices.Clone(client.subnets)
	client.subnets[0].Revision++
	refresh("a change of a subnet in Neutron", "sub-1")
	refresh("no change again")
}

// TestCachePages: a list that fails after some pages changes nothing; and an object on
// two pages counts once, as it was read last.
func TestCachePages(t *testing.T) {
	client := &paged{fake: full()}
	m := filled(t, client)
	other := ours
	other.ID = "net-3"
	client.networks, client.failAfter = []neutron.Network{other, theirs}, 1
	if _, err := m.Refresh(t.Context()); !errors.Is(err, errCutOff) {
		t.Errorf("Refresh() = %v", err)
	}
	if got, want := describe(t, m), "net-1: sub-1"; got != want {
		t.Errorf("after a list that failed, the cache contains %q, want %q", got, want)
	}

	older, unmarked := ours, ours
	older.Revision, unmarked.ID, unmarked.Description = 1, "net-4", ""
	marked := unmarked
	marked.Description = owner.Marker()
	client.networks, client.subnets, client.failAfter = []neutron.Network{older, marked, ours, unmarked}, []neutron.Subnet{subnet, subnet}, 0
	listing, err := m.Refresh(t.Context())
	if err != nil || listing.Networks != 2 || listing.Subnets != 1 {
		t.Errorf("Refresh() = %+v, %v", listing, err)
	}
	if got, want := describe(t, m), "net-1: sub-1"; got != want {
		t.Errorf("the cache contains %q, want %q", got, want)
	}
	if got, _ := m.Lookup(neutron.Owner{}, "net-1"); len(got.Named) != 1 || got.Named[0].Revision != ours.Revision {
		t.Errorf("Lookup() = %+v, want the network as it was read last", got)
	}
}

// TestRequestRefresh: a request is pending until a list begins after the given time. A
// list that was running by then does not fulfil it.
func TestRequestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := full()
		m := neutron.NewCache(client, time.Now)
		pending := func() bool { return len(m.RefreshRequests()) > 0 }
		refresh := func() {
			t.Helper()
			if _, err := m.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		client.duringList = func() {
			<-time.After(time.Second)
			m.RequestRefresh(time.Now())
		}
		refresh()
		if !pending() {
			t.Error("nothing is requested after a list that began too early")
		}
		requested := time.Now()
		<-time.After(time.Second)
		client.duringList = func() { m.RequestRefresh(requested) }
		refresh()
		if pending() {
			t.Error("another list is requested during one that began late enough")
		}
		m.RequestRefresh(requested)
		if pending() {
			t.Error("another list is requested after one that began late enough")
		}
	})
}

// interfacesIn returns the routers to which a network is attached in a cache.
func interfacesIn(cache *neutron.Cache, networkID string) string {
	view, _ := cache.Lookup(neutron.Owner{}, networkID)
	found, known := view.RouterInterfaces[networkID]
	if !known {
		return "unknown"
	}
	var words []string
	for _, i := range found {
		words = append(words, i.SubnetID+"@"+i.RouterID)
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// TestCacheRouterInterfaces: each refresh lists all router interfaces at once, if a
// caller has ever needed some; and the cache follows those that are added and removed.
func TestCacheRouterInterfaces(t *testing.T) {
	attached := neutron.RouterInterface{RouterID: "router-1", NetworkID: "net-1", SubnetID: "sub-1", PortID: "port"}
	other := neutron.RouterInterface{RouterID: "router-2", NetworkID: "net-2", SubnetID: "sub-2", PortID: "port-2"}
	want := func(m *neutron.Cache, networkID, want string) {
		t.Helper()
		if got := interfacesIn(m, networkID); got != want {
			t.Errorf("%s is attached to %q, want %q", networkID, got, want)
		}
	}
	f := full()
	f.interfaces = []neutron.RouterInterface{attached, other}
	m := filled(t, f)
	want(m, "net-1", "unknown")
	if f.listedInterfaces != nil {
		t.Errorf("listed for %q before any caller needs them", f.listedInterfaces)
	}

	created, err := m.CreateNetwork(t.Context(), neutron.NewNetwork{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	want(m, created.ID, "")
	if _, err := m.AddRouterInterface(t.Context(), neutron.RouterInterface{RouterID: "router-1", NetworkID: created.ID, SubnetID: "sub-3"}); err != nil {
		t.Fatal(err)
	}
	want(m, created.ID, "sub-3@router-1")
	if _, err := m.RouterInterfaces(t.Context(), "net-1"); err != nil {
		t.Fatal(err)
	}
	want(m, "net-1", "sub-1@router-1")
	want(m, "net-2", "unknown")

	if _, err := m.Refresh(t.Context()); err != nil || !slices.Equal(f.listedInterfaces, []string{"net-1", ""}) {
		t.Errorf("Refresh() = %v, listed for %q; want one list of all", err, f.listedInterfaces)
	}
	want(m, "net-2", "sub-2@router-2")
	f.failure = &neutron.Error{Class: neutron.ErrUnavailable}
	_ = m.RemoveRouterInterface(t.Context(), attached)
	want(m, "net-1", "sub-1@router-1")
	f.failure = &neutron.Error{Class: neutron.ErrNotFound}
	_ = m.RemoveRouterInterface(t.Context(), attached)
	want(m, "net-1", "")

	f.failure, f.interfaces = nil, nil
	f.duringList = func() { _, _ = m.AddRouterInterface(t.Context(), attached) }
	if _, err := m.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(m, "net-1", "sub-1@router-1")
	want(m, "net-2", "")
}

// TestCacheRouters: the cache keeps the router of a name while there is one.
func TestCacheRouters(t *testing.T) {
	f, filter := full(), neutron.RouterFilter{Name: "edge"}
	m := filled(t, f)
	for _, routers := range [][]neutron.Router{nil, {{ID: "router-1", Name: "edge"}}, {{ID: "router-1", Name: "edge"}, {ID: "router-2", Name: "edge"}}} {
		f.routers = routers
		if _, err := m.Routers(t.Context(), filter); err != nil {
			t.Fatal(err)
		}
		got, known := m.KnownRouter(filter)
		if known != (len(routers) == 1) || known && got != routers[0] {
			t.Errorf("after %v were found, KnownRouter() = %v, %v", routers, got, known)
		}
	}
}

func TestCacheLookupByID(t *testing.T) {
	got, _ := filled(t, full()).Lookup(neutron.Owner{}, "net-2")
	want := neutron.View{Named: []neutron.Network{theirs}, Subnets: map[string][]neutron.Subnet{"net-2": nil}}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("Lookup() (-want +got):\n%s", diff)
	}
}

// TestCacheOwners: Owners returns the clusters that have, or had, a network for a
// namespace and name, also after changes.
func TestCacheOwners(t *testing.T) {
	f := full()
	other, retained, unrelated := ours, ours, ours
	other.ID, other.Description = "net-3", neutron.Owner{Cluster: "c3", Namespace: "default", Name: "example"}.Marker()
	retained.ID, retained.Description = "net-4", neutron.Owner{Cluster: "c2", Namespace: "default", Name: "example"}.RetainedMarker()
	unrelated.ID, unrelated.Description = "net-5", neutron.Owner{Cluster: "c4", Namespace: "default", Name: "another"}.Marker()
	f.networks = append(f.networks, other, retained, unrelated)
	cache := filled(t, f)
	want := func(want ...string) {
		t.Helper()
		var got []string
		owners, known := cache.Owners("default", "example")
		if !known {
			t.Error("the owners are unknown after a list")
		}
		for _, owner := range owners {
			got = append(got, owner.Cluster)
		}
		if !slices.Equal(got, want) {
			t.Errorf("Owners() has the clusters %q, want %q", got, want)
		}
	}
	want("c1", "c2", "c3")
	if err := cache.DeleteNetwork(t.Context(), "net-3", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := cache.UpdateNetwork(t.Context(), "net-4", neutron.NetworkUpdate{Description: "theirs"}); err != nil {
		t.Fatal(err)
	}
	want("c1")
}

// TestCacheCloud: the identity of the cloud is read once, and a failure is not
// remembered.
func TestCacheCloud(t *testing.T) {
	f := full()
	m := neutron.NewCache(f, time.Now)
	f.failure = errors.New("unavailable")
	if _, err := m.Cloud(t.Context()); err == nil {
		t.Error("Cloud() succeeded")
	}
	if got, known := m.KnownCloud(); known {
		t.Errorf("KnownCloud() = %q after a failure", got)
	}
	f.failure = nil
	for range 2 {
		if got, err := m.Cloud(t.Context()); got != "RegionOne/p1" || err != nil {
			t.Errorf("Cloud() = %q, %v", got, err)
		}
	}
	if got, known := m.KnownCloud(); !known || got != "RegionOne/p1" || f.askedCloud != 2 {
		t.Errorf("KnownCloud() = %q, %v after %d requests", got, known, f.askedCloud)
	}
}

// TestCacheOwned: Owned returns the networks with owner markers of one cluster, and
// no others.
func TestCacheOwned(t *testing.T) {
	f := full()
	duplicate, other, retained := ours, ours, ours
	duplicate.ID = "net-0"
	other.ID, other.Description = "net-3", neutron.Owner{Cluster: "c2", Namespace: "default", Name: "example"}.Marker()
	retained.ID, retained.Description = "net-4", owner.RetainedMarker()
	f.networks = append(f.networks, duplicate, other, retained)

	got := filled(t, f).Owned("c1")

	want := map[neutron.Owner][]string{owner: {"net-0", "net-1"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Owned() (-want +got):\n%s", diff)
	}
}

func TestCacheUsage(t *testing.T) {
	owner := neutron.Owner{Cluster: "c", Namespace: "default", Name: "example"}
	other := neutron.Owner{Cluster: "c", Namespace: "other", Name: "example"}
	client := &fake{networks: []neutron.Network{
		{ID: "1", Description: owner.Marker()}, {ID: "2", Description: other.Marker()},
		{ID: "3", Description: neutron.Owner{Cluster: "d", Namespace: "default", Name: "example"}.Marker()}, {ID: "4", Description: "default"},
	}}
	if _, known := neutron.NewCache(client, time.Now).Usage("c", "default"); known {
		t.Error("the usage is known before the first list")
	}
	cache := filled(t, client)
	want := func(doing string, owned, retained []string) {
		t.Helper()
		usage, known := cache.Usage("c", "default")
		if !known || !slices.Equal(usage.Owned[owner], owned) || !slices.Equal(usage.Retained[owner], retained) || len(usage.Owned)+len(usage.Retained) != min(1, len(owned)+len(retained)) {
			t.Errorf("%s: Usage() = %+v, %v, want owned %v, retained %v", doing, usage, known, owned, retained)
		}
		if got := cache.Retained("c")[owner]; !slices.Equal(got, retained) {
			t.Errorf("%s: Retained() = %v, want %v", doing, got, retained)
		}
	}
	want("after a list", []string{"1"}, nil)
	if _, err := cache.UpdateNetwork(t.Context(), "1", neutron.NetworkUpdate{Description: owner.RetainedMarker()}); err != nil {
		t.Fatal(err)
	}
	want("after the network was retained", nil, []string{"1"})
	if err := cache.DeleteNetwork(t.Context(), "1", 0); err != nil {
		t.Fatal(err)
	}
	want("after the network was deleted", nil, nil)
}
