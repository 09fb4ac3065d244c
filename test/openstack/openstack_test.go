package main

import (
	"errors"
	"os"
	"testing"

	"github.com/samplecrd/network-controller/test/internal/require"
)

func TestBadArguments(t *testing.T) {
	for _, args := range [][]string{{"restart"}, {"exec"}, {"exec", "--"}} {
		if got, err := run(args); got != require.ExitUsage || err != nil {
			t.Errorf("%v: exit code is %d (%v), want %d", args, got, err, require.ExitUsage)
		}
	}
	if _, err := run([]string{"exec", "--", "/no/such/command"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error is %v, want that the command does not exist", err)
	}
}
