package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// runVariable makes the test binary a process that runs a command.
const runVariable = "PROCESS_TEST_RUN"

func TestMain(m *testing.M) {
	if os.Getenv(runVariable) == "" {
		os.Exit(m.Run())
	}
	script := "trap 'exit 7' TERM; trap '' HUP QUIT; sh -c 'echo $$; exec sleep 600' & wait"
	code, err := Run(exec.Command("sh", "-c", script), Signals())
	fmt.Println("exit code", code, err)
}

func TestRun(t *testing.T) {
	for name, test := range map[string]struct {
		signals []os.Signal
		want    string
	}{
		"the first signal is passed on": {[]os.Signal{syscall.SIGTERM}, "exit code 7 <nil>\n"},
		"the second signal kills":       {[]os.Signal{syscall.SIGHUP, syscall.SIGQUIT}, "exit code 137 <nil>\n"}, // it ignores either
	} {
		t.Run(name, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), os.Args[0])
			command.Env = append(os.Environ(), runVariable+"=yes")
			pipe, err := command.StdoutPipe()
			if err := errors.Join(err, command.Start()); err != nil {
				t.Fatal(err)
			}
			output := bufio.NewReader(pipe)
			line, _ := output.ReadString('\n')
			for _, one := range test.signals {
				if err := command.Process.Signal(one); err != nil {
					t.Fatal(err)
				}
			}
			if line, err := output.ReadString('\n'); line != test.want {
				t.Errorf("printed %q, %v, want %q", line, err, test.want)
			}
			_ = command.Wait()
			waitUntilEnded(t, line)
		})
	}
}

// waitUntilEnded waits for the process whose ID was printed.
func waitUntilEnded(t *testing.T, printed string) {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(printed))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ended := func(context.Context) (bool, error) { return !Running(pid), nil }
	if err := Poll(ctx, 10*time.Millisecond, ended); err != nil {
		t.Errorf("process %d still runs: %v", pid, err)
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
		waitUntilEnded(t, p.Log())
	})
	t.Run("it ignores the request to stop", func(t *testing.T) {
		p := start("trap '' TERM; echo ready; while :; do sleep 0.01; done")
		has := func(context.Context) (bool, error) { return p.Log() != "", nil }
		if err := Poll(t.Context(), 10*time.Millisecond, has); err != nil {
			t.Fatal(err)
		}
		p.Stop(50 * time.Millisecond)
		if state := p.command.ProcessState.String(); state != "signal: killed" {
			t.Errorf("it ended with %s", state)
		}
	})
}
