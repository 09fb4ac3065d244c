package lessons

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/samplecrd/network-controller/test/internal/process"
)

const (
	pollPeriod = 20 * time.Millisecond
	stopTime   = time.Minute // for programs to end after Ctrl-C
)

// terminal is a pseudo-terminal with an interactive bash, as a reader has it: with job
// control and a keyboard. Variables, aliases and the working directory stay from one block
// of commands to the next.
type terminal struct {
	command *exec.Cmd // script, which copies between pipes and the pseudo-terminal
	shell   int       // the process ID of bash, and its session
	stdin   io.WriteCloser
	guard   io.WriteCloser
	folder  string // for the files with commands
	done    chan struct{}

	running *execution // the last block

	mu     sync.Mutex
	output []byte
}

// execution is a block of commands that was typed.
type execution struct {
	start  int    // where its output begins
	marker string // what the terminal prints when the shell reads its next command
	used   int    // how many lines of its output were expected
}

// result is how commands ended.
type result struct {
	code       int    // of the last command
	failed     string // the first command that failed
	failedLine int    // its line in the block, from 1
}

// settings are what a test needs to read the terminal: no prompt, no echo, the first
// command that failed, and that Ctrl-C does not discard what is typed after it.
const settings = `PS1= PS2=; set +o history; stty -echo noflsh -onlcr
trap 'lesson_failed=${lesson_failed:-"$LINENO $BASH_COMMAND"}' ERR
`

// openTerminal opens a terminal in a folder.
func openTerminal(ctx context.Context, dir, scratch string, env []string) (*terminal, error) {
	t := &terminal{folder: scratch, done: make(chan struct{})}
	t.command = exec.Command("script", "--quiet", "--echo=never", "--command=exec bash --noprofile --norc --noediting -i", "/dev/null")
	t.command.Dir, t.command.Env = dir, slices.Concat(env, []string{"TERM=dumb"})
	t.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("opening a terminal: %w", err)
	}
	defer func() { _ = writer.Close() }()
	t.command.Stdout, t.command.Stderr = writer, writer
	if t.stdin, err = t.command.StdinPipe(); err != nil {
		return nil, fmt.Errorf("opening a terminal: %w", err)
	}
	if err := t.command.Start(); err != nil {
		return nil, fmt.Errorf("opening a terminal: %w", err)
	}
	if t.guard, err = startGuard(t.command.Process.Pid); err != nil {
		return nil, errors.Join(err, t.command.Process.Kill())
	}
	go t.read(reader)
	go func() {
		_ = t.command.Wait() // only that it has ended matters
		close(t.done)
	}()
	return t, t.prepare(ctx)
}

// prepare configures the shell, and notes its process ID.
func (t *terminal) prepare(ctx context.Context) error {
	for _, commands := range []string{settings, "echo $$\n"} {
		if err := t.run(commands); err != nil {
			return err
		}
		lines, _, err := t.wait(ctx, stopTime)
		if err != nil {
			return fmt.Errorf("opening a terminal: %w", err)
		}
		t.shell, _ = strconv.Atoi(lines[len(lines)-1]) // the last command prints it
	}
	if t.shell == 0 {
		return fmt.Errorf("opening a terminal: its shell has printed %q", t.output)
	}
	return nil
}

// startGuard starts a process that ends a process group when the lifeline closes
// without a line, as after a Ctrl-C in the terminal of this process.
func startGuard(group int) (lifeline io.WriteCloser, err error) {
	command := exec.Command("bash", "-c", `read -r released || kill -TERM -- "-$0"`, strconv.Itoa(group))
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if lifeline, err = command.StdinPipe(); err == nil {
		err = command.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("starting the guard of a terminal: %w", err)
	}
	go func() { _ = command.Wait() }() // it has nothing to report
	return lifeline, nil
}

