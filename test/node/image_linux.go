package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/samplecrd/network-controller/test/internal/process"
)

const (
	// pauseCommand is the command of this program that holds the namespaces of a
	// pod. It is in the image pauseImage.
	pauseCommand = "pause"
	pauseImage   = "localhost/pause:node"
)

// pause is process 1 of a pod: it waits for processes whose parents have ended.
func pause() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGINT, syscall.SIGTERM)
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 && !errors.Is(err, syscall.EINTR) {
				break
			}
		}
	}
}

// packPause writes an image of this program, which pauses, as `docker save` would.
func packPause(path string) error {
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	layer, err := archive(map[string][]byte{"node": program})
	if err != nil {
		return err
	}
	config, err := json.Marshal(object{
		"architecture": runtime.GOARCH,
		"os":           runtime.GOOS,
		"config":       object{"Entrypoint": []string{"/node", pauseCommand}, "User": "65535:65535"},
		"rootfs":       object{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]object{{"Config": "config.json", "RepoTags": []string{pauseImage},
		"Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	all, err := archive(map[string][]byte{"manifest.json": manifest, "config.json": config, "layer.tar": layer})
	if err != nil {
		return err
	}
	return os.WriteFile(path, all, 0o600)
}

// archive returns files as a tar archive.
func archive(files map[string][]byte) ([]byte, error) {
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	for name, content := range files {
		if err := writer.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
			return nil, err
		}
		if _, err := writer.Write(content); err != nil {
			return nil, err
		}
	}
	return buffer.Bytes(), writer.Close()
}

// importImages imports images into containerd, and waits until kubelet finds them.
func importImages(ctx context.Context, paths ...string) error {
	for _, path := range paths {
		if _, err := ctr(ctx, "images", "import", path); err != nil {
			return fmt.Errorf("importing the image %s: %w", path, err)
		}
	}
	// Kubelet uses a plugin of containerd, which discovers new images after a moment
	// and then sets a label on them.
	err := process.Poll(ctx, pollPeriod, func(ctx context.Context) (bool, error) {
		unlabelled, err := ctr(ctx, "images", "list", "-q", `labels."io.cri-containerd.image"!=managed`)
		return unlabelled == "", err
	})
	if err != nil {
		return fmt.Errorf("waiting until kubelet finds the images: %w", err)
	}
	return nil
}

// ctr runs the command ctr, and returns its output.
func ctr(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "ctr", append([]string{"-n", "k8s.io"}, args...)...)
	var complaints bytes.Buffer
	command.Stderr = &complaints
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("running ctr %s: %w\n%s", args[0], err, process.LastLines(complaints.Bytes()))
	}
	return strings.TrimSpace(string(output)), nil
}
