// Command monitoring writes the generated files in deploy/monitoring: the Grafana
// dashboard, and the rules as an object of the Prometheus Operator. Run it in the
// module's root.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
	rules, err := os.ReadFile(filepath.Join(folder, "rules.yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading the rules: %w", err)
	}
	dashboard, err := dashboardJSON()
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		filepath.Join(folder, "dashboard.json"):                  dashboard,
		filepath.Join(folder, "operator", "prometheusrule.yaml"): prometheusRule(rules),
	}, nil
}

// prometheusRule puts the rules into an object of the Prometheus Operator, with
// their comments.
func prometheusRule(rules []byte) []byte {
	var out bytes.Buffer
	out.WriteString(`# Code generated from deploy/monitoring/rules.yaml by go run ./hack/monitoring. DO NOT EDIT.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: ` + job + `
  namespace: samplecrd-system
  labels:
    app.kubernetes.io/name: ` + job + `
spec:
`)
	for line := range strings.Lines(string(rules)) {
		if strings.TrimSpace(line) != "" {
			out.WriteString("  ")
		}
		out.WriteString(line)
	}
	return out.Bytes()
}
