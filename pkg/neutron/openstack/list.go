package openstack

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/samplecrd/network-controller/pkg/neutron"
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

// The bounds of a list. All its pages together have at most maxAnswer bytes, and
// take at most the time that maxTimeouts requests may take.
const (
	maxPages    = 10_000
	maxObjects  = 200_000
	maxTimeouts = 10
)

// list returns a collection, such as "networks". The query selects objects by the
// values of their keys.
//
// An object on two pages counts once, as it was read last: if the last subnet of a
// page is deleted before the next page is read, Neutron returns the first page
// again.
func list[J, V any](ctx context.Context, c *client, kind string, query url.Values, value func(*J) (V, error), id func(V) string) ([]V, error) {
	var all []V
	index := map[string]int{} // by ID
	l := &listing[J, V]{kind: kind, query: query, value: value, isKnown: none, visit: func(object V, _ neutron.Digest) {
		if i, ok := index[id(object)]; ok {
			all[i] = object
			return
		}
		index[id(object)] = len(all)
		all = append(all, object)
	}}
	if err := l.run(ctx, c); err != nil {
		return nil, err
	}
	return all, nil
}

// EachNetwork implements neutron.PageReader.
func (c *client) EachNetwork(ctx context.Context, isKnown func(neutron.Digest) bool, visit func(neutron.Network, neutron.Digest)) error {
	l := &listing[networkJSON, neutron.Network]{kind: "networks", fields: networkKeys, value: (*networkJSON).value, isKnown: isKnown, visit: visit}
	return c.failed(ctx, listNetworks, l.run(ctx, c))
}

// EachSubnet implements neutron.PageReader.
func (c *client) EachSubnet(ctx context.Context, isKnown func(neutron.Digest) bool, visit func(neutron.Subnet, neutron.Digest)) error {
	l := &listing[subnetJSON, neutron.Subnet]{kind: "subnets", fields: subnetKeys, value: (*subnetJSON).value, isKnown: isKnown, visit: visit}
	return c.failed(ctx, listSubnets, l.run(ctx, c))
}

// The keys to request of each object in a long list. Without the others, an answer of
// Neutron has two thirds of its size.
var networkKeys, subnetKeys = keysOf(reflect.TypeFor[networkJSON]()), keysOf(reflect.TypeFor[subnetJSON]())

// keysOf returns the keys that a struct decodes.
func keysOf(object reflect.Type) (keys []string) {
	for i := range object.NumField() {
		if field := object.Field(i); field.Anonymous {
			keys = append(keys, keysOf(field.Type)...)
		} else {
			key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			keys = append(keys, key)
		}
	}
	return keys
}

// listing is a list that is being read.
type listing[J, V any] struct {
	kind   string
	query  url.Values
	fields []string // the keys to request; nil for all
	value  func(*J) (V, error)
	// isKnown reports whether an object need not be decoded, and visit gets the others.
	isKnown func(neutron.Digest) bool
	visit   func(V, neutron.Digest)

	read    int // how many objects
	skipped int
	example string // the reason why an object was skipped
}

// run reads all pages of a collection, and calls visit for each object. (gophercloud's
// own pager treats an answer without the key of the collection as an empty list, and
// has no bounds.)
func (l *listing[J, V]) run(ctx context.Context, c *client) error {
	bound := maxTimeouts * c.timeout
	bounded, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	err := l.readPages(bounded, c)
	switch {
	case err == nil:
		if l.skipped > 0 {
			c.onSkipped(ctx, l.kind, l.skipped, c.describe("").clean(l.example))
		}
		return nil
	case bounded.Err() != nil && ctx.Err() == nil:
		return unusable("it takes longer than %v", bound.Round(time.Second))
	}
	return err
}

func (l *listing[J, V]) readPages(ctx context.Context, c *client) error {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}}
	if l.fields != nil {
		query["fields"] = l.fields
	}
	for key, values := range l.query {
		query[key] = values
	}
	read := map[string]bool{} // pages, by their marker
	left := int64(maxAnswer)
	for {
		read[query.Get("marker")] = true
		page, err := c.readPage(ctx, l.kind, query.Encode(), left, l.add)
		if err != nil {
			return err
		}
		left -= page.size
		marker, err := page.next()
		switch {
		case err != nil || marker == "":
			return err
		case c.describe("").clean(marker) != marker: // a secret, which traces of requests would show
			return unusable("its link to the next page is invalid")
		case read[marker]:
			return unusable("its links to further pages form a loop")
		case len(read) >= maxPages:
			return unusable("it has more than %d pages", maxPages)
		}
		query.Set("marker", marker)
	}
}

