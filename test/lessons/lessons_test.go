// Package lessons runs the experiments of the lessons in docs/learn as they are
// written: it takes the commands and the expected output out of the English pages.
// test/docs checks that the Chinese pages have the same.
package lessons

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samplecrd/network-controller/test/internal/process"
	"github.com/samplecrd/network-controller/test/internal/require"
	"github.com/samplecrd/network-controller/test/internal/runfolder"
)

const (
	folder = "docs/learn"

	// lessonsVariable selects the lessons whose experiments run: all, or the number of
	// one. Without it, only the cheap checks run. make lessons sets it.
	lessonsVariable = "LESSONS"

	// pauseVariable is how long the reader thinks before each block of commands, such as 45s.
	pauseVariable = "LESSON_PAUSE"

	commandTimeout = 10 * time.Minute // for a block of commands
	outputTimeout  = 3 * time.Minute  // for output of a program in the foreground
)

// TestExperiments runs the experiments. A reader has the same commands, files and
// programs.
func TestExperiments(t *testing.T) {
	root, err := runfolder.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	pages := lessons(t, root)
	which := os.Getenv(lessonsVariable)
	if which == "" {
		t.Skip("make lessons runs the experiments")
	}
	if runtime.GOOS != "linux" {
		require.Skip(t, "the experiments run only on Linux")
	}
	if _, err := os.Stat(filepath.Join(root, "build/bin/kubernetes")); err != nil {
		require.Skip(t, "Kubernetes is not built: run make control-plane (%v)", err)
	}
	pages = slices.DeleteFunc(pages, func(p *page) bool {
		return which != "all" && !strings.HasPrefix(filepath.Base(p.path), which+"-")
	})
	if len(pages) == 0 {
		t.Fatalf("there is no lesson %s", which)
	}
	reader := newReader(t, root) // each lesson starts with what the one before it has left
	for _, p := range pages {
		t.Run(strings.TrimSuffix(filepath.Base(p.path), ".md"), func(t *testing.T) {
			e := &experiment{T: t, reader: reader, page: p, terminals: map[int]*terminal{}}
			e.run()
			e.checkLeftovers()
		})
	}
}

// reader has a copy of the repository, in which one lesson follows another.
type reader struct {
	copied  string
	scratch string // for files that the reader does not have
	env     []string
}

// experiment is a lesson that runs in the reader's copy.
type experiment struct {
	*testing.T
	*reader
	page      *page
	terminals map[int]*terminal
}

func newReader(t *testing.T, root string) *reader {
	t.Helper()
	folder, err := runfolder.New(t.Context(), filepath.Join(root, "build/lessons"), "lesson-*", os.RemoveAll)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := folder.Remove(); err != nil {
			t.Error(err)
		}
	})
	r := &reader{
		copied: filepath.Join(folder.Path, "network-controller"), scratch: filepath.Join(folder.Path, "scratch"),
	}
	// What a developer has set must not change a lesson. The flags of Go are those of the
	// Makefile, so that the experiments share its build cache.
	own := regexp.MustCompile(`^(KUBE.*|OS_.*|LESSONS?|MAKE.*|MFLAGS|FLAGS|VERSION|TEST_.*|CGO_ENABLED|GOFLAGS|PATH)=`)
	r.env = append(slices.DeleteFunc(os.Environ(), own.MatchString),
		"PATH="+r.scratch+":"+os.Getenv("PATH"), "KUBECONFIG="+filepath.Join(r.copied, "build/run/kubeconfig"),
		"KUBECACHEDIR="+filepath.Join(r.scratch, "cache"), "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", preparing, "prepare", r.copied, r.scratch)
	command.Dir, command.Env = root, r.env
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("copying the repository and building the controller: %v\n%s", err, output)
	}
	return r
}

// preparing copies the files that git does not ignore into a new repository, whose commit
// is the same for the same files, and builds the controller there.
const preparing = `
root=$PWD
mkdir -p "$1/build" "$2"
ln -s "$root/build/bin/kubectl" "$2/kubectl"
git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from=- --ignore-failed-read --warning=no-failed-read | tar --extract --directory="$1"
cd "$1"
ln -s "$root/build/bin" build/bin
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_DATE=2026-01-01T00:00:00Z GIT_COMMITTER_DATE=2026-01-01T00:00:00Z
git init -q -b main
git add -A
git -c user.name=reader -c user.email=reader -c commit.gpgsign=false commit -q -m copy
make build
`

// run types the commands of the page and compares the output.
func (e *experiment) run() {
	e.Helper()
	e.Cleanup(func() {
		for _, opened := range e.terminals {
			opened.close()
		}
	})
	for _, s := range e.page.steps {
		if s.commands != nil {
			e.think()
		}
		if s.terminal == commandTerminal {
			e.runCommands(s)
		} else {
			e.runProgram(s)
		}
		if e.Failed() {
			return
		}
	}
	for number := range 10 { // Kubernetes ends last
		if opened, ok := e.terminals[number]; ok && number != commandTerminal {
			e.interrupt(number, opened)
		}
	}
}

