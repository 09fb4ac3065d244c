package lessons

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// expectation is what a page shows as output: lines in this order. Other lines may
// be between them. In a line, … is any text, and a run of spaces is one space.
type expectation struct {
	lines    []string
	patterns []*regexp.Regexp
}

func newExpectation(text string) expectation {
	var e expectation
	for line := range strings.Lines(text) {
		line = normalize(line)
		if line == "" {
			continue
		}
		parts := strings.Split(line, "…")
		for i, part := range parts {
			parts[i] = regexp.QuoteMeta(part)
		}
		e.lines = append(e.lines, line)
		e.patterns = append(e.patterns, regexp.MustCompile("^"+strings.Join(parts, ".*")+"$"))
	}
	return e
}

// match returns how many lines of an output it needs. If a line is missing, match
// returns it, and the number of output lines up to the one that was found last.
func (e expectation) match(output []string) (used int, missing string) {
	for i, pattern := range e.patterns {
		found := slices.IndexFunc(output[used:], func(line string) bool { return pattern.MatchString(normalize(line)) })
		if found < 0 {
			return used, e.lines[i]
		}
		used += found + 1
	}
	return used, ""
}

var spaces = regexp.MustCompile(`\s+`)

func normalize(line string) string { return strings.TrimSpace(spaces.ReplaceAllString(line, " ")) }

func TestMatch(t *testing.T) {
	output := []string{"NAME    CIDR", "a   10.0.0.0/24", "", "I1122 controller.go:5] \"Starting\" count=2", "b 1"}
	for name, test := range map[string]struct {
		expected string
		used     int
		missing  string
	}{
		"nothing":                {"", 0, ""},
		"all":                    {strings.Join(output, "\n"), 5, ""},
		"lines between":          {"NAME CIDR\nb 1\n", 5, ""},
		"other spaces":           {"  NAME CIDR  \na 10.0.0.0/24", 2, ""},
		"any text":               {"… \"Starting\" …", 4, ""},
		"no text for any text":   {"b 1…", 5, ""},
		"another order":          {"b 1\nNAME CIDR", 5, "NAME CIDR"},
		"once, expected twice":   {"NAME CIDR\nNAME CIDR", 1, "NAME CIDR"},
		"part of a line":         {"NAME", 0, "NAME"},
		"a pattern is not one":   {"b .", 0, "b ."},
		"a line that is missing": {"NAME CIDR\nc", 1, "c"},
	} {
		t.Run(name, func(t *testing.T) {
			used, missing := newExpectation(test.expected).match(output)
			if used != test.used || missing != test.missing {
				t.Errorf("match returns %d and %q, want %d and %q", used, missing, test.used, test.missing)
			}
		})
	}
}
