package openstack

import (
	"context"
	"strconv"
	"strings"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// subnetPool is a subnet pool with its project, which is empty if others may use it.
type subnetPool struct {
	neutron.SubnetPool
	project string
}

var subnetPoolKind = kind[subnetPoolJSON, subnetPool]{
	name: "subnetpool", plural: "subnetpools", shared: true, value: (*subnetPoolJSON).value,
	required: "id, name or ip_version",
}

func (c *client) SubnetPools(
	ctx context.Context, filter neutron.SubnetPoolFilter,
) (found []neutron.SubnetPool, _ error) {
	all, err := list(ctx, c, subnetPoolKind, selecting("id", filter.ID, "name", filter.Name))
	if err != nil {
		return nil, err
	}
	s, err := c.login(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, pool := range all {
		// An administrator also sees the pools of other projects that are not shared.
		if pool.project == "" || s.project == "" || pool.project == s.project {
			found = append(found, pool.SubnetPool)
		}
	}
	return found, nil
}

// subnetPoolJSON is a subnet pool in a response. A nil pointer is a missing key.
type subnetPoolJSON struct {
	ID        string  `json:"id"`
	Name      *string `json:"name"`
	ProjectID string  `json:"project_id"`
	Shared    bool    `json:"shared"`
	IPVersion int     `json:"ip_version"`
	// Some releases quote these numbers.
	MinPrefixLength looseInt `json:"min_prefixlen"`
	MaxPrefixLength looseInt `json:"max_prefixlen"`
}

// looseInt is a number, quoted or not; 0 for anything else.
type looseInt int

func (i *looseInt) UnmarshalJSON(text []byte) error {
	n, err := strconv.Atoi(strings.Trim(string(text), `"`))
	if err != nil {
		n = 0
	}
	*i = looseInt(n)
	return nil
}

func (p *subnetPoolJSON) value() (pool subnetPool, ok bool) {
	if !isID(p.ID) || p.Name == nil || isTooLong(*p.Name) || p.IPVersion != 4 && p.IPVersion != 6 {
		return pool, false
	}
	if !p.Shared {
		pool.project = p.ProjectID
	}
	pool.SubnetPool = neutron.SubnetPool{
		ID: p.ID, Name: *p.Name, IPVersion: p.IPVersion,
		MinPrefixLength: int(p.MinPrefixLength), MaxPrefixLength: int(p.MaxPrefixLength),
	}
	return pool, true
}
