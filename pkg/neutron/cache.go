package neutron

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// Cache is a Client that keeps a copy of Neutron's state in memory: the result
// of the last complete list, overlaid with everything that was read or written
// through the Cache since. It is for Neutron what an informer's store is for
// Kubernetes.
//
// The copy may be out of date. A request that follows from it must carry the revision of
// the object, so that Neutron rejects it then.
//
// A Cache is safe for concurrent use.
type Cache struct {
	Client // for what is not cached
	now    func() time.Time

	requests chan struct{} // to refresh before the next time

	mu      sync.RWMutex
	content *content // nil until the first list has succeeded
	// listedAt is when the last complete list began.
	listedAt time.Time
	// overlay holds what was read and written while a list was running: the list
	// may or may not contain it.
	overlay []func(*content)
	listing bool
	begunAt time.Time // of the running list

	cloud      string                  // empty until the first request
	extensions []string                // nil until the first request
	routers    map[RouterFilter]Router // that were the only ones to match

	// Only Refresh uses these.
	quotas    map[string]Quota
	quotasDue time.Time // when they are read again
}

// quotaPeriod is how often quotas are read, and maxRouters bounds those that are remembered.
const (
	quotaPeriod = 5 * time.Minute
	maxRouters  = 10_000
)

// NewCache returns an empty Cache in front of a client. Refresh fills it. Now
// returns the current time.
func NewCache(client Client, now func() time.Time) *Cache {
	return &Cache{Client: client, now: now, requests: make(chan struct{}, 1), routers: map[RouterFilter]Router{}}
}

// Size returns the number of networks and subnets that the Cache has, and when the last
// complete list began, or the zero Time before the first one.
func (c *Cache) Size() (networks, subnets int, listedAt time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.content == nil {
		return 0, 0, time.Time{}
	}
	return len(c.content.networks), len(c.content.subnets), c.listedAt
}

// RequestRefresh requests a Refresh that begins after a point in time, before the next
// one is due. It does not wait for it.
func (c *Cache) RequestRefresh(after time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listedAt.After(after) || c.listing && c.begunAt.After(after) {
		return // there is one, or it is running
	}
	select {
	case c.requests <- struct{}{}:
	default: // it is requested already
	}
}

// RefreshRequests returns a channel that receives a value if a Refresh was requested
// that has not begun.
func (c *Cache) RefreshRequests() <-chan struct{} { return c.requests }

// Listing describes one complete list of Neutron's state.
type Listing struct {
	Cloud             string
	Networks, Subnets int
	Began             time.Time
	Took              time.Duration
	// Quotas are those of kinds, if they are known. They may be 5 minutes old.
	Quotas map[string]Quota
}

// Refresh lists all networks, subnets, router interfaces and extensions. It finds out the
// identity of the cloud if it is unknown. If a request fails, the Cache keeps its content:
// an incomplete list proves nothing. A cloud may forbid the lists of router interfaces and
// extensions: only a Network that needs one fails then. It may also forbid to read quotas.
// Refresh must not be called concurrently.
func (c *Cache) Refresh(ctx context.Context) (Listing, error) {
	begun := c.now()
	c.mu.Lock()
	c.listing, c.begunAt, c.overlay = true, begun, nil
	before := c.content
	select {
	case <-c.requests:
	default:
	}
	c.mu.Unlock()

	fresh, err := c.list(ctx, before)
	if err == nil {
		c.readQuotas(ctx)
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	c.listing = false
	took := c.now().Sub(begun)
	if err != nil {
		return Listing{Began: begun, Took: took}, err
	}
	for _, change := range c.overlay {
		change(fresh)
	}
	c.content, c.overlay, c.listedAt = fresh, nil, begun
	return Listing{Cloud: c.cloud, Networks: len(fresh.networks), Subnets: len(fresh.subnets), Began: begun,
		Took: took, Quotas: c.quotas}, nil
}

// readQuotas reads the quotas now and then. They are only shown, so an error is not reported,
// and a cloud that does not permit it is not asked again.
func (c *Cache) readQuotas(ctx context.Context) {
	reader, ok := c.Client.(QuotaReader)
	if !ok || c.now().Before(c.quotasDue) {
		return
	}
	quotas, err := reader.Quotas(ctx)
	c.quotas, c.quotasDue = quotas, c.now().Add(quotaPeriod)
	if errors.Is(err, ErrRefused) || errors.Is(err, ErrNotFound) {
		c.quotasDue = c.now().Add(1000 * time.Hour)
	}
}

func (c *Cache) list(ctx context.Context, before *content) (*content, error) {
	if _, err := c.Cloud(ctx); err != nil {
		return nil, err
	}
	fresh, err := listContent(ctx, c.Client, before)
	if err != nil {
		return nil, err
	}
	interfaces, err := c.Client.RouterInterfaces(ctx, "")
	if err != nil && !errors.Is(err, ErrRefused) {
		return nil, err
	}
	fresh.hasInterfaces = err == nil
	for _, attached := range interfaces {
		fresh.putInterface(attached)
	}
	if _, err := c.Extensions(ctx); err != nil && !errors.Is(err, ErrRefused) {
		return nil, err
	}
	return fresh, nil
}

// ListedSince reports whether a complete list began after a point in time.
func (c *Cache) ListedSince(t time.Time) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.listedAt.After(t)
}

