package openstack

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

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
	found, err := list(ctx, c.service, "subnetpools", query, (*subnetPoolJSON).value, func(p neutron.SubnetPool) string { return p.ID })
	if err != nil {
		return nil, c.failed(ctx, listSubnetPools, err)
	}
	// An old server may ignore a filter that it does not know.
	return slices.DeleteFunc(found, func(p neutron.SubnetPool) bool {
		return filter.ID != "" && p.ID != filter.ID || filter.Name != "" && p.Name != filter.Name
	}), nil
}

// subnetPoolJSON is what we read of a subnet pool. A nil pointer is a key that
// was not in the answer.
type subnetPoolJSON struct {
	ID        *string `json:"id"`
	Name      *string `json:"name"`
	IPVersion *int    `json:"ip_version"`
	// Some releases put these into quotation marks.
	MinPrefixLength looseInt `json:"min_prefixlen"`
	MaxPrefixLength looseInt `json:"max_prefixlen"`
}

// looseInt is a number, in quotation marks or not; 0 for anything else.
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
	if p == nil || p.ID == nil || *p.ID == "" || p.Name == nil || p.IPVersion == nil || *p.IPVersion != 4 && *p.IPVersion != 6 {
		return neutron.SubnetPool{}, unusable("it has a subnet pool without id, name or ip_version")
	}
	return neutron.SubnetPool{
		ID: *p.ID, Name: *p.Name, IPVersion: *p.IPVersion,
		MinPrefixLength: int(p.MinPrefixLength), MaxPrefixLength: int(p.MaxPrefixLength),
	}, nil
}

// Extensions implements neutron.Reader.
func (c *client) Extensions(ctx context.Context) ([]string, error) {
	var answer struct {
		Extensions []struct {
			Alias string `json:"alias"`
		} `json:"extensions"`
	}
	if _, err := c.service.Get(ctx, c.service.ServiceURL("extensions"), &answer, nil); err != nil { //nolint:bodyclose // gophercloud closes what it decodes
		return nil, c.failed(ctx, listExtensions, err)
	}
	if answer.Extensions == nil {
		return nil, c.failed(ctx, listExtensions, unusable("it has no list of extensions"))
	}
	aliases := []string{}
	for _, extension := range answer.Extensions {
		aliases = append(aliases, extension.Alias)
	}
	return aliases, nil
}

// AddNetworkTag implements neutron.Tagger.
func (c *client) AddNetworkTag(ctx context.Context, id, tag string) error {
	const op = "add tag"
	address, err := c.tagURL(op, id, tag)
	if err != nil {
		return err
	}
	_, err = c.service.Put(ctx, address, nil, nil, &gophercloud.RequestOpts{OkCodes: []int{http.StatusCreated}}) //nolint:bodyclose // gophercloud closes what it does not hand on
	return c.failed(ctx, op, err)
}

// RemoveNetworkTag implements neutron.Tagger.
func (c *client) RemoveNetworkTag(ctx context.Context, id, tag string) error {
	const op = "remove tag"
	address, err := c.tagURL(op, id, tag)
	if err != nil {
		return err
	}
	_, err = c.service.Delete(ctx, address, nil) //nolint:bodyclose // gophercloud closes what it does not hand on
	err = c.failed(ctx, op, err)
	if failure := (*neutron.Error)(nil); errors.As(err, &failure) && failure.Type == "TagNotFound" {
		return nil
	}
	return err
}

// tagURL returns where a tag of a network is. Neutron reads a path in a way that
// some characters do not survive, and takes some endings for a format.
func (c *client) tagURL(op, id, tag string) (string, error) {
	if err := checkID(op, id); err != nil {
		return "", err
	}
	isFormat := strings.HasSuffix(tag, ".json") || strings.HasSuffix(tag, ".xml")
	if tag == "" || isFormat || strings.Trim(tag, ".") == "" || strings.ContainsFunc(tag, func(r rune) bool { return r < ' ' || r > '~' || r == '/' }) {
		return "", &neutron.Error{Op: op, Class: neutron.ErrRefused, Message: "the tag has characters that cannot be in an address of Neutron's"}
	}
	return c.service.ServiceURL("networks", id, "tags", url.PathEscape(tag)), nil
}
