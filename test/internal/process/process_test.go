package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// roleVariable makes the test binary a process that starts others, in a folder.
const roleVariable = "PROCESS_TEST_ROLE"

func TestMain(m *testing.M) {
	role, dir, ok := strings.Cut(os.Getenv(roleVariable), ":")
	if !ok {
		os.Exit(m.Run())
	}
	if err := play(role, dir); err != nil {
		fmt.Fprintln(os.Stderr, role, err)
		os.Exit(1)
	}
}

func play(role, dir string) error {
	switch role {
	case "start": // a program, and wait
		p, err := Start(dir, Program{Name: "sleep", Args: []string{"sleep", "600"}})
		if err != nil {
			return err
		}
		fmt.Println("program", p.PID())
		<-p.Done()
	case "run": // a command
		command := exec.Command("sh", "-c", "trap 'exit 7' TERM; trap '' HUP QUIT; sh -c 'echo program $$; exec sleep 600' & wait")
		code, err := Run(command, Signals())
		fmt.Println("exit code", code)
		return err
	}
	return nil
}

// startRole starts the test binary in a role.
func startRole(t *testing.T, role string) (command *exec.Cmd, output *bufio.Reader) {
	t.Helper()
	command = exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), roleVariable+"="+role+":"+t.TempDir())
	command.Stderr = os.Stderr
	pipe, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return command, bufio.NewReader(pipe)
}

// readPID reads a line with the process ID of the program, which runs.
func readPID(t *testing.T, output *bufio.Reader) int {
	t.Helper()
	line, err := output.ReadString('\n')
	pid, _ := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(line), "program "))
	if err != nil || pid == 0 || !Running(pid) {
		t.Fatalf("printed %q (%v), want the process ID of a program that runs", line, err)
	}
	return pid
}

func waitUntilEnded(t *testing.T, pid int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ended := func(context.Context) (bool, error) { return !Running(pid), nil }
	if err := Poll(ctx, 10*time.Millisecond, ended); err != nil {
		t.Errorf("process %d still runs: %v", pid, err)
	}
}

func TestProgramDiesWithItsParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("on other systems, a program must watch its standard input")
	}
	parent, output := startRole(t, "start")
	pid := readPID(t, output)
	_ = parent.Process.Kill()
	_ = parent.Wait()
	waitUntilEnded(t, pid)
}

func TestRun(t *testing.T) {
	tests := map[string]struct {
		signals []os.Signal
		want    string
	}{
		"the first signal is passed on": {[]os.Signal{syscall.SIGTERM}, "exit code 7\n"},
		"the second signal kills":       {[]os.Signal{syscall.SIGHUP, syscall.SIGQUIT}, "exit code 137\n"}, // it ignores either
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			command, output := startRole(t, "run")
			pid := readPID(t, output)
			for _, one := range test.signals {
				if err := command.Process.Signal(one); err != nil {
					t.Fatal(err)
				}
			}
			if line, err := output.ReadString('\n'); line != test.want {
				t.Errorf("printed %q, %v, want %q", line, err, test.want)
			}
			_ = command.Wait()
			waitUntilEnded(t, pid)
		})
	}
}

func TestProcess(t *testing.T) {
	start := func(script string) *Process {
		t.Helper()
		p, err := Start(t.TempDir(), Program{Name: "script", Args: []string{"sh", "-c", script}, Env: []string{"GIVEN=given"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill)
		return p
	}
	t.Run("its environment is its own", func(t *testing.T) {
		t.Setenv("OS_CLOUD", "of the tests")
		p := start("echo $GIVEN$OS_CLOUD; pwd")
		if err := p.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := "given\n" + filepath.Dir(p.logFile) + "\n"; p.Log() != want {
			t.Errorf("it printed %q, want %q", p.Log(), want)
		}
	})
	t.Run("a failure has the end of the log", func(t *testing.T) {
		err := start("echo first; echo last; exit 3").Finish(t.Context())
		if want := "script failed (exit status 3)\nLast lines of script.log:\n  first\n  last"; err == nil || err.Error() != want {
			t.Errorf("error is %v, want %s", err, want)
		}
	})
	t.Run("a check fails while it runs, and it ends", func(t *testing.T) {
		err := WaitUntil(t.Context(), func(context.Context) error { return errors.New("not ready") }, start("echo why"))
		if !errors.Is(err, ErrEnded) || !strings.Contains(err.Error(), "why") {
			t.Errorf("error is %v, want that it ended and why", err)
		}
	})
	t.Run("a check fails until the context ends", func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("too slow"))
		defer cancel()
		err := WaitUntil(ctx, func(context.Context) error { return errors.New("not ready") }, start("echo log; sleep 600"))
		if err == nil || !strings.HasPrefix(err.Error(), "too slow: not ready\nLast lines of script.log:") {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("it ends with its children", func(t *testing.T) {
		p := start("sleep 600 & echo $!; exit")
		if err := p.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(p.Log()))
		if err != nil {
			t.Fatal(err)
		}
		waitUntilEnded(t, pid)
	})
	t.Run("it ignores the request to stop", func(t *testing.T) {
		p := start("trap '' TERM; echo ready; while :; do sleep 0.01; done")
		err := WaitUntil(t.Context(), func(context.Context) error {
			if p.Log() == "" {
				return errors.New("it has not begun")
			}
			return nil
		}, p)
		if err != nil {
			t.Fatal(err)
		}
		p.Stop(50 * time.Millisecond)
		if state := p.command.ProcessState.String(); state != "signal: killed" {
			t.Errorf("it ended with %s", state)
		}
	})
}