func (t *terminal) read(output io.ReadCloser) {
	defer func() { _ = output.Close() }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := output.Read(buffer)
		t.mu.Lock()
		t.output = append(t.output, buffer[:n]...)
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (t *terminal) write(text string) error {
	if _, err := io.WriteString(t.stdin, text); err != nil {
		return fmt.Errorf("typing into the terminal: %w", err)
	}
	return nil
}

// run types commands. They run in the background of the test.
func (t *terminal) run(commands string) error {
	t.mu.Lock()
	t.running = &execution{start: len(t.output), marker: fmt.Sprintf("[lesson-%d-%d ended]", t.command.Process.Pid, time.Now().UnixNano())}
	t.mu.Unlock()
	path := filepath.Join(t.folder, strconv.Itoa(t.command.Process.Pid)+".sh")
	if err := os.WriteFile(path, []byte(commands), 0o600); err != nil {
		return err
	}
	return t.write(fmt.Sprintf("lesson_failed=; . '%s'\nprintf '\\n%%s%%s %%s\\n' '%s' \"$?\" \"$lesson_failed\"\n", path, t.running.marker))
}

// state returns the output of the last commands, and their result if they have ended.
func (t *terminal) state() (lines []string, ended *result) {
	closed := t.closed()
	t.mu.Lock()
	output := bytes.Clone(t.output[t.running.start:])
	t.mu.Unlock()
	text, after, found := strings.Cut(string(output), "\n"+t.running.marker)
	switch rest, _, complete := strings.Cut(after, "\n"); {
	case found && complete:
		ended = &result{}
		code, failed, _ := strings.Cut(rest, " ")
		ended.code, _ = strconv.Atoi(code)
		line, command, _ := strings.Cut(failed, " ")
		ended.failedLine, _ = strconv.Atoi(line)
		ended.failed = command
	case closed:
		ended = &result{code: process.ExitCode(t.command.ProcessState.Sys().(syscall.WaitStatus)), failed: "the shell itself has ended"}
	}
	return strings.Split(strings.TrimRight(text, "\n"), "\n"), ended
}

func (t *terminal) closed() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// errTimeout is the error for commands or output that did not come to an end.
var errTimeout = errors.New("timed out")

// wait waits until the last commands have ended.
func (t *terminal) wait(ctx context.Context, timeout time.Duration) (lines []string, ended *result, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	err = process.Poll(ctx, pollPeriod, func(context.Context) (bool, error) {
		lines, ended = t.state()
		return ended != nil, nil
	})
	return lines, ended, err
}

// waitFor waits until the output of the last commands has what is expected, from where
// an earlier expectation has ended. It returns the first line that is missing.
func (t *terminal) waitFor(ctx context.Context, expected expectation, timeout time.Duration) (missing string, lines []string, ended *result) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	_ = process.Poll(ctx, pollPeriod, func(context.Context) (bool, error) { // missing is the result
		lines, ended = t.state()
		lines = lines[min(t.running.used, len(lines)):]
		used, notFound := expected.match(lines)
		if missing = notFound; missing == "" {
			t.running.used += used
		}
		return missing == "" || ended != nil, nil
	})
	return missing, lines, ended
}

// interrupt presses Ctrl-C, if a program is in the foreground, and waits until all programs
// of the terminal have ended. At a prompt, it does nothing.
func (t *terminal) interrupt(ctx context.Context) error {
	if t.running == nil || t.closed() {
		return nil
	}
	if _, ended := t.state(); ended != nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, stopTime, errTimeout)
	defer cancel()
	if err := t.write("\x03"); err != nil {
		return err
	}
	err := process.Poll(ctx, pollPeriod, func(context.Context) (bool, error) {
		_, ended := t.state()
		return ended != nil && len(t.processes()) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("ending what runs in the terminal with Ctrl-C: %w", err)
	}
	return nil
}

// processes returns the processes of the terminal's session, without its shell.
func (t *terminal) processes() []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var pids []int
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := bytes.Cut(stat, []byte(") ")) // state, parent, group, session
		fields := bytes.Fields(rest)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if len(fields) > 3 && string(fields[3]) == strconv.Itoa(t.shell) && pid != t.shell && fields[0][0] != 'Z' {
			pids = append(pids, pid)
		}
	}
	return pids
}

