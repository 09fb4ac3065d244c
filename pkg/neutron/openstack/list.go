package openstack

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// kind is a kind of objects: J is an object in a response, and V its value.
type kind[J, V any] struct {
	name, plural string // of one in a body, and of the collection
	required     string // the keys that every object has
	shared       bool   // projects share them
	// value returns false for an object with a missing or unusable value.
	value func(*J) (V, bool)
}

func (k kind[J, V]) decode(raw json.RawMessage) (object V, err error) {
	var decoded *J
	ok := json.Unmarshal(raw, &decoded) == nil && decoded != nil
	if ok {
		object, ok = k.value(decoded)
	}
	if !ok {
		return object, unusable("it has one of the %s with an invalid value, or without %s", k.plural, k.required)
	}
	return object, nil
}

// pageSize is the number of objects per request: Neutron needs about a second for
// as many, and a cloud may have tens of thousands.
const pageSize = 1000

// The bounds of a list. All its pages together have at most maxResponse bytes, and
// take at most the time that maxTimeouts requests may take.
const (
	maxPages    = 10_000
	maxObjects  = 200_000
	maxTimeouts = 10
)

// list returns the objects that a query selects.
func list[J, V any](ctx context.Context, c *client, k kind[J, V], query url.Values) ([]V, error) {
	var all []V
	l := &listing[J, V]{kind: k, query: query, isKnown: noneKnown, visit: func(object V, _ neutron.Digest) {
		all = append(all, object)
	}}
	if err := l.run(ctx, c); err != nil {
		return nil, err
	}
	return all, nil
}

// selecting returns a query for the values of some keys, except for the empty ones.
func selecting(keysAndValues ...string) url.Values {
	query := url.Values{}
	for pair := range slices.Chunk(keysAndValues, 2) {
		if pair[1] != "" {
			query.Set(pair[0], pair[1])
		}
	}
	return query
}

var extensionKind = kind[extensionJSON, string]{
	plural: "extensions", required: "alias", shared: true,
	value: func(e *extensionJSON) (string, bool) { return e.Alias, !isTooLong(e.Alias) },
}

type extensionJSON struct {
	Alias string `json:"alias"`
}

func (c *client) Extensions(ctx context.Context) ([]string, error) {
	return list(ctx, c, extensionKind, nil)
}

func (c *client) EachNetwork(
	ctx context.Context, isKnown func(neutron.Digest) bool, visit func(neutron.Network, neutron.Digest),
) error {
	l := &listing[networkJSON, neutron.Network]{kind: networkKind, fields: networkKeys, isKnown: isKnown, visit: visit}
	return l.run(ctx, c)
}

func (c *client) EachSubnet(
	ctx context.Context, isKnown func(neutron.Digest) bool, visit func(neutron.Subnet, neutron.Digest),
) error {
	l := &listing[subnetJSON, neutron.Subnet]{kind: subnetKind, fields: subnetKeys, isKnown: isKnown, visit: visit}
	return l.run(ctx, c)
}

// The keys to request of each object in a long list. Without the others, a response of
// Neutron has two thirds of its size.
var (
	networkKeys = strings.Fields("id name description admin_state_up port_security_enabled mtu dns_domain " +
		"subnets tags created_at revision_number")
	subnetKeys = strings.Fields("id network_id name description cidr gateway_ip subnetpool_id allocation_pools " +
		"enable_dhcp dns_nameservers host_routes ipv6_address_mode ipv6_ra_mode created_at revision_number")
)

// listing is a list that is being read.
type listing[J, V any] struct {
	kind[J, V]
	query  url.Values
	fields []string // the keys to request; nil for all
	// isKnown reports whether an object need not be decoded, and visit gets the others.
	isKnown func(neutron.Digest) bool
	visit   func(V, neutron.Digest)

	read    int // how many objects
	skipped int
	example string // the reason why an object was skipped
}

