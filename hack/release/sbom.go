package main

import (
	"fmt"
	"os"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/anchore/syft/syft/format/common/cyclonedxhelpers"
	"github.com/anchore/syft/syft/sbom"
	"github.com/google/uuid"
)

// writeBill writes an SBOM that is the same for the same binary: syft would
// give it the time of day and a random number.
func writeBill(path string, found *sbom.SBOM, version string, created time.Time) (err error) {
	bill := cyclonedxhelpers.ToFormatModel(*found)
	bill.Metadata.Timestamp = created.Format(time.RFC3339)
	bill.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, fmt.Appendf(nil, "https://%s/%s", product, found.Source.ID)).URN()
	bill.Metadata.Component.BOMRef = found.Source.ID // of the content; syft's own is of the path, too
	for i := range *bill.Components {
		component := &(*bill.Components)[i]
		if component.Name == product {
			component.Version = version // Go has not written it into the binary
		}
		if component.Licenses != nil {
			known := onlyKnown(*component.Licenses)
			component.Licenses = &known
		}
	}

	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := file.Close(); err == nil {
			err = closeErr
		}
	}()
	return cyclonedx.NewBOMEncoder(file, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bill)
}

// onlyKnown leaves out the files that are no licences, which licenses has found
// to be notices, and the texts, which lie beside the SBOM.
func onlyKnown(all cyclonedx.Licenses) cyclonedx.Licenses {
	var known cyclonedx.Licenses
	for _, choice := range all {
		if choice.License == nil || choice.License.ID == "" {
			continue
		}
		choice.License.Text = nil
		known = append(known, choice)
	}
	return known
}
