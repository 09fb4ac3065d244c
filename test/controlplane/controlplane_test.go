package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/samplecrd/network-controller/test/internal/process"
	"github.com/samplecrd/network-controller/test/internal/runfolder"
)

// ownerVariable makes the test binary the owner of a cluster in a folder, instead
// of running tests.
const ownerVariable = "CONTROLPLANE_TEST_OWNER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(ownerVariable); dir != "" {
		if err := own(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// running is what the owner of a cluster prints.
type running struct {
	Folder string
	PIDs   []int
}

// own starts a cluster, prints what runs, and waits until it is killed.
func own(dir string) error {
	c, err := Start(context.Background(), Options{Dir: dir, ControllerManager: true})
	if err != nil {
		return err
	}
	pids := []int{c.etcd.PID(), c.apiServer.PID(), c.controllers.PID()}
	if err := json.NewEncoder(os.Stdout).Encode(running{Folder: c.Dir(), PIDs: pids}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, c.Stop())
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestCluster(t *testing.T) {
	c := StartForTest(t, Options{Dir: t.TempDir(), Apply: []string{
		"test/controlplane/testdata/crd", // the second needs the first
		"test/controlplane/testdata/thing.yaml",
	}})
	// The subtests build on each other.
	t.Run("what was applied can be used at once", func(t *testing.T) {
		if _, err := c.Kubectl(t.Context(), "get", "thing", "first"); err != nil {
			t.Error(err)
		}
	})
	t.Run("errors contain what kubectl printed", func(t *testing.T) {
		_, err := c.Kubectl(t.Context(), "get", "no-such-thing")
		if err == nil || !strings.Contains(err.Error(), `the server doesn't have a resource type "no-such-thing"`) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("nothing is left after Stop", func(t *testing.T) { testStop(t, c) })
}

func testStop(t *testing.T, c *Cluster) {
	processes := []int{c.etcd.PID(), c.apiServer.PID()}
	client, err := rest.HTTPClientFor(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	watch, err := client.Get(c.RESTConfig().Host + "/api/v1/namespaces?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watch.Body.Close() }()
	began := time.Now()
	for range 2 {
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took >= stopTimeout {
		t.Errorf("it took %v: a client that watches makes it wait", took)
	}
	if slices.ContainsFunc(processes, process.Running) || exists(c.Dir()) {
		t.Errorf("one of the processes %v still runs, or the run folder %s is there", processes, c.Dir())
	}
	if err := c.StartAPIServer(t.Context()); err == nil {
		t.Error("the API server of a stopped cluster was started")
	}
}

// When the owner of a cluster is killed, its processes end. The next Start in that
// folder removes what is left.
func TestOwnerIsKilled(t *testing.T) {
	dir := t.TempDir()
	owner := exec.CommandContext(t.Context(), os.Args[0])
	owner.Env = append(os.Environ(), ownerVariable+"="+dir)
	owner.Stderr = os.Stderr
	_, failed := owner.StdinPipe()
	stdout, err := owner.StdoutPipe()
	if err := errors.Join(failed, err, owner.Start()); err != nil {
		t.Fatal(err)
	}
	var cluster running
	decoding := json.NewDecoder(stdout).Decode(&cluster)
	err = owner.Process.Kill()
	_ = owner.Wait() // it was killed
	if err := errors.Join(decoding, err); err != nil || len(cluster.PIDs) != 3 {
		t.Fatalf("processes %v ran, want 3 (%v)", cluster.PIDs, err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = process.WaitUntil(ctx, func(context.Context) error {
		if left := slices.DeleteFunc(slices.Clone(cluster.PIDs), func(pid int) bool { return !process.Running(pid) }); len(left) > 0 {
			return fmt.Errorf("processes %v run", left)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if !exists(cluster.Folder) {
		t.Fatal("the run folder is gone: this test shows nothing about the next Start")
	}
	folder, err := runfolder.New(t.Context(), dir, folderPattern, os.RemoveAll)
	if err := errors.Join(err, folder.Remove()); err != nil || exists(cluster.Folder) {
		t.Errorf("the next Start does not remove the run folder %s (%v)", cluster.Folder, err)
	}
}

func TestClusterOfAssets(t *testing.T) {
	var defaults Options
	if err := defaults.complete(); err != nil {
		t.Fatal(err)
	}
	assets := t.TempDir()
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		if err := os.Symlink(defaults.Program, filepath.Join(assets, name)); err != nil {
			t.Fatal(err)
		}
	}
	options := Options{Dir: t.TempDir(), Assets: assets, Program: "/no/such/program"}
	c := StartForTest(t, options)
	if _, err := c.Kubectl(t.Context(), "get", "namespaces"); err != nil {
		t.Error(err)
	}
	options.ControllerManager = true
	if _, err := Start(t.Context(), options); err == nil || !strings.Contains(err.Error(), "kube-controller-manager") {
		t.Errorf("error %v without kube-controller-manager", err)
	}
}

func TestStartFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		options Options
		want    []string
	}{
		"the program is missing":        {Options{Program: "/no/such/program"}, []string{"/no/such/program", "make control-plane", "make test"}},
		"the assets are missing":        {Options{Assets: "/no/such/folder"}, []string{"finding the programs", "/no/such/folder/etcd"}},
		"the program cannot run":        {Options{Program: file}, []string{"starting etcd", "permission denied"}},
		"the run folder cannot be made": {Options{Dir: filepath.Join(file, "run")}, []string{"making a run folder for the local cluster", file}},
		"a component dies": {Options{APIServerArgs: []string{"--no-such-flag"}},
			[]string{"kube-apiserver ended unexpectedly", "exit status 1", "Last lines of kube-apiserver.log", "unknown flag: --no-such-flag"}},
		"what is to be applied is missing": {Options{Apply: []string{"no-such-folder"}}, []string{"applying", "no-such-folder", "does not exist"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if test.options.Dir == "" {
				test.options.Dir = dir
			}
			c, err := Start(t.Context(), test.options)
			if err == nil {
				t.Fatal(errors.Join(errors.New("it started"), c.Stop()))
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error has no %q:\n%v", want, err)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(dir, folderPattern)); len(left) > 0 {
				t.Errorf("these are left: %v", left)
			}
		})
	}
}
