package embedded

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// list answers with the objects that match, a page at a time where the request
// or the Options ask for it.
func (s *Server) list(c *collection, r *http.Request) (object, *apiError) {
	query := parseQuery(r.URL.RawQuery)
	filters, failure := c.filters(query)
	if failure != nil {
		return nil, failure
	}
	limit, failure := s.limit(query)
	if failure != nil {
		return nil, failure
	}
	compare, failure := c.sorting(query)
	if failure != nil {
		return nil, failure
	}
	found := c.match(filters)
	slices.SortStableFunc(found, compare)
	body := object{}
	if limit > 0 { // pages are in the order of the IDs
		slices.SortStableFunc(found, func(a, b object) int {
			return cmp.Or(compare(a, b), cmp.Compare(a["id"].(string), b["id"].(string)))
		})
		backwards := strings.EqualFold(query.first("page_reverse"), "true")
		if found, failure = c.page(found, query.first("marker"), limit, backwards); failure != nil {
			return nil, failure
		}
		body[c.plural+"_links"] = links(r, query, found, limit, backwards)
	}
	fields := query.all("fields")
	thinned := make([]object, len(found))
	for i, o := range found {
		thinned[i] = c.answer(o, fields)
	}
	body[c.plural] = thinned
	return body, nil
}

// match returns the objects that pass all filters, in the order in which they
// were created.
func (c *collection) match(filters []func(object) bool) []object {
	var found []object
	for _, id := range c.order {
		o := c.objects[id]
		if !slices.ContainsFunc(filters, func(passes func(object) bool) bool { return !passes(o) }) {
			found = append(found, o)
		}
	}
	return found
}

// page returns what comes after the marker, or before it.
func (c *collection) page(found []object, marker string, limit int, backwards bool) ([]object, *apiError) {
	if marker != "" && c.objects[marker] == nil && !c.forgivesMarker {
		return nil, c.missing(marker)
	}
	i := slices.IndexFunc(found, func(o object) bool { return o["id"] == marker })
	if backwards {
		if i < 0 {
			i = len(found)
		}
		return found[max(0, i-limit):i], nil
	}
	return found[i+1 : min(i+1+limit, len(found))], nil
}

// links returns the links to the pages after and before this one. There is one
// to the next page also where this one is full and the last.
func links(r *http.Request, query query, page []object, limit int, backwards bool) []object {
	link := func(rel string, back bool, o object) object {
		next := slices.DeleteFunc(slices.Clone(query), func(p pair) bool {
			return p.key == "marker" || p.key == "page_reverse"
		})
		if o != nil {
			next = append(next, pair{"marker", o["id"].(string)})
		}
		if back {
			next = append(next, pair{"page_reverse", "True"})
		}
		return object{"rel": rel, "href": "http://" + r.Host + r.URL.Path + "?" + next.encode()}
	}
	all := []object{}
	var first, last object
	if len(page) > 0 {
		first, last = page[0], page[len(page)-1]
	}
	if backwards || len(page) == limit {
		all = append(all, link("next", false, last))
	}
	if !backwards || len(page) == limit {
		all = append(all, link("previous", true, first))
	}
	return all
}

func (s *Server) limit(query query) (int, *apiError) {
	limit := 0
	if asked, ok := query.lookup("limit"); ok {
		var err error
		if limit, err = strconv.Atoi(asked); err != nil || limit < 0 {
			return 0, badResource("limit", "Limit must be an integer 0 or greater and not '%s'.", asked)
		}
	}
	if s.options.MaxPage > 0 && (limit == 0 || limit > s.options.MaxPage) {
		limit = s.options.MaxPage
	}
	return limit, nil
}

