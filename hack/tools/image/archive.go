package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing/fstest"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// platformImage is the image of one platform.
type platformImage struct {
	platform v1.Platform
	image    v1.Image
}

// writeArchive writes images to one tar file with an OCI image layout, which
// containerd, podman and kind read. With a single image, the file also has the
// form of `docker save`, so that a Docker engine of any age can load it.
// writeArchive returns the digest that identifies the image in a cluster.
func writeArchive(path string, tag name.Tag, images []platformImage, modified time.Time) (v1.Hash, error) {
	folder, err := os.MkdirTemp(filepath.Dir(path), "image-")
	if err != nil {
		return v1.Hash{}, fmt.Errorf("making a folder for the layout: %w", err)
	}
	defer os.RemoveAll(folder) //nolint:errcheck // it is in the build folder, which make clean removes

	digest, err := writeLayout(folder, tag, images)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("writing the layout: %w", err)
	}
	if len(images) == 1 {
		if err := writeDockerManifest(folder, tag, images[0].image); err != nil {
			return v1.Hash{}, fmt.Errorf("writing manifest.json: %w", err)
		}
	}
	if err := packFolder(path, folder, modified); err != nil {
		return v1.Hash{}, fmt.Errorf("packing the layout: %w", err)
	}
	return digest, nil
}

func writeLayout(folder string, tag name.Tag, images []platformImage) (v1.Hash, error) {
	root, err := layout.Write(folder, empty.Index)
	if err != nil {
		return v1.Hash{}, err
	}
	named := layout.WithAnnotations(map[string]string{
		"io.containerd.image.name":          tag.Name(),
		"org.opencontainers.image.ref.name": tag.TagStr(),
	})
	if len(images) == 1 {
		if err := root.AppendImage(images[0].image, named, layout.WithPlatform(images[0].platform)); err != nil {
			return v1.Hash{}, err
		}
		return images[0].image.Digest()
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, i := range images {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: i.image, Descriptor: v1.Descriptor{Platform: &i.platform}})
	}
	if err := root.AppendIndex(index, named); err != nil {
		return v1.Hash{}, err
	}
	return index.Digest()
}

// writeDockerManifest adds the manifest that a Docker engine without containerd's
// image store reads. It refers to the blobs of the layout.
func writeDockerManifest(folder string, tag name.Tag, image v1.Image) error {
	manifest, err := image.Manifest()
	if err != nil {
		return err
	}
	blob := func(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }
	descriptor := tarball.Descriptor{Config: blob(manifest.Config.Digest), RepoTags: []string{tag.Name()}}
	for _, l := range manifest.Layers {
		descriptor.Layers = append(descriptor.Layers, blob(l.Digest))
	}
	content, err := json.Marshal(tarball.Manifest{descriptor})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "manifest.json"), content, 0o600)
}

// packFolder writes the files of a folder to a tar file.
func packFolder(path, folder string, modified time.Time) error {
	files := fstest.MapFS{}
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			files[name] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
			return nil
		}
		content, err := os.ReadFile(filepath.Join(folder, name))
		files[name] = &fstest.MapFile{Data: content, Mode: 0o444}
		return err
	})
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := writeTar(&out, files, modified); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o644)
}
