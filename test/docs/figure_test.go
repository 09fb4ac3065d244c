package docs

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The steps of the picture. Those before the handlers are in client-go.
const figureSteps, handlersStep = 12, 6

var (
	figureStep = regexp.MustCompile(`<title>([^<]+)</title><circle class="n"[^>]*/><text [^>]*>(\d+)</text>`)
	pageSteps  = regexp.MustCompile(`(?s)\n\tsteps: \[(.*?)\],\n`)
	pageStep   = regexp.MustCompile(`"([^":：]+)[:：]`)
	pageNumber = regexp.MustCompile(`data-steps="([\d ]+)"`)
)

// TestFigure: the picture of the pattern, the debug page, controller.go and the index of terms
// give each step one number and one name.
func TestFigure(t *testing.T) {
	names := map[int]string{}
	for _, match := range figureStep.FindAllStringSubmatch(read(t, "docs/images/pattern.svg"), -1) {
		number, _ := strconv.Atoi(match[2])
		names[number] = match[1]
	}
	if len(names) != figureSteps {
		t.Fatalf("the picture has the steps %v, want %d", names, figureSteps)
	}
	checkPageSteps(t, names)
	for number := range figureSteps {
		circled, name := string('①'+rune(number)), names[number+1]
		for _, file := range []string{"docs/learn/terms.md", "docs/zh-CN/learn/terms.md"} {
			checkStep(t, file, circled, name)
		}
		if number+1 >= handlersStep {
			checkStep(t, "controller.go", circled, name)
		}
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

func checkPageSteps(t *testing.T, names map[int]string) {
	t.Helper()
	lists := pageSteps.FindAllStringSubmatch(read(t, "pkg/glass/page/texts.js"), -1)
	if len(lists) != 2 {
		t.Errorf("the debug page names the steps in %d languages, want 2", len(lists))
	}
	for _, list := range lists {
		steps := pageStep.FindAllStringSubmatch(list[1], -1)
		if len(steps) != figureSteps {
			t.Errorf("the debug page names %d steps, want %d:\n%s", len(steps), figureSteps, list[1])
			continue
		}
		for i, step := range steps {
			if step[1] != names[i+1] {
				t.Errorf("step %d is %q in the picture, and %q on the debug page", i+1, names[i+1], step[1])
			}
		}
	}
	var numbers []string
	for _, match := range pageNumber.FindAllStringSubmatch(read(t, "pkg/glass/page/index.html"), -1) {
		numbers = append(numbers, strings.Fields(match[1])...)
	}
	for number := range figureSteps {
		if !slices.Contains(numbers, strconv.Itoa(number+1)) || len(numbers) != figureSteps {
			t.Fatalf("the stations of the debug page have the numbers %v, want each up to %d once", numbers, figureSteps)
		}
	}
}
