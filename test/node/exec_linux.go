package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/samplecrd/network-controller/test/internal/programs"
)

// neededPrograms have to lie beside this one.
var neededPrograms = []string{"kubernetes", "kubectl", "node-components"}

// stopSignals are the signals that ask to stop.
var stopSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

// listen begins to listen for what asks this process to stop.
func listen() chan os.Signal {
	asked := make(chan os.Signal, 16)
	signal.Notify(asked, stopSignals...)
	return asked
}

// execute runs a command with a node of its own, and returns its exit code, as a
// shell would.
func execute(o order, args []string) (exitCode int, err error) {
	asked := listen()
	// For the command, which is looked up here already: it runs much later.
	if err := os.Setenv("PATH", binFolder()+":"+os.Getenv("PATH")); err != nil {
		return exitFailed, fmt.Errorf("extending PATH: %w", err)
	}
	ctx, installed := signal.NotifyContext(context.Background(), stopSignals...)
	err = prepare(ctx, o)
	installed()
	if err != nil {
		return exitFailed, err
	}
	folder, err := newRunFolder(ctx, filepath.Join(binFolder(), "..", "run"))
	if err != nil {
		return exitFailed, fmt.Errorf("making a run folder: %w", err)
	}
	exitCode, err = runKeeper(folder, args, asked)
	// The keeper has tidied up, unless it was killed.
	return exitCode, errors.Join(err, tidyUp(folder.path), folder.lock.Close())
}

// prepare looks whether a node can be started here, and installs what it takes.
func prepare(ctx context.Context, o order) error {
	if err := checkHost(); err != nil {
		return err
	}
	if _, err := exec.LookPath(o.command[0]); err != nil {
		return fmt.Errorf("finding the command: %w", err)
	}
	for _, name := range neededPrograms {
		if _, err := os.Stat(filepath.Join(binFolder(), name)); err != nil {
			return fmt.Errorf("looking for what is to run: %w; `make node` builds it", err)
		}
	}
	for _, image := range o.images {
		if _, err := os.Stat(image); err != nil {
			return fmt.Errorf("looking for the images: %w", err)
		}
	}
	return installPackages(ctx)
}

// binFolder is the folder of this program.
func binFolder() string {
	path, err := os.Executable()
	if err != nil {
		return "." // without /proc, nothing of this works
	}
	return filepath.Dir(path)
}

// self is this program, for one of its other commands. Its standard streams are
// those of this process.
func self(args ...string) *exec.Cmd {
	command := exec.Command("/proc/self/exe", args...) //nolint:noctx // it is asked to stop, not killed
	command.Args[0] = os.Args[0]
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	return command
}

// runKeeper runs a keeper, and passes on to it what asks to stop. The keeper is
// in a session of its own, so that it gets no Ctrl-C of a terminal besides.
func runKeeper(folder *runFolder, args []string, asked <-chan os.Signal) (exitCode int, err error) {
	reader, lifeline, err := os.Pipe()
	if err != nil {
		return exitFailed, fmt.Errorf("making a pipe: %w", err)
	}
	defer func() { _ = lifeline.Close() }()
	keeper := self(append([]string{keepCommand, folder.path}, args...)...)
	keeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	keeper.ExtraFiles = []*os.File{reader, folder.lock}
	err = keeper.Start()
	_ = reader.Close()
	if err != nil {
		return exitFailed, fmt.Errorf("starting the keeper of the node: %w", err)
	}
	go func() {
		for received := range asked {
			_ = keeper.Process.Signal(received) // it fails when the keeper has ended
		}
	}()
	err = keeper.Wait()
	return programs.ExitCode(keeper.ProcessState), programs.NotAnExit(err)
}
