package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/samplecrd/network-controller/test/internal/programs"
)

// startTimeout is how long a node may take to start. It takes about seven seconds
// on a machine with two cores that has nothing else to do.
const startTimeout = 3 * time.Minute

// runFolderVariable is the environment variable that names the run folder.
const runFolderVariable = "NODE_RUN_FOLDER"

// manage starts a node in the namespaces of this process, runs the command with
// it, and returns its exit code. When this process ends, process 1 does, and with
// it all the others.
func manage(dir string, o order) (exitCode int, err error) {
	asked := listen()
	// Until there is a command, what asks to stop ends the start; after that it
	// is for the command.
	ctx, started := signal.NotifyContext(context.Background(), stopSignals...)
	if o.auditLog == "" {
		o.auditLog = filepath.Join(dir, "audit.log")
	}
	if o.auditLog, err = filepath.Abs(o.auditLog); err != nil {
		return exitFailed, fmt.Errorf("finding the audit log: %w", err)
	}
	err = startNode(ctx, dir, o)
	started()
	if err != nil {
		return exitFailed, fmt.Errorf("starting a node: %w", err)
	}
	return runCommand(dir, o, asked)
}

// startNode returns when the node is ready for pods.
func startNode(ctx context.Context, dir string, o order) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errTooLong)
	defer cancel()
	ctx, ended := context.WithCancelCause(ctx)
	s := &supervisor{dir: dir, ended: ended}
	if err := furnish(ctx); err != nil {
		return err
	}
	if err := errors.Join(writeCredentials(dir), writeConfiguration(dir)); err != nil {
		return err
	}
	kubernetes, components := filepath.Join(binFolder(), "kubernetes"), filepath.Join(binFolder(), "node-components")
	s.keepRunning("etcd", kubernetes, append([]string{"etcd"}, etcdArgs...)...)
	s.keepRunning("kube-apiserver", kubernetes, append([]string{"kube-apiserver"}, apiServerArgs(o.auditLog)...)...)
	s.keepRunning("containerd", "containerd", "--config=containerd.toml")

	loaded := make(chan error, 1)
	go func() { loaded <- loadFirst(ctx, dir, o.images) }()
	err := func() error {
		api, err := newAPI(dir)
		if err != nil {
			return err
		}
		if err := api.waitFor(ctx, "kube-apiserver", ready); err != nil {
			return err
		}
		s.keepRunning("kube-controller-manager", kubernetes, append([]string{"kube-controller-manager"}, controllerManagerArgs...)...)
		s.keepRunning("kube-scheduler", components, append([]string{"kube-scheduler"}, schedulerArgs...)...)
		if err := waitForContainerd(ctx); err != nil {
			return err
		}
		s.keepRunning("kubelet", components, append([]string{"kubelet"}, kubeletArgs...)...)
		if err := api.waitFor(ctx, "kube-controller-manager", hasServiceAccount); err != nil {
			return err
		}
		return api.waitFor(ctx, "kubelet", nodeIsReady)
	}()
	if err == nil {
		err = <-loaded
	}
	if err != nil {
		return s.explain(ctx, err)
	}
	return nil
}

// errTooLong says that a node was not ready in time.
var errTooLong = fmt.Errorf("it was not ready after %v", startTimeout)

// explain returns why a start failed: a program ended, or it took too long, and
// then the logs may say why.
func (s *supervisor) explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errEnded) {
		return cause
	}
	if !errors.Is(err, errTooLong) {
		return err
	}
	for _, name := range []string{"kube-apiserver", "containerd", "kubelet"} {
		err = fmt.Errorf("%w\n%s", err, s.lastWords(name))
	}
	return err
}

// loadFirst loads the images that are to be there from the beginning.
func loadFirst(ctx context.Context, dir string, images []string) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	path := filepath.Join(dir, "pause.tar")
	err = image{name: pauseImage, program: program, args: []string{pauseCommand}, user: "65535:65535"}.packTo(path)
	if err != nil {
		return err
	}
	if err := waitForContainerd(ctx); err != nil {
		return err
	}
	return importImages(ctx, append([]string{path}, images...)...)
}

// waitForContainerd waits until something can be asked of containerd.
func waitForContainerd(ctx context.Context) error {
	err := programs.Poll(ctx, pollPeriod, func(ctx context.Context) (bool, error) {
		connection, err := new(net.Dialer).DialContext(ctx, "unix", containerdSocket)
		if err != nil {
			return false, nil //nolint:nilerr // it has not come yet
		}
		return true, connection.Close()
	})
	if err != nil {
		return fmt.Errorf("waiting for containerd: %w", err)
	}
	return nil
}

// runCommand runs the command in a process group of its own, to which it passes
// signals on: once as they are, and then to kill it.
func runCommand(dir string, o order, asked <-chan os.Signal) (exitCode int, err error) {
	for name, value := range map[string]string{
		"KUBECONFIG":      filepath.Join(dir, adminName+".kubeconfig"),
		"NODE_ADDRESS":    nodeAddress,
		"NODE_AUDIT_LOG":  o.auditLog,
		runFolderVariable: dir,
	} {
		if err := os.Setenv(name, value); err != nil {
			return exitFailed, err
		}
	}
	command := exec.Command(o.command[0], o.command[1:]...) //nolint:noctx // it is asked to stop, not killed
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	// In a session without a terminal nobody can read from one.
	if info, err := os.Stdin.Stat(); err != nil || info.Mode()&os.ModeCharDevice != 0 {
		command.Stdin = nil
	}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return exitFailed, fmt.Errorf("starting the command: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	for told := false; ; told = true {
		select {
		case received := <-asked:
			number := syscall.SIGKILL
			if !told {
				number = received.(syscall.Signal)
			}
			_ = syscall.Kill(-command.Process.Pid, number) // it fails when that has ended
		case err := <-ended:
			return programs.ExitCode(command.ProcessState), programs.NotAnExit(err)
		}
	}
}
