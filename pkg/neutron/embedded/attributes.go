package embedded

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// attribute is a member of an object.
type attribute struct {
	name      string
	post, put bool // whether a request can set it in a create or an update
	required  bool
	hidden    bool   // it can be set, but is in no response
	initial   any    // the default
	extension string // that it belongs to; empty for the core of the API
	// check returns the value as the object keeps it.
	check func(name string, value any) (any, *apiError)
	// filter returns a function that matches a value in a query; nil if the
	// attribute is no filter.
	filter func(value string) (func(any) bool, *apiError)
}

// withCommon returns the attributes of every kind of object, and more, without
// those of missing extensions. An attribute in more replaces a common one.
func (s *Server) withCommon(more ...attribute) []attribute {
	all := []attribute{
		{name: "id", filter: byText},
		{name: "name", post: true, put: true, initial: "", check: shortText, filter: byText},
		{name: "tenant_id", post: true, initial: s.project, check: shortText, filter: byText},
		{name: "project_id", filter: byText},
		{name: "description", post: true, put: true, initial: "", check: shortText, filter: byText},
		{name: "tags", initial: []string{}, extension: "standard-attr-tag"},
		{name: "revision_number"},
		{name: "created_at"},
		{name: "updated_at"},
	}
	all = slices.DeleteFunc(all, func(common attribute) bool {
		return slices.ContainsFunc(more, func(a attribute) bool { return a.name == common.name })
	})
	return slices.DeleteFunc(append(all, more...), func(a attribute) bool { return !s.has(a.extension) })
}

func (c *collection) attribute(name string) *attribute {
	i := slices.IndexFunc(c.attributes, func(a attribute) bool { return a.name == name })
	if i < 0 {
		return nil
	}
	return &c.attributes[i]
}

// The checks.

// wrong rejects the value of an attribute.
func wrong(name, format string, args ...any) *apiError {
	return badRequest("Invalid input for %s. Reason: %s", name, fmt.Sprintf(format, args...))
}

func shortText(name string, value any) (any, *apiError) {
	s, ok := value.(string)
	switch {
	case !ok:
		return nil, wrong(name, "'%s' is not a valid string.", text(value))
	case utf8.RuneCountInString(s) > 255:
		return nil, wrong(name, "'%s' exceeds maximum length of 255.", s)
	}
	return s, nil
}

func boolean(_ string, value any) (any, *apiError) {
	yes, err := strconv.ParseBool(text(value))
	if err != nil {
		return nil, invalidInput("'%s' cannot be converted to boolean.", text(value))
	}
	return yes, nil
}

func number(_ string, value any) (any, *apiError) {
	n, err := strconv.Atoi(text(value))
	if err != nil {
		return nil, invalidInput("'%s' is not an integer.", text(value))
	}
	return n, nil
}

// count accepts a number that is not negative.
func count(name string, value any) (any, *apiError) {
	n, failure := number(name, value)
	if failure == nil && n.(int) < 0 {
		failure = wrong(name, "'%d' should be non-negative.", n)
	}
	return n, failure
}

func ipVersion(name string, value any) (any, *apiError) {
	n, failure := number(name, value)
	if failure == nil && n != 4 && n != 6 {
		failure = wrong(name, "%v is not in valid_values.", n)
	}
	return n, failure
}

// oneOf accepts one of some words.
func oneOf(valid ...string) func(string, any) (any, *apiError) {
	return func(name string, value any) (any, *apiError) {
		if s, ok := value.(string); ok && slices.Contains(valid, s) {
			return s, nil
		}
		return nil, wrong(name, "%s is not in valid_values.", text(value))
	}
}

func uuid(name string, value any) (any, *apiError) {
	s, _ := value.(string)
	if len(s) != 36 || strings.Trim(strings.ToLower(s), "0123456789abcdef-") != "" {
		return nil, wrong(name, "'%s' is not a valid UUID.", text(value))
	}
	return s, nil
}

// domain accepts a domain name with a dot at its end, or none.
func domain(name string, value any) (any, *apiError) {
	s, failure := shortText(name, value)
	if failure == nil && s != "" && !strings.HasSuffix(s.(string), ".") {
		failure = wrong(name, "'%s' is not a FQDN.", s)
	}
	return s, failure
}

// address accepts an IP address, and null for none.
func address(name string, value any) (any, *apiError) {
	if value == nil {
		return nil, nil
	}
	ip, failure := parseAddress(name, value)
	return ip.String(), failure
}

func parseAddress(name string, value any) (netip.Addr, *apiError) {
	s, _ := value.(string)
	ip, err := netip.ParseAddr(s)
	if err != nil || ip.Zone() != "" {
		return ip, wrong(name, "'%s' is not a valid IP address.", text(value))
	}
	return ip, nil
}

// anyCIDR accepts a range of addresses, and drops its host bits.
func anyCIDR(_ string, value any) (any, *apiError) {
	cidr, err := netip.ParsePrefix(text(value))
	if err != nil {
		return nil, invalidInput("%s is not in a CIDR format.", text(value))
	}
	return cidr.Masked().String(), nil
}

// listOf accepts a list of different values, and null for an empty one. item
// returns a value as the object keeps it.
func listOf(item func(name string, value any) (any, *apiError)) func(string, any) (any, *apiError) {
	return func(name string, value any) (any, *apiError) {
		values, ok := value.([]any)
		if !ok && value != nil {
			return nil, wrong(name, "'%s' is not a list.", text(value))
		}
		seen, kept := map[string]bool{}, []any{}
		for _, value := range values {
			checked, failure := item(name, value)
			if failure != nil {
				return nil, failure
			}
			if seen[text(checked)] {
				return nil, wrong(name, "Duplicate items in the list: '%s'.", text(value))
			}
			seen[text(checked)] = true
			kept = append(kept, checked)
		}
		return kept, nil
	}
}

// pair returns the texts of an object with two members, no more and no fewer.
func pair(name string, value any, first, second string) (a, b string, failure *apiError) {
	o, _ := value.(object)
	a, hasFirst := o[first].(string)
	b, hasSecond := o[second].(string)
	if !hasFirst || !hasSecond || len(o) != 2 {
		return "", "", wrong(name, "'%s' must be a dictionary with keys: ['%s', '%s'].", text(value), first, second)
	}
	return a, b, nil
}

// The filters.

func byText(value string) (func(any) bool, *apiError) {
	return func(kept any) bool { return kept == value }, nil
}

// by makes a filter of a check.
func by(check func(string, any) (any, *apiError)) func(string) (func(any) bool, *apiError) {
	return func(value string) (func(any) bool, *apiError) {
		wanted, failure := check("", value)
		return func(kept any) bool { return kept == wanted }, failure
	}
}

// text returns a value as it is in messages.
func text(value any) string {
	if s, ok := value.(string); ok {
		return s
	}
	data, _ := json.Marshal(value) // all values were decoded from JSON
	return string(data)
}
