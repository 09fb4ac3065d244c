package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The steps of the picture. Those before the handlers are in client-go.
const figureSteps, handlersStep = 12, 6

// TestFigure: the picture of the pattern, the debug page, controller.go and the index of terms
// give each step one number and one name. The Chinese picture differs in its words only.
func TestFigure(t *testing.T) {
	var names, numbers []string
	word := regexp.MustCompile(`(<text class="[tsl]"[^>]*>|<title id[^>]*>)[^<]*`) // the rest is not translated
	english, chinese := read(t, "docs/images/pattern.svg"), read(t, "docs/images/pattern-zh-CN.svg")
	if diff := cmp.Diff(word.ReplaceAllString(english, "$1"), word.ReplaceAllString(chinese, "$1")); diff != "" {
		t.Errorf("the Chinese picture differs (-English +Chinese):\n%s", diff)
	}
	picture := regexp.MustCompile(`<title>([^<]+)</title><circle class="n"[^>]*/><text [^>]*>(\d+)</text>`)
	steps := map[string]string{} // by number
	for _, match := range picture.FindAllStringSubmatch(english, -1) {
		steps[match[2]] = match[1]
	}
	for i := range figureSteps {
		number := strconv.Itoa(i + 1)
		names, numbers = append(names, steps[number]), append(numbers, number)
		for _, file := range []string{"docs/learn/terms.md", "docs/zh-CN/learn/terms.md", "controller.go"} {
			if file != "controller.go" || i+1 >= handlersStep {
				checkStep(t, file, string('①'+rune(i)), steps[number])
			}
		}
	}
	have := map[string][]string{}
	stations := regexp.MustCompile(`data-steps="([\d ]+)"`)
	for _, match := range stations.FindAllStringSubmatch(read(t, "pkg/glass/page/index.html"), -1) {
		have["index.html"] = append(have["index.html"], strings.Fields(match[1])...)
	}
	slices.Sort(have["index.html"])
	lists := regexp.MustCompile(`(?s)\n\tsteps: \[(.*?)\],\n`).FindAllStringSubmatch(read(t, "pkg/glass/page/texts.js"), 2)
	for language, list := range lists {
		for _, step := range regexp.MustCompile(`"([^":：]+)[:：]`).FindAllStringSubmatch(list[1], -1) {
			name := fmt.Sprint("texts.js ", language)
			have[name] = append(have[name], step[1])
		}
	}
	slices.Sort(numbers)
	want := map[string][]string{"index.html": numbers, "texts.js 0": names, "texts.js 1": names}
	if diff := cmp.Diff(want, have); diff != "" || len(steps) != figureSteps {
		t.Errorf("the debug page has other steps than the picture with %d (-picture +page):\n%s", len(steps), diff)
	}
}

// checkStep checks that the lines with a number name its step. Comments alone on a line, such
// as the drawing in controller.go, may have several.
func checkStep(t *testing.T, file, circled, name string) {
	t.Helper()
	found := false
	for line := range strings.Lines(read(t, file)) {
		if !strings.Contains(line, circled) || strings.HasPrefix(line, "//") {
			continue
		}
		found = true
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(line) {
			t.Errorf("%s: the picture calls %s %q, and this line does not: %s", file, circled, name, line)
		}
	}
	if !found {
		t.Errorf("%s does not have %s (%s)", file, circled, name)
	}
}