// close kills what runs in the terminal, and the terminal.
func (t *terminal) close() {
	_, _ = io.WriteString(t.guard, "released\n") // it fails if the guard has ended
	for {                                        // a process may start another one meanwhile
		pids := t.processes()
		if len(pids) == 0 {
			break
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it fails if the process has ended
		}
	}
	_ = t.stdin.Close()
	_ = t.command.Process.Kill()
	<-t.done
}

// open opens a terminal for a test.
func open(t *testing.T) *terminal {
	t.Helper()
	opened, err := openTerminal(t.Context(), t.TempDir(), t.TempDir(), os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(opened.close)
	return opened
}

func TestTerminal(t *testing.T) {
	opened := open(t)
	for name, test := range map[string]struct {
		commands string
		lines    []string
		ended    result
	}{
		"both outputs":                  {"echo a; echo b >&2", []string{"a", "b"}, result{}},
		"no end of line":                {"printf a", []string{"a"}, result{}},
		"the last fails":                {"true\nfalse", []string{""}, result{1, "false", 2}},
		"the first fails":               {"ls /none 2>/dev/null\necho a", []string{"a"}, result{0, "ls /none 2> /dev/null", 1}},
		"a failure that a test expects": {"if false; then echo a; fi; false || echo b", []string{"b"}, result{}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := opened.run(test.commands); err != nil {
				t.Fatal(err)
			}
			lines, ended, err := opened.wait(t.Context(), time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(lines, test.lines) || *ended != test.ended {
				t.Errorf("the terminal has %q and %+v, want %q and %+v", lines, *ended, test.lines, test.ended)
			}
		})
	}
}

// A program that is stopped gives the terminal back to the shell, until fg.
func TestStop(t *testing.T) {
	opened := open(t)
	if err := opened.run("sh -c 'echo $$; kill -STOP $$; echo awake; sleep 1000'\n"); err != nil {
		t.Fatal(err)
	}
	lines, ended, err := opened.wait(t.Context(), time.Minute)
	if err != nil || !strings.Contains(strings.Join(lines, "\n"), "Stopped") || ended.code != 128+int(syscall.SIGSTOP) {
		t.Fatalf("the terminal has %q and %+v (%v), want that the program is stopped", lines, ended, err)
	}
	if err := opened.interrupt(t.Context()); err != nil || len(opened.processes()) == 0 {
		t.Fatalf("Ctrl-C at the prompt has ended the program (%v)", err)
	}
	if err := opened.run("fg"); err != nil {
		t.Fatal(err)
	}
	if missing, lines, _ := opened.waitFor(t.Context(), newExpectation("awake"), time.Minute); missing != "" {
		t.Fatalf("%q is missing in %q", missing, lines)
	}
	if err := opened.interrupt(t.Context()); err != nil {
		t.Error(err)
	}
}

// A program in the foreground receives Ctrl-C, and its children, too. The terminal
// can be used again.
func TestInterrupt(t *testing.T) {
	opened := open(t)
	// Ctrl-C may come before the shell has started sleep. Then it runs the trap afterwards.
	program := `sh -c 'trap "echo interrupted; exit 3" INT; echo first; echo second; while :; do sleep 1; done'`
	if err := opened.run(program + "\n"); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"first", "second"} { // the search continues after what was found
		if missing, lines, _ := opened.waitFor(t.Context(), newExpectation(line), time.Minute); missing != "" {
			t.Fatalf("%q is missing in %q", missing, lines)
		}
	}
	if missing, _, _ := opened.waitFor(t.Context(), newExpectation("first"), 3*pollPeriod); missing != "first" {
		t.Error("a line was found again")
	}
	if len(opened.processes()) == 0 {
		t.Error("no program runs in the terminal")
	}
	if err := opened.interrupt(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines, ended := opened.state()
	if !slices.Contains(lines, "interrupted") || ended.code != 3 {
		t.Errorf("the program printed %q and ended with %+v, want that it was interrupted, and 3", lines, ended)
	}
	if err := opened.run("echo again"); err != nil {
		t.Fatal(err)
	}
	if lines, _, err := opened.wait(t.Context(), time.Minute); err != nil || !slices.Equal(lines, []string{"again"}) {
		t.Errorf("the terminal has %q (%v)", lines, err)
	}
}
