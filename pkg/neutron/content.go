package neutron

import (
	"context"
	"reflect"
	"slices"
	"strings"
)

// content holds networks and subnets with their indexes. What it points to does not
// change: a change replaces it. So the content of a new list shares with the one before
// all that Neutron has not changed.
type content struct {
	networks map[string]*Network
	subnets  map[string]*Subnet
	on       map[string][]*Subnet  // by the ID of their network
	owned    map[string][]*Network // with an owner marker or a retained marker, by the namespace and name of the owner
	in       map[string][]*Network // with an owner marker or a retained marker, by the namespace of the owner
	settings NetworkSettings       // of the last network: most networks have the same

	// interfaces are router interfaces by their network. They are complete if
	// hasInterfaces is set, or else for the networks in the map.
	interfaces    map[string][]RouterInterface
	hasInterfaces bool

	// The networks and subnets as the list returned them. Nearly all are the same in the
	// next list, which need not decode and compare them then.
	listedNetworks map[Digest]*Network
	listedSubnets  map[Digest]*Subnet
}

// listContent lists all networks and subnets. It shares with the content before, which may
// be nil, all that Neutron returns as it did then.
func listContent(ctx context.Context, client Reader, before *content) (*content, error) {
	if before == nil {
		before = &content{}
	}
	pages, ok := client.(PageReader)
	if !ok {
		pages = onePage{client}
	}
	listed := newContent()
	err := pages.EachNetwork(ctx, reuse(before.listedNetworks, listed.listedNetworks, listed.addNetwork),
		func(network Network, digest Digest) {
			listed.putNetwork(network)
			listed.listedNetworks[digest] = listed.networks[network.ID]
		})
	if err != nil {
		return nil, err
	}
	err = pages.EachSubnet(ctx, reuse(before.listedSubnets, listed.listedSubnets, listed.addSubnet),
		func(subnet Subnet, digest Digest) {
			listed.putSubnet(subnet)
			listed.listedSubnets[digest] = listed.subnets[subnet.ID]
		})
	return listed, err
}

// reuse returns a function that adds an object of the list before, if it has a digest,
// and reports whether it does.
func reuse[T any](before, listed map[Digest]*T, add func(*T)) func(Digest) bool {
	return func(digest Digest) bool {
		object, known := before[digest]
		if known {
			add(object)
			listed[digest] = object
		}
		return known
	}
}

// onePage is a PageReader for a Reader without pages, such as a Snapshot.
type onePage struct{ Reader }

func (r onePage) EachNetwork(ctx context.Context, _ func(Digest) bool, visit func(Network, Digest)) error {
	networks, err := r.Networks(ctx, NetworkFilter{})
	for _, network := range networks {
		visit(network, 0)
	}
	return err
}

func (r onePage) EachSubnet(ctx context.Context, _ func(Digest) bool, visit func(Subnet, Digest)) error {
	subnets, err := r.Subnets(ctx, SubnetFilter{})
	for _, subnet := range subnets {
		visit(subnet, 0)
	}
	return err
}

func newContent() *content {
	return &content{
		networks: map[string]*Network{}, subnets: map[string]*Subnet{}, on: map[string][]*Subnet{},
		owned: map[string][]*Network{}, in: map[string][]*Network{}, interfaces: map[string][]RouterInterface{},
		listedNetworks: map[Digest]*Network{}, listedSubnets: map[Digest]*Subnet{},
	}
}

// addTo adds what belongs to a network to a view.
func (c *content) addTo(view View, networkID string) {
	if _, done := view.Subnets[networkID]; done {
		return
	}
	var subnets []Subnet
	for _, subnet := range c.on[networkID] {
		subnets = append(subnets, *subnet)
	}
	view.Subnets[networkID] = subnets
	if interfaces, known := c.interfaces[networkID]; known || c.hasInterfaces {
		view.RouterInterfaces[networkID] = interfaces
	}
}

// putNetwork adds a copy of a network, or replaces it.
func (c *content) putNetwork(network Network) {
	if i := strings.Index(network.Description, network.Name); i >= 0 {
		network.Name = network.Description[i : i+len(network.Name)] // one text in memory
	}
	if reflect.DeepEqual(network.NetworkSettings, c.settings) {
		network.NetworkSettings = c.settings
	}
	c.settings = network.NetworkSettings
	network.SubnetIDs, network.Tags = slices.Clone(network.SubnetIDs), slices.Clone(network.Tags) // without room for more
	c.addNetwork(&network)
}

// revise notes a request for a subnet of a network: Neutron then gives the network the next
// revision. If the network had another revision before the request, another client has changed
// it meanwhile, and a request with the expected one is rejected.
func (c *content) revise(networkID string, before int, change func(subnetIDs []string) []string) {
	if current := c.networks[networkID]; current != nil && current.Revision == before {
		network := *current
		network.Revision++
		network.SubnetIDs = change(network.SubnetIDs)
		c.addNetwork(&network)
	}
}