// run reads all pages of a collection, and calls visit for each object. (gophercloud's own
// pager treats a response without the key of the collection as an empty list, and has no
// bounds.)
func (l *listing[J, V]) run(ctx context.Context, c *client) error {
	bound := maxTimeouts * c.Timeout
	bounded, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	err := l.readPages(bounded, c)
	switch {
	case err != nil && bounded.Err() != nil && ctx.Err() == nil:
		err = unusable("it takes longer than %v", bound.Round(time.Second))
	case err == nil && l.skipped > 0:
		c.Skipped(ctx, l.plural, l.skipped, c.describe("").clean(l.example))
	}
	return c.failed(ctx, "list "+l.plural, err)
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
	left := c.MaxList
	for {
		read[query.Get("marker")] = true
		page, err := l.readPage(ctx, c, query, left)
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

// noneKnown is for a list of which nothing is known.
func noneKnown(neutron.Digest) bool { return false }

// add adds an object to a list, unless it is certain that the caller does not look for it:
// an old server may ignore an unknown filter. Otherwise, it must be usable.
func (l *listing[J, V]) add(raw json.RawMessage) error {
	if l.read >= maxObjects {
		return unusable("it has more than %d %s", maxObjects, l.plural)
	}
	l.read++
	digest := neutron.Digest(maphash.Bytes(seed, raw))
	if l.isKnown(digest) {
		return nil
	}
	object, err := l.decode(raw)
	var fields map[string]json.RawMessage
	if err != nil || len(l.query) > 0 {
		_ = json.Unmarshal(raw, &fields) // without fields, the object may be any
	}
	switch {
	case err == nil && matches(fields, l.query):
		l.visit(object, digest)
	case err != nil && l.isSought(fields):
		return err
	case err != nil:
		l.skipped++
		if l.example == "" {
			l.example = fmt.Sprintf("%v (the ID is %s)", err, fields["id"])
		}
	}
	return nil
}

// isSought reports whether an unusable object may be one that the caller looks for, given
// those of its fields that can be read. Of all objects, only those with an owner marker
// matter. The ports of all routers do not: a port has no owner marker, and anyone may
// create one.
func (l *listing[J, V]) isSought(fields map[string]json.RawMessage) bool {
	switch {
	case len(l.query) == 0:
		return mayBe(fields, "description", neutron.IsMarker)
	case l.query.Has("device_owner") && !l.query.Has("network_id"):
		return false
	}
	return matches(fields, l.query)
}

// matches reports whether an object may be one that a query selects.
func matches(fields map[string]json.RawMessage, query url.Values) bool {
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

// page is the response to a request for a page.
type page struct {
	links json.RawMessage // to further pages
	size  int64           // in bytes
}

// readPage requests a page, and adds each object on it, as soon as it has arrived. The
// response may have as many bytes as are left. The list is limited to the token's project,
// whatever it looks for: other projects can share networks with ours and write any
// description into them, and an administrator sees all networks. The exception is what
// belongs to one network or subnet: that of other projects matters, too.
func (l *listing[J, V]) readPage(ctx context.Context, c *client, query url.Values, left int64) (page, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	response, err := c.send(ctx, request{ //nolint:bodyclose // closeBody closes it
		op: "list " + l.plural, method: http.MethodGet, path: []string{l.plural}, query: query,
		ofProject: !l.shared && !query.Has("network_id") && !query.Has("fixed_ips"),
	})
	if err != nil {
		return page{}, err
	}
	defer closeBody(response.Body)
	s := newStream(response.Body, left)
	result, found := page{}, false
	err = s.object(func(key string) error {
		switch key {
		case l.plural:
			found = true
			return s.array(l.plural, l.add)
		case l.plural + "_links":
			return s.value(&result.links)
		}
		var ignored json.RawMessage
		return s.value(&ignored)
	})
	if err == nil && !found {
		err = unusable("it has no list of %s", l.plural)
	}
	result.size = s.size()
	return result, err
}

// next returns the marker of the next page, or nothing if there is none. It ignores
// the rest of the link: a Neutron behind a proxy may name a host that only it can
// reach, and no response chooses the host of a request, or what is looked for.
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
