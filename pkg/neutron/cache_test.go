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
	owner = neutron.Owner{Cluster: "c1", Namespace: "default", Name: "example"}
	ours  = neutron.Network{
		ID: "net-1", Name: "default/example", Description: owner.Marker(), SubnetIDs: []string{"sub-1"}, Revision: 2,
	}
	theirs = neutron.Network{ID: "net-2", Description: "theirs"}
	subnet = neutron.Subnet{
		ID: "sub-1", NetworkID: "net-1", Description: owner.Marker(), CIDR: netip.MustParsePrefix("10.0.0.0/24"),
	}
)

// fake returns the objects that it holds, and lists one object a page. It does not behave
// like Neutron: the tests of the controller cover how the Cache works with Neutron.
type fake struct {
	neutron.Client
	networks   []neutron.Network
	subnets    []neutron.Subnet
	routers    []neutron.Router
	interfaces []neutron.RouterInterface
	failure    error
	forbidden  error    // of the lists of router interfaces and extensions
	duringList func()   // runs between the list of networks and that of subnets
	visited    []string // the IDs of what was listed and not known
	askedCloud int
}

var errCutOff = errors.New("cut off")

func (f *fake) EachNetwork(_ context.Context, isKnown func(neutron.Digest) bool, visit func(neutron.Network, neutron.Digest)) error {
	for _, network := range f.networks {
		if digest := digestOf(network); !isKnown(digest) {
			f.visited = append(f.visited, network.ID)
			visit(network, digest)
		}
	}
	return f.failure
}

func (f *fake) EachSubnet(_ context.Context, isKnown func(neutron.Digest) bool, visit func(neutron.Subnet, neutron.Digest)) error {
	for _, subnet := range f.subnets {
		if digest := digestOf(subnet); !isKnown(digest) {
			f.visited = append(f.visited, subnet.ID)
			visit(subnet, digest)
		}
	}
	if run := f.duringList; run != nil {
		f.duringList = nil
		run()
	}
	return f.failure
}

func digestOf(object any) neutron.Digest {
	hash := fnv.New64()
	_, _ = fmt.Fprintf(hash, "%+v", object)
	return neutron.Digest(hash.Sum64())
}

func (f *fake) Networks(_ context.Context, filter neutron.NetworkFilter) ([]neutron.Network, error) {
	return slices.DeleteFunc(slices.Clone(f.networks), func(n neutron.Network) bool {
		return filter.ID != "" && n.ID != filter.ID || filter.Name != "" && n.Name != filter.Name
	}), f.failure
}

func (f *fake) Subnets(_ context.Context, filter neutron.SubnetFilter) ([]neutron.Subnet, error) {
	return slices.DeleteFunc(slices.Clone(f.subnets), func(s neutron.Subnet) bool { return s.NetworkID != filter.NetworkID }), f.failure
}

func (f *fake) Extensions(context.Context) ([]string, error) {
	return []string{neutron.ExtensionTags}, errors.Join(f.failure, f.forbidden)
}

func (f *fake) Routers(_ context.Context, filter neutron.RouterFilter) ([]neutron.Router, error) {
	return slices.DeleteFunc(slices.Clone(f.routers), func(r neutron.Router) bool { return r.Name != filter.Name }), f.failure
}

func (f *fake) RouterInterfaces(_ context.Context, networkID string) ([]neutron.RouterInterface, error) {
	if networkID == "" && f.forbidden != nil {
		return nil, f.forbidden
	}
	return slices.DeleteFunc(slices.Clone(f.interfaces), func(i neutron.RouterInterface) bool {
		return networkID != "" && i.NetworkID != networkID
	}), f.failure
}

func (f *fake) Cloud(context.Context) (string, error) {
	f.askedCloud++
	return "RegionOne/p1", f.failure
}

