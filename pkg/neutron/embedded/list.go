package embedded

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// list answers with the objects that match, a page at a time where the request
// or the Options ask for it.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	c, done := s.find(w, r)
	if c == nil {
		return
	}
	defer done()
	query := r.URL.Query()
	filters, failure := c.filters(query)
	if failure != nil {
		answerError(w, failure)
		return
	}
	limit, failure := s.limit(query)
	if failure != nil {
		answerError(w, failure)
		return
	}
	order := c.order
	if marker := query.Get("marker"); marker != "" {
		i := slices.Index(order, marker)
		if i < 0 {
			answerError(w, c.missing(marker))
			return
		}
		order = order[i+1:]
	}
	found, more := c.match(order, filters, limit)
	if key := query.Get("sort_key"); key != "" {
		sortedBy(found, key, query.Get("sort_dir") == "desc")
	}
	page := make([]object, len(found))
	for i, o := range found {
		page[i] = thin(o, query["fields"])
	}
	body := object{c.plural: page}
	if more {
		query.Set("marker", found[len(found)-1]["id"].(string))
		body[c.plural+"_links"] = []object{{"rel": "next", "href": "http://" + r.Host + r.URL.Path + "?" + query.Encode()}}
	}
	answer(w, http.StatusOK, body)
}

// filters returns what the objects must match: for each attribute, one of some
// values.
func (c *collection) filters(query url.Values) (map[string][]string, *apiError) {
	filters := map[string][]string{}
	var unknown []string
	for key, values := range query {
		switch key {
		case "limit", "marker", "fields", "sort_key", "sort_dir", "page_reverse":
			continue
		}
		if _, ok := c.attributes[key]; !ok {
			unknown = append(unknown, "'"+key+"'")
		}
		filters[key] = values
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return nil, badRequest("[%s] is invalid attribute for filtering", strings.Join(unknown, ", "))
	}
	return filters, nil
}

func (s *Server) limit(query url.Values) (int, *apiError) {
	limit := 0
	if text := query.Get("limit"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit < 0 {
			return 0, &apiError{http.StatusBadRequest, "BadRequest",
				fmt.Sprintf("Bad limit request: Limit must be an integer 0 or greater and not '%s'.", text)}
		}
	}
	if s.options.MaxPage > 0 && (limit == 0 || limit > s.options.MaxPage) {
		limit = s.options.MaxPage
	}
	return limit, nil
}

// match returns the first objects that match, and whether there are more. A
// limit of 0 stands for none.
func (c *collection) match(order []string, filters map[string][]string, limit int) (found []object, more bool) {
	for _, id := range order {
		if !matches(c.objects[id], filters) {
			continue
		}
		if limit > 0 && len(found) == limit {
			return found, true
		}
		found = append(found, c.objects[id])
	}
	return found, false
}

func matches(o object, filters map[string][]string) bool {
	for key, values := range filters {
		if !slices.ContainsFunc(values, func(value string) bool { return equals(o[key], value) }) {
			return false
		}
	}
	return true
}

// equals compares an attribute with a value in a query.
func equals(attribute any, value string) bool {
	if text, ok := attribute.(string); ok {
		return text == value
	}
	if truth, ok := attribute.(bool); ok {
		asked, err := strconv.ParseBool(value)
		return err == nil && asked == truth
	}
	return fmt.Sprint(attribute) == value
}
