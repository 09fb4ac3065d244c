package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// file is a file in an archive.
type file struct {
	name    string
	content []byte
	mode    int64
}

// archive returns files as a tar archive that does not depend on the user, the folder or the
// umask of the build.
func archive(modified time.Time, files ...file) ([]byte, error) {
	var content bytes.Buffer
	out := tar.NewWriter(&content)
	for _, f := range files {
		header := tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: modified}
		if err := out.WriteHeader(&header); err != nil {
			return nil, err
		}
		if _, err := out.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := out.Close()
	return content.Bytes(), err
}

func newLayer(kind types.MediaType, modified time.Time, files ...file) (v1.Layer, error) {
	content, err := archive(modified, files...)
	if err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(kind))
}

// writeArchive writes an archive in the OCI image layout, which skopeo, crane and containerd
// read. It does not depend on the file system.
func writeArchive(path string, tag name.Tag, content mutate.Appendable, created time.Time) error {
	folder, err := os.MkdirTemp(filepath.Dir(path), "layout-")
	if err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	top := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: content, Descriptor: v1.Descriptor{
		Annotations: map[string]string{
			"org.opencontainers.image.ref.name": tag.TagStr(),
			"io.containerd.image.name":          tag.Name(),
		},
	}})
	if _, err := layout.Write(folder, top); err != nil {
		return fmt.Errorf("writing an image layout: %w", err)
	}
	var files []file
	in := os.DirFS(folder)
	err = fs.WalkDir(in, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(in, name)
		files = append(files, file{name, content, 0o644})
		return err
	})
	if err != nil {
		return fmt.Errorf("reading an image layout: %w", err)
	}
	packed, err := archive(created, files...)
	if err != nil {
		return fmt.Errorf("packing an image layout: %w", err)
	}
	return os.WriteFile(path, packed, 0o644)
}
