package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/samplecrd/network-controller/test/internal/debian"
	"github.com/samplecrd/network-controller/test/internal/process"
	"github.com/samplecrd/network-controller/test/internal/runfolder"
)

// The names of run folders.
const (
	upPattern   = "openstack-up-*"
	execPattern = "openstack-exec-*"
	allPattern  = "openstack-*"
)

// packages must be installed; others come with them.
var packages = []string{"neutron-server", "keystone", "uwsgi-core", "uwsgi-plugin-python3"}

// up starts an OpenStack that stays when this process ends.
func up(lifetime time.Duration) error {
	ctx, cancel := signal.NotifyContext(context.Background(), process.StopSignals...)
	defer cancel()
	runs, unlock, err := prepare(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if path, _ := findUp(runs); path != "" {
		// While it ends, it has no environment.
		if env, err := readEnvironment(path); err == nil {
			logf("It is already up. Its logs are in %s.", path)
			fmt.Print(env.exports())
			return nil
		}
	}
	folder, err := runfolder.New(ctx, runs, upPattern, os.RemoveAll)
	if err != nil {
		return fmt.Errorf("making a run folder: %w", err)
	}
	if err := startDetached(ctx, folder, lifetime); err != nil {
		return errors.Join(err, folder.Remove())
	}
	env, err := readEnvironment(folder.Path)
	if err != nil {
		return err
	}
	logf("It ends after %s, or with: make openstack-down\nIts logs are in %s.", lifetime, folder.Path)
	fmt.Print(env.exports())
	return nil
}

// down stops what up started, and removes what runs of this program have left.
func down() error {
	ctx, cancel := signal.NotifyContext(context.Background(), process.StopSignals...)
	defer cancel()
	runs, unlock, err := lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	path, pid := findUp(runs)
	if path == "" {
		logf("It is not up.")
	} else if err := stopKeeper(ctx, path, pid); err != nil {
		return err
	} else {
		logf("It is down.")
	}
	return runfolder.Sweep(ctx, runs, allPattern, os.RemoveAll)
}

// execute runs a command with an OpenStack, and returns its exit code, as a shell
// does.
func execute(command []string) (exitCode int, err error) {
	if _, err := exec.LookPath(command[0]); err != nil {
		return 0, fmt.Errorf("finding the command: %w", err)
	}
	received := signalsOrOrphaned()
	ctx, started := signal.NotifyContext(context.Background(), process.StopSignals...)
	defer started()
	runs, unlock, err := prepare(ctx)
	if err != nil {
		return 0, err
	}
	unlock()
	folder, err := runfolder.New(ctx, runs, execPattern, os.RemoveAll)
	if err != nil {
		return 0, fmt.Errorf("making a run folder: %w", err)
	}
	exitCode, err = process.RunKeeper(folder.Lock, received, append([]string{keepCommand, folder.Path}, command...)...)
	// The keeper has removed the folder, unless it was killed.
	return exitCode, errors.Join(err, folder.Remove())
}

// signalsOrOrphaned returns a channel that receives the signals to stop, and one
// when the parent of this process ends. `go run` passes only Ctrl-C on.
func signalsOrOrphaned() chan os.Signal {
	received, parent := process.Signals(), os.Getppid()
	go func() {
		for range time.Tick(time.Second) {
			if os.Getppid() != parent {
				received <- syscall.SIGTERM
				return
			}
		}
	}()
	return received
}

// prepare takes the lock, and installs the packages.
func prepare(ctx context.Context) (runs string, unlock func(), err error) {
	if err := debian.Check(); err != nil {
		return "", nil, err
	}
	if runs, unlock, err = lock(ctx); err != nil {
		return "", nil, err
	}
	install := func() error { return debian.Install(ctx, packages...) }
	if root := rootFolder(runs); root != "" {
		install = func() error { return debian.Extract(ctx, os.Getenv(releaseVariable), root, packages...) }
	}
	if err := install(); err != nil {
		unlock()
		return "", nil, err
	}
	return runs, unlock, nil
}

// lock waits until no other process runs up or down, or installs packages, and
// keeps others from it until unlock is called. It returns the folder of the run
// folders.
func lock(ctx context.Context) (runs string, unlock func(), err error) {
	root, err := runfolder.ModuleRoot()
	if err != nil {
		return "", nil, err
	}
	cache := filepath.Join(root, "build", cacheName)
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", nil, err
	}
	path := filepath.Join(cache, "lock")
	file, err := runfolder.TryLock(path)
	if errors.Is(err, runfolder.ErrLocked) {
		logf("Waiting for another process that starts or stops an OpenStack.")
		file, err = runfolder.Lock(ctx, path)
	}
	if err != nil {
		return "", nil, err
	}
	return filepath.Join(root, "build", "run"), func() { _ = file.Close() }, nil
}

// findUp returns the run folder of what up started, and the process ID of its
// keeper. The folder is "" if nothing is up.
func findUp(runs string) (path string, pid int) {
	paths, _ := filepath.Glob(filepath.Join(runs, upPattern))
	for _, path := range paths {
		if pid := runfolder.Owner(path); pid != 0 {
			return path, pid
		}
	}
	return "", 0
}

// startDetached starts a keeper that stays when this process ends, and waits until
// its OpenStack is ready. The keeper owns the folder then.
func startDetached(ctx context.Context, folder *runfolder.Folder, lifetime time.Duration) error {
	keeper, err := process.Self(keepCommand, "-lifetime", lifetime.String(), folder.Path)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(folder.Path, "keeper.log"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	keeper.Stdin, keeper.Stdout, keeper.Stderr = nil, log, log
	keeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it gets no signal from a terminal
	logf("Starting Keystone and Neutron.")
	lifeline, err := process.StartTied(keeper, folder.Lock)
	if err != nil {
		return fmt.Errorf("starting the keeper: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		_ = keeper.Wait() // the reason is in its log
		close(ended)
	}()
	err = process.Poll(ctx, pollPeriod, func(context.Context) (bool, error) {
		select {
		case <-ended:
			// The keeper has removed the file.
			text, _ := io.ReadAll(io.NewSectionReader(log, 0, 1<<20))
			return false, fmt.Errorf("starting OpenStack failed:\n%s", process.LastLines(text))
		default:
			_, err := os.Stat(filepath.Join(folder.Path, environmentName))
			return err == nil, nil
		}
	})
	if err == nil {
		err = folder.SetOwner(keeper.Process.Pid)
	}
	if err == nil {
		err = lifeline.Release()
	}
	if err != nil {
		lifeline.Cut()
		<-ended
	}
	return err
}

// stopKeeper requests a keeper to end, and waits until it has. If it takes too
// long, it is killed; the kernel then kills the servers.
func stopKeeper(ctx context.Context, path string, pid int) error {
	for _, number := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := syscall.Kill(pid, number); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("ending the keeper, process %d: %w", pid, err)
		}
		waiting, cancel := context.WithTimeout(ctx, 20*time.Second)
		err := process.Poll(waiting, pollPeriod, func(context.Context) (bool, error) { return runfolder.Owner(path) == 0, nil })
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
	return fmt.Errorf("the keeper, process %d, does not end", pid)
}
