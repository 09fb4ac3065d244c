package docs

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the code that lessons quote into them")

var (
	// quote is a block of code after a link to the declaration that it quotes.
	quote   = regexp.MustCompile("\\[`([\\w.]+)`\\]\\(([^)]*\\.go)\\)[:：][^\n]*\n\n```go\n((?s:.*?))```")
	minutes = regexp.MustCompile(`\(README\.md#[^)]*\) · (\d+) `)
)

// mostQuoted is the most lines that a lesson quotes at once.
const mostQuoted = 20

// TestQuotes: lessons quote whole functions as they are in the code. With -update, it
// writes them into the lessons.
func TestQuotes(t *testing.T) {
	for file, text := range documents(t) {
		current := quote.ReplaceAllStringFunc(text, func(block string) string {
			match := quote.FindStringSubmatch(block)
			source := declaration(t, filepath.Join(filepath.Dir(file), match[2]), match[1])
			if lines := strings.Count(source, "\n"); lines > mostQuoted {
				t.Errorf("%s quotes %s, which has %d lines, more than %d", file, match[1], lines, mostQuoted)
			}
			return strings.TrimSuffix(block, match[3]+"```") + source + "```"
		})
		if current == text {
			continue
		}
		if !*update {
			t.Errorf("%s quotes code that has changed: go test ./test/docs -run TestQuotes -update", file)
		} else if err := os.WriteFile(filepath.Join(root, file), []byte(current), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// declaration returns the source of a function, or of a method as Type.Method, without
// its comment.
func declaration(t *testing.T, file, name string) string {
	t.Helper()
	head := regexp.MustCompile(`^(\w+)\.`).ReplaceAllString(name, `\(\w+ \*?$1(?:\[\w+\])?\) `)
	found := regexp.MustCompile(`(?m)^func ` + head + `[\[(](?:.*\}|(?s:.*?)^\})\n`).FindString(read(t, file))
	if found == "" {
		t.Errorf("%s has no function %s", file, name)
	}
	return found
}

// TestLessons: each lesson has the parts that a reader expects, quotes code, leads to the
// next one, and says how many minutes it takes, as the table of the lessons does.
func TestLessons(t *testing.T) {
	for folder, words := range map[string][]string{
		"docs/learn":       {"\n**Predict:** ", "\n## The picture\n", "\n## Read the code\n\n", "\n## Exercise\n", "\n<details><summary>Answer</summary>\n"},
		"docs/zh-CN/learn": {"\n**先猜一猜**：", "\n## 图\n", "\n## 读代码\n\n", "\n## 练习\n", "\n<details><summary>答案</summary>\n"},
	} {
		lessons, err := filepath.Glob(filepath.Join(root, "docs/learn/[01]*.md"))
		if err != nil || len(lessons) < 17 {
			t.Fatalf("the lessons are %v (%v), want at least 17", lessons, err)
		}
		index := read(t, folder+"/README.md")
		previous := ""
		for _, lesson := range lessons {
			name := filepath.Base(lesson)
			text := read(t, folder+"/"+name)
			for _, want := range words {
				if !strings.Contains(text, want) {
					t.Errorf("%s/%s has no %q", folder, name, strings.TrimSpace(want))
				}
			}
			if strings.Contains(text, " deleted …\n") { // nothing follows, or the namespace
				t.Errorf("%s/%s expects what only some kubectl print: write deleted…", folder, name)
			}
			if !quote.MatchString(text) {
				t.Errorf("%s/%s quotes no code", folder, name)
			}
			title, head := heading.FindStringSubmatch(text), minutes.FindStringSubmatch(text)
			if head == nil {
				t.Errorf("%s/%s has no number of minutes after the link to all lessons", folder, name)
				continue
			}
			if next := fmt.Sprintf("[%s](%s)\n", title[2], name); previous != "" && !strings.HasSuffix(previous, next) {
				t.Errorf("the lesson before %s/%s does not end with %q", folder, name, next)
			}
			previous = text
			number, question, _ := strings.Cut(title[2], ". ")
			if row := fmt.Sprintf("| [%s](%s) | %s | %s |\n", number, name, question, head[1]); !strings.Contains(index, row) {
				t.Errorf("%s/README.md lacks the row %q", folder, row)
			}
		}
	}
}

var (
	typed   = regexp.MustCompile("(?ms)^```sh terminal ([13-9])\n(.*?)^```$")
	program = regexp.MustCompile(`(?m)^(?:\w+=\S+ )?(?:go |\./|build/|sh -c |ip netns exec |make (?:cluster|run)|fg$)`)
	stopped = regexp.MustCompile(`(?i)Ctrl-C|\bstop\b|停掉|kill -(?:STOP|9)`)
)

// TestCtrlC: a page says that a program is stopped before it types into that terminal again.
// The test of the experiments would press Ctrl-C itself.
func TestCtrlC(t *testing.T) {
	again := 0
	for file, text := range documents(t) {
		ends := map[string]int{} // of the last block that starts a program, by terminal
		for _, at := range typed.FindAllStringSubmatchIndex(text, -1) {
			terminal, commands := text[at[2]:at[3]], text[at[4]:at[5]]
			if end := ends[terminal]; end > 0 {
				again++
				if !stopped.MatchString(text[end:at[0]]) {
					t.Errorf("%s: nobody stops the program in terminal %s before %q", file, terminal, commands)
				}
			}
			delete(ends, terminal)
			if program.MatchString(commands) {
				ends[terminal] = at[1]
			}
		}
	}
	if again < 30 {
		t.Errorf("only %d blocks follow a program: has the form of the pages changed?", again)
	}
}
