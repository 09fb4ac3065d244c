package openstack

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"

	"github.com/gophercloud/gophercloud/v2"
)

// The lists, in words. A 404 means something else to them than to other
// requests.
const (
	listNetworks    = "list networks"
	listSubnets     = "list subnets"
	listSubnetPools = "list subnet pools"
	listExtensions  = "list extensions"
)

// pageSize is how many objects are asked for at a time: Neutron needs about a
// second for as many, and a cloud may have tens of thousands.
const pageSize = 1000

// list reads all pages of the list of a kind of objects, "networks" or
// "subnets". (gophercloud's own pager takes an answer without that key for an
// empty list.)
//
// An object that is on two pages counts once, as it was read last: when the
// subnet that a page ended with is deleted before the next page is read,
// Neutron begins again with the first page.
func list[J, V any](ctx context.Context, service *gophercloud.ServiceClient, kind string, filter url.Values, value func(*J) (V, error), id func(V) string) ([]V, error) {
	var all []V
	index := map[string]int{} // by ID
	read := map[string]bool{} // by query
	filter.Set("limit", strconv.Itoa(pageSize))
	query := "?" + filter.Encode()
	for more := true; more; {
		read[query] = true
		var page map[string]json.RawMessage
		if _, err := service.Get(ctx, service.ServiceURL(kind)+query, &page, nil); err != nil { //nolint:bodyclose // gophercloud closes what it decodes
			return nil, err
		}
		var items []*J
		if err := json.Unmarshal(page[kind], &items); err != nil || items == nil {
			return nil, unusable("it has no list of %s", kind)
		}
		for _, item := range items {
			v, err := value(item)
			if err != nil {
				return nil, err
			}
			if i, ok := index[id(v)]; ok {
				all[i] = v
				continue
			}
			index[id(v)] = len(all)
			all = append(all, v)
		}
		var err error
		if query, more, err = nextPage(page[kind+"_links"]); err != nil {
			return nil, err
		}
		if read[query] && more {
			return nil, unusable("its pages go in circles")
		}
	}
	return all, nil
}

// nextPage returns the query of the next page. Of the link, only that is used:
// a Neutron behind a proxy may well name a host that only it knows, and the
// next request must not go to a host that an answer names.
func nextPage(links json.RawMessage) (query string, more bool, err error) {
	if links == nil {
		return "", false, nil
	}
	var all []gophercloud.Link
	if err := json.Unmarshal(links, &all); err != nil {
		return "", false, unusable("its links to other pages are not readable")
	}
	for _, link := range all {
		if link.Rel != "next" {
			continue
		}
		next, err := url.Parse(link.Href)
		if err != nil || next.RawQuery == "" {
			return "", false, unusable("its link to the next page is not readable")
		}
		return "?" + next.RawQuery, true, nil
	}
	return "", false, nil
}