func (f *fake) CreateNetwork(_ context.Context, n neutron.NewNetwork) (neutron.Network, error) {
	return neutron.Network{ID: "new-" + n.Name, Name: n.Name, Description: n.Description}, f.failure
}

func (f *fake) UpdateNetwork(_ context.Context, id string, update neutron.NetworkUpdate) (neutron.Network, error) {
	return neutron.Network{ID: id, Name: update.Name, Description: update.Description}, f.failure
}

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

func (f *fake) AddRouterInterface(_ context.Context, i neutron.RouterInterface) (neutron.RouterInterface, error) {
	i.PortID = "port"
	return i, f.failure
}
func (f *fake) RemoveRouterInterface(context.Context, neutron.RouterInterface) error {
	return f.failure
}
func (f *fake) DeleteNetwork(context.Context, string, int) error       { return f.failure }
func (f *fake) DeleteSubnet(context.Context, string, int) error        { return f.failure }
func (f *fake) AddNetworkTag(context.Context, string, string) error    { return f.failure }
func (f *fake) RemoveNetworkTag(context.Context, string, string) error { return f.failure }

func full() *fake {
	return &fake{networks: []neutron.Network{ours, theirs}, subnets: []neutron.Subnet{subnet}}
}

// filled returns a cache that has been refreshed.
func filled(t *testing.T, client neutron.Client) *neutron.Cache {
	t.Helper()
	cache := neutron.NewCache(client, time.Now)
	must(t, refresh(t, cache))
	return cache
}