// View is the part of a Cache that belongs to one Kubernetes object.
type View struct {
	// Marked are the networks with a marker of the owner.
	Marked []Network
	// Named is the network with the requested ID: one, or none.
	Named []Network
	// Subnets are the subnets of these networks, by network ID.
	Subnets map[string][]Subnet
	// RouterInterfaces are those of these networks, by network ID. A network whose
	// router interfaces are unknown is not in the map.
	RouterInterfaces map[string][]RouterInterface
}

// Lookup returns the networks with an owner marker or a retained marker of the owner,
// and the one with the ID, without a request. It returns false until the first list has
// succeeded.
func (c *Cache) Lookup(owner Owner, id string) (View, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.content == nil {
		return View{}, false
	}
	view := View{Subnets: map[string][]Subnet{}, RouterInterfaces: map[string][]RouterInterface{}}
	for _, network := range c.content.owned[owner.String()] {
		if owner.HasMarker(network.Description) || owner.HasRetainedMarker(network.Description) {
			view.Marked = append(view.Marked, *network)
			c.content.addTo(view, network.ID)
		}
	}
	if network, ok := c.content.networks[id]; ok {
		view.Named = []Network{*network}
		c.content.addTo(view, id)
	}
	return view, true
}

// Usage is what the Networks of a cluster have in Neutron: the sorted IDs of the networks
// with an owner marker, and of those with a retained marker, by owner.
type Usage struct{ Owned, Retained map[Owner][]string }

// Owners returns all owners, sorted.
func (u Usage) Owners() []Owner {
	owners := slices.AppendSeq(slices.Collect(maps.Keys(u.Owned)), maps.Keys(u.Retained))
	slices.SortFunc(owners, Owner.compare)
	return slices.Compact(owners)
}

// Usage returns what a namespace of a cluster has in Neutron, or all namespaces if it is
// empty. It returns false until the first list has succeeded.
func (c *Cache) Usage(cluster, namespace string) (usage Usage, known bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	usage = Usage{Owned: map[Owner][]string{}, Retained: map[Owner][]string{}}
	if c.content == nil {
		return usage, false
	}
	in := c.content.in
	if namespace != "" {
		in = map[string][]*Network{namespace: in[namespace]}
	}
	for _, networks := range in {
		for _, network := range networks {
			if owner, ok := ParseMarker(network.Description); ok && owner.Cluster == cluster {
				usage.Owned[owner] = insert(usage.Owned[owner], network.ID)
			} else if owner, ok := ParseRetainedMarker(network.Description); ok && owner.Cluster == cluster {
				usage.Retained[owner] = insert(usage.Retained[owner], network.ID)
			}
		}
	}
	return usage, true
}

// insert adds an ID to those that are sorted.
func insert(ids []string, id string) []string {
	i, _ := slices.BinarySearch(ids, id)
	return slices.Insert(ids, i, id)
}

