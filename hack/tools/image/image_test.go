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
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const testImage = "registry.example/samplecrd/network-controller:v1.2.3"

var testRelease = release{version: "v1.2.3", revision: "0123abc", created: time.Unix(1700000000, 0).UTC()}

// The archive depends on the binary and the release only.
func TestArchiveIsReproducible(t *testing.T) {
	var archives [][]byte
	for range 2 {
		archives = append(archives, pack(t, "linux/amd64"))
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("the second archive of the same binary differs from the first")
	}
}

// The image has the configuration that the manifests rely on, and one file.
func TestImage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image.tar")
	if err := os.WriteFile(path, pack(t, "linux/arm64"), 0o600); err != nil {
		t.Fatal(err)
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

// The layout that containerd, podman and kind read.
func TestLayoutHoldsEachPlatform(t *testing.T) {
	folder := t.TempDir()
	unpack(t, pack(t, "linux/amd64", "linux/arm64"), folder)
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Errorf("the layout is not valid: %v", err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 {
		t.Fatalf("the layout has %d images, want one", len(manifest.Manifests))
	}
	if got := manifest.Manifests[0].Annotations["io.containerd.image.name"]; got != testImage {
		t.Errorf("containerd would call the image %q, want %q", got, testImage)
	}
	image, err := index.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	platforms, err := image.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range platforms.Manifests {
		got = append(got, m.Platform.String())
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, got); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}

func TestBadArguments(t *testing.T) {
	binary := writeBinary(t)
	out := filepath.Join(t.TempDir(), "image.tar")
	for name, args := range map[string][]string{
		"no binary":        {"-o", out, "-image", testImage},
		"no output":        {"-image", testImage, "linux/amd64=" + binary},
		"no tag":           {"-o", out, "-image", "registry.example/name", "linux/amd64=" + binary},
		"no platform":      {"-o", out, "-image", testImage, binary},
		"a missing binary": {"-o", out, "-image", testImage, "linux/amd64=" + binary + "x"},
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

// pack runs the program in a new folder, and returns what it writes.
func pack(t *testing.T, platforms ...string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "image.tar")
	args := []string{"-o", out, "-image", testImage, "-version", testRelease.version, "-revision", testRelease.revision, "-created", "1700000000"}
	for _, platform := range platforms {
		args = append(args, platform+"="+writeBinary(t))
	}
	if err := run(args, t.Output()); err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

func unpack(t *testing.T, archive []byte, folder string) {
	t.Helper()
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.FileInfo().IsDir() {
			continue
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, filepath.FromSlash(header.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
