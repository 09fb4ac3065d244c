package embedded

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// attribute is a member of an object.
type attribute struct {
	name      string
	post, put bool // whether a request may say it when it creates or updates
	required  bool
	hidden    bool   // it can be said, and is in no answer
	initial   any    // where it is not said
	extension string // what it belongs to, if not to every Neutron
	// check returns the value as it is kept.
	check func(name string, value any) (any, *apiError)
	// filter returns what matches a value in a query; nil where objects cannot
	// be chosen by the attribute.
	filter func(value string) (func(any) bool, *apiError)
}

// project is the one that everything belongs to, as in a real Neutron without
// authentication.
const project = "fake_project_id"

// withCommon returns the attributes that every kind of object has, and more, as
// far as the Server has their extensions. One of a common name takes its place.
func (s *Server) withCommon(more ...attribute) []attribute {
	all := []attribute{
		{name: "id", filter: byText},
		{name: "name", post: true, put: true, initial: "", check: shortText, filter: byText},
		{name: "tenant_id", post: true, initial: project, check: shortText, filter: byText},
		{name: "project_id", filter: byText},
		{name: "description", post: true, put: true, initial: "", check: shortText, filter: byText},
		{name: "tags", initial: []any{}, extension: "standard-attr-tag"},
		{name: "revision_number", filter: byNumberOrNone},
		{name: "created_at"},
		{name: "updated_at"},
	}
	for _, a := range more {
		i := slices.IndexFunc(all, func(common attribute) bool { return common.name == a.name })
		if i < 0 {
			all = append(all, a)
		} else {
			all[i] = a
		}
	}
	return slices.DeleteFunc(all, func(a attribute) bool { return !s.has(a.extension) })
}

func (c *collection) attribute(name string) *attribute {
	i := slices.IndexFunc(c.attributes, func(a attribute) bool { return a.name == name })
	if i < 0 {
		return nil
	}
	return &c.attributes[i]
}

// The checks.

func anything(_ string, value any) (any, *apiError) { return value, nil }

// wrong is the error of a value that is not what its attribute takes.
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
	switch strings.ToLower(text(value)) {
	case "true", "t", "yes", "y", "on", "1":
		return true, nil
	case "false", "f", "no", "n", "off", "0":
		return false, nil
	}
	return nil, invalidInput("'%s' cannot be converted to boolean.", text(value))
}

func number(_ string, value any) (any, *apiError) {
	if yes, ok := value.(bool); ok { // to Python, it is a number
		return map[bool]int{true: 1}[yes], nil
	}
	digits := text(value)
	if n, ok := value.(json.Number); ok { // what comes after the point goes
		digits, _, _ = strings.Cut(n.String(), ".")
	}
	n, err := strconv.Atoi(strings.TrimSpace(digits))
	if err != nil {
		return nil, invalidInput("'%s' is not an integer.", text(value))
	}
	return n, nil
}

// count takes a number that is not negative.
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

// oneOf takes one of some words.
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

// address takes an IP address, and null for none.
func address(name string, value any) (any, *apiError) {
	if value == nil {
		return nil, nil
	}
	ip, failure := parseAddress(name, value)
	if failure != nil {
		return nil, failure
	}
	return ip.String(), nil
}

func parseAddress(name string, value any) (netip.Addr, *apiError) {
	s, _ := value.(string)
	ip, err := netip.ParseAddr(s)
	if err != nil || ip.Zone() != "" {
		return ip, wrong(name, "'%s' is not a valid IP address.", text(value))
	}
	return ip, nil
}

// anyCIDR takes a range of addresses and drops its host bits. An address alone
// is a range of one.
func anyCIDR(_ string, value any) (any, *apiError) {
	cidr, err := netip.ParsePrefix(text(value))
	if ip, ipErr := netip.ParseAddr(text(value)); ipErr == nil && ip.Zone() == "" {
		cidr, err = ip.Prefix(ip.BitLen())
	}
	if err != nil {
		return nil, invalidInput("%s is not in a CIDR format.", text(value))
	}
	return cidr.Masked().String(), nil
}

func listOf(name string, value any) (any, *apiError) {
	items, ok := value.([]any)
	if !ok {
		return nil, wrong(name, "'%s' is not a list.", text(value))
	}
	return items, nil
}

