// Command prose checks the text of this repository: Markdown, comments, messages in
// Go code, and descriptions in YAML files. It reports the words in words.txt, and
// sentences and lines that are too long.
//
//	go run ./hack/prose [PATH ...]
//
// Without a path, it checks every file that git knows.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	maxWords  = 30  // in a sentence
	maxColumn = 120 // of a line in Markdown, or of a comment in Go
)

// words has a regular expression, a tab, and a replacement in each line. A space
// matches any white space.
//
//go:embed words.txt
var words string

// block is a paragraph, heading, table cell, comment or message.
type block struct {
	line      int // of its first line
	text      string
	wordsOnly bool // it need not be a sentence
}

var (
	skipped     = regexp.MustCompile(`\.zh-CN\.md$|^docs/dependencies\.md$|^docs/reference/api\.md$`)
	prefixes    = map[string]string{".md": "", ".tmpl": "", ".go": "//", ".yaml": "#", ".sh": "#", ".txtar": "#"}
	generated   = regexp.MustCompile(`(?m)^(//|#) Code generated|^<!-- Generated|controller-gen\.kubebuilder\.io`)
	code        = regexp.MustCompile("`[^`]*`|\\]\\([^)]*\\)|<!--.*?-->|https?://\\S+") // and targets of links
	comment     = regexp.MustCompile(`^\s*// [^+]`)
	listItem    = regexp.MustCompile(`^([-*+]|\d+\.)\s+|^#+ `)
	marker      = regexp.MustCompile(`(?:message|description)="([^"]*)"`)
	literal     = regexp.MustCompile(`"((?:[^"\\]|\\.)* (?:[^"\\]|\\.)*)"`)
	described   = regexp.MustCompile(`^(?:- )?(?:description|summary|action|message): *[>|'"]?-?(.*)$`)
	sentenceEnd = regexp.MustCompile(`[.!?:;]["')\]*]*(\s+|$)`)
	word        = regexp.MustCompile(`[\pL\pN]\S*`)
)

// reader collects the blocks of a file.
type reader struct {
	blocks []block
	open   bool // the next line belongs to the last block
}

func (r *reader) add(line int, text string) {
	text = code.ReplaceAllString(text, "X")
	if r.open {
		r.blocks[len(r.blocks)-1].text += "\n" + text
		return
	}
	r.blocks, r.open = append(r.blocks, block{line: line, text: text}), true
}

// addAlone adds texts that are not part of a paragraph.
func (r *reader) addAlone(line int, texts ...string) {
	for _, text := range texts {
		r.open = false
		r.add(line, text)
	}
	r.open = false
}

// addCode adds the trailing comment, the messages of markers, and the strings of a
// line of code.
func (r *reader) addCode(line int, text, prefix string, withStrings bool) {
	before, trailing, _ := strings.Cut(text, " "+prefix+" ")
	r.addAlone(line, trailing)
	for _, match := range marker.FindAllStringSubmatch(text, -1) {
		r.addAlone(line, match[1])
	}
	for _, match := range literal.FindAllStringSubmatch(before, -1) {
		if withStrings && !strings.HasPrefix(strings.TrimSpace(text), prefix) {
			r.blocks = append(r.blocks, block{line: line, text: match[1], wordsOnly: true})
		}
	}
}

// read returns the blocks of a file. Comments begin with prefix; without one, the
// file is Markdown.
func read(path, content, prefix string) []block {
	var r reader
	withStrings := prefix == "//" && !strings.HasSuffix(path, "_test.go")
	fenced, indent := false, -1 // indent is that of a YAML description
	for i, text := range strings.Split(content, "\n") {
		line, trimmed := i+1, strings.TrimSpace(text)
		depth := len(text) - len(strings.TrimLeft(text, " "))
		comment, isComment := strings.CutPrefix(trimmed, prefix)
		switch {
		case trimmed == "" || trimmed == prefix || isComment && strings.HasPrefix(comment, "\t"):
			r.open, indent = false, -1
		case strings.HasPrefix(trimmed, "```"):
			r.open, fenced = false, !fenced
		case fenced:
		case prefix == "" && strings.HasPrefix(trimmed, "|"):
			r.addAlone(line, strings.Split(trimmed, "|")...)
		case prefix == "" || strings.HasPrefix(comment, " ") && isComment && !strings.HasPrefix(comment, " +"):
			r.open = r.open && !listItem.MatchString(trimmed)
			r.add(line, listItem.ReplaceAllString(strings.TrimSpace(comment), ""))
		case prefix == "#" && described.MatchString(trimmed):
			r.open, indent = false, depth
			r.add(line, described.FindStringSubmatch(trimmed)[1])
		case indent >= 0 && depth > indent:
			r.add(line, trimmed)
		default:
			indent = -1
			r.addCode(line, text, prefix, withStrings)
		}
	}
	return r.blocks
}

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

// check returns the findings in a file, by line.
func check(path, content string, rules []rule) (findings []string) {
	prefix, known := prefixes[filepath.Ext(path)]
	if !known || skipped.MatchString(path) || generated.MatchString(content) {
		return nil
	}
	report := func(line int, format string, args ...any) {
		findings = append(findings, fmt.Sprintf("%s:%d: %s", path, line, fmt.Sprintf(format, args...)))
	}
	for _, b := range read(path, content, prefix) {
		lineAt := func(offset int) int { return b.line + strings.Count(b.text[:offset], "\n") }
		for _, rule := range rules {
			for _, at := range rule.pattern.FindAllStringIndex(b.text, -1) {
				report(lineAt(at[0]), "%q: write %s", strings.Join(strings.Fields(b.text[at[0]:at[1]]), " "), rule.instead)
			}
		}
		start := 0
		for _, end := range append(sentenceEnd.FindAllStringIndex(b.text, -1), []int{len(b.text), len(b.text)}) {
			if n := len(word.FindAllString(b.text[start:end[0]], -1)); n > maxWords && !b.wordsOnly {
				report(lineAt(start), "a sentence of %d words: at most %d", n, maxWords)
			}
			start = end[1]
		}
	}
	fenced := false
	for i, text := range strings.Split(content, "\n") {
		if strings.HasPrefix(strings.TrimSpace(text), "```") {
			fenced = !fenced
		}
		isText := prefix == "" && !fenced && !strings.HasPrefix(text, "|") || prefix == "//" && comment.MatchString(text)
		if isText && utf8.RuneCountInString(code.ReplaceAllString(text, "")) > maxColumn {
			report(i+1, "a line of more than %d characters", maxColumn)
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
