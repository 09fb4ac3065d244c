// Command release lists the modules in a binary of the controller: as an SBOM, as
// a table of modules and licences, or as the texts of the licences. It fails if
// a licence may not be shipped.
//
//	release -sbom build/release/controller.cdx.json BINARY
//	release -licenses build/licenses/table BINARY
//
// Go records the modules in the binary; their licences are in the module cache.
// The files depend on the binary only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

const product = "github.com/samplecrd/network-controller"

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	sbom := flags.String("sbom", "", "file to write an SBOM to, in CycloneDX's JSON format")
	table := flags.String("licenses", "", "file to write the modules and their licences to")
	texts := flags.String("texts", "", "file to write the texts of the licences to")
	version := flags.String("version", "", "version of the binary, for the SBOM")
	created := flags.Int64("created", 0, "time of the SBOM, in seconds since 1970")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("exactly one binary is required")
	}
	binary := flags.Arg(0)
	modules, err := dependencies(ctx, binary)
	if err != nil {
		return fmt.Errorf("reading %s: %w", binary, err)
	}
	for _, output := range []struct {
		file  string
		write func() ([]byte, error)
	}{
		{*table, func() ([]byte, error) { return tableOf(modules), nil }},
		{*texts, func() ([]byte, error) { return textsOf(modules), nil }},
		{*sbom, func() ([]byte, error) { return sbomOf(binary, *version, time.Unix(*created, 0).UTC(), modules) }},
	} {
		if output.file == "" {
			continue
		}
		content, err := output.write()
		if err == nil {
			err = os.WriteFile(output.file, content, 0o644)
		}
		if err != nil {
			return fmt.Errorf("writing %s: %w", output.file, err)
		}
	}
	return nil
}

// textsOf returns the texts that the licences require to be passed on with a binary.
func textsOf(modules []dependency) []byte {
	var out strings.Builder
	for _, m := range modules {
		for _, text := range m.texts {
			fmt.Fprintf(&out, "=== %s\n\n%s\n\n", m.Path, text)
		}
	}
	return []byte(out.String())
}

// tableOf returns the modules and their licences. A module has several if parts of it
// have other authors.
func tableOf(modules []dependency) []byte {
	var out strings.Builder
	for _, m := range modules {
		fmt.Fprintf(&out, "%-64s %s\n", m.Path, strings.Join(m.licenses, ", "))
	}
	return []byte(out.String())
}
