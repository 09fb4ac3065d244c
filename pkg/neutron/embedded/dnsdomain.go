package embedded

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxDomain is how long a domain can be, with a label and a point before it.
const maxDomain = 255

var (
	dnsLabel   = regexp.MustCompile(`^([a-z0-9-]{1,63}|<(project_id|project_name|user_name|user_id)>)$`)
	allNumeric = regexp.MustCompile(`^[0-9]+$`)
)

// dnsDomain takes a domain with a point at its end, in small letters from there
// on, or nothing.
func dnsDomain(name string, value any) (any, *apiError) {
	s, ok := value.(string)
	if !ok {
		return nil, invalidInput("Input value %s must be string type.", text(value))
	}
	s = strings.ToLower(s)
	length := utf8.RuneCountInString(s)
	switch reason := dnsReason(s); {
	case s == "":
		return s, nil
	case !strings.HasSuffix(s, "."):
		return nil, wrong(name, "'%s' is not a FQDN.", s)
	case reason != "":
		return nil, wrong(name, "'%s' not a valid PQDN or FQDN. Reason: %s.", s, reason)
	case length > maxDomain-2:
		return nil, wrong(name, "'%s' contains %d characters. Adding a sub-domain will cause it to exceed the maximum length of a FQDN of '%d'.", s, length, maxDomain)
	}
	return s, nil
}

// dnsReason returns what is wrong with the labels of a domain, or nothing.
func dnsReason(domain string) string {
	trimmed := strings.TrimSuffix(domain, ".")
	if utf8.RuneCountInString(trimmed) > maxDomain {
		return "'" + trimmed + "' exceeds the 255 character FQDN limit"
	}
	labels := strings.Split(trimmed, ".")
	for _, label := range labels {
		switch {
		case label == "":
			return "Encountered an empty component"
		case strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-"):
			return "Name '" + label + "' must not start or end with a hyphen"
		case !dnsLabel.MatchString(label):
			return "Name '" + label + "' must be 1-63 characters long, each of which can only be alphanumeric or a hyphen"
		}
	}
	if top := labels[len(labels)-1]; len(labels) > 1 && allNumeric.MatchString(top) {
		return "TLD '" + top + "' must not be all numeric"
	}
	return ""
}
