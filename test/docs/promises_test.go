package docs

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const promises = "docs/operate/promises.md"

// TestPromises: each promise names a test, and the tests of all promises run. TestTests
// checks that they exist.
func TestPromises(t *testing.T) {
	text := read(t, promises)
	if rows := promisesWithoutTest(text); len(rows) > 0 {
		t.Errorf("%s names no test for %s", promises, rows)
	}
	named := map[string]bool{}
	for _, span := range spans(text) {
		if match := testName.FindStringSubmatch(span); match != nil {
			named[match[1]] = true
			if match[2] != "" {
				named[match[2]+".txtar"] = true
			}
		}
	}
	if len(named) < 50 {
		t.Fatalf("%s names only %d tests: has its form changed?", promises, len(named))
	}
	walk(t, func(file string) {
		switch {
		case strings.HasSuffix(file, "_test.go"):
			for _, test := range skippedTests(read(t, file)) {
				if named[test] {
					t.Errorf("%s promises what %s tests, which may be skipped", promises, test)
				}
			}
		case named[filepath.Base(file)] && skipsStory.MatchString(read(t, file)):
			t.Errorf("%s promises what %s tests, which is skipped", promises, file)
		}
	})
}

// skipsStory matches a story that is skipped with the Neutron of this repository.
var skipsStory = regexp.MustCompile(`(?m)^(?:\[embedded\] )?skip\b`)

// promisesWithoutTest returns the rows of the tables whose last column is for tests that
// have none there.
func promisesWithoutTest(text string) (rows []string) {
	isOfTests := false
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		last := cells[len(cells)-1]
		switch {
		case !strings.HasPrefix(line, "|"):
			isOfTests = false
		case last == "Test" || last == "Tests":
			isOfTests = true
		case isOfTests && !strings.HasPrefix(line, "|--") && !strings.Contains(last, "`Test") && !strings.Contains(last, "`Fuzz"):
			rows = append(rows, cells[0])
		}
	}
	return rows
}

var (
	testFunction = regexp.MustCompile(`(?ms)^func (Test\w+)\(.*?^}`)
	ifShort      = regexp.MustCompile(`(?ms)^(\s*)if testing\.Short\(\).*?^\s*}`)
	skips        = regexp.MustCompile(`\.Skip(f|Now)?\(`)
)

// skippedTests returns the tests in a file of Go that call Skip, except after testing.Short.
func skippedTests(source string) (names []string) {
	for _, test := range testFunction.FindAllStringSubmatch(source, -1) {
		if skips.MatchString(ifShort.ReplaceAllString(test[0], "")) {
			names = append(names, test[1])
		}
	}
	return names
}
