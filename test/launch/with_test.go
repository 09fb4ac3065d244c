package launch

import (
	"bytes"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestPrebuilt: without a build of Kubernetes, demo and run use the download of setup-envtest,
// if its checksum is right. Otherwise, they build it.
func TestPrebuilt(t *testing.T) {
	archive := archiveOfNothing(t)
	bin := t.TempDir()
	wrong := serveIndex(t, archive, "00")
	if got, said := with(t, bin, "", wrong); !strings.Contains(said, "The download failed") || !strings.Contains(said, "Building Kubernetes") {
		t.Errorf("with a wrong checksum, it says %q and uses %q; want a build", said, got)
	}
	hash := sha512.Sum512(archive)
	index := serveIndex(t, archive, hex.EncodeToString(hash[:]))
	got, said := with(t, bin, "", index)
	if _, err := os.Stat(filepath.Join(got, "kube-apiserver")); err != nil || !strings.Contains(said, "Downloading") {
		t.Errorf("it says %q and uses %q (%v), want a download", said, got, err)
	}
	const nowhere = "http://127.0.0.1:1/index.yaml"
	if again, said := with(t, bin, "", nowhere); again != got || strings.Contains(said, "Looking") {
		t.Errorf("the second time, it says %q and uses %q, want %q without the index", said, again, got)
	}
	if got, said := with(t, bin, "/mine", nowhere); got != "/mine" || said != "" {
		t.Errorf("with KUBEBUILDER_ASSETS=/mine, it says %q and uses %q", said, got)
	}
	if got, said := with(t, t.TempDir(), "", nowhere); !strings.Contains(said, "There is none") || !strings.Contains(said, "Building Kubernetes") {
		t.Errorf("without an index, it says %q and uses %q; want a build", said, got)
	}
}

// with runs with.sh with a folder for what is built and downloaded. It returns the folder of
// the programs, and what was printed. A build is ended when it has begun.
func with(t *testing.T, bin, assets, index string) (folder, said string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "../../hack/kubernetes/with.sh", "sh", "-c", "echo =$KUBEBUILDER_ASSETS")
	command.Env = append(os.Environ(), "BIN="+bin, "KUBEBUILDER_ASSETS="+assets, "ENVTEST_INDEX="+index)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	until := &untilBuild{command: command}
	command.Stdout, command.Stderr = until, until
	err := command.Run()
	said, folder, _ = strings.Cut(until.output.String(), "=/")
	if err != nil && !until.building() {
		t.Fatalf("%v: %s", err, said)
	}
	if folder != "" {
		folder = "/" + strings.TrimSpace(folder)
	}
	return folder, said
}

// untilBuild keeps what a command prints, and ends it when it builds Kubernetes.
type untilBuild struct {
	output  bytes.Buffer
	command *exec.Cmd
}

func (u *untilBuild) building() bool {
	return strings.Contains(u.output.String(), "Building Kubernetes")
}

// Write implements io.Writer.
func (u *untilBuild) Write(p []byte) (int, error) {
	before := u.building()
	n, err := u.output.Write(p)
	if !before && u.building() {
		err = syscall.Kill(-u.command.Process.Pid, syscall.SIGTERM)
	}
	return n, err
}

// archiveOfNothing returns the archive of setup-envtest, with empty programs.
func archiveOfNothing(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	programs := filepath.Join(dir, "controller-tools", "envtest")
	err := os.MkdirAll(programs, 0o755)
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(programs, name), nil, 0o755))
	}
	archive, failed := exec.CommandContext(t.Context(), "tar", "-C", dir, "-cz", "controller-tools").Output()
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	return archive
}

// serveIndex serves an archive, and an index of setup-envtest that names it. It returns
// the URL of the index.
func serveIndex(t *testing.T, archive []byte, hash string) string {
	t.Helper()
	routes := http.NewServeMux()
	server := httptest.NewServer(routes)
	t.Cleanup(server.Close)
	name := fmt.Sprintf("envtest-v1.36.0-%s-%s.tar.gz", runtime.GOOS, runtime.GOARCH)
	routes.HandleFunc("/index.yaml", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "releases:\n  v1.36.0:\n    %s:\n      hash: %s\n      selfLink: %s/archive\n", name, hash, server.URL)
	})
	routes.HandleFunc("/archive", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(archive)
	})
	return server.URL + "/index.yaml"
}