// checkLeftovers fails if the lesson has left changed or new files in the copy, and takes
// them back, so that each lesson fails for itself.
func (e *experiment) checkLeftovers() {
	e.Helper()
	command := exec.CommandContext(e.Context(), "bash", "-c", "git status --porcelain && git reset -q --hard && git clean -fdq")
	command.Dir, command.Env = e.copied, e.env
	if left, err := command.CombinedOutput(); err != nil || len(left) > 0 {
		e.Errorf("%s leaves files (%v):\n%s", e.page.path, err, left)
	}
}

// think waits as long as a slow reader: no result may depend on it.
func (e *experiment) think() {
	pause, err := time.ParseDuration(cmp.Or(os.Getenv(pauseVariable), "0s"))
	if err != nil {
		e.Fatalf("%s: %v", pauseVariable, err)
	}
	select {
	case <-time.After(pause):
	case <-e.Context().Done():
	}
}

// terminal returns a terminal, which is opened if needed.
func (e *experiment) terminal(number int) *terminal {
	if opened, ok := e.terminals[number]; ok {
		return opened
	}
	opened, err := openTerminal(e.Context(), e.copied, e.scratch, e.env)
	if err != nil {
		e.Fatal(err)
	}
	e.terminals[number] = opened
	return opened
}

// runCommands runs commands to their end.
func (e *experiment) runCommands(s step) {
	e.Helper()
	opened := e.terminal(s.terminal)
	if err := opened.run(s.commands.text); err != nil {
		e.Fatal(err)
	}
	lines, ended, err := opened.wait(e.Context(), commandTimeout)
	switch {
	case err != nil:
		e.fail(s, s.commands.line, fmt.Sprintf("these commands have not ended in %v", commandTimeout), lines)
	case s.expected != nil:
		if used, missing := newExpectation(s.expected.text).match(lines); missing != "" {
			e.fail(s, s.expected.line, fmt.Sprintf("the output lacks the line %q", missing), lines[used:])
		}
	case ended.code != 0 || ended.failed != "":
		e.fail(s, s.commands.line+max(ended.failedLine-1, 0), fmt.Sprintf("%q failed (the last command ended with exit code %d)", ended.failed, ended.code), lines)
	}
}

// runProgram starts a program in the foreground of a terminal, or waits for more of
// its output.
func (e *experiment) runProgram(s step) {
	e.Helper()
	opened := e.terminal(s.terminal)
	if s.commands != nil {
		e.interrupt(s.terminal, opened)
		if err := opened.run(s.commands.text); err != nil {
			e.Fatal(err)
		}
	}
	if s.expected == nil {
		return
	}
	if opened.running == nil {
		e.Fatalf("%s:%d: terminal %d has no program", e.page.path, s.expected.line, s.terminal)
	}
	missing, lines, ended := opened.waitFor(e.Context(), newExpectation(s.expected.text), outputTimeout)
	if missing == "" {
		return
	}
	problem := fmt.Sprintf("terminal %d has not printed the line %q in %v", s.terminal, missing, outputTimeout)
	if ended != nil {
		problem = fmt.Sprintf("terminal %d has not printed the line %q, and its program ended with exit code %d", s.terminal, missing, ended.code)
	}
	e.fail(s, s.expected.line, problem, lines)
}

// interrupt ends the program of a terminal.
func (e *experiment) interrupt(number int, opened *terminal) {
	e.Helper()
	if err := opened.interrupt(e.Context()); err != nil {
		lines, _ := opened.state()
		e.Fatalf("%s: terminal %d: %v\nits last output:\n%s", e.page.path, number, err, lastLines(lines))
	}
}

// fail reports what is wrong, where, and what each terminal has printed.
func (e *experiment) fail(s step, line int, problem string, lines []string) {
	e.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "%s:%d: %s\n", e.page.path, line, problem)
	if s.commands != nil {
		fmt.Fprintf(&text, "commands (terminal %d):\n%s\n", s.terminal, process.LastLines([]byte(s.commands.text)))
	}
	if s.expected != nil {
		fmt.Fprintf(&text, "expected; each line must match a whole line, … is any text:\n%s\n", process.LastLines([]byte(s.expected.text)))
	}
	fmt.Fprintf(&text, "output, after the last line that was found:\n%s\n", lastLines(lines))
	for number, opened := range e.terminals {
		if number != s.terminal && opened.running != nil {
			lines, _ := opened.state()
			fmt.Fprintf(&text, "last output in terminal %d:\n%s\n", number, lastLines(lines))
		}
	}
	e.Error(text.String())
}

func lastLines(lines []string) string { return process.LastLines([]byte(strings.Join(lines, "\n"))) }

// lessons returns the English pages in the order of their numbers.
func lessons(t *testing.T, root string) (pages []*page) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, folder, "[0-9][0-9]-*.md"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s has no lessons (%v)", folder, err)
	}
	for _, path := range paths { // Glob sorts them
		p, err := readPage(root, filepath.Join(folder, filepath.Base(path)))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, p)
	}
	return pages
}
