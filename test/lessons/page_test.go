package lessons

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// page is a lesson in one language.
type page struct {
	path     string // inside the repository
	headings []heading
	blocks   []block
}

type heading struct {
	level int
	text  string
}

// block is a fenced block.
type block struct {
	line     int    // of the first line between the fences
	info     string // what follows the opening fence
	text     string
	follows  bool   // only blank lines are between it and the block before
	section  int    // how many headings are above it
	language string // the first word of info
	terminal int    // of commands and expectations; 0 if info names none
}

// step is a block of commands, an expectation of a terminal's output, or both.
type step struct {
	terminal int
	commands *block
	expected *block
}

// commandTerminal is the terminal for commands that run to their end. In all others,
// a program stays in the foreground.
const commandTerminal = 2

var (
	headingLine  = regexp.MustCompile(`^(#+) (.*)$`)
	fenceLine    = regexp.MustCompile("^ *```(.*)$")
	terminalInfo = regexp.MustCompile(`^(sh|text)(?: terminal ([1-9]))?$`)
	shells       = regexp.MustCompile(`^(sh|bash|shell|console|zsh|text)\b`)
)

// readPage reads a page of the repository.
func readPage(root, path string) (page, error) {
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		return page{}, err
	}
	return parse(path, string(text))
}

// parse finds the headings and blocks of a page.
func parse(path, text string) (page, error) {
	p := page{path: path}
	var open *block
	blank := false // only blank lines since the last block
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\r\n")
		fence := fenceLine.FindStringSubmatch(line)
		switch {
		case open != nil && fence != nil && strings.TrimSpace(fence[1]) == "":
			p.blocks, open, blank = append(p.blocks, *open), nil, true
		case open != nil:
			open.text += line + "\n"
		case fence != nil:
			open = &block{line: number + 1, info: strings.TrimSpace(fence[1]), follows: blank, section: len(p.headings)}
			if err := open.readInfo(); err != nil {
				return p, fmt.Errorf("%s:%d: %w", path, number, err)
			}
		case strings.TrimSpace(line) != "":
			blank = false
			if match := headingLine.FindStringSubmatch(line); match != nil {
				p.headings = append(p.headings, heading{len(match[1]), match[2]})
			}
		}
	}
	if open != nil {
		return p, fmt.Errorf("%s:%d: the block has no end", path, open.line-1)
	}
	return p, nil
}

func (b *block) readInfo() error {
	b.language, _, _ = strings.Cut(b.info, " ")
	if !shells.MatchString(b.info) {
		return nil
	}
	match := terminalInfo.FindStringSubmatch(b.info)
	if match == nil {
		return fmt.Errorf("%q is not the start of a block: want sh, text, or one of them with \"terminal N\"", b.info)
	}
	b.terminal, _ = strconv.Atoi(match[2])
	return nil
}

// Sections with a meaning for the runner, in both languages.
var (
	experimentSection = regexp.MustCompile(`^(The experiment|实验)$`)
	exerciseSection   = regexp.MustCompile(`^(Exercise|练习)$`)
)

// steps returns what the runner does with a page: all commands but those of the
// exercise, with what is expected of them.
func (p page) steps() ([]step, error) {
	var steps []step
	var commands *block // of the block before
	for i := range p.blocks {
		b := &p.blocks[i]
		section := ""
		if b.section > 0 {
			section = p.headings[b.section-1].text
		}
		previous := commands
		commands = nil
		switch {
		case exerciseSection.MatchString(section):
		case b.language == "sh":
			terminal := commandTerminal
			if b.terminal != 0 {
				terminal = b.terminal
			}
			commands = b
			steps = append(steps, step{terminal: terminal, commands: b})
		case b.language != "text":
		case b.follows && previous != nil && (b.terminal == 0 || b.terminal == steps[len(steps)-1].terminal):
			steps[len(steps)-1].expected = b
		case b.terminal != 0 && b.terminal != commandTerminal:
			steps = append(steps, step{terminal: b.terminal, expected: b})
		case experimentSection.MatchString(section):
			return nil, fmt.Errorf("%s:%d: this output belongs to no commands: it must follow a block sh at once", p.path, b.line)
		}
	}
	return steps, nil
}

// withoutComments returns commands without comments and empty lines, which a
// translation may change.
func withoutComments(commands string) string {
	var all strings.Builder
	for line := range strings.Lines(commands) {
		if i := strings.Index(" "+line, " #"); i >= 0 {
			line = line[:i]
		}
		if line = strings.TrimRight(line, " \n"); line != "" {
			all.WriteString(line + "\n")
		}
	}
	return all.String()
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
	steps, err := p.steps()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range steps {
		line := fmt.Sprintf("terminal %d:", s.terminal)
		if s.commands != nil {
			line += fmt.Sprintf(" %d %q", s.commands.line, s.commands.text)
		}
		if s.expected != nil {
			line += fmt.Sprintf(" expects %d %q", s.expected.line, s.expected.text)
		}
		got = append(got, line)
	}
	want := []string{
		`terminal 1: 11 "make run\n" expects 15 "… Starting …\n"`,
		`terminal 2: 18 "kubectl get networks # all\n" expects 21 "No resources found …\n"`,
		`terminal 2: 26 "  true\n"`,
		`terminal 1: expects 29 "later\n"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the steps differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]heading{{1, "7. Why?"}, {2, "The picture"}, {2, "The experiment"}, {2, "Exercise"}}, p.headings, cmp.AllowUnexported(heading{})); diff != "" {
		t.Errorf("the headings differ (-want +got):\n%s", diff)
	}
}

func TestParseErrors(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"unknown terminal":           {"```sh terminal x\n```\n", `p.md:1: "sh terminal x" is not`},
		"another name of sh":         {"a\n```bash\n```\n", `p.md:2: "bash" is not`},
		"no end":                     {"```sh\ntrue\n", "p.md:1: the block has no end"},
		"output of no commands":      {"## The experiment\n```sh\n```\nIt prints:\n```text\na\n```\n", "p.md:6: this output belongs to no commands"},
		"output of another terminal": {"## The experiment\n```sh terminal 1\n```\n```text terminal 2\na\n```\n", "p.md:5: this output belongs to no commands"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := parse("p.md", test.text)
			if err == nil {
				_, err = p.steps()
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
		})
	}
}
