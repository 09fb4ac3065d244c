package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/samplecrd/network-controller/test/internal/process"
)

const (
	// pauseCommand is the command of this program that holds the namespaces of a
	// pod. It is in the image pauseImage.
	pauseCommand = "pause"
	pauseImage   = "localhost/pause:node"
)

// image is a container image of one program.
type image struct {
	name    string // with a host and a tag
	program string // a file; it has to be statically linked
	args    []string
	user    string // a number
}

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

// pack writes the image as `docker save` would.
func (i image) pack(w io.Writer) error {
	program, err := os.ReadFile(i.program)
	if err != nil {
		return fmt.Errorf("packing the image %s: %w", i.name, err)
	}
	entry := filepath.Base(i.program)
	layer, err := archive(file{name: entry, mode: 0o755, content: program})
	if err != nil {
		return fmt.Errorf("packing the image %s: %w", i.name, err)
	}
	config, err := json.Marshal(object{
		"architecture": runtime.GOARCH,
		"os":           runtime.GOOS,
		"config":       object{"Entrypoint": append([]string{"/" + entry}, i.args...), "User": i.user},
		"rootfs":       object{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		return fmt.Errorf("packing the image %s: %w", i.name, err)
	}
	manifest, err := json.Marshal([]object{{"Config": "config.json", "RepoTags": []string{i.name}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return fmt.Errorf("packing the image %s: %w", i.name, err)
	}
	all, err := archive(
		file{name: "manifest.json", mode: 0o644, content: manifest},
		file{name: "config.json", mode: 0o644, content: config},
		file{name: "layer.tar", mode: 0o644, content: layer})
	if err == nil {
		_, err = w.Write(all)
	}
	if err != nil {
		return fmt.Errorf("packing the image %s: %w", i.name, err)
	}
	return nil
}

// file is a file in an archive.
type file struct {
	name    string
	mode    int64
	content []byte
}

// archive returns files as a tar archive.
func archive(files ...file) ([]byte, error) {
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	for _, file := range files {
		if err := writer.WriteHeader(&tar.Header{Name: file.name, Mode: file.mode, Size: int64(len(file.content))}); err != nil {
			return nil, err
		}
		if _, err := writer.Write(file.content); err != nil {
			return nil, err
		}
	}
	return buffer.Bytes(), writer.Close()
}

// packTo packs the image into a file.
func (i image) packTo(path string) error {
	output, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("packing the image %s: %w", i.name, err)
	}
	return errors.Join(i.pack(output), output.Close())
}

// load loads more images into a node. It runs inside of the node's namespaces.
func load(paths []string) error {
	if os.Getenv(runFolderVariable) == "" {
		return errors.New("loading images: run this in the command of `node exec`")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	return importImages(ctx, paths...)
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
