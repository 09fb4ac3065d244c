// Command monitoring writes what is generated in deploy/monitoring: the Grafana
// dashboard, and the rules as an object of the Prometheus Operator. The tests of
// this package check that both are up to date, and hold the rules against a real
// Prometheus that scrapes a real controller.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/samplecrd/network-controller/test/controlplane"
)

// folder is where all of it lies, in the module's root.
var folder = filepath.Join("deploy", "monitoring")

// job is the name that the scrape job must have: rules and dashboard select by
// it.
const job = "samplecrd-controller"

func main() {
	if err := writeAll(); err != nil {
		fmt.Fprintln(os.Stderr, "monitoring:", err)
		os.Exit(1)
	}
}

func writeAll() error {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	files, err := generated(root)
	if err != nil {
		return err
	}
	for path, text := range files {
		if err := os.WriteFile(filepath.Join(root, path), text, 0o644); err != nil {
			return fmt.Errorf("writing what is generated: %w", err)
		}
	}
	return nil
}

// generated returns the files that this command writes, by their path in the
// module's root.
func generated(root string) (map[string][]byte, error) {
	rules, err := os.ReadFile(filepath.Join(root, folder, "rules.yaml"))
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

// prometheusRule puts the rules into an object of the Prometheus Operator, as
// they are: their comments are worth as much there.
func prometheusRule(rules []byte) []byte {
	var out bytes.Buffer
	out.WriteString(`# Code generated from deploy/monitoring/rules.yaml by go run ./test/monitoring. DO NOT EDIT.
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
