package embedded

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// list responds with the objects that match, as one page if the request or the
// Options limit the number.
func (s *Server) list(c *collection, r *http.Request) (object, *apiError) {
	query := r.URL.Query()
	matches, failure := c.filter(query)
	if failure != nil {
		return nil, failure
	}
	limit, failure := s.limit(query)
	if failure != nil {
		return nil, failure
	}
	found, body := []object{}, object{}
	order, size := c.order, len(c.order)
	if limit > 0 {
		if order, failure = c.pageAfter(query.Get("marker"), matches); failure != nil {
			return nil, failure
		}
		size = limit
	}
	for i := 0; i < len(order) && len(found) < size; i++ {
		if o := c.objects[order[i]]; matches(o) {
			found = append(found, o)
		}
	}
	if limit > 0 {
		body[c.plural+"_links"] = nextPage(r, found, limit)
	}
	for i, o := range found {
		found[i] = c.response(o, query["fields"])
	}
	body[c.plural] = found
	return body, nil
}

// pageAfter returns the IDs after the marker, in their order. A marker that does not
// match is ignored.
func (c *collection) pageAfter(marker string, matches func(object) bool) ([]string, *apiError) {
	if marker != "" && c.objects[marker] == nil && !c.forgivesMarker {
		return nil, c.missing(marker)
	}
	if c.sorted == nil { // a list of 100,000 has a hundred pages
		c.sorted = slices.Sorted(slices.Values(c.order))
	}
	if i, found := slices.BinarySearch(c.sorted, marker); found && matches(c.objects[marker]) {
		return c.sorted[i+1:], nil
	}
	return c.sorted, nil
}

// nextPage returns the link to the page after this one. As in a real Neutron, a
// full page has one even if no object follows.
func nextPage(r *http.Request, page []object, limit int) []object {
	if len(page) < limit {
		return []object{}
	}
	query := r.URL.Query()
	query.Set("marker", page[len(page)-1]["id"].(string))
	return []object{{"rel": "next", "href": "http://" + r.Host + r.URL.Path + "?" + query.Encode()}}
}

func (s *Server) limit(query url.Values) (int, *apiError) {
	limit := 0
	if query.Has("limit") {
		var err error
		if limit, err = strconv.Atoi(query.Get("limit")); err != nil || limit < 0 {
			return 0, badResource("limit", "Limit must be an integer 0 or greater and not '%s'.", query.Get("limit"))
		}
	}
	if s.maxPage > 0 && (limit == 0 || limit > s.maxPage) {
		limit = s.maxPage
	}
	return limit, nil
}

// filter returns a function that reports whether an object passes all filters of
// a query. Several values of one attribute are alternatives.
func (c *collection) filter(query url.Values) (matches func(object) bool, failure *apiError) {
	var filters []func(object) bool
	var unknown []string
	for _, name := range slices.Sorted(maps.Keys(query)) {
		values, a := query[name], c.attribute(name)
		switch {
		case slices.Contains([]string{"limit", "marker", "fields"}, name):
		case a != nil && a.filter != nil:
			var alternatives []func(any) bool
			for _, value := range values {
				alternative, failure := a.filter(value)
				if failure != nil {
					return nil, failure
				}
				alternatives = append(alternatives, alternative)
			}
			filters = append(filters, func(o object) bool {
				return slices.ContainsFunc(alternatives, func(passes func(any) bool) bool { return passes(o[name]) })
			})
		default:
			unknown = append(unknown, name)
		}
	}
	if unknown != nil {
		return nil, badRequest("['%s'] is invalid attribute for filtering", strings.Join(unknown, "', '"))
	}
	return func(o object) bool {
		return !slices.ContainsFunc(filters, func(passes func(object) bool) bool { return !passes(o) })
	}, nil
}
