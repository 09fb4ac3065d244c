// Package browser tests the debug page in a headless Chromium: the built controller on
// a real control plane, and a Neutron that can fail. The package is a module of its
// own, because only it drives a browser.
//
// It uses Chromium and npm from Debian's packages, and axe-core from npm.
package browser

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/internal/debian"
	"github.com/samplecrd/network-controller/test/internal/require"
	"github.com/samplecrd/network-controller/test/internal/runfolder"
)

var (
	writeScreenshots = flag.Bool("screenshots", false, "write the pictures to docs/images")

	root     string // of the main module
	chromium string // the path of the program
	browser  context.Context
	built    string // the controller under test
	cluster  *controlplane.Cluster
)

func TestMain(m *testing.M) {
	flag.Parse()
	exitCode, err := prepareAndRun(m)
	require.Exit("browser", exitCode, err)
}

// prepareAndRun finds or installs the programs, builds the controller, and runs the
// tests with a control plane.
func prepareAndRun(m *testing.M) (exitCode int, err error) {
	if root, err = controlplane.ModuleRoot(); err != nil {
		return 1, err
	}
	if chromium, err = program("chromium", "chromium", "fonts-dejavu-core"); err != nil {
		return 1, err
	}
	folder, err := runfolder.New(context.Background(), filepath.Join(root, "build", "run"), "browser-*", os.RemoveAll)
	if err != nil {
		return 1, fmt.Errorf("making a run folder: %w", err)
	}
	defer func() { err = errors.Join(err, folder.Remove()) }()
	built = filepath.Join(folder.Path, "samplecrd-controller")
	build := exec.Command("go", "build", "-ldflags", "-X main.version=local", "-o", built, ".")
	build.Dir, build.Stdout, build.Stderr = root, os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return 1, fmt.Errorf("building the controller: %w", err)
	}
	var stop func()
	if browser, stop, err = startBrowser(filepath.Join(folder.Path, "profile")); err != nil {
		return 1, err
	}
	defer stop()
	return controlplane.RunTests(m, controlplane.Options{Apply: []string{"crd"}}, func(c *controlplane.Cluster) { cluster = c }), nil
}

// program returns the path of a program. If it is missing, its Debian packages are
// installed.
func program(name string, packages ...string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	if err := debian.Check(); err != nil {
		return "", fmt.Errorf("%s is not installed: %w", name, err)
	}
	if err := debian.Install(context.Background(), packages...); err != nil {
		return "", fmt.Errorf("installing %s: %w", name, err)
	}
	return exec.LookPath(name)
}

func run(name string, args ...string) error {
	if output, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("running %s: %w\n%s", name, err, output)
	}
	return nil
}
