package openstack

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// SubnetPools implements neutron.Reader.
func (c *client) SubnetPools(ctx context.Context, filter neutron.SubnetPoolFilter) ([]neutron.SubnetPool, error) {
	query := url.Values{}
	if filter.ID != "" {
		query.Set("id", filter.ID)
	}
	if filter.Name != "" {
		query.Set("name", filter.Name)
	}
	// An administrator also sees the pools of other projects that are not shared.
	foreign := map[string]bool{}
	value := func(pool *subnetPoolJSON) (neutron.SubnetPool, error) {
		v, err := pool.value()
		foreign[v.ID] = err == nil && !pool.Shared && pool.ProjectID != "" && c.target.project() != "" && pool.ProjectID != c.target.project()
		return v, err
	}
	found, err := list(ctx, c, "subnetpools", query, value, func(p neutron.SubnetPool) string { return p.ID })
	if err != nil {
		return nil, c.failed(ctx, listSubnetPools, err)
	}
	// An old server may ignore an unknown filter.
	return slices.DeleteFunc(found, func(p neutron.SubnetPool) bool {
		return foreign[p.ID] || filter.ID != "" && p.ID != filter.ID || filter.Name != "" && p.Name != filter.Name
	}), nil
}

// subnetPoolJSON is a subnet pool in an answer. A nil pointer is a missing key.
type subnetPoolJSON struct {
	ID        *string `json:"id"`
	Name      *string `json:"name"`
	ProjectID string  `json:"project_id"`
	Shared    bool    `json:"shared"`
	IPVersion *int    `json:"ip_version"`
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

func (p *subnetPoolJSON) value() (neutron.SubnetPool, error) {
	if p == nil || p.ID == nil || p.Name == nil || p.IPVersion == nil || *p.IPVersion != 4 && *p.IPVersion != 6 {
		return neutron.SubnetPool{}, unusable("it has a subnet pool without id, name or ip_version")
	}
	if err := checkFields("subnet pool", field{"id", *p.ID, isID}, field{"name", *p.Name, isText}); err != nil {
		return neutron.SubnetPool{}, err
	}
	return neutron.SubnetPool{
		ID: *p.ID, Name: *p.Name, IPVersion: *p.IPVersion,
		MinPrefixLength: int(p.MinPrefixLength), MaxPrefixLength: int(p.MaxPrefixLength),
	}, nil
}