// Owners returns the owners with a namespace and name in any cluster, sorted by
// cluster, of whom a network has the owner marker or the retained marker. They are
// unknown before the first list.
func (c *Cache) Owners(namespace, name string) (owners []Owner, known bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.content == nil {
		return nil, false
	}
	var networks []Network
	for _, network := range c.content.owned[Owner{Namespace: namespace, Name: name}.String()] {
		networks = append(networks, *network)
	}
	return OwnersOf(networks), true
}

// OwnersOf returns the owners, or former owners, of networks, sorted by cluster.
func OwnersOf(networks []Network) (owners []Owner) {
	for _, network := range networks {
		if owner, ok := ownerOf(network.Description); ok {
			owners = append(owners, owner)
		}
	}
	slices.SortFunc(owners, Owner.compare)
	return slices.Compact(owners)
}

// note applies a change to the content, if the request that led to it succeeded.
func (c *Cache) note(err error, change func(*content)) {
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.content != nil {
		change(c.content)
	}
	if c.listing {
		c.overlay = append(c.overlay, change)
	}
}

// unlessGone returns the error of a deletion, or nil if the object does not exist.
func unlessGone(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// Networks lists networks. To look for the networks of an owner, filter by the name that
// they have (Owner.String). Those that the Cache has under another name, because a
// user renamed them, are looked for by their IDs.
func (c *Cache) Networks(ctx context.Context, filter NetworkFilter) ([]Network, error) {
	found, err := c.Client.Networks(ctx, filter)
	if err != nil {
		return nil, err
	}
	if filter.ID != "" || filter.Name != "" {
		c.note(nil, func(s *content) { s.replaceNetworks(filter, found) })
	}
	for _, id := range c.renamed(filter) {
		others, err := c.Networks(ctx, NetworkFilter{ID: id})
		if err != nil {
			return nil, err
		}
		isFound := func(n Network) bool { return n.ID == id }
		found = append(slices.DeleteFunc(found, isFound), others...)
	}
	return found, nil
}

// renamed returns the IDs of the networks of an owner that have another name than the one
// to look for.
func (c *Cache) renamed(filter NetworkFilter) (ids []string) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.content == nil || filter.Name == "" {
		return nil
	}
	for _, network := range c.content.owned[filter.Name] {
		if network.Name != filter.Name {
			ids = append(ids, network.ID)
		}
	}
	return ids
}

func (c *Cache) Subnets(ctx context.Context, filter SubnetFilter) ([]Subnet, error) {
	found, err := c.Client.Subnets(ctx, filter)
	if filter.NetworkID != "" {
		c.note(err, func(s *content) { s.replaceSubnets(filter.NetworkID, found) })
	}
	return found, err
}

