// Command release says what a binary of the controller is made of: as an SBOM,
// or as a table of modules and their licences. It fails where a licence is not
// one of those that we ship.
//
//	release -sbom build/release/controller.cdx.json BINARY
//	release -licenses docs/dependencies.md BINARY
//
// The modules are those that Go has written into the binary, the licences those
// that are found in the module cache. The same binary gives the same files.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/anchore/syft/syft"
	"github.com/anchore/syft/syft/cataloging"
	"github.com/anchore/syft/syft/cataloging/pkgcataloging"
	"github.com/anchore/syft/syft/pkg/cataloger/golang"
	"github.com/anchore/syft/syft/sbom"
	"github.com/anchore/syft/syft/source"
	"github.com/anchore/syft/syft/source/filesource"
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
	bill := flags.String("sbom", "", "file to write an SBOM to, in CycloneDX's JSON")
	table := flags.String("licenses", "", "file to write the modules and their licences to, in Markdown")
	texts := flags.String("texts", "", "file to write the texts of the licences to")
	version := flags.String("version", "", "version of the binary, for the SBOM")
	created := flags.Int64("created", 0, "time that the SBOM bears, in seconds since 1970")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("say the one binary to look into")
	}
	found, err := scan(ctx, flags.Arg(0), *version)
	if err != nil {
		return fmt.Errorf("looking into %s: %w", flags.Arg(0), err)
	}
	modules, err := licenses(found)
	if err != nil {
		return fmt.Errorf("checking the licences: %w", err)
	}
	if *table != "" {
		if err := writeTable(*table, modules); err != nil {
			return fmt.Errorf("writing the table of licences: %w", err)
		}
	}
	if *texts != "" {
		if err := writeTexts(*texts, modules); err != nil {
			return fmt.Errorf("writing the texts of the licences: %w", err)
		}
	}
	if *bill != "" {
		if err := writeBill(*bill, found, *version, time.Unix(*created, 0).UTC()); err != nil {
			return fmt.Errorf("writing the SBOM: %w", err)
		}
	}
	return nil
}

// scan finds out which modules a binary is made of, and their licences.
func scan(ctx context.Context, binary, version string) (*sbom.SBOM, error) {
	file, err := filesource.New(filesource.Config{
		Path:  binary,
		Alias: source.Alias{Name: filepath.Base(binary), Version: version},
	})
	if err != nil {
		return nil, err
	}
	modules := golang.DefaultCatalogerConfig().WithSearchLocalModCacheLicenses(true)
	modules.UsePackagesLib = false // it would run Go on what lies around
	withTexts := cataloging.DefaultLicenseConfig()
	withTexts.IncludeContent = cataloging.LicenseContentIncludeAll
	return syft.CreateSBOM(ctx, file, syft.DefaultCreateSBOMConfig().
		WithCatalogerSelection(cataloging.NewSelectionRequest().WithDefaults("go-module-binary-cataloger")).
		WithPackagesConfig(pkgcataloging.DefaultConfig().WithGolangConfig(modules)).
		WithLicenseConfig(withTexts).
		WithoutFiles(). // the binary's path says where it was built
		WithTool("syft", syftVersion()))
}

func syftVersion() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "github.com/anchore/syft" {
			return module.Version
		}
	}
	return ""
}
