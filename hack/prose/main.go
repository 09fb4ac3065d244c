// Command prose checks the text of this repository: Markdown, comments, messages in
// Go code, and YAML files. It reports the words in words.txt and lines that are too
// long.
//
//	go run ./hack/prose [PATH ...]
//
// Without a path, it checks every file that git knows.
package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const maxColumn = 120 // of a line in Markdown, or of a comment in Go

// words has a regular expression, a tab, and a replacement in each line. A space
// matches any white space.
//
//go:embed words.txt
var words string

// textIn matches the texts in a line of a file whose name ends in suffix.
type textIn struct {
	suffix string
	text   *regexp.Regexp
}

var texts = []textIn{
	{".md", regexp.MustCompile(`.+`)},
	{".tmpl", regexp.MustCompile(`.+`)},
	{".yaml", regexp.MustCompile(`[^\s#].*`)},
	{".sh", regexp.MustCompile(`\B# .*`)},
	{".txtar", regexp.MustCompile(`\B# .*`)},
	{"_test.go", regexp.MustCompile(`\B// [^+].*`)},
	{".go", regexp.MustCompile(`\B// [^+].*|"(?:[^"\\]|\\.)* (?:[^"\\]|\\.)*"`)}, // and strings of several words
}

var (
	skipped   = regexp.MustCompile(`\.zh-CN\.md$|^docs/dependencies\.md$|^docs/reference/api\.md$`)
	generated = regexp.MustCompile(`(?m)^(//|#) Code generated|^<!-- Generated|controller-gen\.kubebuilder\.io`)
	code      = regexp.MustCompile("`[^`]*`|\\]\\([^)]*\\)|<!--.*?-->|https?://\\S+") // and targets of links
	comment   = regexp.MustCompile(`^\s*// [^+]`)
)

// rule is a line of words.txt.
type rule struct {
	pattern *regexp.Regexp
	instead string
}

func readRules() (all []rule) {
	for line := range strings.Lines(words) {
		if expression, instead, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			expression = strings.ReplaceAll(expression, " ", `\s+`)
			all = append(all, rule{regexp.MustCompile(`(?i)\b(?:` + expression + `)\b`), instead})
		}
	}
	return all
}

// check returns the findings in a file.
func check(path, content string, rules []rule) (findings []string) {
	kind := slices.IndexFunc(texts, func(t textIn) bool { return strings.HasSuffix(path, t.suffix) })
	if kind < 0 || skipped.MatchString(path) || generated.MatchString(content) {
		return nil
	}
	report := func(line int, format string, args ...any) {
		findings = append(findings, fmt.Sprintf("%s:%d: %s", path, line, fmt.Sprintf(format, args...)))
	}
	var lines []string // the text in each line of the file
	fenced := false
	for i, line := range strings.Split(content, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced, line = !fenced, ""
		}
		if fenced {
			line = ""
		}
		isText := strings.HasSuffix(path, ".md") && !strings.HasPrefix(line, "|") || strings.HasSuffix(path, ".go") && comment.MatchString(line)
		if isText && utf8.RuneCountInString(code.ReplaceAllString(line, "")) > maxColumn {
			report(i+1, "a line of more than %d characters", maxColumn)
		}
		text := texts[kind].text.FindAllString(code.ReplaceAllString(line, "X"), -1)
		// A phrase may continue in the next line, but not after an empty one.
		lines = append(lines, cmp.Or(strings.TrimLeft(strings.Join(text, " "), "/# "), "."))
	}
	text := strings.Join(lines, "\n")
	for _, rule := range rules {
		for _, at := range rule.pattern.FindAllStringIndex(text, -1) {
			found := strings.Join(strings.Fields(text[at[0]:at[1]]), " ")
			report(1+strings.Count(text[:at[0]], "\n"), "%q: write %s", found, rule.instead)
		}
	}
	return findings
}

func main() {
	count, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(2)
	}
	if count > 0 {
		fmt.Fprintf(os.Stderr, "prose: %d findings\n", count)
		os.Exit(1)
	}
}

// run prints the findings in the files that git knows.
func run(paths []string) (count int, err error) {
	files, err := exec.CommandContext(context.Background(), "git", append([]string{"ls-files", "--"}, paths...)...).Output()
	if err != nil {
		return 0, fmt.Errorf("listing the files: %w", err)
	}
	rules := readRules()
	for path := range strings.FieldsSeq(string(files)) {
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted and not committed yet
		}
		if err != nil {
			return count, fmt.Errorf("reading a file: %w", err)
		}
		for _, finding := range check(path, string(content), rules) {
			fmt.Println(finding)
			count++
		}
	}
	return count, nil
}
