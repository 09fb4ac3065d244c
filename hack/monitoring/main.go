// Command monitoring writes the Grafana dashboard in deploy/monitoring. Run it in the
// module's root.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// folder contains the files, in the module's root.
var folder = filepath.Join("deploy", "monitoring")

// job is the name that the scrape job must have: rules and dashboard select by it.
const job = "samplecrd-controller"

func main() {
	files, err := generated()
	for path, text := range files {
		if err == nil {
			err = os.WriteFile(path, text, 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "monitoring:", err)
		os.Exit(1)
	}
}

// generated returns the files that this command writes, by their path.
func generated() (map[string][]byte, error) {
	dashboard, err := dashboardJSON()
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		filepath.Join(folder, "dashboard.json"): dashboard,
	}, nil
}
