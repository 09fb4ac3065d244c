package openstack

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"

	"github.com/gophercloud/gophercloud/v2"
)

// The operations that list. They treat a 404 differently: see classOf404.
const (
	listNetworks    = "list networks"
	listSubnets     = "list subnets"
	listSubnetPools = "list subnet pools"
	listExtensions  = "list extensions"
	listRouters     = "list routers"
	listPorts       = "list ports"
)

// pageSize is the number of objects per request: Neutron needs about a second for
// as many, and a cloud may have tens of thousands.
const pageSize = 1000

// list reads all pages of a collection, such as "networks". (gophercloud's own
// pager treats an answer without that key as an empty list.)
//
// An object on two pages counts once, as it was read last: if the last subnet of a
// page is deleted before the next page is read, Neutron returns the first page
// again.
func list[J, V any](ctx context.Context, service *gophercloud.ServiceClient, kind string, filter url.Values, value func(*J) (V, error), id func(V) string) ([]V, error) {
	var all []V
	index := map[string]int{} // by ID
	read := map[string]bool{} // by query
	filter.Set("limit", strconv.Itoa(pageSize))
	query := "?" + filter.Encode()
	for more := true; more; {
		read[query] = true
		var page map[string]json.RawMessage
		if _, err := service.Get(ctx, service.ServiceURL(kind)+query, &page, nil); err != nil { //nolint:bodyclose // gophercloud closes the body
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
			return nil, unusable("its links to further pages form a loop")
		}
	}
	return all, nil
}

// nextPage returns the query of the next page. It ignores the rest of the link: a
// Neutron behind a proxy may name a host that only it can reach, and no answer
// chooses the host of a request.
func nextPage(links json.RawMessage) (query string, more bool, err error) {
	if links == nil {
		return "", false, nil
	}
	var all []gophercloud.Link
	if err := json.Unmarshal(links, &all); err != nil {
		return "", false, unusable("its links to further pages are invalid")
	}
	for _, link := range all {
		if link.Rel != "next" {
			continue
		}
		next, err := url.Parse(link.Href)
		if err != nil || next.RawQuery == "" {
			return "", false, unusable("its link to the next page is invalid")
		}
		return "?" + next.RawQuery, true, nil
	}
	return "", false, nil
}
