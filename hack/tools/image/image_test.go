package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const testImage = "registry.example/samplecrd/network-controller:v1.2.3"

var testRelease = release{version: "v1.2.3", revision: "0123abc", created: time.Unix(1700000000, 0).UTC()}

// The image has the configuration that the manifests rely on, and one file. The archive
// depends on the binary and the release only.
func TestImage(t *testing.T) {
	path := pack(t)
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := os.ReadFile(pack(t)); err != nil || !bytes.Equal(first, second) {
		t.Errorf("the second archive of the same binary differs from the first (%v)", err)
	}
	tag, err := name.NewTag(testImage)
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(path, &tag) // as a Docker engine reads it
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(image); err != nil {
		t.Errorf("the image is not valid: %v", err)
	}

	configured, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{
		Entrypoint: []string{"/samplecrd-controller"},
		User:       "65532:65532",
		WorkingDir: "/",
		Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "samplecrd-controller",
			"org.opencontainers.image.source":   "https://github.com/samplecrd/network-controller",
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.version":  "v1.2.3",
			"org.opencontainers.image.revision": "0123abc",
		},
	}
	if diff := cmp.Diff(want, configured.Config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if platform := configured.Platform().String(); platform != "linux/arm64" {
		t.Errorf("the image is for %s, want linux/arm64", platform)
	}

	files := mutate.Extract(image)
	defer files.Close() //nolint:errcheck // it only reads
	r := tar.NewReader(files)
	header, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	if header.Name != program || header.Mode != 0o555 || header.Uid != 0 || header.Gid != 0 || !header.ModTime.Equal(testRelease.created) {
		t.Errorf("the image holds %s, mode %o, of %d:%d, of %s", header.Name, header.Mode, header.Uid, header.Gid, header.ModTime)
	}
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if string(content) != testBinary {
		t.Errorf("the binary in the image is %q, want %q", content, testBinary)
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("the image holds another file (%v)", err)
	}
}

func TestBadArguments(t *testing.T) {
	binary := writeBinary(t)
	out := filepath.Join(t.TempDir(), "image.tar")
	for name, args := range map[string][]string{
		"no binary":        {"-o", out, "-image", testImage, "linux/amd64"},
		"no output":        {"-image", testImage, "linux/amd64", binary},
		"no tag":           {"-o", out, "-image", "registry.example/name", "linux/amd64", binary},
		"a missing binary": {"-o", out, "-image", testImage, "linux/amd64", binary + "x"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(args, io.Discard); err == nil {
				t.Error("they are accepted")
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("an archive was written")
			}
		})
	}
}

const testBinary = "not really a binary"

func writeBinary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), program)
	if err := os.WriteFile(path, []byte(testBinary), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// pack runs the program, and returns the path of the archive.
func pack(t *testing.T) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "image.tar")
	args := []string{"-o", out, "-image", testImage, "-version", testRelease.version, "-revision", testRelease.revision, "-created", "1700000000"}
	if err := run(append(args, "linux/arm64", writeBinary(t)), t.Output()); err != nil {
		t.Fatal(err)
	}
	return out
}
