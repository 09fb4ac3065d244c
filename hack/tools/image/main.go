// Command image packs the controller's binary into a container image, without a
// container engine. containerd, Docker, podman and kind import the archive. The
// file depends only on the binaries, the version, the revision and the time.
//
//	image -o build/image.tar -image ghcr.io/samplecrd/network-controller:v1.2.3 \
//	    -version v1.2.3 -revision 0123abc linux/amd64=build/image/amd64/samplecrd-controller …
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
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
	_, err = fmt.Fprintf(out, "%s\n  image   %s\n  digest  %s\n", *path, tag.Name(), digest)
	return err
}
