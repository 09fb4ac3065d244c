package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"os/exec"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// timeout is for anything that should take seconds.
const timeout = 2 * time.Minute

// process is a program that runs until it is stopped, and no longer than this
// process: a shell waits for the end of its standard input, which only this
// process holds open, and then ends the program. So it ends after a kill -9, too.
type process struct {
	stdin io.Closer
	ended chan struct{}
	log   *output
}

// output is what a program says. It may be read while the program runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// guard runs a program, asks it to end when the standard input ends, and kills
// it after ten seconds more.
const guard = `"$@" </dev/null & program=$!
cat >/dev/null
kill -TERM $program
(i=0; while kill -0 $program && [ $i -lt 100 ]; do i=$((i+1)); sleep 0.1; done; kill -KILL $program) 2>/dev/null &
wait $program`

func start(t *testing.T, program string, args ...string) *process {
	t.Helper()
	p := &process{ended: make(chan struct{}), log: &output{}}
	command := exec.Command("sh", append([]string{"-c", guard, "sh", program}, args...)...)
	command.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + t.TempDir()}
	command.Stdout, command.Stderr = p.log, p.log
	stdin, err := command.StdinPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.stdin = stdin
	go func() {
		_ = command.Wait() // what it was ended by does not matter
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("%s said\n%s", program, p.log)
		}
	})
	return p
}

// stop asks the program to end, and returns when it has.
func (p *process) stop() {
	_ = p.stdin.Close() // it may be closed already
	<-p.ended
}

// freeAddress returns a loopback address that nobody listens at, now.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// eventually waits until a check passes, and fails with what it said last.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v (%v)", what, last, err)
	}
}
