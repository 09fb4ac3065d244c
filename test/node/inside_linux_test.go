package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/samplecrd/network-controller/test/internal/process"
)

// roleVariable makes the test binary the command of a node.
const roleVariable = "NODE_TEST_ROLE"

// exitCodeInside is the exit code of the command if nothing fails. `node exec` must
// pass it on.
const exitCodeInside = 42

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(inside(role))
	}
	os.Exit(m.Run())
}

// inside is the command of a node.
func inside(role string) (exitCode int) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if role == "wait" {
		namespace, err := os.Readlink("/proc/self/ns/pid")
		fmt.Println(namespace, os.Getenv(runFolderVariable), err)
		<-ctx.Done()
		return 0
	}
	if err := useNode(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "inside:", err)
		return 1
	}
	return exitCodeInside
}

// useNode uses a node as its users do.
func useNode(ctx context.Context) error {
	fmt.Println(os.Getenv(runFolderVariable))
	read, err := io.ReadAll(os.Stdin)
	if err != nil || string(read) != "input" {
		return fmt.Errorf("read %q, %w; want the input of node exec", read, err)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", os.Getenv("NODE_ADDRESS")+":0")
	if err != nil {
		return err
	}
	go func() {
		_ = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprint(w, "from the node")
		}))
	}()
	if err := wantKubectl(ctx, "node/node\n", "get", "nodes", "-o", "name"); err != nil {
		return err
	}
	return errors.Join(runPod(ctx, listener.Addr().String()), loadMore(ctx), restart(ctx))
}

// runPod runs a pod with as few rights as possible, and checks what it can do.
func runPod(ctx context.Context, address string) error {
	manifest, err := os.ReadFile("testdata/pod.yaml")
	if err != nil {
		return err
	}
	apply := exec.CommandContext(ctx, "kubectl", "create", "-f", "-")
	apply.Stdin = bytes.NewReader(bytes.ReplaceAll(manifest, []byte("ADDRESS"), []byte(address)))
	if output, err := apply.CombinedOutput(); err != nil {
		return fmt.Errorf("creating a pod: %w: %s", err, output)
	}
	var log string
	err = process.Poll(ctx, pollPeriod, func(ctx context.Context) (bool, error) {
		log, _ = kubectl(ctx, "logs", "-n", "demo", "probe")
		return strings.HasSuffix(log, "done\n"), nil
	})
	if err != nil {
		events, _ := kubectl(ctx, "get", "events", "-A")
		return fmt.Errorf("waiting for a log: %w: %s\n%s", err, log, events)
	}
	for _, want := range []string{
		`cannot list resource \"secrets\"`, // the API server was reached, and authenticated the pod
		"server of the node: 200 from the node\n",
		"writing: open /file: read-only file system\n",
	} {
		if !strings.Contains(log, want) {
			return fmt.Errorf("the log of the pod is\n%s\nwant %q in it", log, want)
		}
	}
	audit, err := os.ReadFile(os.Getenv("NODE_AUDIT_LOG"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(audit)) {
		if !strings.Contains(line, `"username":"system:serviceaccount:demo:`) {
			return fmt.Errorf("the audit log has the line\n%s", line)
		}
	}
	if !bytes.Contains(audit, []byte(`"authorization.k8s.io/decision":"forbid"`)) {
		return fmt.Errorf("the audit log has no request that was forbidden:\n%s", audit)
	}
	return wantKubectl(ctx, "hello\n", "exec", "-n", "demo", "probe", "--", "/probe", "say", "hello")
}

// loadMore loads another image, and runs it.
func loadMore(ctx context.Context) error {
	archive := filepath.Join(os.Getenv(runFolderVariable), "more.tar")
	program := filepath.Join(os.Getenv("NODE_TEST_DIR"), "probe")
	if err := (image{name: "localhost/more:test", program: program, user: "65532"}).packTo(archive); err != nil {
		return err
	}
	if output, err := exec.CommandContext(ctx, "node", "load", archive).CombinedOutput(); err != nil {
		return fmt.Errorf("loading an image: %w: %s", err, output)
	}
	if _, err := kubectl(ctx, "run", "more", "--restart=Never", "--image=localhost/more:test", "--image-pull-policy=Never", "--", "say", "more"); err != nil {
		return err
	}
	if _, err := kubectl(ctx, "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/more", "--timeout=60s"); err != nil {
		return err
	}
	return wantKubectl(ctx, "more\n", "logs", "more")
}

// restart kills all programs and containers, and waits until they run again.
func restart(ctx context.Context) error {
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "containerd"} {
		path := filepath.Join(os.Getenv(runFolderVariable), name+".pid")
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		pid, err := strconv.Atoi(string(content))
		if err != nil {
			return err
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return fmt.Errorf("killing %s: %w", name, err)
		}
		err = process.Poll(ctx, pollPeriod, func(context.Context) (bool, error) {
			now, err := os.ReadFile(path)
			return string(now) != string(content), err
		})
		if err != nil {
			return fmt.Errorf("waiting for another %s: %w", name, err)
		}
	}
	// A container ends with its shim, and the pod gets another one.
	if err := exec.CommandContext(ctx, "pkill", "-9", "containerd-shim").Run(); err != nil {
		return fmt.Errorf("killing shims: %w", err)
	}
	var state string
	err := process.Poll(ctx, pollPeriod, func(ctx context.Context) (bool, error) {
		state, _ = kubectl(ctx, "get", "pod", "-n", "demo", "probe", "-o", "jsonpath={.status.containerStatuses[0].restartCount} {.status.phase} {.status.containerStatuses[0].ready}")
		return state == "1 Running true", nil
	})
	if err != nil {
		return fmt.Errorf("waiting until the pod runs again: %w: %s", err, state)
	}
	// Only process 1 waits for shims and containers.
	return process.Poll(ctx, pollPeriod, func(context.Context) (bool, error) {
		processes, err := exec.CommandContext(ctx, "ps", "-A", "-o", "ppid=,stat=").Output()
		for line := range strings.Lines(string(processes)) {
			if fields := strings.Fields(line); fields[0] == "1" && strings.HasPrefix(fields[1], "Z") {
				return false, err
			}
		}
		return true, err
	})
}

func kubectl(ctx context.Context, args ...string) (string, error) {
	output, err := exec.CommandContext(ctx, "kubectl", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("running kubectl %s: %w: %s", args, err, output)
	}
	return string(output), nil
}

func wantKubectl(ctx context.Context, want string, args ...string) error {
	got, err := kubectl(ctx, args...)
	if err == nil && got != want {
		err = fmt.Errorf("kubectl %s printed %q, want %q", args, got, want)
	}
	return err
}
