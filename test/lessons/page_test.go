package lessons

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// page is a lesson: what the runner does with it.
type page struct {
	path  string // inside the repository
	steps []step

	section string
	follows bool // only blank lines since a block of commands
}

// step is a block of commands, an expectation of a terminal's output, or both.
type step struct {
	terminal int
	commands *block
	expected *block
}

// block is a fenced block.
type block struct {
	line int // of the first line between the fences
	text string
}

// commandTerminal is the terminal for commands that run to their end. In all others,
// a program stays in the foreground.
const commandTerminal = 2

var (
	fenceLine = regexp.MustCompile("^ *```(.*)$")
	blockInfo = regexp.MustCompile(`^(sh|text)(?: terminal ([1-9]))?$`)
	shells    = regexp.MustCompile(`^(sh|bash|shell|console|zsh|text)\b`)
)

// readPage reads a page of the repository.
func readPage(root, path string) (*page, error) {
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		return nil, err
	}
	return parse(path, string(text))
}

// parse finds all commands but those of the exercise, and what is expected of them.
func parse(path, text string) (*page, error) {
	p := &page{path: path}
	var open *block
	var info string
	number := 0
	for line := range strings.Lines(text) {
		number++
		fence := fenceLine.FindStringSubmatch(strings.TrimRight(line, "\n"))
		switch {
		case open == nil && fence != nil:
			open, info = &block{line: number + 1}, fence[1]
		case open != nil && fence == nil:
			open.text += line
		case open != nil:
			if err := p.add(info, open); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", path, open.line, err)
			}
			open = nil
		case strings.TrimSpace(line) != "":
			p.follows = false
			if strings.HasPrefix(line, "#") {
				p.section = strings.TrimSpace(line)
			}
		}
	}
	if open != nil {
		return nil, fmt.Errorf("%s:%d: the block has no end", path, open.line)
	}
	return p, nil
}

// add adds a block with commands or output.
func (p *page) add(info string, b *block) error {
	follows := p.follows
	p.follows = false
	if !shells.MatchString(info) || p.section == "## Exercise" {
		return nil
	}
	match := blockInfo.FindStringSubmatch(info)
	if match == nil {
		return fmt.Errorf("%q is not sh, text, or one of them with \"terminal N\"", info)
	}
	terminal, _ := strconv.Atoi(match[2]) // 0 without a number
	switch {
	case match[1] == "sh":
		p.follows = true
		p.steps = append(p.steps, step{terminal: cmp.Or(terminal, commandTerminal), commands: b})
	case follows && (terminal == 0 || terminal == p.steps[len(p.steps)-1].terminal):
		p.steps[len(p.steps)-1].expected = b
	case terminal != 0 && terminal != commandTerminal:
		p.steps = append(p.steps, step{terminal: terminal, expected: b})
	case p.section == "## The experiment":
		return errors.New("this output belongs to no commands: it must follow a block sh at once")
	}
	return nil
}

func TestParse(t *testing.T) {
	p, err := parse("p.md", strings.Join([]string{
		"# 7. Why?", "", "## The picture", "```text", "a --> b", "```", "", "## The experiment", "Type:",
		"```sh terminal 1", "make run", "```", "", "```text", "… Starting …", "```",
		"```sh", "kubectl get networks # all", "```", "```text", "No resources found …", "```",
		"Then:", "", "  ```sh", "  true", "  ```", "```text terminal 1", "later", "```",
		"## Exercise", "```sh", "false", "```", "",
	}, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []step{
		{terminal: 1, commands: &block{11, "make run\n"}, expected: &block{15, "… Starting …\n"}},
		{terminal: 2, commands: &block{18, "kubectl get networks # all\n"}, expected: &block{21, "No resources found …\n"}},
		{terminal: 2, commands: &block{26, "  true\n"}},
		{terminal: 1, expected: &block{29, "later\n"}},
	}
	if diff := gocmp.Diff(want, p.steps, gocmp.AllowUnexported(step{}, block{})); diff != "" {
		t.Errorf("the steps differ (-want +got):\n%s", diff)
	}
	for text, problem := range map[string]string{
		"```sh terminal x\n```\n": `p.md:2: "sh terminal x" is not`,
		"a\n```bash\n```\n":       `p.md:3: "bash" is not`,
		"```sh\ntrue\n":           "p.md:2: the block has no end",
		"## The experiment\n```sh\n```\nIt prints:\n```text\na\n```\n":           "p.md:6: this output belongs to no commands",
		"## The experiment\n```sh terminal 1\n```\n```text terminal 2\na\n```\n": "p.md:5: this output belongs to no commands",
	} {
		if _, err := parse("p.md", text); err == nil || !strings.HasPrefix(err.Error(), problem) {
			t.Errorf("%q: the error is %v, want %q", text, err, problem)
		}
	}
}
