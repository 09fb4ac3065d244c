package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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
	Server string
	PIDs   []int
}

// own starts a cluster, prints what runs, and waits until it is killed.
func own(dir string) error {
	c, err := Start(context.Background(), Options{Dir: dir, ControllerManager: true})
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(running{Folder: c.Dir(), Server: c.config.Host, PIDs: pids(c)}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, c.Stop())
}

func pids(c *Cluster) []int {
	var pids []int
	for _, p := range []*process.Process{c.etcd, c.apiServer, c.controllers} {
		if p != nil {
			pids = append(pids, p.PID())
		}
	}
	return pids
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestCluster(t *testing.T) {
	began := time.Now()
	c, err := Start(t.Context(), Options{Dir: t.TempDir(), ControllerManager: true, Apply: []string{
		"test/controlplane/testdata/crd", // the second needs the first
		"test/controlplane/testdata/thing.yaml",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("started in %v", time.Since(began))
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	// The subtests build on each other.
	t.Run("what was applied can be used at once", func(t *testing.T) {
		kubectl(t, c, "get", "thing", "first")
	})
	t.Run("errors contain what kubectl printed", func(t *testing.T) {
		_, err := c.Kubectl(t.Context(), "get", "no-such-thing")
		if err == nil || !strings.Contains(err.Error(), `the server doesn't have a resource type "no-such-thing"`) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("garbage is collected", func(t *testing.T) { testGarbage(t, c) })
	t.Run("the API server goes and comes back with its data", func(t *testing.T) { testRestart(t, c) })
	t.Run("nothing is left after Stop", func(t *testing.T) { testStop(t, c) })
}

func kubectl(t *testing.T, c *Cluster, args ...string) string {
	t.Helper()
	output, err := c.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(output))
}

func testGarbage(t *testing.T, c *Cluster) {
	kubectl(t, c, "create", "configmap", "owner")
	kubectl(t, c, "create", "configmap", "owned")
	uid := kubectl(t, c, "get", "configmap", "owner", "-o", "jsonpath={.metadata.uid}")
	kubectl(t, c, "patch", "configmap", "owned", "-p",
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"`+uid+`"}]}}`)
	kubectl(t, c, "delete", "configmap", "owner")
	kubectl(t, c, "wait", "--for=delete", "configmap/owned", "--timeout=60s")
}

func testRestart(t *testing.T, c *Cluster) {
	const path = "/api/v1/namespaces/default/configmaps/kept"
	kubectl(t, c, "create", "configmap", "kept")
	if err := c.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.api.Get(t.Context(), path); err == nil { // refused, or an idle connection ends
		t.Error("the stopped API server responds")
	}
	if err := c.StopAPIServer(); err != nil {
		t.Errorf("stopping the stopped API server: %v", err)
	}
	for range 2 { // to start a running one does nothing
		if err := c.StartAPIServer(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.api.Get(t.Context(), path); err != nil {
		t.Errorf("after the API server came back: %v", err)
	}
	if err := c.controllers.Check(); err != nil {
		t.Error(err)
	}
}

func testStop(t *testing.T, c *Cluster) {
	processes := pids(c)
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
	for _, pid := range processes {
		if process.Running(pid) {
			t.Errorf("process %d still runs", pid)
		}
	}
	if exists(c.Dir()) {
		t.Errorf("the run folder %s is still there", c.Dir())
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
	stdin, err := owner.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	stdout, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	var cluster running
	decoding := json.NewDecoder(stdout).Decode(&cluster)
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // it was killed
	if decoding != nil {
		t.Fatalf("the owner printed nothing about its cluster: %v", decoding)
	}

	if len(cluster.PIDs) != 3 {
		t.Errorf("processes %v ran, want 3", cluster.PIDs)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// A process that was killed keeps its sockets until its last thread has ended.
	err = process.WaitUntil(ctx, func(context.Context) error {
		connection, err := net.Dial("tcp", strings.TrimPrefix(cluster.Server, "https://"))
		if err == nil {
			_ = connection.Close()
		}
		if left := slices.DeleteFunc(slices.Clone(cluster.PIDs), func(pid int) bool { return !process.Running(pid) }); len(left) > 0 || !errors.Is(err, syscall.ECONNREFUSED) {
			return fmt.Errorf("processes %v run; connecting to the API server: %w", left, err)
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
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = folder.Remove() }()
	if exists(cluster.Folder) {
		t.Errorf("the next Start does not remove the run folder %s", cluster.Folder)
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
	c, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	kubectl(t, c, "get", "namespaces")
	if err := c.Stop(); err != nil {
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
		"the program is missing": {
			options: Options{Program: "/no/such/program"},
			want:    []string{"/no/such/program", "make control-plane", "make test"},
		},
		"the assets are missing": {
			options: Options{Assets: "/no/such/folder"},
			want:    []string{"finding the programs", "/no/such/folder/etcd"},
		},
		"the program cannot run": {
			options: Options{Program: file},
			want:    []string{"starting etcd", "permission denied"},
		},
		"the run folder cannot be made": {
			options: Options{Dir: filepath.Join(file, "run")},
			want:    []string{"making a run folder for the local cluster", file},
		},
		"a component dies": {
			options: Options{APIServerArgs: []string{"--no-such-flag"}},
			want:    []string{"kube-apiserver ended unexpectedly", "exit status 1", "Last lines of kube-apiserver.log", "unknown flag: --no-such-flag"},
		},
		"what is to be applied is missing": {
			options: Options{Apply: []string{"no-such-folder"}},
			want:    []string{"applying", "no-such-folder", "does not exist"},
		},
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
