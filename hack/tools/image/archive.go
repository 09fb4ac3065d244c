package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// newIndex makes an image of several platforms.
func newIndex(images []v1.Image) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, image := range images {
		configured, err := image.ConfigFile()
		if err != nil {
			return nil, fmt.Errorf("reading the configuration of an image: %w", err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: configured.Platform()},
		})
	}
	return index, nil
}

// The media types of an OCI artifact that Flux can apply: see fluxcd.io/flux/cheatsheets/oci-artifacts.
const (
	fluxConfig  types.MediaType = "application/vnd.cncf.flux.config.v1+json"
	fluxContent types.MediaType = "application/vnd.cncf.flux.content.v1.tar+gzip"
)

// newBundle makes an OCI artifact of files. Each has a folder of its own, which is named
// after it, so that a tool can apply one of them.
func newBundle(paths []string, r release) (v1.Image, error) {
	var content bytes.Buffer
	out := tar.NewWriter(&content)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading a manifest: %w", err)
		}
		file := filepath.Base(path)
		folder := file[:len(file)-len(filepath.Ext(file))]
		if err := writeFile(out, folder+"/"+file, text, 0o644, r.created); err != nil {
			return nil, fmt.Errorf("packing %s: %w", path, err)
		}
	}
	if err := out.Close(); err != nil {
		return nil, fmt.Errorf("packing the manifests: %w", err)
	}
	compressed, err := gzipped(content.Bytes())
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), fluxConfig)
	image, err = mutate.Append(image, mutate.Addendum{
		Layer: static.NewLayer(compressed, fluxContent), MediaType: fluxContent})
	if err != nil {
		return nil, fmt.Errorf("adding the manifests: %w", err)
	}
	annotated, _ := mutate.Annotations(image, map[string]string{
		"org.opencontainers.image.source":   source,
		"org.opencontainers.image.revision": r.version + "@sha1:" + r.revision,
		"org.opencontainers.image.created":  r.created.Format(time.RFC3339),
	}).(v1.Image)
	return annotated, nil
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
	file, err := os.Create(path) //nolint:gosec // the user names the file
	if err != nil {
		return err
	}
	out := tar.NewWriter(file)
	err = filepath.WalkDir(folder, func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(at) //nolint:gosec // it is in our folder
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(folder, at)
		if err != nil {
			return err
		}
		return writeFile(out, filepath.ToSlash(relative), text, 0o644, created)
	})
	for _, end := range []func() error{out.Close, file.Close} {
		if closeErr := end(); err == nil {
			err = closeErr
		}
	}
	return err
}
