package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// figures are sentences with figures that a benchmark wrote into the table of another page:
// {page: row, column}. Those of the Chinese pages are compared with the English ones.
var figures = []struct{ page, text string }{
	{"docs/operate/sizing.md", "| 10,000, just created: [benchmarks](../benchmarks.md#at-rest) |" +
		" {benchmarks: this controller | 10,000, memory} | {benchmarks: this controller | 10,000, its peak} |"},
	{"docs/operate/sizing.md", "| 10,000, after a restart |" +
		" {scale: memory of the leader, 10,000} | {scale: its peak since the start, 10,000} |"},
	{"docs/operate/sizing.md", "| 100,000, after a restart, of which 500 were created since |" +
		" {scale: memory of the leader, 100,000} | {scale: its peak since the start, 100,000} |"},
	{"docs/learn/questions.md", "A list of 10,000 Networks is one response: {scale: that response, 10,000}"},
	{"docs/scale.md", "One response has all Networks: {scale: that response, 100,000}"},
}

var figure = regexp.MustCompile(`\{(\w+): (.+?), ([^{}]+)\}`)

// TestFigures: a figure is the same in each page that has it.
func TestFigures(t *testing.T) {
	for _, f := range figures {
		words := strings.Fields(figure.ReplaceAllStringFunc(f.text, func(placeholder string) string {
			match := figure.FindStringSubmatch(placeholder)
			return cell(t, read(t, "docs/"+match[1]+".md"), match[2], match[3])
		}))
		if text := strings.Join(strings.Fields(read(t, f.page)), " "); !strings.Contains(text, strings.Join(words, " ")) {
			t.Errorf("%s lacks %q: the table that a benchmark wrote has these figures", f.page, strings.Join(words, " "))
		}
	}
}

// cell returns what a table of a page has in a row and a column.
func cell(t *testing.T, page, row, column string) string {
	t.Helper()
	at := 0 // where the table has the column
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.TrimSuffix(strings.TrimSpace(line), " |"), " | ")
		switch {
		case !strings.HasPrefix(line, "|"):
			at = 0 // the table ends
		case at == 0:
			at = max(slices.Index(cells, column), 0)
		case strings.HasPrefix(line, "| "+row+" |"):
			return cells[at]
		}
	}
	t.Errorf("no table has %s, %s", row, column)
	return ""
}
