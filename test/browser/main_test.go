// Package browser tests the debug page in a headless Chromium: the built controller on
// a real control plane, and a Neutron that can fail. The package is a module of its
// own, because only it drives a browser.
//
// It uses Chromium and npm from Debian's packages, and axe-core from npm.
package browser

import (
	"context"
	"crypto/sha256"
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

	root    string // of the main module
	browser context.Context
	built   string // the controller under test
	cluster *controlplane.Cluster
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
	if *writeScreenshots {
		if err := installChineseFont(); err != nil {
			return 1, err
		}
	}
	chromium, err := program("chromium", "chromium", "fonts-dejavu-core")
	if err != nil {
		return 1, err
	}
	folder, err := runfolder.New(context.Background(), filepath.Join(root, "build", "run"), "browser-*", os.RemoveAll)
	if err != nil {
		return 1, fmt.Errorf("making a run folder: %w", err)
	}
	defer func() { err = errors.Join(err, folder.Remove()) }()
	built = filepath.Join(folder.Path, "samplecrd-controller")
	if err := run("go", "-C", root, "build", "-ldflags", "-X main.version=local", "-o", built, "."); err != nil {
		return 1, err
	}
	var stop func()
	if browser, stop, err = startBrowser(chromium, filepath.Join(folder.Path, "profile")); err != nil {
		return 1, err
	}
	defer stop()
	use := func(c *controlplane.Cluster) { cluster = c }
	return controlplane.RunTests(m, controlplane.Options{Apply: []string{"crd"}}, use), nil
}

// program returns the path of a program. If it is missing, its Debian packages are
// installed.
func program(name string, packages ...string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	if err = debian.Check(); err == nil {
		err = debian.Install(context.Background(), packages...)
	}
	if err != nil {
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

// The version of axe-core, and the checksum of its script.
const (
	axeVersion = "4.14.1"
	axeSHA256  = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
)

// axe returns the script of axe-core, which npm downloads to build/ once.
func axe() (string, error) {
	dir := filepath.Join(root, "build", "npm")
	path := filepath.Join(dir, "node_modules", "axe-core", "axe.min.js")
	if _, err := os.Stat(path); err != nil {
		npm, err := program("npm", "npm")
		if err == nil {
			err = run(npm, "install", "--prefix", dir, "--no-save", "--ignore-scripts", "axe-core@"+axeVersion)
		}
		if err != nil {
			return "", err
		}
	}
	script, err := os.ReadFile(path)
	if hash := fmt.Sprintf("%x", sha256.Sum256(script)); err == nil && hash != axeSHA256 {
		err = fmt.Errorf("the checksum of %s is %s, want %s: remove the folder, and check the version", path, hash, axeSHA256)
	}
	return string(script), err
}
