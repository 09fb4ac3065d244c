package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// sbomOf returns the SBOM of a binary, in CycloneDX's JSON format. It is
// identified by the hash of the binary.
func sbomOf(binary, version string, created time.Time, modules []dependency) ([]byte, error) {
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	hash := fmt.Sprintf("%x", sha256.Sum256(content))
	controller := component(cyclonedx.ComponentTypeApplication, product, version)
	controller.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hash}}

	var components []cyclonedx.Component
	var references []string
	for _, m := range modules {
		c := component(cyclonedx.ComponentTypeLibrary, m.Path, m.Version.Version)
		var licenses cyclonedx.Licenses
		for _, id := range m.licenses {
			licenses = append(licenses, cyclonedx.LicenseChoice{License: &cyclonedx.License{ID: id}})
		}
		c.Licenses = &licenses
		if m.sum != "" {
			c.Properties = &[]cyclonedx.Property{{Name: "go.sum", Value: m.sum}}
		}
		components = append(components, c)
		references = append(references, c.BOMRef)
	}

	bom := cyclonedx.NewBOM()
	bom.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, fmt.Appendf(nil, "https://%s/%s", product, hash)).URN()
	bom.Metadata = &cyclonedx.Metadata{Timestamp: created.Format(time.RFC3339), Component: &controller}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: controller.BOMRef, Dependencies: &references}}
	var out bytes.Buffer
	err = cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return out.Bytes(), err
}

func component(kind cyclonedx.ComponentType, path, version string) cyclonedx.Component {
	purl := "pkg:golang/" + path + "@" + url.QueryEscape(version)
	return cyclonedx.Component{Type: kind, BOMRef: purl, Name: path, Version: version, PackageURL: purl}
}