// filters returns what objects must pass. Several values of one attribute are
// alternatives.
func (c *collection) filters(query query) ([]func(object) bool, *apiError) {
	var names, unknown []string
	for _, p := range query {
		switch {
		case slices.Contains([]string{"limit", "marker", "fields", "sort_key", "sort_dir", "page_reverse"}, p.key),
			slices.Contains(names, p.key):
		case tagFilters[p.key] != nil && c.attribute("tags") != nil || c.attribute(p.key) != nil && c.attribute(p.key).filter != nil:
			names = append(names, p.key)
		case !slices.Contains(unknown, p.key):
			unknown = append(unknown, p.key)
		}
	}
	if unknown != nil {
		return nil, badRequest("['%s'] is invalid attribute for filtering", strings.Join(unknown, "', '"))
	}
	var filters []func(object) bool
	for _, name := range names {
		filter, failure := c.filter(name, query.all(name))
		if failure != nil {
			return nil, failure
		}
		filters = append(filters, filter)
	}
	return filters, nil
}

func (c *collection) filter(name string, values []string) (func(object) bool, *apiError) {
	if filter := tagFilters[name]; filter != nil {
		return filter(strings.Split(values[0], ",")), nil
	}
	var alternatives []func(any) bool
	for _, value := range values {
		matches, failure := c.attribute(name).filter(value)
		if failure != nil {
			return nil, failure
		}
		alternatives = append(alternatives, matches)
	}
	return func(o object) bool {
		return slices.ContainsFunc(alternatives, func(matches func(any) bool) bool { return matches(o[name]) })
	}, nil
}

// notSorted are attributes that objects can be chosen by, but not sorted.
var notSorted = []string{"revision_number", "description", "shared"}

// sorting returns the comparison that sort_key and sort_dir ask for. Without
// them, all are equal.
func (c *collection) sorting(query query) (func(a, b object) int, *apiError) {
	keys, dirs := query.all("sort_key"), query.all("sort_dir")
	if len(keys) != len(dirs) {
		return nil, badRequest("The number of sort_keys and sort_dirs must be same")
	}
	for i, key := range keys {
		if a := c.attribute(key); a == nil || a.filter == nil || slices.Contains(notSorted, key) {
			return nil, badRequest("['%s'] is invalid attribute for sort_keys", key)
		}
		if dirs[i] != "asc" && dirs[i] != "desc" {
			return nil, badRequest("['%s'] is invalid value for sort_dirs, valid value is 'asc' and 'desc'", dirs[i])
		}
	}
	return func(a, b object) int {
		for i, key := range keys {
			order := compareValues(a[key], b[key])
			if dirs[i] == "desc" {
				order = -order
			}
			if order != 0 {
				return order
			}
		}
		return 0
	}, nil
}

func compareValues(a, b any) int {
	if x, ok := a.(int); ok {
		if y, ok := b.(int); ok {
			return cmp.Compare(x, y)
		}
	}
	switch { // null comes first
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
}

// query is the query of a URL, in its order: links to other pages keep it.
type query []pair

type pair struct{ key, value string }

func parseQuery(raw string) query {
	var q query
	for part := range strings.SplitSeq(raw, "&") {
		key, value, _ := strings.Cut(part, "=")
		key, keyErr := url.QueryUnescape(key)
		value, valueErr := url.QueryUnescape(value)
		if part != "" && keyErr == nil && valueErr == nil {
			q = append(q, pair{key, value})
		}
	}
	return q
}

func (q query) all(key string) []string {
	var values []string
	for _, p := range q {
		if p.key == key {
			values = append(values, p.value)
		}
	}
	return values
}

func (q query) lookup(key string) (string, bool) {
	i := slices.IndexFunc(q, func(p pair) bool { return p.key == key })
	if i < 0 {
		return "", false
	}
	return q[i].value, true
}

func (q query) first(key string) string {
	value, _ := q.lookup(key)
	return value
}

func (q query) encode() string {
	var parts []string
	for _, p := range q {
		parts = append(parts, url.QueryEscape(p.key)+"="+url.QueryEscape(p.value))
	}
	return strings.Join(parts, "&")
}