func (c *Cache) Extensions(ctx context.Context) ([]string, error) {
	found, err := c.Client.Extensions(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.extensions = found
	return found, nil
}

// KnownExtensions returns the extensions of the last request, or false if there
// was none.
func (c *Cache) KnownExtensions() ([]string, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.extensions, c.extensions != nil
}

func (c *Cache) Routers(ctx context.Context, filter RouterFilter) ([]Router, error) {
	found, err := c.Client.Routers(ctx, filter)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if delete(c.routers, filter); len(c.routers) >= maxRouters {
		clear(c.routers) // who needs one asks again
	}
	if len(found) == 1 {
		c.routers[filter] = found[0]
	}
	return found, nil
}

// KnownRouter returns the router that was the only one to match a filter in the last
// request, or false if there was none.
func (c *Cache) KnownRouter(filter RouterFilter) (Router, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	router, ok := c.routers[filter]
	return router, ok
}

func (c *Cache) RouterInterfaces(ctx context.Context, networkID string) ([]RouterInterface, error) {
	found, err := c.Client.RouterInterfaces(ctx, networkID)
	if networkID != "" {
		c.note(err, func(s *content) { s.interfaces[networkID] = found })
	}
	return found, err
}

func (c *Cache) AddRouterInterface(ctx context.Context, requested RouterInterface) (RouterInterface, error) {
	added, err := c.Client.AddRouterInterface(ctx, requested)
	c.note(err, func(s *content) { s.putInterface(added) })
	return added, err
}

func (c *Cache) RemoveRouterInterface(ctx context.Context, attached RouterInterface) error {
	err := c.Client.RemoveRouterInterface(ctx, attached)
	c.note(unlessGone(err), func(s *content) { s.removeInterface(attached) })
	return err
}

// Cloud returns the identity of the cloud, which is remembered.
func (c *Cache) Cloud(ctx context.Context) (string, error) {
	if cloud, ok := c.KnownCloud(); ok {
		return cloud, nil
	}
	cloud, err := c.Client.Cloud(ctx)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cloud = cloud
	return cloud, nil
}

// KnownCloud returns the identity of the cloud, or false if it is unknown.
func (c *Cache) KnownCloud() (string, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.cloud, c.cloud != ""
}

func (c *Cache) AddNetworkTag(ctx context.Context, id, tag string) error {
	err := c.Client.AddNetworkTag(ctx, id, tag)
	c.note(err, func(s *content) { s.changeTag(id, tag, true) })
	return err
}

func (c *Cache) RemoveNetworkTag(ctx context.Context, id, tag string) error {
	err := c.Client.RemoveNetworkTag(ctx, id, tag)
	c.note(err, func(s *content) { s.changeTag(id, tag, false) })
	return err
}

func (c *Cache) CreateNetwork(ctx context.Context, network NewNetwork) (Network, error) {
	created, err := c.Client.CreateNetwork(ctx, network)
	c.note(err, func(s *content) {
		s.putNetwork(created)
		s.interfaces[created.ID] = nil // known to be none
	})
	return created, err
}

func (c *Cache) UpdateNetwork(ctx context.Context, id string, update NetworkUpdate) (Network, error) {
	updated, err := c.Client.UpdateNetwork(ctx, id, update)
	c.note(err, func(s *content) { s.putNetwork(updated) })
	return updated, err
}

func (c *Cache) DeleteNetwork(ctx context.Context, id string, revision int) error {
	err := c.Client.DeleteNetwork(ctx, id, revision)
	c.note(unlessGone(err), func(s *content) { s.removeNetwork(id) })
	return err
}

func (c *Cache) CreateSubnet(ctx context.Context, subnet NewSubnet) (Subnet, error) {
	before := c.revisionOf(subnet.NetworkID)
	created, err := c.Client.CreateSubnet(ctx, subnet)
	c.note(err, func(s *content) {
		s.putSubnet(created)
		s.revise(subnet.NetworkID, before, func(ids []string) []string { return append(slices.Clone(ids), created.ID) })
	})
	return created, err
}

func (c *Cache) UpdateSubnet(ctx context.Context, id string, update SubnetUpdate) (Subnet, error) {
	old := c.knownSubnet(id)
	before := c.revisionOf(old.NetworkID)
	updated, err := c.Client.UpdateSubnet(ctx, id, update)
	c.note(err, func(s *content) {
		s.putSubnet(updated)
		// Only for these fields does every Neutron give the network the next revision. One
		// that is too high would be that of a change that the Cache has not seen.
		if old.Name != updated.Name || old.Gateway != updated.Gateway || old.DHCP != updated.DHCP {
			s.revise(old.NetworkID, before, func(ids []string) []string { return ids })
		}
	})
	return updated, err
}

func (c *Cache) DeleteSubnet(ctx context.Context, id string, revision int) error {
	networkID := c.knownSubnet(id).NetworkID
	before := c.revisionOf(networkID)
	err := c.Client.DeleteSubnet(ctx, id, revision)
	c.note(unlessGone(err), func(s *content) {
		s.removeSubnet(id)
		s.revise(networkID, before, func(ids []string) []string {
			return slices.DeleteFunc(slices.Clone(ids), func(other string) bool { return other == id })
		})
	})
	return err
}

// knownSubnet returns a subnet as the Cache has it, or the zero Subnet.
func (c *Cache) knownSubnet(id string) Subnet {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.content == nil || c.content.subnets[id] == nil {
		return Subnet{}
	}
	return *c.content.subnets[id]
}

// revisionOf returns the revision of a network as the Cache has it, or -1.
func (c *Cache) revisionOf(networkID string) int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.content == nil || c.content.networks[networkID] == nil {
		return -1
	}
	return c.content.networks[networkID].Revision
}
