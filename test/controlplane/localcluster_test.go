package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// ownerVariable asks the test binary to be the owner of a cluster, in the
// folder that it names, instead of running tests.
const ownerVariable = "LOCALCLUSTER_TEST_OWNER"

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

// running is what the owner of a cluster tells about it.
type running struct {
	Folder string
	Server string
	PIDs   []int
}

// own starts a cluster, tells about it, and waits until it is killed.
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
	for _, p := range []*process{c.etcd, c.apiServer, c.controllers} {
		if p != nil {
			pids = append(pids, p.command.Process.Pid)
		}
	}
	return pids
}

// alive says whether there is a process that has not ended. One that has ended
// may still have its entry, until its parent asks how.
func alive(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err == nil {
		_, rest, _ := bytes.Cut(stat, []byte(") "))
		return !bytes.HasPrefix(rest, []byte("Z")) && !bytes.HasPrefix(rest, []byte("X"))
	}
	return syscall.Kill(pid, 0) == nil
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	often := time.NewTicker(10 * time.Millisecond)
	defer often.Stop()
	for deadline := time.After(time.Minute); !condition(); {
		select {
		case <-often.C:
		case <-deadline:
			t.Fatalf("after a minute: still not %s", what)
		}
	}
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
	t.Run("kubectl knows both versions", func(t *testing.T) {
		var versions struct {
			ClientVersion, ServerVersion struct{ GitVersion string }
		}
		if err := json.Unmarshal([]byte(kubectl(t, c, "version", "-o", "json")), &versions); err != nil {
			t.Fatal(err)
		}
		if v := versions.ServerVersion.GitVersion; v != versions.ClientVersion.GitVersion || !strings.HasPrefix(v, "v1.") {
			t.Errorf("versions are %+v, want the same of both", versions)
		}
	})
	t.Run("errors of kubectl have its words", func(t *testing.T) {
		_, err := c.Kubectl(t.Context(), "get", "no-such-thing")
		if err == nil || !strings.Contains(err.Error(), `the server doesn't have a resource type "no-such-thing"`) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("a cancelled context ends kubectl", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Kubectl(ctx, "get", "namespaces"); !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v, want context.Canceled", err)
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
	client, err := rest.HTTPClientFor(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	url := c.RESTConfig().Host + "/api/v1/namespaces/default/configmaps/kept"
	kubectl(t, c, "create", "configmap", "kept")
	if err := c.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	if _, err := get(t.Context(), client, url); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("without the API server: error is %v, want a refused connection", err)
	}
	if err := c.StopAPIServer(); err != nil {
		t.Errorf("stopping the stopped API server: %v", err)
	}
	for range 2 { // to start a running one does nothing
		if err := c.StartAPIServer(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if status, err := get(t.Context(), client, url); err != nil || status != http.StatusOK {
		t.Errorf("after the API server came back: status %d, error %v, want what was made before", status, err)
	}
	if err := c.controllers.died(); err != nil {
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
		if alive(pid) {
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

// When the owner of a cluster is killed, its processes end. The next Start in
// the same folder removes what is left.
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
		t.Fatalf("the owner told nothing about its cluster: %v", decoding)
	}

	if len(cluster.PIDs) != 3 {
		t.Errorf("processes %v ran, want 3", cluster.PIDs)
	}
	eventually(t, "every process of the cluster gone", func() bool { return !slices.ContainsFunc(cluster.PIDs, alive) })
	eventually(t, "the API server's address without a listener", func() bool {
		connection, err := net.Dial("tcp", strings.TrimPrefix(cluster.Server, "https://"))
		if err == nil {
			_ = connection.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
	if !exists(cluster.Folder) {
		t.Fatal("the run folder is gone: this test shows nothing about sweeping")
	}
	folder, err := newRunFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = folder.remove() }()
	if exists(cluster.Folder) {
		t.Errorf("the next Start does not remove the run folder %s", cluster.Folder)
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
			want:    []string{"kube-apiserver is gone", "exit status 1", "The last lines of kube-apiserver.log", "unknown flag: --no-such-flag"},
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
					t.Errorf("error does not say %q:\n%v", want, err)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(dir, folderPattern)); len(left) > 0 {
				t.Errorf("these are left: %v", left)
			}
		})
	}
}

func TestStartIsCancelled(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // as soon as the API server has begun
		defer cancel()
		for range time.Tick(time.Millisecond) {
			logs, _ := filepath.Glob(filepath.Join(dir, folderPattern, "kube-apiserver.log"))
			if len(logs) > 0 || ctx.Err() != nil {
				return
			}
		}
	}()
	defer cancel()
	c, err := Start(ctx, Options{Dir: dir})
	if err == nil {
		t.Fatal(errors.Join(errors.New("it started"), c.Stop()))
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want context.Canceled", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, folderPattern)); len(left) > 0 {
		t.Errorf("these are left: %v", left)
	}
}