func nameservers(name string, value any) (any, *apiError) {
	if value == nil || value == "" {
		return []any{}, nil
	}
	items, ok := value.([]any)
	if s, isText := value.(string); isText { // a list of characters, to Python
		items, ok = []any{s[:1]}, true
	}
	if !ok {
		return nil, wrong(name, "'%s' is not a list.", text(value))
	}
	seen := map[any]bool{}
	for _, item := range items {
		if _, failure := parseAddress(name, item); failure != nil {
			return nil, wrong(name, "'%s' is not a valid nameserver. '%s' is not a valid IP address.", text(item), text(item))
		}
		if seen[item] {
			return nil, wrong(name, "Duplicate nameserver '%s'.", text(item))
		}
		seen[item] = true
	}
	return items, nil
}

func hostRoutes(name string, value any) (any, *apiError) {
	if value == nil {
		return []any{}, nil
	}
	items, ok := value.([]any)
	if !ok {
		return nil, wrong(name, "Invalid data format for hostroute: '%s'.", text(value))
	}
	seen := map[string]bool{}
	routes := []any{}
	for _, item := range items {
		if failure := checkKeys(name, item, "destination", "nexthop"); failure != nil {
			return nil, failure
		}
		route := item.(object)
		if failure := checkDestination(name, route["destination"]); failure != nil {
			return nil, failure
		}
		nexthop, failure := parseAddress(name, route["nexthop"])
		if failure != nil {
			return nil, failure
		}
		if seen[text(route)] {
			return nil, wrong(name, "Duplicate hostroute '%s'.", text(route))
		}
		seen[text(route)] = true
		routes = append(routes, object{"destination": route["destination"], "nexthop": nexthop.String()})
	}
	return routes, nil
}

// checkDestination takes a range of addresses without host bits.
func checkDestination(name string, value any) *apiError {
	if ip, err := netip.ParseAddr(text(value)); err == nil && ip.Zone() == "" {
		return wrong(name, "'%s' is not a recognized CIDR, '%s/%d' is recommended.", text(value), ip, ip.BitLen())
	}
	s, _ := value.(string)
	cidr, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		return wrong(name, "'%s' is not a valid CIDR.", text(value))
	case cidr.Addr() != cidr.Masked().Addr():
		return wrong(name, "'%s' is not a recognized CIDR, '%s' is recommended.", text(value), cidr.Masked())
	case cidr.Addr().IsLoopback() && lastAddr(cidr).IsLoopback():
		return wrong(name, "'%s' is not a routable CIDR.", text(value))
	}
	return nil
}

// checkKeys checks that a value is an object with two members, no more and no
// fewer.
func checkKeys(name string, value any, first, second string) *apiError {
	o, ok := value.(object)
	if !ok {
		return wrong(name, "Invalid input. '%s' must be a dictionary with keys: ['%s', '%s'].", text(value), first, second)
	}
	_, hasFirst := o[first]
	_, hasSecond := o[second]
	if !hasFirst || !hasSecond || len(o) != 2 {
		provided := strings.Join(slices.Sorted(maps.Keys(o)), "', '")
		return wrong(name, "Validation of dictionary's keys failed. Expected keys: {'%s', '%s'} Provided keys: {'%s'}.", first, second, provided)
	}
	return nil
}

// The filters.

func byText(value string) (func(any) bool, *apiError) {
	return func(kept any) bool { return kept == value }, nil
}

// by makes a filter of a check.
func by(check func(string, any) (any, *apiError)) func(string) (func(any) bool, *apiError) {
	return func(value string) (func(any) bool, *apiError) {
		want, failure := check("", value)
		return func(kept any) bool { return kept == want }, failure
	}
}

// byNumberOrNone is matched by nothing where the value is not a number.
func byNumberOrNone(value string) (func(any) bool, *apiError) {
	want, err := strconv.Atoi(value)
	return func(kept any) bool { return err == nil && kept == want }, nil
}

// text returns a value as Neutron shows it in its messages, which is as Python
// does.
func text(value any) string {
	if s, ok := value.(string); ok {
		return s
	}
	return python(value)
}

func python(value any) string {
	switch v := value.(type) {
	case nil:
		return "None"
	case bool:
		return map[bool]string{true: "True", false: "False"}[v]
	case string:
		return "'" + v + "'"
	case json.Number:
		return v.String()
	case []any:
		var parts []string
		for _, item := range v {
			parts = append(parts, python(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case object:
		var parts []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, "'"+key+"': "+python(v[key]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return fmt.Sprint(value)
}
