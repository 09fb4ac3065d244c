package neutron

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Cache is a Client that remembers what Neutron has: all of it as it was when
// it was last listed, overlaid with what has been read and written through it
// since. What it remembers may be out of date; it is good for telling what is
// worth a look, and not for deciding what to change.
//
// It is safe for concurrent use.
type Cache struct {
	client Client

	mu      sync.RWMutex
	content *content // nil until the first list
	// overlay is what was read and written while a list was under way: the list
	// may or may not have it.
	overlay []func(*content)
	listing bool

	extensions   []string // as they were last asked for
	extensionsAt time.Time
}

// NewCache returns a Cache that is empty until it is refreshed.
func NewCache(client Client) *Cache { return &Cache{client: client} }

// Listing is what a list of everything came to.
type Listing struct {
	Networks, Subnets int
	Took              time.Duration
}

// Refresh lists all networks and subnets, and the extensions if anybody has
// asked for them. Where that fails, the mirror stays as
// it is: of half a list nothing can be concluded. It must not be called twice at
// a time.
func (m *Cache) Refresh(ctx context.Context) (Listing, error) {
	begun := time.Now()
	m.mu.Lock()
	m.listing, m.overlay = true, nil
	m.mu.Unlock()

	fresh, err := m.list(ctx)
	if _, asked := m.KnownExtensions(); asked && err == nil {
		_, err = m.Extensions(ctx)
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	m.listing = false
	took := time.Since(begun)
	if err != nil {
		return Listing{Took: took}, err
	}
	for _, change := range m.overlay {
		change(fresh)
	}
	m.content, m.overlay = fresh, nil
	return Listing{Networks: len(fresh.networks), Subnets: len(fresh.subnets), Took: took}, nil
}

func (m *Cache) list(ctx context.Context) (*content, error) {
	networks, err := m.client.Networks(ctx, NetworkFilter{})
	if err != nil {
		return nil, err
	}
	subnets, err := m.client.Subnets(ctx, SubnetFilter{})
	if err != nil {
		return nil, err
	}
	fresh := newContent()
	for _, network := range networks {
		fresh.putNetwork(network)
	}
	for _, subnet := range subnets {
		fresh.putSubnet(subnet)
	}
	return fresh, nil
}

// View is what the mirror remembers of one object's networks.
type View struct {
	// Marked are the networks with one of the descriptions asked for.
	Marked []Network
	// Named is the network with the ID asked for: one, or none.
	Named []Network
	// Subnets are those on the networks above, by network.
	Subnets map[string][]Subnet
}

// View returns what is remembered of the networks with one of these
// descriptions, and of the one with the ID. It returns false where nothing has
// been listed yet.
func (m *Cache) Lookup(descriptions []string, id string) (View, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.content == nil {
		return View{}, false
	}
	glance := View{Subnets: map[string][]Subnet{}}
	for _, description := range descriptions {
		for networkID := range m.content.described[description] {
			glance.Marked = append(glance.Marked, m.content.networks[networkID])
		}
	}
	if network, ok := m.content.networks[id]; ok {
		glance.Named = []Network{network}
	}
	for _, network := range slices.Concat(glance.Marked, glance.Named) {
		var subnets []Subnet
		for subnetID := range m.content.on[network.ID] {
			subnets = append(subnets, m.content.subnets[subnetID])
		}
		glance.Subnets[network.ID] = subnets
	}
	return glance, true
}

// Owned returns the IDs of the networks that carry a mark of the cluster, by
// owner.
func (m *Cache) Owned(cluster string) map[Owner][]string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	owned := map[Owner][]string{}
	if m.content == nil {
		return owned
	}
	for description, ids := range m.content.described {
		owner, ok := ParseMarker(description)
		if !ok || owner.Cluster != cluster {
			continue
		}
		for id := range ids {
			owned[owner] = append(owned[owner], id)
		}
		slices.Sort(owned[owner])
	}
	return owned
}

// note makes a change to what is remembered.
func (m *Cache) note(change func(*content)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.content != nil {
		change(m.content)
	}
	if m.listing {
		m.overlay = append(m.overlay, change)
	}
}

// Networks implements Reader.
func (m *Cache) Networks(ctx context.Context, filter NetworkFilter) ([]Network, error) {
	found, err := m.client.Networks(ctx, filter)
	if err == nil && (filter.ID != "" || filter.Descriptions != nil) {
		m.note(func(c *content) { c.replaceNetworks(filter, found) })
	}
	return found, err
}

// Subnets implements Reader.
func (m *Cache) Subnets(ctx context.Context, filter SubnetFilter) ([]Subnet, error) {
	found, err := m.client.Subnets(ctx, filter)
	if err == nil && filter.NetworkID != "" && filter.Description == "" {
		m.note(func(c *content) { c.replaceSubnets(filter.NetworkID, found) })
	}
	return found, err
}

// SubnetPools implements Reader. None are remembered.
func (m *Cache) SubnetPools(ctx context.Context, filter SubnetPoolFilter) ([]SubnetPool, error) {
	return m.client.SubnetPools(ctx, filter)
}

// extensionsLast is for how long the extensions of a Neutron are believed to be
// what they were: they change when somebody upgrades it.
const extensionsLast = time.Minute

// Extensions implements Reader. It asks once a minute at most.
func (m *Cache) Extensions(ctx context.Context) ([]string, error) {
	m.mu.RLock()
	known, fresh := m.extensions, time.Since(m.extensionsAt) < extensionsLast
	m.mu.RUnlock()
	if known != nil && fresh {
		return known, nil
	}
	found, err := m.client.Extensions(ctx)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.extensions, m.extensionsAt = found, time.Now()
	return found, nil
}

