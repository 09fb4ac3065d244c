package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/samplecrd/network-controller/test/internal/kubernetes"
	"github.com/samplecrd/network-controller/test/internal/process"
)

const (
	nodeName = "node"
	// nodeAddress is an address of the loopback interface in the network namespace.
	// Pods reach it by their default route.
	nodeAddress = "172.30.255.1"
	podNetwork  = "10.244.0.0/24"
)

// furnish makes what the programs of a node need in the namespaces of this process.
func furnish(ctx context.Context) error {
	for _, step := range []func() error{
		func() error { return mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE) },
		// other namespaces don't see the mounts below
		func() error {
			return mount("proc", "/proc", "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC)
		},
		func() error { return mount("tmpfs", "/run", "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV) },
		func() error { return os.MkdirAll("/run/lock", 0o755) },
		func() error { return extend("/var/lib", "cni", "kubelet") },
		func() error { return extend("/var/log", "containers", "pods") },
		shieldKernel,
		func() error { return syscall.Sethostname([]byte(nodeName)) },
		func() error { return ip(ctx, "link", "set", "lo", "up") },
		func() error { return ip(ctx, "address", "add", nodeAddress+"/32", "dev", "lo") },
		// So pods reach the API server without kube-proxy.
		func() error { return ip(ctx, "address", "add", kubernetes.ServiceAddress+"/32", "dev", "lo") },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("furnishing the namespaces: %w", err)
		}
	}
	return nil
}

func mount(source, target, kind string, flags uintptr) error {
	if err := syscall.Mount(source, target, kind, flags, ""); err != nil {
		return fmt.Errorf("mounting %s: %w", target, err)
	}
	return nil
}

// extend gives a folder more folders, which exist only in this mount namespace. The
// other files in it stay, except for folders of these names.
func extend(folder string, more ...string) error {
	const staging = "/run/extended"
	if err := os.MkdirAll(staging, 0o755); err != nil {
		return err
	}
	if err := mount("tmpfs", staging, "tmpfs", 0); err != nil {
		return err
	}
	for _, name := range more {
		if err := os.Mkdir(filepath.Join(staging, name), 0o755); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		err := show(filepath.Join(folder, entry.Name()), filepath.Join(staging, entry.Name()), entry.Type())
		if err != nil && !errors.Is(err, os.ErrExist) && !isMissing(err) {
			return err
		}
	}
	return mount(staging, folder, "", syscall.MS_MOVE)
}

// show makes a file or a folder appear in a second place.
func show(path, second string, kind os.FileMode) error {
	switch kind {
	case os.ModeDir:
		if err := os.Mkdir(second, 0o755); err != nil {
			return err
		}
	case os.ModeSymlink:
		target, err := os.Readlink(path)
		if err != nil {
			return err
		}
		return os.Symlink(target, second)
	default:
		file, err := os.OpenFile(second, os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		if err := file.Close(); err != nil {
			return err
		}
	}
	return mount(path, second, "", syscall.MS_BIND|syscall.MS_REC)
}

// shieldKernel mounts files over those settings of the kernel that kubelet changes,
// because they apply to the whole machine.
func shieldKernel() error {
	for _, name := range []string{
		"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
		"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
	} {
		path := filepath.Join("/proc/sys", name)
		value, err := os.ReadFile(path)
		if isMissing(err) {
			continue
		}
		file := filepath.Join("/run/sysctl", name)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, value, 0o600)); err != nil {
			return err
		}
		if err := mount(file, path, "", syscall.MS_BIND); err != nil {
			return err
		}
	}
	return nil
}

// ip runs the command ip.
func ip(ctx context.Context, args ...string) error {
	if output, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("running ip %s: %w\n%s", strings.Join(args, " "), err, process.LastLines(output))
	}
	return nil
}

// isMissing reports whether an error is about a file that does not exist.
func isMissing(err error) bool {
	return errors.Is(err, os.ErrNotExist)
}