// addNetwork adds a network that does not change, or replaces it.
func (c *content) addNetwork(network *Network) {
	c.unindex(network.ID)
	c.networks[network.ID] = network
	if owner, ok := ownerOf(network.Description); ok {
		name := owner.String()
		if i := strings.Index(network.Description, name); i >= 0 {
			name = network.Description[i : i+len(name)] // one text in memory
		}
		add(c.owned, name, network)
		add(c.in, owner.Namespace, network)
	}
}

// unindex removes a network from the indexes.
func (c *content) unindex(id string) {
	network, ok := c.networks[id]
	if !ok {
		return
	}
	if owner, ok := ownerOf(network.Description); ok {
		remove(c.owned, owner.String(), network)
		remove(c.in, owner.Namespace, network)
	}
}

func (c *content) removeNetwork(id string) {
	c.unindex(id)
	delete(c.networks, id)
	delete(c.interfaces, id)
	c.replaceSubnets(id, nil)
}

// changeTag adds a tag to a network, or removes it. A list may contain the change
// already.
func (c *content) changeTag(id, tag string, added bool) {
	before, ok := c.networks[id]
	if !ok {
		return
	}
	network := *before
	network.Tags = slices.DeleteFunc(slices.Clone(network.Tags), func(t string) bool { return t == tag })
	if added {
		network.Tags = append(network.Tags, tag)
	}
	c.addNetwork(&network)
}

// putSubnet adds a copy of a subnet, or replaces it.
func (c *content) putSubnet(subnet Subnet) {
	if network, ok := c.networks[subnet.NetworkID]; ok { // one text in memory
		subnet.NetworkID = network.ID
		if i := slices.Index(network.SubnetIDs, subnet.ID); i >= 0 {
			subnet.ID = network.SubnetIDs[i]
		}
		if subnet.Description == network.Description {
			subnet.Description = network.Description
		}
		if subnet.Name == network.Name {
			subnet.Name = network.Name
		}
	}
	subnet.Pools = slices.Clone(subnet.Pools) // without room for more
	c.addSubnet(&subnet)
}

// addSubnet adds a subnet that does not change, or replaces it.
func (c *content) addSubnet(subnet *Subnet) {
	c.removeSubnet(subnet.ID)
	c.subnets[subnet.ID] = subnet
	add(c.on, subnet.NetworkID, subnet)
}

func (c *content) removeSubnet(id string) {
	if subnet, ok := c.subnets[id]; ok {
		remove(c.on, subnet.NetworkID, subnet)
		delete(c.subnets, id)
	}
}

// putInterface adds a router interface, if the others of its network are known. A list
// may contain it already.
func (c *content) putInterface(added RouterInterface) {
	if _, known := c.interfaces[added.NetworkID]; known || c.hasInterfaces {
		c.removeInterface(added)
		c.interfaces[added.NetworkID] = append(c.interfaces[added.NetworkID], added)
	}
}

func (c *content) removeInterface(removed RouterInterface) {
	others, known := c.interfaces[removed.NetworkID]
	if !known {
		return
	}
	c.interfaces[removed.NetworkID] = slices.DeleteFunc(slices.Clone(others), func(i RouterInterface) bool {
		return i.RouterID == removed.RouterID && i.SubnetID == removed.SubnetID
	})
}

// replaceNetworks replaces the networks that match a filter by those that were found
// with it. Of those found by name, it adds only the ones with an owner marker.
func (c *content) replaceNetworks(filter NetworkFilter, found []Network) {
	for _, network := range c.matching(filter) {
		if !slices.ContainsFunc(found, func(n Network) bool { return n.ID == network.ID }) {
			c.removeNetwork(network.ID)
		}
	}
	for _, network := range found {
		if _, known := c.networks[network.ID]; known || filter.ID != "" || IsMarker(network.Description) {
			c.putNetwork(network)
		}
	}
}

// matching returns the networks that match a filter by ID, or by the name that the
// networks of an owner have.
func (c *content) matching(filter NetworkFilter) (found []*Network) {
	if filter.ID != "" {
		if network, ok := c.networks[filter.ID]; ok {
			return []*Network{network}
		}
		return nil
	}
	for _, network := range c.owned[filter.Name] {
		if network.Name == filter.Name {
			found = append(found, network)
		}
	}
	return found
}

func (c *content) replaceSubnets(networkID string, found []Subnet) {
	for _, subnet := range c.on[networkID] {
		delete(c.subnets, subnet.ID)
	}
	delete(c.on, networkID)
	for _, subnet := range found {
		c.putSubnet(subnet)
	}
}

func add[T any](index map[string][]*T, key string, value *T) { index[key] = append(index[key], value) }

func remove[T any](index map[string][]*T, key string, value *T) {
	if i := slices.Index(index[key], value); i >= 0 {
		index[key] = slices.Delete(index[key], i, i+1)
	}
	if len(index[key]) == 0 {
		delete(index, key)
	}
}
