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
func openTerminal(ctx context.Context, dir, scratch string, env []string) (t *terminal, err error) {
	t = &terminal{folder: scratch, done: make(chan struct{})}
	t.command = exec.Command("script", "--quiet", "--echo=never", "--command=exec bash --noprofile --norc --noediting -i", "/dev/null")
	t.command.Dir, t.command.Env = dir, slices.Concat(env, []string{"TERM=dumb"})
	t.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	t.command.Stdout, t.command.Stderr = t, t
	if t.stdin, err = t.command.StdinPipe(); err == nil {
		err = process.StartMortal(t.command)
	}
	if err != nil {
		return nil, fmt.Errorf("opening a terminal: %w", err)
	}
	go func() {
		_ = t.command.Wait() // only that it has ended matters
		close(t.done)
	}()
	return t, t.prepare(ctx)
}

// Write implements io.Writer for the output.
func (t *terminal) Write(output []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.output = append(t.output, output...)
	return len(output), nil
}

// prepare configures the shell, and notes its process ID.
func (t *terminal) prepare(ctx context.Context) error {
	if err := t.run(settings + "echo $$\n"); err != nil {
		return err
	}
	lines, _, err := t.wait(ctx, stopTime)
	if err == nil {
		printed := strings.Fields(lines[len(lines)-1]) // with the last prompt before it
		t.shell, err = strconv.Atoi(printed[len(printed)-1])
	}
	if err != nil {
		return fmt.Errorf("opening a terminal, which prints %q: %w", lines, err)
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
	_, err := fmt.Fprintf(t.stdin, "lesson_failed=; . '%s'\nprintf '\\n%%s%%s %%s\\n' '%s' \"$?\" \"$lesson_failed\"\n", path, t.running.marker)
	return err
}

// state returns the output of the last commands, and their result if they have ended.
func (t *terminal) state() (lines []string, ended *result) {
	closed := t.closed() // before the output is read
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

// until waits until a function returns true.
func (t *terminal) until(ctx context.Context, timeout time.Duration, done func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	return process.Poll(ctx, pollPeriod, func(context.Context) (bool, error) { return done(), nil })
}

// wait waits until the last commands have ended.
func (t *terminal) wait(ctx context.Context, timeout time.Duration) (lines []string, ended *result, err error) {
	err = t.until(ctx, timeout, func() bool {
		lines, ended = t.state()
		return ended != nil
	})
	return lines, ended, err
}

// waitFor waits until the output of the last commands has what is expected, from where
// an earlier expectation has ended. It returns the first line that is missing.
func (t *terminal) waitFor(ctx context.Context, expected expectation, timeout time.Duration) (missing string, lines []string, ended *result) {
	_ = t.until(ctx, timeout, func() bool { // missing is the result
		lines, ended = t.state()
		lines = lines[min(t.running.used, len(lines)):]
		used, notFound := expected.match(lines)
		if missing = notFound; missing == "" {
			t.running.used += used
		}
		return missing == "" || ended != nil
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
	_, err := io.WriteString(t.stdin, "\x03")
	if err == nil {
		err = t.until(ctx, stopTime, func() bool {
			_, ended := t.state()
			return ended != nil && len(t.processes()) == 0
		})
	}
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
	for { // a process may start another one meanwhile
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

// TestTerminal: the terminal shows what commands print and which of them failed. A
// program receives Ctrl-C, and so do its children; one that is stopped does not.
func TestTerminal(t *testing.T) {
	opened, err := openTerminal(t.Context(), t.TempDir(), t.TempDir(), os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(opened.close)
	// Ctrl-C may come before the shell has started sleep. Then it runs the trap afterwards.
	const program = `sh -c 'trap "echo interrupted; exit 3" INT; echo first; %s; while :; do sleep 1; done'`
	for _, test := range []struct {
		name, commands string
		awaited        string // before Ctrl-C
		lines          []string
		ended          result
	}{
		{"both outputs", "echo a; echo b >&2", "", []string{"a", "b"}, result{}},
		{"no end of line", "printf a", "", []string{"a"}, result{}},
		{"the last fails", "true\nfalse", "", []string{""}, result{1, "false", 2}},
		{"the first fails", "ls /none 2>/dev/null\necho a", "", []string{"a"}, result{0, "ls /none 2> /dev/null", 1}},
		{"an expected failure", "if false; then echo a; fi; false || echo b", "", []string{"b"}, result{}},
		{"Ctrl-C", fmt.Sprintf(program, "echo second"), "first\nsecond", []string{"interrupted"}, result{code: 3}},
		{"stopped", fmt.Sprintf(program, "kill -STOP $$"), "…Stopped…", []string{"Stopped"}, result{code: 128 + int(syscall.SIGSTOP)}},
		{"awake", "fg", "sh -c…", []string{"interrupted"}, result{code: 3}},
		{"again", "echo again", "", []string{"again"}, result{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := opened.run(test.commands); err != nil {
				t.Fatal(err)
			}
			if missing, lines, _ := opened.waitFor(t.Context(), newExpectation(test.awaited), time.Minute); missing != "" {
				t.Fatalf("%q is missing in %q", missing, lines)
			}
			if test.awaited != "" && test.name != "stopped" {
				if err := opened.interrupt(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			lines, ended, err := opened.wait(t.Context(), time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			output := strings.Join(lines, "\n")
			if test.awaited == "" && output != strings.Join(test.lines, "\n") || !strings.Contains(output, test.lines[0]) {
				t.Errorf("the terminal has %q, want %q", lines, test.lines)
			}
			if ended.code != test.ended.code || test.awaited == "" && *ended != test.ended {
				t.Errorf("the commands ended with %+v, want %+v", *ended, test.ended)
			}
		})
	}
}
