// Command image packs the controller's binary into a container image, without a
// container engine. containerd, Docker, podman and kind import the archive. The
// file depends only on the binaries, the version, the revision and the time.
//
//	image -o build/image.tar -image ghcr.io/samplecrd/network-controller:v1.2.3 \
//	    -version v1.2.3 -revision 0123abc linux/amd64=build/image/amd64/samplecrd-controller …
package main

import (
	"archive/tar"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "image: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	path := flags.String("o", "", "file to write the archive to")
	reference := flags.String("image", "", "name of the image, with registry and tag")
	version := flags.String("version", "", "version for the label")
	revision := flags.String("revision", "", "commit for the label")
	created := flags.Int64("created", 0, "creation time of the image and its files, in seconds since 1970")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *path == "" || flags.NArg() == 0 {
		return errors.New("-o FILE and one binary per platform are required: linux/amd64=FILE")
	}
	tag, err := name.NewTag(*reference, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("reading -image: %w", err)
	}

	r := release{version: *version, revision: *revision, created: time.Unix(*created, 0).UTC()}
	var images []platformImage
	for _, arg := range flags.Args() {
		platform, binary, found := strings.Cut(arg, "=")
		if !found {
			return fmt.Errorf("%q is not PLATFORM=FILE", arg)
		}
		p, err := v1.ParsePlatform(platform)
		if err != nil {
			return fmt.Errorf("reading the platform of %q: %w", arg, err)
		}
		image, err := newImage(*p, binary, r)
		if err != nil {
			return err
		}
		images = append(images, platformImage{platform: *p, image: image})
	}
	digest, err := writeArchive(*path, tag, images, r.created)
	if err != nil {
		return fmt.Errorf("writing %s: %w", *path, err)
	}
	return describe(out, *path, tag, digest, images)
}

// describe prints the contents of the archive.
func describe(out io.Writer, path string, tag name.Tag, digest v1.Hash, images []platformImage) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s: %.1f MB\n  image   %s\n  digest  %s\n", path, megabytes(info.Size()), tag.Name(), digest)
	if err != nil {
		return err
	}
	for _, i := range images {
		if err := describeFiles(out, i); err != nil {
			return fmt.Errorf("reading the files of %s: %w", i.platform, err)
		}
	}
	return nil
}

func describeFiles(out io.Writer, i platformImage) error {
	files := mutate.Extract(i.image)
	defer files.Close() //nolint:errcheck // it only reads
	for r := tar.NewReader(files); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "  %-12s %s %d:%d %.1f MB /%s\n", i.platform, header.FileInfo().Mode(), header.Uid, header.Gid, megabytes(header.Size), header.Name)
		if err != nil {
			return err
		}
	}
}

func megabytes(bytes int64) float64 { return float64(bytes) / 1e6 }