func refresh(t *testing.T, cache *neutron.Cache) error {
	_, err := cache.Refresh(t.Context())
	return err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
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
		word := []string{n.ID + strings.Join(n.Tags, "+") + ":"}
		for _, s := range got.Subnets[n.ID] {
			id := s.ID
			if s.Gateway.IsValid() {
				id += "(" + s.Gateway.String() + ")"
			}
			word = append(word, id)
		}
		words = append(words, strings.Join(word, " "))
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// TestCache: the cache follows what is listed, read and written, also during a list.
func TestCache(t *testing.T) {
	ctx, unavailable := t.Context(), &neutron.Error{Class: neutron.ErrUnavailable}
	type write func(*neutron.Cache) error
	type scene func(*fake, *neutron.Cache) error
	create := func(m *neutron.Cache) error {
		_, err := m.CreateNetwork(ctx, neutron.NewNetwork{Name: "duplicate", Description: owner.Marker()})
		return err
	}
	unmark := func(m *neutron.Cache) error {
		_, err := m.UpdateNetwork(ctx, "net-1", neutron.NetworkUpdate{Description: "x"})
		return err
	}
	remove := func(m *neutron.Cache) error { return m.DeleteNetwork(ctx, "net-1", 1) }
	tag := func(m *neutron.Cache) error { return m.AddNetworkTag(ctx, "net-1", "a") }
	retag := func(m *neutron.Cache) error {
		return errors.Join(tag(m), m.AddNetworkTag(ctx, "net-1", "b"), m.RemoveNetworkTag(ctx, "net-1", "a"))
	}
	createSubnet := func(m *neutron.Cache) error {
		_, err := m.CreateSubnet(ctx, neutron.NewSubnet{Name: "x", NetworkID: "net-1"})
		return err
	}
	updateSubnet := func(m *neutron.Cache) error {
		gateway := neutron.SubnetSettings{Gateway: new(netip.MustParseAddr("10.0.0.9"))}
		_, err := m.UpdateSubnet(ctx, "sub-1", neutron.SubnetUpdate{SubnetSettings: gateway})
		return err
	}
	deleteSubnet := func(m *neutron.Cache) error { return m.DeleteSubnet(ctx, "sub-1", 1) }
	find := func(filter neutron.NetworkFilter) write {
		return func(m *neutron.Cache) error {
			_, err := m.Networks(ctx, filter)
			return err
		}
	}
	findSubnets := func(m *neutron.Cache) error {
		_, err := m.Subnets(ctx, neutron.SubnetFilter{NetworkID: "net-1"})
		return err
	}
	after := func(run write) scene { return func(_ *fake, m *neutron.Cache) error { return run(m) } }
	during := func(run write) scene {
		return func(f *fake, m *neutron.Cache) error {
			f.duringList = func() { _ = run(m) }
			return refresh(t, m)
		}
	}
	// failing sends requests that fail.
	failing := func(err error, runs ...write) scene {
		return func(f *fake, m *neutron.Cache) error {
			f.failure = err
			for _, run := range runs {
				_ = run(m)
			}
			return nil
		}
	}
	// elsewhere changes what Neutron has before a read.
	elsewhere := func(networks []neutron.Network, subnets []neutron.Subnet, read write) scene {
		return func(f *fake, m *neutron.Cache) error {
			f.networks, f.subnets = networks, subnets
			return read(m)
		}
	}
	relist := func(m *neutron.Cache) error { return refresh(t, m) }
	ourID, ourName := neutron.NetworkFilter{ID: "net-1"}, neutron.NetworkFilter{Name: owner.String()}
	const before = "net-1: sub-1"
	for name, test := range map[string]struct {
		do   scene
		want string
	}{
		"listed":                             {after(func(*neutron.Cache) error { return nil }), before},
		"a network is created":               {after(create), before + ", new-duplicate:"},
		"a network loses its owner marker":   {after(unmark), ""},
		"a network is deleted":               {after(remove), ""},
		"a network to delete does not exist": {failing(&neutron.Error{Class: neutron.ErrNotFound}, remove), ""},
		"a subnet is created":                {after(createSubnet), before + " new-x"},
		"a subnet is changed":                {after(updateSubnet), "net-1: sub-1(10.0.0.9)"},
		"a subnet is deleted":                {after(deleteSubnet), "net-1:"},
		"tags are changed":                   {after(retag), "net-1b: sub-1"},
		"writes fail":                        {failing(unavailable, create, remove, tag), before},
		"a live list has no network":         {elsewhere(nil, nil, find(ourName)), ""},
		"a live list by ID has no network":   {elsewhere(nil, nil, find(ourID)), ""},
		"a live list has another subnet":     {elsewhere(nil, []neutron.Subnet{{ID: "sub-2", NetworkID: "net-1"}}, findSubnets), "net-1: sub-2"},
		"a live list fails":                  {failing(unavailable, find(ourID)), before},
		"listed again":                       {elsewhere([]neutron.Network{theirs}, nil, relist), ""},
		"the list fails in the middle":       {failing(errCutOff, relist), before},
		"created during a list":              {during(create), before + ", new-duplicate:"},
		"deleted during a list":              {during(remove), ""},
		"tagged during a list":               {during(tag), "net-1a: sub-1"},
		"tagged during a list, which has the tag": {func(f *fake, m *neutron.Cache) error {
			f.networks[0].Tags = []string{"a"}
			return during(tag)(f, m)
		}, "net-1a: sub-1"},
	} {
		t.Run(name, func(t *testing.T) {
			f := full()
			m := filled(t, f)
			must(t, test.do(f, m))
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
	_, err := m.CreateNetwork(t.Context(), neutron.NewNetwork{Name: "x", Description: owner.Marker()})
	must(t, err)
	if got, ok := m.Lookup(owner, ""); ok {
		t.Errorf("Lookup() = %+v", got)
	}
	if got, known := m.Owners("default", "example"); known {
		t.Errorf("Owners() = %v", got)
	}
	if got, known := m.Usage("c1", ""); known || len(got.Owned) != 0 {
		t.Errorf("Usage() = %v", got)
	}
}

// TestCacheRevision: a request for a subnet is a revision of its network, which the
// response does not contain. What another client changed meanwhile is not in it.
func TestCacheRevision(t *testing.T) {
	ctx := t.Context()
	update := func(settings neutron.SubnetSettings) func(*neutron.Cache) error {
		return func(c *neutron.Cache) error {
			_, err := c.UpdateSubnet(ctx, "sub-1", neutron.SubnetUpdate{SubnetSettings: settings})
			return err
		}
	}
	for name, test := range map[string]struct {
		send    func(*neutron.Cache) error
		own     int // revisions
		subnets []string
	}{
		"create": {func(c *neutron.Cache) error {
			_, err := c.CreateSubnet(ctx, neutron.NewSubnet{NetworkID: "net-1", Name: "second"})
			return err
		}, 1, []string{"sub-1", "new-second"}},
		"update": {update(neutron.SubnetSettings{Gateway: new(netip.MustParseAddr("10.0.0.9"))}), 1, []string{"sub-1"}},
		"delete": {func(c *neutron.Cache) error { return c.DeleteSubnet(ctx, "sub-1", 1) }, 1, nil},
		// Neutron 26 gives the network no revision for it.
		"update of name servers": {update(neutron.SubnetSettings{Nameservers: &[]netip.Addr{}}), 0, []string{"sub-1"}},
	} {
		for listed, more := range map[string]int{"before the request": 0, "after the request": 1, "after another client's": 5} {
			t.Run(name+", listed "+listed, func(t *testing.T) {
				f := full()
				cache, before := filled(t, f), ours
				if more > 0 {
					f.networks[0].SubnetIDs, f.networks[0].Revision = test.subnets, before.Revision+more
				}
				f.duringList = func() { must(t, test.send(cache)) }
				must(t, refresh(t, cache))
				got, _ := cache.Lookup(neutron.Owner{}, "net-1")
				want := before
				want.SubnetIDs, want.Revision = test.subnets, before.Revision+max(test.own, more)
				if diff := cmp.Diff([]neutron.Network{want}, got.Named, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("the network differs (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestCacheForbiddenLists: a cloud that forbids the lists of extensions and router interfaces
// leaves them unknown. If they are unavailable, so is the list as a whole.
func TestCacheForbiddenLists(t *testing.T) {
	f := full()
	m := filled(t, f)
	wantInterfaces(t, m, "net-1", "")
	if got, known := m.KnownExtensions(); !known || len(got) != 1 {
		t.Errorf("KnownExtensions() = %v, %v", got, known)
	}
	f.forbidden = &neutron.Error{Class: neutron.ErrUnavailable}
	if refresh(t, m) == nil {
		t.Error("Refresh() succeeds without the router interfaces")
	}
	f.forbidden = &neutron.Error{Class: neutron.ErrRefused}
	m = filled(t, f)
	wantInterfaces(t, m, "net-1", "unknown")
	if got, known := m.KnownExtensions(); known {
		t.Errorf("KnownExtensions() = %v", got)
	}
}

// TestCacheKnown: what has not changed since the last list is not read again, whatever
// this process has done with it.
func TestCacheKnown(t *testing.T) {
	client := full()
	m := filled(t, client)
	for _, step := range []struct {
		after string
		do    func()
		want  []string // is read
	}{
		{"no change", func() {}, nil},
		{"an update that Neutron has reverted", func() {
			_, err := m.UpdateNetwork(t.Context(), "net-1", neutron.NetworkUpdate{Name: "changed"})
			must(t, err)
		}, nil},
		{"a change of a network in Neutron", func() { client.networks[0].Revision++ }, []string{"net-1"}},
		{"a change of a subnet in Neutron", func() { client.subnets[0].Revision++ }, []string{"sub-1"}},
		{"no change again", func() {}, nil},
	} {
		client.visited = nil
		step.do()
		must(t, refresh(t, m))
		view, _ := m.Lookup(owner, "net-2")
		got := []any{client.visited, slices.Concat(view.Marked, view.Named), view.Subnets["net-1"]}
		want := []any{step.want, client.networks, client.subnets}
		if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
			t.Errorf("what is read and in the cache after %s (-want +got):\n%s", step.after, diff)
		}
	}
}

// TestCachePages: an object on two pages counts once, as it was read last.
func TestCachePages(t *testing.T) {
	older, unmarked := ours, ours
	older.Revision, unmarked.ID, unmarked.Description = 1, "net-4", ""
	marked := unmarked
	marked.Description = owner.Marker()
	m := neutron.NewCache(&fake{
		networks: []neutron.Network{older, marked, ours, unmarked}, subnets: []neutron.Subnet{subnet, subnet},
	}, time.Now)
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
		client.duringList = func() {
			<-time.After(time.Second)
			m.RequestRefresh(time.Now())
		}
		must(t, refresh(t, m))
		if !pending() {
			t.Error("nothing is requested after a list that began too early")
		}
		requested := time.Now()
		<-time.After(time.Second)
		client.duringList = func() { m.RequestRefresh(requested) }
		must(t, refresh(t, m))
		if pending() {
			t.Error("another list is requested during one that began late enough")
		}
		m.RequestRefresh(requested)
		if pending() {
			t.Error("another list is requested after one that began late enough")
		}
	})
}

// wantInterfaces checks the routers to which a network is attached in a cache.
func wantInterfaces(t *testing.T, cache *neutron.Cache, networkID, want string) {
	t.Helper()
	view, _ := cache.Lookup(neutron.Owner{}, networkID)
	found, known := view.RouterInterfaces[networkID]
	var words []string
	for _, i := range found {
		words = append(words, i.SubnetID+"@"+i.RouterID)
	}
	if !known {
		words = []string{"unknown"}
	}
	if got := strings.Join(words, " "); got != want {
		t.Errorf("%s is attached to %q, want %q", networkID, got, want)
	}
}

// TestCacheRouterInterfaces: the cache follows router interfaces that are added and removed,
// also if it could not list all.
func TestCacheRouterInterfaces(t *testing.T) {
	attached := neutron.RouterInterface{RouterID: "router-1", NetworkID: "net-1", SubnetID: "sub-1", PortID: "port"}
	other := neutron.RouterInterface{RouterID: "router-2", NetworkID: "net-2", SubnetID: "sub-2", PortID: "port-2"}
	f := full()
	f.interfaces, f.forbidden = []neutron.RouterInterface{attached, other}, &neutron.Error{Class: neutron.ErrRefused}
	m := filled(t, f)
	created, err := m.CreateNetwork(t.Context(), neutron.NewNetwork{Name: "x"})
	must(t, err)
	wantInterfaces(t, m, created.ID, "")
	_, err = m.AddRouterInterface(t.Context(), neutron.RouterInterface{RouterID: "router-1", NetworkID: created.ID, SubnetID: "sub-3"})
	must(t, err)
	wantInterfaces(t, m, created.ID, "sub-3@router-1")
	_, err = m.RouterInterfaces(t.Context(), "net-1")
	must(t, err)
	wantInterfaces(t, m, "net-1", "sub-1@router-1")
	wantInterfaces(t, m, "net-2", "unknown")

	f.forbidden = nil
	must(t, refresh(t, m))
	wantInterfaces(t, m, "net-2", "sub-2@router-2")
	f.failure = &neutron.Error{Class: neutron.ErrUnavailable}
	_ = m.RemoveRouterInterface(t.Context(), attached)
	wantInterfaces(t, m, "net-1", "sub-1@router-1")
	f.failure = &neutron.Error{Class: neutron.ErrNotFound}
	_ = m.RemoveRouterInterface(t.Context(), attached)
	wantInterfaces(t, m, "net-1", "")

	f.failure, f.interfaces = nil, nil
	f.duringList = func() { _, _ = m.AddRouterInterface(t.Context(), attached) }
	must(t, refresh(t, m))
	wantInterfaces(t, m, "net-1", "sub-1@router-1")
	wantInterfaces(t, m, "net-2", "")
}

// TestCacheRouters: the cache keeps the router of a name while there is one.
func TestCacheRouters(t *testing.T) {
	f, filter := full(), neutron.RouterFilter{Name: "edge"}
	m := filled(t, f)
	for _, routers := range [][]neutron.Router{nil, {{ID: "router-1", Name: "edge"}}, {{ID: "router-1", Name: "edge"}, {ID: "router-2", Name: "edge"}}} {
		f.routers = routers
		_, err := m.Routers(t.Context(), filter)
		must(t, err)
		got, known := m.KnownRouter(filter)
		if known != (len(routers) == 1) || known && got != routers[0] {
			t.Errorf("after %v were found, KnownRouter() = %v, %v", routers, got, known)
		}
	}
}

// TestCacheForgetsRouters: the routers that are remembered are bounded, whatever users name.
func TestCacheForgetsRouters(t *testing.T) {
	f := full()
	m := filled(t, f)
	filter := func(i int) neutron.RouterFilter { return neutron.RouterFilter{Name: fmt.Sprint("router-", i)} }
	for i := range 10_001 {
		f.routers = []neutron.Router{{ID: "router", Name: filter(i).Name}}
		_, err := m.Routers(t.Context(), filter(i))
		must(t, err)
	}
	_, first := m.KnownRouter(filter(0))
	if _, last := m.KnownRouter(filter(10_000)); first || !last {
		t.Errorf("the first router is known: %v, and the last one: %v; want only the last one", first, last)
	}
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

// TestCacheUsage: what a cluster has is counted by namespace, or as a whole, and the clusters
// of a name are known. Both follow the owner markers.
func TestCacheUsage(t *testing.T) {
	other, foreign, third := owner, owner, owner
	other.Namespace, foreign.Cluster, third.Cluster = "other", "c2", "c3"
	cache := filled(t, &fake{networks: []neutron.Network{
		{ID: "2", Description: owner.Marker()}, {ID: "1", Description: owner.Marker()}, {ID: "3", Description: other.Marker()},
		{ID: "4", Description: foreign.RetainedMarker()}, {ID: "5", Description: "default"}, {ID: "6", Description: third.Marker()},
	}})
	want := func(doing, namespace string, want neutron.Usage, wantOwners ...neutron.Owner) {
		t.Helper()
		usage, known := cache.Usage("c1", namespace)
		owners, alsoKnown := cache.Owners("default", "example")
		diff := cmp.Diff(want, usage, cmpopts.EquateEmpty()) + cmp.Diff(wantOwners, owners)
		if !known || !alsoKnown || diff != "" {
			t.Errorf("%s: Usage() is known: %v, Owners(): %v (-want +got):\n%s", doing, known, alsoKnown, diff)
		}
	}
	type ids = map[neutron.Owner][]string
	want("after a list", "default", neutron.Usage{Owned: ids{owner: {"1", "2"}}}, owner, foreign, third)
	want("in all namespaces", "", neutron.Usage{Owned: ids{owner: {"1", "2"}, other: {"3"}}}, owner, foreign, third)
	_, err := cache.UpdateNetwork(t.Context(), "1", neutron.NetworkUpdate{Description: owner.RetainedMarker()})
	must(t, err)
	must(t, cache.DeleteNetwork(t.Context(), "6", 0))
	want("after one was retained", "default", neutron.Usage{Owned: ids{owner: {"2"}}, Retained: ids{owner: {"1"}}}, owner, foreign)
	must(t, cache.DeleteNetwork(t.Context(), "1", 0))
	_, err = cache.UpdateNetwork(t.Context(), "4", neutron.NetworkUpdate{Description: "theirs"})
	must(t, err)
	want("after it was deleted", "default", neutron.Usage{Owned: ids{owner: {"2"}}}, owner)
}
