package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// program is the one file that the image holds.
const program = "samplecrd-controller"

// source is where the sources of an image are.
const source = "https://github.com/samplecrd/network-controller"

// release identifies the commit of an image.
type release struct {
	version  string
	revision string
	created  time.Time
}

// newImage makes the image of one platform: the binary at the path given, and
// nothing else.
func newImage(platform v1.Platform, path string, r release) (v1.Image, error) {
	binary, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the binary: %w", err)
	}
	layer, err := newLayer(types.OCILayer, r.created, file{program, binary, 0o555})
	if err != nil {
		return nil, fmt.Errorf("packing %s: %w", path, err)
	}
	image, err := mutate.ConfigFile(emptyImage(types.OCIConfigJSON), &v1.ConfigFile{
		Created:      v1.Time{Time: r.created},
		OS:           platform.OS,
		Architecture: platform.Architecture,
		Variant:      platform.Variant,
		Config:       config(r),
		RootFS:       v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, fmt.Errorf("configuring the image: %w", err)
	}
	return mutate.Append(image, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: r.created}, CreatedBy: "COPY " + program + " /"},
	})
}

func emptyImage(config types.MediaType) v1.Image {
	return mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), config)
}

// config returns how an engine runs the image.
func config(r release) v1.Config {
	return v1.Config{
		Entrypoint: []string{"/" + program},
		// A number: with runAsNonRoot, the kubelet rejects a name, because it
		// cannot resolve names to numbers.
		User:       "65532:65532",
		WorkingDir: "/",
		// The value that BuildKit sets in images and containerd in containers.
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Labels: map[string]string{
			"org.opencontainers.image.title":    program,
			"org.opencontainers.image.source":   source,
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.version":  r.version,
			"org.opencontainers.image.revision": r.revision,
		},
	}
}

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
	var files []file
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading a manifest: %w", err)
		}
		name := filepath.Base(path)
		files = append(files, file{strings.TrimSuffix(name, filepath.Ext(name)) + "/" + name, content, 0o644})
	}
	layer, err := newLayer(fluxContent, r.created, files...)
	if err != nil {
		return nil, fmt.Errorf("packing the manifests: %w", err)
	}
	image, err := mutate.AppendLayers(emptyImage(fluxConfig), layer)
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
