package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
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
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
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

// An image of two platforms is an index, from which an engine takes its own. The archive
// depends on the binaries and the release only.
func TestIndex(t *testing.T) {
	amd64, arm64 := writeBinary(t), writeBinary(t)
	first, layoutOf := packed(t, "linux/amd64", amd64, "linux/arm64", arm64)
	if second, _ := packed(t, "linux/amd64", amd64, "linux/arm64", arm64); !bytes.Equal(first, second) {
		t.Error("the second archive of the same binaries differs from the first")
	}
	index, err := layoutOf.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Errorf("the index is not valid: %v", err)
	}
	for _, platform := range []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}} {
		found, err := partial.FindImages(nested(t, index), match.Platforms(platform))
		if err != nil || len(found) != 1 {
			t.Errorf("%d images for %s: %v", len(found), platform, err)
		}
	}
}

// nested returns the index in the index of a layout.
func nested(t *testing.T, index v1.ImageIndex) v1.ImageIndex {
	t.Helper()
	inside, err := partial.FindIndexes(index, match.MediaTypes(string(types.OCIImageIndex)))
	if err != nil || len(inside) != 1 {
		t.Fatalf("%d indexes: %v", len(inside), err)
	}
	return inside[0]
}

// The bundle has each manifest in a folder of its own, with the media types of Flux.
func TestBundle(t *testing.T) {
	manifest := filepath.Join(t.TempDir(), "install.yaml")
	if err := os.WriteFile(manifest, []byte("kind: Namespace\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, layoutOf := packed(t, "-manifests", manifest)
	index, err := layoutOf.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	found, err := partial.FindImages(index, match.MediaTypes(string(types.OCIManifestSchema1)))
	if err != nil || len(found) != 1 {
		t.Fatalf("%d artifacts: %v", len(found), err)
	}
	described, err := found[0].Manifest()
	if err != nil || described.Config.MediaType != fluxConfig || described.Layers[0].MediaType != fluxContent {
		t.Fatalf("the artifact is %+v: %v", described, err)
	}
	layers, err := found[0].Layers()
	if err != nil {
		t.Fatal(err)
	}
	compressed, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	content, err := gzip.NewReader(compressed)
	if err != nil {
		t.Fatal(err)
	}
	files := tar.NewReader(content)
	header, err := files.Next()
	if err != nil || header.Name != "install/install.yaml" {
		t.Fatalf("the artifact has %+v: %v", header, err)
	}
	if text, err := io.ReadAll(files); err != nil || string(text) != "kind: Namespace\n" {
		t.Errorf("the manifest is %q: %v", text, err)
	}
}

// packed runs the program, and returns the archive, and the layout in it.
func packed(t *testing.T, args ...string) ([]byte, layout.Path) {
	t.Helper()
	folder := t.TempDir()
	out := filepath.Join(folder, "archive.tar")
	all := append([]string{"-o", out, "-image", testImage, "-version", "v1.2.3", "-revision", "0123abc", "-created", "1700000000"}, args...)
	if err := run(all, t.Output()); err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, filepath.FromSlash(header.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	extracted, err := layout.FromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	return archive, extracted
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
