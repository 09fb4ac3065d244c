package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
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
	var content bytes.Buffer
	if err := writeTar(&content, binary, r.created); err != nil {
		return nil, fmt.Errorf("packing %s: %w", path, err)
	}
	compressed, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("compressing %s: %w", path, err)
	}

	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.ConfigFile(image, &v1.ConfigFile{
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
	image, err = mutate.Append(image, mutate.Addendum{
		Layer:   compressed,
		History: v1.History{Created: v1.Time{Time: r.created}, CreatedBy: "COPY " + program + " /"},
	})
	if err != nil {
		return nil, fmt.Errorf("adding the layer: %w", err)
	}
	return image, nil
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

// writeTar writes the binary to a tar file that does not depend on the user, the folder or
// the umask of the build.
func writeTar(w io.Writer, binary []byte, modified time.Time) error {
	out := tar.NewWriter(w)
	if err := writeFile(out, program, binary, 0o555, modified); err != nil {
		return err
	}
	return out.Close()
}

func writeFile(out *tar.Writer, name string, content []byte, mode int64, modified time.Time) error {
	header := tar.Header{Name: name, Mode: mode, Size: int64(len(content)), ModTime: modified}
	if err := out.WriteHeader(&header); err != nil {
		return err
	}
	_, err := out.Write(content)
	return err
}

// gzipped returns compressed bytes, without a time.
func gzipped(content []byte) ([]byte, error) {
	var compressed bytes.Buffer
	out := gzip.NewWriter(&compressed)
	if _, err := out.Write(content); err != nil {
		return nil, err
	}
	err := out.Close()
	return compressed.Bytes(), err
}
