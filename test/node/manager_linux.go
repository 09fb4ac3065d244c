package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/samplecrd/network-controller/test/internal/kubernetes"
	"github.com/samplecrd/network-controller/test/internal/process"
)

// startTimeout limits the start of a node. It takes about seven seconds on an idle
// machine with two cores.
const startTimeout = 3 * time.Minute

// runFolderVariable is the environment variable that names the run folder.
const runFolderVariable = "NODE_RUN_FOLDER"

// manage starts a node in the namespaces of this process, runs the command with it,
// and returns its exit code. This process is the first one in them: when it ends, the
// kernel kills all the others.
func manage(dir string, o options) (exitCode int, err error) {
	received := process.Signals()
	// Before the command runs, a signal ends the start; after that, the command gets
	// it.
	ctx, started := signal.NotifyContext(context.Background(), process.StopSignals...)
	err = startNode(ctx, dir, o)
	started()
	if err != nil {
		return 0, fmt.Errorf("starting a node: %w", err)
	}
	for name, value := range map[string]string{
		"KUBECONFIG":      filepath.Join(dir, kubernetes.Admin+".kubeconfig"),
		"NODE_ADDRESS":    nodeAddress,
		"NODE_AUDIT_LOG":  filepath.Join(dir, auditLogName),
		runFolderVariable: dir,
	} {
		if err := os.Setenv(name, value); err != nil {
			return 0, err
		}
	}
	return process.Run(exec.Command(o.command[0], o.command[1:]...), received) //nolint:noctx // it gets signals
}

var errNotReady = fmt.Errorf("not ready after %v", startTimeout)

// startNode returns when the node is ready for pods.
func startNode(ctx context.Context, dir string, o options) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errNotReady)
	defer cancel()
	ctx, failed := context.WithCancelCause(ctx)
	s := &supervisor{dir: dir, failed: failed}
	if err := furnish(ctx); err != nil {
		return err
	}
	config, err := writeCredentials(dir)
	if err != nil {
		return err
	}
	if err := writeConfiguration(dir); err != nil {
		return err
	}
	api, err := kubernetes.NewAPI(config)
	if err != nil {
		return err
	}
	program, components := filepath.Join(binFolder(), "kubernetes"), filepath.Join(binFolder(), "node-components")
	s.keepRunning("etcd", append([]string{program, "etcd"}, kubernetes.EtcdArgs()...)...)
	s.keepRunning("kube-apiserver", append([]string{program, "kube-apiserver"}, apiServerArgs...)...)
	s.keepRunning("containerd", "containerd", "--config=containerd.toml")
	loaded := make(chan error, 1)
	go func() { loaded <- loadFirst(ctx, dir, o.images) }()

	if err := api.WaitFor(ctx, "/readyz"); err != nil {
		return s.explain(ctx, "kube-apiserver", err)
	}
	s.keepRunning("kube-controller-manager", append([]string{program, "kube-controller-manager"},
		kubernetes.ControllerManagerArgs()...)...)
	s.keepRunning("kube-scheduler", append([]string{components, "kube-scheduler"}, schedulerArgs...)...)
	if err := waitForContainerd(ctx); err != nil {
		return s.explain(ctx, "containerd", err)
	}
	s.keepRunning("kubelet", append([]string{components, "kubelet"}, kubeletArgs...)...)
	if err := api.WaitFor(ctx, "/api/v1/namespaces/default/serviceaccounts/default"); err != nil {
		return s.explain(ctx, "kube-controller-manager", err)
	}
	if err := process.WaitUntil(ctx, func(ctx context.Context) error { return nodeIsReady(ctx, api) }); err != nil {
		return s.explain(ctx, "kubelet", err)
	}
	if err := <-loaded; err != nil {
		return s.explain(ctx, "containerd", err)
	}
	return nil
}

// supervisor keeps programs running.
type supervisor struct {
	dir string // their working directory, with their logs and process IDs
	// failed receives the error of a program that ended.
	failed func(error)
}

// restartPause is the time between the end of a program and its next start, as
// with systemd.
const restartPause = 100 * time.Millisecond

// keepRunning starts a program, and starts it again whenever it ends.
func (s *supervisor) keepRunning(name string, args ...string) {
	go func() {
		for {
			s.failed(s.runOnce(name, args))
			<-time.After(restartPause)
		}
	}()
}

// runOnce runs a program until it ends, and returns how it ended.
func (s *supervisor) runOnce(name string, args []string) error {
	p, err := process.Start(s.dir, process.Program{Name: name, Args: args})
	if err != nil {
		return err
	}
	// A reader of the file finds all of it or nothing.
	file := filepath.Join(s.dir, name+".pid")
	err = os.WriteFile(file+".new", []byte(strconv.Itoa(p.PID())), 0o600)
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		p.Kill()
		return err
	}
	<-p.Done()
	return p.Check()
}

// explain returns why a start failed: a program ended, or a program was not ready
// in time, and then its log may have the reason.
func (s *supervisor) explain(ctx context.Context, name string, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, process.ErrEnded) {
		return cause
	}
	err = fmt.Errorf("waiting for %s: %w", name, err)
	if errors.Is(err, errNotReady) {
		err = fmt.Errorf("%w%s", err, process.LastLinesOf(filepath.Join(s.dir, name+".log")))
	}
	return err
}

// nodeIsReady returns an error if pods cannot run on the node yet.
func nodeIsReady(ctx context.Context, api kubernetes.API) error {
	body, err := api.Get(ctx, "/api/v1/nodes/"+nodeName)
	if err != nil {
		return err
	}
	var node corev1.Node
	if err := json.Unmarshal(body, &node); err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue && len(node.Spec.Taints) == 0 {
			return nil
		}
	}
	return fmt.Errorf("the node has taints %v and conditions %v", node.Spec.Taints, node.Status.Conditions)
}

// loadFirst loads the images that are there when the command starts.
func loadFirst(ctx context.Context, dir string, images []string) error {
	path := filepath.Join(dir, "pause.tar")
	if err := packPause(path); err != nil {
		return fmt.Errorf("packing the image %s: %w", pauseImage, err)
	}
	if err := waitForContainerd(ctx); err != nil {
		return err
	}
	return importImages(ctx, append([]string{path}, images...)...)
}

// waitForContainerd waits until containerd accepts connections.
func waitForContainerd(ctx context.Context) error {
	return process.WaitUntil(ctx, func(ctx context.Context) error {
		connection, err := new(net.Dialer).DialContext(ctx, "unix", containerdSocket)
		if err != nil {
			return err
		}
		return connection.Close()
	})
}
