package docs

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// budgets are the most that this repository may contain, without generated files. They
// follow the repository down. To raise one is a decision: what is it worth to a reader?
var budgets = map[string]int{
	"lines of the program":                           20_260,
	"lines of the embedded Neutron":                  1_920,
	"lines of tests":                                 27_330,
	"lines that support tests, tools and lessons":    13_500,
	"lines of the debug page":                        1_660,
	"lines of YAML":                                  2_800,
	"Go files in the root":                           3,
	"test files in the root":                         6,
	"modules":                                        9,
	"characters in the longest line of the Go types": 160,
}

// TestBudgets: the repository stays as small as it was.
func TestBudgets(t *testing.T) {
	counts := map[string]int{}
	walk(t, func(file string) {
		text := read(t, file)
		lines := strings.Count(text, "\n")
		isGo, inRoot := filepath.Ext(file) == ".go", !strings.Contains(file, "/")
		switch {
		case filepath.Base(file) == "go.mod":
			counts["modules"]++
		case filepath.Base(file) == "go.sum", strings.HasPrefix(file, "docs/watch/"): // generated
		case isGenerated(file, text):
		case strings.HasSuffix(file, "_test.go"), strings.HasPrefix(file, "test/browser/testdata/"):
			counts["lines of tests"] += lines
			if inRoot {
				counts["test files in the root"]++
			}
		case isGo:
			counts["lines "+kindOf(file)] += lines
			if inRoot {
				counts["Go files in the root"]++
			}
		case slices.Contains([]string{".html", ".css", ".js"}, filepath.Ext(file)):
			counts["lines of the debug page"] += lines
		case slices.Contains([]string{"crd", "deploy", "example"}, strings.Split(file, "/")[0]) && filepath.Ext(file) != ".md":
			counts["lines of YAML"] += lines
		}
	})
	for line := range strings.Lines(read(t, "pkg/apis/samplecrd/v1/types.go")) {
		name := "characters in the longest line of the Go types"
		counts[name] = max(counts[name], len([]rune(line))-1)
	}
	for name, most := range budgets {
		switch count := counts[name]; {
		case count > most:
			t.Errorf("%d %s, at most %d are in the budget: delete something, or say in the commit why the budget grows", count, name, most)
		case count < most*9/10:
			t.Errorf("%d %s, but %d are in the budget: lower it", count, name, most)
		}
	}
}

func isGenerated(file, text string) bool {
	return strings.HasPrefix(file, "pkg/client/") || strings.Contains(text[:min(600, len(text))], "DO NOT EDIT")
}

// kindOf returns what a Go file without tests is part of.
func kindOf(file string) string {
	switch {
	case strings.HasPrefix(file, "pkg/neutron/embedded/"):
		return "of the embedded Neutron"
	case strings.HasPrefix(file, "pkg/neutron/neutrontest/"), strings.HasPrefix(file, "pkg/neutron/faults/"):
		return "that support tests, tools and lessons"
	case strings.HasPrefix(file, "pkg/"), !strings.Contains(file, "/"):
		return "of the program"
	}
	return "that support tests, tools and lessons"
}
