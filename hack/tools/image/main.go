// Command image packs the controller's binary into a container image, without a
// container engine. containerd, Docker, podman and kind import the archive. The file
// depends only on the binary, the version, the revision and the time.
//
//	image -o build/image.tar -image ghcr.io/samplecrd/network-controller:v1.2.3 \
//	    -version v1.2.3 -revision 0123abc linux/amd64 build/image/linux-amd64/samplecrd-controller
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
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
	if *path == "" || flags.NArg() != 2 {
		return errors.New("-o FILE, a platform and a binary are required")
	}
	tag, err := name.NewTag(*reference, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("reading -image: %w", err)
	}
	platform, err := v1.ParsePlatform(flags.Arg(0))
	if err != nil {
		return fmt.Errorf("reading the platform: %w", err)
	}
	image, err := newImage(*platform, flags.Arg(1), release{version: *version, revision: *revision, created: time.Unix(*created, 0).UTC()})
	if err != nil {
		return err
	}
	if err := tarball.WriteToFile(*path, tag, image); err != nil {
		return fmt.Errorf("writing %s: %w", *path, err)
	}
	_, err = fmt.Fprintf(out, "%s\n  image  %s\n", *path, tag.Name())
	return err
}
