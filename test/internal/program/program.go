// Package program builds the controller for tests that run it from outside.
package program

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/samplecrd/network-controller/test/internal/runfolder"
)

// RunTests builds the controller, runs the tests of a package, and returns their exit
// code. TestMain calls it: m is a *testing.M, and path receives the path of the program.
// PROGRAM_RACE=1 builds it with the race detector. Added are files in the working
// directory that are added to package main for these tests.
func RunTests(m interface{ Run() int }, path *string, added ...string) (exitCode int) {
	dir, err := os.MkdirTemp("", "program-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		*path = filepath.Join(dir, "samplecrd-controller")
		err = build(*path, added)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "building the controller:", err)
		return 1
	}
	return m.Run()
}

func build(path string, added []string) error {
	root, err := runfolder.ModuleRoot()
	if err != nil {
		return err
	}
	overlay := map[string]string{}
	for _, file := range added {
		if overlay[filepath.Join(root, filepath.Base(file))], err = filepath.Abs(file); err != nil {
			return err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".json", text, 0o600); err != nil {
		return err
	}
	args := []string{"build", "-o", path, "-overlay=" + path + ".json"}
	if os.Getenv("PROGRAM_RACE") != "" {
		args = append(args, "-race")
	}
	command := exec.Command("go", append(args, ".")...) //nolint:noctx // go test has a timeout
	command.Dir = root
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	return command.Run()
}