// seed is random, so that no user can create an object with the digest of another one.
var seed = maphash.MakeSeed()

// none is for a list of which nothing is known.
func none(neutron.Digest) bool { return false }

// add adds an object to a list. An object that cannot be used is skipped if it is
// certain that the caller does not look for it.
func (l *listing[J, V]) add(raw json.RawMessage) error {
	if l.read >= maxObjects {
		return unusable("it has more than %d %s", maxObjects, l.kind)
	}
	l.read++
	digest := neutron.Digest(maphash.Bytes(seed, raw))
	if l.isKnown(digest) {
		return nil
	}
	object, err := l.decode(raw)
	if err != nil {
		var fields map[string]json.RawMessage
		_ = json.Unmarshal(raw, &fields) // without fields, the object may be any
		if mayMatch(fields, l.query) {
			return err
		}
		l.skipped++
		if l.example == "" {
			id, _ := textOf(fields["id"])
			l.example = fmt.Sprintf("%v (the ID is %s)", err, quoted(id))
		}
		return nil
	}
	l.visit(object, digest)
	return nil
}

func (l *listing[J, V]) decode(raw json.RawMessage) (object V, err error) {
	var decoded *J
	if err := json.Unmarshal(raw, &decoded); err != nil {
		return object, unusable("it has one of the %s with a value of another type", l.kind)
	}
	return l.value(decoded)
}

// mayMatch reports whether an object may be one that a query selects, given those
// of its fields that can be read. A query without keys selects everything: then
// only objects with an owner marker matter. A query for the ports of all routers
// looks for none of them: a port has no owner marker, and anyone may create one.
func mayMatch(fields map[string]json.RawMessage, query url.Values) bool {
	switch {
	case len(query) == 0:
		return mayBe(fields, "description", neutron.IsMarker)
	case query.Has("device_owner") && !query.Has("network_id"):
		return false
	}
	for key, values := range query {
		if !mayBe(fields, key, func(value string) bool { return slices.Contains(values, value) }) {
			return false
		}
	}
	return true
}

// mayBe reports whether a field has a text with a property, or is missing.
func mayBe(fields map[string]json.RawMessage, key string, has func(string) bool) bool {
	raw, found := fields[key]
	text, isText := textOf(raw)
	return !found || isText && has(text)
}

// textOf returns a text in JSON, or false for anything else. Null is no text.
func textOf(raw json.RawMessage) (text string, ok bool) {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return "", false
	}
	text, ok = value.(string)
	return text, ok
}

// page is one answer to the request for a list.
type page struct {
	links json.RawMessage // to further pages
	size  int64           // in bytes
}

// readPage requests a page of a collection, and calls add for each object on it,
// as soon as it has arrived. The answer may have as many bytes as are left.
func (c *client) readPage(ctx context.Context, kind, query string, left int64, add func(json.RawMessage) error) (page, error) {
	address := c.service.ServiceURL(kind)
	if query != "" {
		address += "?" + query
	}
	response, err := c.service.Get(ctx, address, nil, &gophercloud.RequestOpts{KeepResponseBody: true}) //nolint:bodyclose // closeBody closes it
	if err != nil {
		return page{}, err
	}
	defer closeBody(response.Body)
	s := newStream(response.Body, left)
	result, found := page{}, false
	err = s.object(func(key string) error {
		switch key {
		case kind:
			found = true
			return s.array(kind, add)
		case kind + "_links":
			return s.value(&result.links)
		}
		var ignored json.RawMessage
		return s.value(&ignored)
	})
	if err == nil && !found {
		err = unusable("it has no list of %s", kind)
	}
	result.size = s.size()
	return result, err
}

// next returns the marker of the next page, or nothing if there is none. It ignores
// the rest of the link: a Neutron behind a proxy may name a host that only it can
// reach, and no answer chooses the host of a request, or what is looked for.
func (p page) next() (marker string, err error) {
	if p.links == nil {
		return "", nil
	}
	var all []gophercloud.Link
	if err := json.Unmarshal(p.links, &all); err != nil {
		return "", unusable("its links to further pages are invalid")
	}
	for _, link := range all {
		if link.Rel != "next" {
			continue
		}
		next, err := url.Parse(link.Href)
		if err != nil || !isID(next.Query().Get("marker")) {
			return "", unusable("its link to the next page is invalid")
		}
		return next.Query().Get("marker"), nil
	}
	return "", nil
}