// KnownExtensions returns the extensions as they were last asked for; false
// where nobody has asked.
func (m *Cache) KnownExtensions() ([]string, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.extensions, m.extensions != nil
}

// AddNetworkTag implements Tagger.
func (m *Cache) AddNetworkTag(ctx context.Context, id, tag string) error {
	err := m.client.AddNetworkTag(ctx, id, tag)
	if err == nil {
		m.note(func(c *content) {
			c.changeTags(id, func(tags []string) []string { return append(slices.Clone(tags), tag) })
		})
	}
	return err
}

// RemoveNetworkTag implements Tagger.
func (m *Cache) RemoveNetworkTag(ctx context.Context, id, tag string) error {
	err := m.client.RemoveNetworkTag(ctx, id, tag)
	if err == nil {
		m.note(func(c *content) {
			c.changeTags(id, func(tags []string) []string {
				return slices.DeleteFunc(slices.Clone(tags), func(t string) bool { return t == tag })
			})
		})
	}
	return err
}

// CreateNetwork implements Writer.
func (m *Cache) CreateNetwork(ctx context.Context, network NewNetwork) (Network, error) {
	created, err := m.client.CreateNetwork(ctx, network)
	if err == nil {
		m.note(func(c *content) { c.putNetwork(created) })
	}
	return created, err
}

// UpdateNetwork implements Writer.
func (m *Cache) UpdateNetwork(ctx context.Context, id string, update NetworkUpdate) (Network, error) {
	updated, err := m.client.UpdateNetwork(ctx, id, update)
	if err == nil {
		m.note(func(c *content) { c.putNetwork(updated) })
	}
	return updated, err
}

// DeleteNetwork implements Writer.
func (m *Cache) DeleteNetwork(ctx context.Context, id string, revision int) error {
	err := m.client.DeleteNetwork(ctx, id, revision)
	if err == nil || errors.Is(err, ErrNotFound) {
		m.note(func(c *content) { c.removeNetwork(id) })
	}
	return err
}

// CreateSubnet implements Writer.
func (m *Cache) CreateSubnet(ctx context.Context, subnet NewSubnet) (Subnet, error) {
	created, err := m.client.CreateSubnet(ctx, subnet)
	if err == nil {
		m.note(func(c *content) { c.putSubnet(created) })
	}
	return created, err
}

// UpdateSubnet implements Writer.
func (m *Cache) UpdateSubnet(ctx context.Context, id string, update SubnetUpdate) (Subnet, error) {
	updated, err := m.client.UpdateSubnet(ctx, id, update)
	if err == nil {
		m.note(func(c *content) { c.putSubnet(updated) })
	}
	return updated, err
}

// DeleteSubnet implements Writer.
func (m *Cache) DeleteSubnet(ctx context.Context, id string, revision int) error {
	err := m.client.DeleteSubnet(ctx, id, revision)
	if err == nil || errors.Is(err, ErrNotFound) {
		m.note(func(c *content) { c.removeSubnet(id) })
	}
	return err
}

// content is networks and subnets, and how to find them.
type content struct {
	networks  map[string]Network
	subnets   map[string]Subnet
	described map[string]map[string]bool // IDs of networks by their description
	on        map[string]map[string]bool // IDs of subnets by their network
}

func newContent() *content {
	return &content{
		networks: map[string]Network{}, subnets: map[string]Subnet{},
		described: map[string]map[string]bool{}, on: map[string]map[string]bool{},
	}
}

func (c *content) putNetwork(network Network) {
	if before, ok := c.networks[network.ID]; ok {
		remove(c.described, before.Description, network.ID)
	}
	c.networks[network.ID] = network
	add(c.described, network.Description, network.ID)
}

func (c *content) removeNetwork(id string) {
	remove(c.described, c.networks[id].Description, id)
	delete(c.networks, id)
	c.replaceSubnets(id, nil)
}

func (c *content) changeTags(id string, change func([]string) []string) {
	if network, ok := c.networks[id]; ok {
		network.Tags = change(network.Tags)
		c.networks[id] = network
	}
}

func (c *content) putSubnet(subnet Subnet) {
	c.subnets[subnet.ID] = subnet
	add(c.on, subnet.NetworkID, subnet.ID)
}

func (c *content) removeSubnet(id string) {
	remove(c.on, c.subnets[id].NetworkID, id)
	delete(c.subnets, id)
}

// replaceNetworks puts what was found with a filter in the place of what is
// remembered that fits it.
func (c *content) replaceNetworks(filter NetworkFilter, found []Network) {
	for _, id := range c.fitting(filter) {
		if !slices.ContainsFunc(found, func(n Network) bool { return n.ID == id }) {
			c.removeNetwork(id)
		}
	}
	for _, network := range found {
		c.putNetwork(network)
	}
}

// fitting returns the IDs of the networks that fit a filter. One with an ID
// and a description is gone only where neither is there.
func (c *content) fitting(filter NetworkFilter) []string {
	if filter.ID != "" {
		if _, ok := c.networks[filter.ID]; ok && filter.Descriptions == nil {
			return []string{filter.ID}
		}
		return nil
	}
	var ids []string
	for _, description := range filter.Descriptions {
		for id := range c.described[description] {
			ids = append(ids, id)
		}
	}
	return ids
}

func (c *content) replaceSubnets(networkID string, found []Subnet) {
	for id := range c.on[networkID] {
		delete(c.subnets, id)
	}
	delete(c.on, networkID)
	for _, subnet := range found {
		c.putSubnet(subnet)
	}
}

func add(index map[string]map[string]bool, key, id string) {
	if index[key] == nil {
		index[key] = map[string]bool{}
	}
	index[key][id] = true
}

func remove(index map[string]map[string]bool, key, id string) {
	delete(index[key], id)
	if len(index[key]) == 0 {
		delete(index, key)
	}
}
