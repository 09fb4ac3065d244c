// Command image packs the controller's binaries into a container image, without a container
// engine, or with -manifests manifests into an OCI artifact. The file is an archive in the
// OCI image layout, which containerd, kind, podman, skopeo and Docker 25 read. It depends
// only on what is packed, the version, the revision and the time.
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
	"slices"
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
	manifests := flags.Bool("manifests", false, "pack the manifests given")
	created := flags.Int64("created", 0, "creation time of the image and its files, in seconds since 1970")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *path == "" || flags.NArg() == 0 || !*manifests && flags.NArg()%2 != 0 {
		return errors.New("-o FILE and pairs of a platform and a binary are required, or -manifests and files")
	}
	tag, err := name.NewTag(*reference, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("reading -image: %w", err)
	}
	of := release{version: *version, revision: *revision, created: time.Unix(*created, 0).UTC()}
	content, err := pack(*manifests, flags.Args(), of)
	if err == nil {
		err = writeArchive(*path, tag, content, of.created)
	}
	if err != nil {
		return fmt.Errorf("making %s: %w", *path, err)
	}
	_, err = fmt.Fprintf(out, "%s\n  image  %s\n", *path, tag.Name())
	return err
}

// pack packs manifests, or pairs of a platform and a binary: several of them into an index,
// from which an engine takes its own.
func pack(manifests bool, files []string, of release) (mutate.Appendable, error) {
	if manifests {
		return newBundle(files, of)
	}
	var images []v1.Image
	for pair := range slices.Chunk(files, 2) {
		platform, err := v1.ParsePlatform(pair[0])
		if err != nil {
			return nil, fmt.Errorf("reading the platform: %w", err)
		}
		image, err := newImage(*platform, pair[1], of)
		if err != nil {
			return nil, err
		}
		images = append(images, image)
	}
	if len(images) == 1 {
		return images[0], nil
	}
	return newIndex(images)
}
