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

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const (
	testImage  = "registry.example/samplecrd/network-controller:v1.2.3"
	testBinary = "not really a binary"
)

// TestImage: an image has the configuration that the manifests rely on, and one file. Those
// of several platforms are in an index. The archive depends on the binaries and the release
// only.
func TestImage(t *testing.T) {
	archive := packed(t, "linux/amd64", write(t, program, testBinary), "linux/arm64", write(t, program, testBinary))
	again := packed(t, "linux/amd64", write(t, program, testBinary), "linux/arm64", write(t, program, testBinary))
	if !bytes.Equal(archive, again) {
		t.Error("the second archive of the same binaries differs from the first")
	}
	indexes, err := partial.FindIndexes(extracted(t, archive), match.MediaTypes(string(types.OCIImageIndex)))
	if err != nil || len(indexes) != 1 {
		t.Fatalf("%d indexes: %v", len(indexes), err)
	}
	if err := validate.Index(indexes[0]); err != nil {
		t.Errorf("the index is not valid: %v", err)
	}
	platform := v1.Platform{OS: "linux", Architecture: "arm64"}
	checkImage(t, only(t, indexes[0], match.Platforms(platform)), platform)

	platform.Architecture = "amd64"
	alone := extracted(t, packed(t, "linux/amd64", write(t, program, testBinary)))
	checkImage(t, only(t, alone, match.MediaTypes(string(types.OCIManifestSchema1))), platform)
}

// only returns the only image of an index that matches.
func only(t *testing.T, index v1.ImageIndex, matcher match.Matcher) v1.Image {
	t.Helper()
	found, err := partial.FindImages(index, matcher)
	if err != nil || len(found) != 1 {
		t.Fatalf("%d images: %v", len(found), err)
	}
	return found[0]
}

func checkImage(t *testing.T, image v1.Image, platform v1.Platform) {
	t.Helper()
	configured, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	got, version := configured.Config, configured.Config.Labels["org.opencontainers.image.version"]
	if got.User != "65532:65532" || !slices.Equal(got.Entrypoint, []string{"/samplecrd-controller"}) ||
		version != "v1.2.3" || !configured.Platform().Equals(platform) {
		t.Errorf("the configuration is %+v of %s", got, configured.Platform())
	}
	files := mutate.Extract(image)
	defer files.Close() //nolint:errcheck // it only reads
	header := checkFirst(t, files, program, testBinary)
	if header.Mode != 0o555 || header.Uid != 0 || header.Gid != 0 || header.ModTime.Unix() != 1700000000 {
		t.Errorf("the binary has mode %o, of %d:%d, of %s", header.Mode, header.Uid, header.Gid, header.ModTime)
	}
	if left, err := io.ReadAll(files); err != nil || len(bytes.Trim(left, "\x00")) > 0 {
		t.Errorf("the image holds another file (%v)", err)
	}
}

// checkFirst checks name and content of the first file in a tar archive.
func checkFirst(t *testing.T, archive io.Reader, name, want string) *tar.Header {
	t.Helper()
	files := tar.NewReader(archive)
	header, err := files.Next()
	if err != nil {
		t.Fatal(err)
	}
	if content, err := io.ReadAll(files); header.Name != name || err != nil || string(content) != want {
		t.Errorf("the first file is %s with %q (%v), want %s with %q", header.Name, content, err, name, want)
	}
	return header
}

// TestBundle: the bundle has each manifest in a folder of its own, with the media types of
// Flux.
func TestBundle(t *testing.T) {
	index := extracted(t, packed(t, "-manifests", write(t, "install.yaml", "kind: Namespace\n")))
	artifact := only(t, index, match.MediaTypes(string(types.OCIManifestSchema1)))
	described, err := artifact.Manifest()
	if err != nil || described.Config.MediaType != fluxConfig || described.Layers[0].MediaType != fluxContent {
		t.Fatalf("the artifact is %+v: %v", described, err)
	}
	layers, err := artifact.Layers()
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
	checkFirst(t, content, "install/install.yaml", "kind: Namespace\n")
}

// TestBadArguments: what cannot be packed leaves no archive.
func TestBadArguments(t *testing.T) {
	binary, out := write(t, program, testBinary), filepath.Join(t.TempDir(), "image.tar")
	for name, args := range map[string][]string{
		"no binary":        {"-o", out, "-image", testImage, "linux/amd64"},
		"no tag":           {"-o", out, "-image", "registry.example/name", "linux/amd64", binary},
		"a missing binary": {"-o", out, "-image", testImage, "linux/amd64", binary + "x"},
	} {
		if err := run(args, io.Discard); err == nil {
			t.Errorf("%s: it is accepted", name)
		}
		if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: an archive was written (%v)", name, err)
		}
	}
}

// packed runs the program, and returns the archive.
func packed(t *testing.T, args ...string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "archive.tar")
	release := []string{"-o", out, "-image", testImage, "-version", "v1.2.3", "-revision", "0123abc", "-created", "1700000000"}
	if err := run(append(release, args...), t.Output()); err != nil {
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

func write(t *testing.T, name, content string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
