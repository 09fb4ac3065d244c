package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

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

// The image has the configuration that the manifests rely on, and one file. The archive
// depends on the binary and the release only.
func TestImage(t *testing.T) {
	first := packed(t, "linux/arm64", writeBinary(t))
	if second := packed(t, "linux/arm64", writeBinary(t)); !bytes.Equal(first, second) {
		t.Error("the second archive of the same binary differs from the first")
	}
	tag, err := name.NewTag(testImage)
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.Image(func() (io.ReadCloser, error) { // as a Docker engine reads it
		return io.NopCloser(bytes.NewReader(first)), nil
	}, &tag)
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
	got, version := configured.Config, configured.Config.Labels["org.opencontainers.image.version"]
	if got.User != "65532:65532" || !slices.Equal(got.Entrypoint, []string{"/samplecrd-controller"}) || version != "v1.2.3" {
		t.Errorf("the configuration is %+v", got)
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
	if header.Name != program || header.Mode != 0o555 || header.Uid != 0 || header.Gid != 0 || header.ModTime.Unix() != 1700000000 {
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
	first := packed(t, "linux/amd64", amd64, "linux/arm64", arm64)
	if second := packed(t, "linux/amd64", amd64, "linux/arm64", arm64); !bytes.Equal(first, second) {
		t.Error("the second archive of the same binaries differs from the first")
	}
	index := extracted(t, first)
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
	found, err := partial.FindImages(extracted(t, packed(t, "-manifests", manifest)), match.MediaTypes(string(types.OCIManifestSchema1)))
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

// packed runs the program, and returns the archive.
func packed(t *testing.T, args ...string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "archive.tar")
	all := append([]string{"-o", out, "-image", testImage, "-version", "v1.2.3", "-revision", "0123abc", "-created", "1700000000"}, args...)
	if err := run(all, t.Output()); err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

// extracted returns the index of the layout in an archive.
func extracted(t *testing.T, archive []byte) v1.ImageIndex {
	t.Helper()
	folder := t.TempDir()
	command := exec.CommandContext(t.Context(), "tar", "-x", "-C", folder)
	command.Stdin = bytes.NewReader(archive)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, output)
	}
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	return index
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
