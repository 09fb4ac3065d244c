package monitoring

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/samplecrd/network-controller/test/internal/process"
)

// timeout limits everything that should take seconds.
const timeout = 2 * time.Minute

// stopTimeout is the time that a program gets to end before it is killed.
const stopTimeout = 10 * time.Second

// start starts a program that ends with the test.
func start(t *testing.T, program string, args ...string) *process.Process {
	t.Helper()
	p, err := process.Start(t.TempDir(), process.Program{Name: filepath.Base(program), Args: append([]string{program}, args...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Stop(stopTimeout)
		if t.Failed() {
			t.Logf("%s printed\n%s", program, p.Log())
		}
	})
	return p
}

// freeAddress returns a loopback address at which no server listens now.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// eventually waits until a check passes, and fails with its last error.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	if err := process.WaitUntil(ctx, check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
