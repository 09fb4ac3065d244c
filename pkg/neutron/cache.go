package neutron

import (
	"context"
	"errors"
	"slices"
	"strings"
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
	client Client
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

	cloud        string   // empty until the first request
	extensions   []string // nil until the first request
	extensionsAt time.Time
	// needsExtensions is true once a plan has requested the extensions: from then on,
	// each Refresh lists them. With needsExtensionsOnce, it does as long as they are
	// unknown.
	needsExtensions, needsExtensionsOnce bool

	// needsInterfaces is set once something has requested router interfaces: from then
	// on, each Refresh lists them.
	needsInterfaces bool
	routers         map[RouterFilter]Router // those that were the only ones to match
}

// NewCache returns an empty Cache in front of a client. Refresh fills it. Now
// returns the current time.
func NewCache(client Client, now func() time.Time) *Cache {
	return &Cache{client: client, now: now, requests: make(chan struct{}, 1)}
}

// NeedExtensions makes the first Refresh list the extensions.
func (c *Cache) NeedExtensions() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.needsExtensionsOnce = true
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
}

// Refresh lists all networks and subnets, and the extensions if they were ever
// requested. It finds out the identity of the cloud if it is unknown. If a request
// fails, the Cache keeps its content: an incomplete list proves nothing. Refresh
// must not be called concurrently.
func (c *Cache) Refresh(ctx context.Context) (Listing, error) {
	begun := c.now()
	c.mu.Lock()
	c.listing, c.begunAt, c.overlay = true, begun, nil
	select {
	case <-c.requests:
	default:
	}
	c.mu.Unlock()

	_, err := c.Cloud(ctx)
	var fresh *content
	if err == nil {
		fresh, err = c.list(ctx)
	}
	if required, useful := c.extensionsNeeded(); err == nil && useful {
		if _, failure := c.listExtensions(ctx); required {
			err = failure
		}
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
	return Listing{Cloud: c.cloud, Networks: len(fresh.networks), Subnets: len(fresh.subnets), Began: begun, Took: took}, nil
}

func (c *Cache) list(ctx context.Context) (*content, error) {
	before := &content{}
	c.mu.RLock()
	if c.content != nil {
		before = c.content
	}
	c.mu.RUnlock()
	fresh, err := listContent(ctx, c.client, before)
	if err != nil || !c.interfacesNeeded() {
		return fresh, err
	}
	interfaces, err := c.client.RouterInterfaces(ctx, "")
	if err != nil {
		return nil, err
	}
	fresh.hasInterfaces = true
	for _, attached := range interfaces {
		fresh.putInterface(attached)
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

// Owned returns the IDs of the networks that carry an owner marker of the
// cluster, by owner.
func (c *Cache) Owned(cluster string) map[Owner][]string { return c.marked(cluster, ParseMarker) }

// Retained returns the IDs of the networks that carry a retained marker of the
// cluster, by their last owner.
func (c *Cache) Retained(cluster string) map[Owner][]string {
	return c.marked(cluster, ParseRetainedMarker)
}

func (c *Cache) marked(cluster string, parse func(string) (Owner, bool)) map[Owner][]string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	owned := map[Owner][]string{}
	if c.content == nil {
		return owned
	}
	for _, networks := range c.content.owned {
		for _, network := range networks {
			if owner, ok := parse(network.Description); ok && owner.Cluster == cluster {
				owned[owner] = append(owned[owner], network.ID)
			}
		}
	}
	for _, ids := range owned {
		slices.Sort(ids)
	}
	return owned
}

// Usage is what a Kubernetes namespace has in Neutron: the IDs of the networks with
// an owner marker, and of those with a retained marker, by owner.
type Usage struct{ Owned, Retained map[Owner][]string }

// Usage returns what a namespace of a cluster has in Neutron. It returns false
// until the first list has succeeded.
func (c *Cache) Usage(cluster, namespace string) (Usage, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	usage := Usage{Owned: map[Owner][]string{}, Retained: map[Owner][]string{}}
	if c.content == nil {
		return usage, false
	}
	for _, network := range c.content.in[namespace] {
		if owner, ok := ParseMarker(network.Description); ok && owner.Cluster == cluster {
			usage.Owned[owner] = append(usage.Owned[owner], network.ID)
		} else if owner, ok := ParseRetainedMarker(network.Description); ok && owner.Cluster == cluster {
			usage.Retained[owner] = append(usage.Retained[owner], network.ID)
		}
	}
	return usage, true
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
	slices.SortFunc(owners, func(a, b Owner) int { return strings.Compare(a.Cluster+"/"+a.String(), b.Cluster+"/"+b.String()) })
	return slices.Compact(owners)
}

// note applies a change to the content.
func (c *Cache) note(change func(*content)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.content != nil {
		change(c.content)
	}
	if c.listing {
		c.overlay = append(c.overlay, change)
	}
}

// Networks implements Reader. To look for the networks of an owner, filter by the name
// that they have (Owner.String). Those that the Cache has under another name, because a
// user renamed them, are looked for by their IDs.
func (c *Cache) Networks(ctx context.Context, filter NetworkFilter) ([]Network, error) {
	found, err := c.client.Networks(ctx, filter)
	if err != nil {
		return nil, err
	}
	if filter.ID != "" || filter.Name != "" {
		c.note(func(s *content) { s.replaceNetworks(filter, found) })
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

// Subnets implements Reader.
func (c *Cache) Subnets(ctx context.Context, filter SubnetFilter) ([]Subnet, error) {
	found, err := c.client.Subnets(ctx, filter)
	if err == nil && filter.NetworkID != "" && filter.Description == "" {
		c.note(func(s *content) { s.replaceSubnets(filter.NetworkID, found) })
	}
	return found, err
}

// SubnetPools implements Reader. They are not cached.
func (c *Cache) SubnetPools(ctx context.Context, filter SubnetPoolFilter) ([]SubnetPool, error) {
	return c.client.SubnetPools(ctx, filter)
}

// extensionsLifetime is how long a list of extensions is valid: it changes when
// an operator upgrades Neutron.
const extensionsLifetime = time.Minute

// Extensions implements Reader. It sends at most one request a minute.
func (c *Cache) Extensions(ctx context.Context) ([]string, error) {
	c.mu.Lock()
	c.needsExtensions = true
	known, fresh := c.extensions, c.now().Sub(c.extensionsAt) < extensionsLifetime
	c.mu.Unlock()
	if known != nil && fresh {
		return known, nil
	}
	return c.listExtensions(ctx)
}

// extensionsNeeded reports whether a Refresh is incomplete without the extensions, and
// whether it should list them at least.
func (c *Cache) extensionsNeeded() (required, useful bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.needsExtensions, c.needsExtensions || c.needsExtensionsOnce && c.extensions == nil
}

func (c *Cache) listExtensions(ctx context.Context) ([]string, error) {
	found, err := c.client.Extensions(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.extensions, c.extensionsAt = found, c.now()
	return found, nil
}

// KnownExtensions returns the extensions of the last request, or false if there
// was none.
func (c *Cache) KnownExtensions() ([]string, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.extensions, c.extensions != nil
}

// NeedRouterInterfaces makes each Refresh list the router interfaces, as a request for
// them does. Call it before the first Refresh if a Network needs them: then no Network
// has to request its own.
func (c *Cache) NeedRouterInterfaces() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.needsInterfaces = true
}

func (c *Cache) interfacesNeeded() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.needsInterfaces
}

// Routers implements Routing.
func (c *Cache) Routers(ctx context.Context, filter RouterFilter) ([]Router, error) {
	found, err := c.client.Routers(ctx, filter)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.routers, filter)
	if len(found) == 1 {
		if c.routers == nil {
			c.routers = map[RouterFilter]Router{}
		}
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

// RouterInterfaces implements Routing.
func (c *Cache) RouterInterfaces(ctx context.Context, networkID string) ([]RouterInterface, error) {
	c.NeedRouterInterfaces()
	found, err := c.client.RouterInterfaces(ctx, networkID)
	if err == nil && networkID != "" {
		c.note(func(s *content) { s.interfaces[networkID] = found })
	}
	return found, err
}

// Ports implements Routing. They are not cached.
func (c *Cache) Ports(ctx context.Context, networkID string) ([]Port, error) {
	return c.client.Ports(ctx, networkID)
}

// AddRouterInterface implements Routing.
func (c *Cache) AddRouterInterface(ctx context.Context, requested RouterInterface) (RouterInterface, error) {
	c.NeedRouterInterfaces()
	added, err := c.client.AddRouterInterface(ctx, requested)
	if err == nil {
		c.note(func(s *content) { s.putInterface(added) })
	}
	return added, err
}

// RemoveRouterInterface implements Routing.
func (c *Cache) RemoveRouterInterface(ctx context.Context, attached RouterInterface) error {
	err := c.client.RemoveRouterInterface(ctx, attached)
	if err == nil || errors.Is(err, ErrNotFound) {
		c.note(func(s *content) { s.removeInterface(attached) })
	}
	return err
}

// Cloud implements Client. The identity of the cloud is remembered.
func (c *Cache) Cloud(ctx context.Context) (string, error) {
	if cloud, ok := c.KnownCloud(); ok {
		return cloud, nil
	}
	cloud, err := c.client.Cloud(ctx)
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

// AddNetworkTag implements Tagger.
func (c *Cache) AddNetworkTag(ctx context.Context, id, tag string) error {
	err := c.client.AddNetworkTag(ctx, id, tag)
	if err == nil {
		c.note(func(s *content) { s.changeTag(id, tag, true) })
	}
	return err
}

// RemoveNetworkTag implements Tagger.
func (c *Cache) RemoveNetworkTag(ctx context.Context, id, tag string) error {
	err := c.client.RemoveNetworkTag(ctx, id, tag)
	if err == nil {
		c.note(func(s *content) { s.changeTag(id, tag, false) })
	}
	return err
}

// CreateNetwork implements Writer.
func (c *Cache) CreateNetwork(ctx context.Context, network NewNetwork) (Network, error) {
	created, err := c.client.CreateNetwork(ctx, network)
	if err == nil {
		c.note(func(s *content) {
			s.putNetwork(created)
			s.interfaces[created.ID] = nil // known to be none
		})
	}
	return created, err
}

// UpdateNetwork implements Writer.
func (c *Cache) UpdateNetwork(ctx context.Context, id string, update NetworkUpdate) (Network, error) {
	updated, err := c.client.UpdateNetwork(ctx, id, update)
	if err == nil {
		c.note(func(s *content) { s.putNetwork(updated) })
	}
	return updated, err
}

// DeleteNetwork implements Writer.
func (c *Cache) DeleteNetwork(ctx context.Context, id string, revision int) error {
	err := c.client.DeleteNetwork(ctx, id, revision)
	if err == nil || errors.Is(err, ErrNotFound) {
		c.note(func(s *content) { s.removeNetwork(id) })
	}
	return err
}

// CreateSubnet implements Writer.
func (c *Cache) CreateSubnet(ctx context.Context, subnet NewSubnet) (Subnet, error) {
	revise := c.revise(subnet.NetworkID)
	created, err := c.client.CreateSubnet(ctx, subnet)
	if err == nil {
		c.note(func(s *content) {
			s.putSubnet(created)
			revise(s, func(ids []string) []string { return append(slices.Clone(ids), created.ID) })
		})
	}
	return created, err
}

// UpdateSubnet implements Writer.
func (c *Cache) UpdateSubnet(ctx context.Context, id string, update SubnetUpdate) (Subnet, error) {
	before := c.knownSubnet(id)
	revise := c.revise(before.NetworkID)
	updated, err := c.client.UpdateSubnet(ctx, id, update)
	if err == nil {
		c.note(func(s *content) {
			s.putSubnet(updated)
			// Only for these fields does every Neutron give the network the next revision. One
			// that is too high would be that of a change that the Cache has not seen.
			if before.Name != updated.Name || before.Gateway != updated.Gateway || before.DHCP != updated.DHCP {
				revise(s, func(ids []string) []string { return ids })
			}
		})
	}
	return updated, err
}

// DeleteSubnet implements Writer.
func (c *Cache) DeleteSubnet(ctx context.Context, id string, revision int) error {
	revise := c.revise(c.knownSubnet(id).NetworkID)
	err := c.client.DeleteSubnet(ctx, id, revision)
	if err == nil || errors.Is(err, ErrNotFound) {
		c.note(func(s *content) {
			s.removeSubnet(id)
			revise(s, func(ids []string) []string {
				return slices.DeleteFunc(slices.Clone(ids), func(other string) bool { return other == id })
			})
		})
	}
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

// revise returns a function that is to be called after a request for a subnet of the
// network: Neutron then gives the network the next revision. If another client changes
// the network meanwhile, its revision is a later one, and a request with the expected
// one is rejected.
func (c *Cache) revise(networkID string) func(*content, func(subnetIDs []string) []string) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.content == nil || c.content.networks[networkID] == nil {
		return func(*content, func([]string) []string) {}
	}
	before := c.content.networks[networkID].Revision
	return func(s *content, change func([]string) []string) {
		if current := s.networks[networkID]; current != nil && current.Revision == before {
			network := *current
			network.Revision++
			network.SubnetIDs = change(network.SubnetIDs)
			s.addNetwork(&network)
		}
	}
}
