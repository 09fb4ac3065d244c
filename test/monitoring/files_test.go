// Package monitoring tests deploy/monitoring: the rules with promtool, and rules and
// dashboard with a real Prometheus that scrapes a real controller.
package monitoring

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/internal/require"
)

// folder contains the files, in the module's root, in which the tests run.
var folder = filepath.Join("deploy", "monitoring")

// job is the name of the scrape job, by which rules and dashboard select.
const job = "samplecrd-controller"

// TestMain changes into the module's root.
func TestMain(m *testing.M) {
	root, err := controlplane.ModuleRoot()
	if err == nil {
		err = os.Chdir(root)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

type rule struct {
	Record, Alert, Expr string
	For                 string
	Labels, Annotations map[string]string
}

func readRules(t *testing.T) (all []rule) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal(rules(t), &file); err != nil {
		t.Fatalf("reading the rules: %v", err)
	}
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("there are no rules")
	}
	return all
}

// rules returns what the command in the README writes to rules.yaml.
func rules(t *testing.T) []byte {
	t.Helper()
	command, _, ok := strings.Cut(regexp.MustCompile(`(?m)^ *sed .*$`).FindString(string(read(t, filepath.Join(folder, "README.md")))), ">")
	if !ok {
		t.Fatal("the README has no command that writes the rules")
	}
	output, err := exec.CommandContext(t.Context(), "sh", "-c", command).Output()
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return output
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// needed returns the path of a program of Debian's package prometheus.
func needed(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		require.Skip(t, "%s is not installed, so THE RULES WERE NOT TESTED: apt-get install prometheus (with RUNLEVEL=1 in the environment, it starts no service)", program)
	}
	return path
}

// TestRules runs promtool's checks and unit tests of the rules, beside which the unit
// tests expect a folder of theirs.
func TestRules(t *testing.T) {
	t.Parallel()
	program, path := needed(t, "promtool"), write(t, "rules.yaml", string(rules(t)))
	copied := filepath.Join(filepath.Dir(path), "tests")
	if err := os.CopyFS(copied, os.DirFS(filepath.Join(folder, "tests"))); err != nil {
		t.Fatal(err)
	}
	const commands = `"$1" check rules "$2" && "$1" test rules "$3"/*.yaml`
	output, err := exec.CommandContext(t.Context(), "sh", "-ec", commands, "sh", program, path, copied).CombinedOutput()
	if err != nil {
		t.Errorf("promtool: %v\n%s", err, output)
	}
}

func write(t *testing.T, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Each alert has a meaning, an action, a link to its section of the runbook, a unit test in
// which it fires, and one in which it does not. The runbook has them in the order of the rules.
func TestAlerts(t *testing.T) {
	var names []string
	for _, r := range readRules(t) {
		if r.Alert == "" {
			continue
		}
		names = append(names, r.Alert)
		if r.For == "" || !slices.Contains([]string{"warning", "critical"}, r.Labels["severity"]) {
			t.Errorf("%s has for %q and severity %q", r.Alert, r.For, r.Labels["severity"])
		}
		annotations := slices.Sorted(maps.Keys(r.Annotations))
		if want := []string{"action", "description", "runbook_url", "summary"}; !slices.Equal(annotations, want) {
			t.Errorf("%s has annotations %v, want %v", r.Alert, annotations, want)
		}
		_, anchor, _ := strings.Cut(r.Annotations["runbook_url"], "/docs/reference/alerts.md#")
		if anchor != strings.ToLower(r.Alert) {
			t.Errorf("%s has runbook_url %s", r.Alert, r.Annotations["runbook_url"])
		}
	}
	runbook := string(read(t, "docs/reference/alerts.md"))
	index, _, _ := strings.Cut(runbook, "\n## ")
	fires, quiet := testedAlerts(t)
	slices.Sort(fires)
	slices.Sort(quiet)
	for what, have := range map[string][]string{
		"in the index of the runbook":    found(index, `\[(Samplecrd\w+)\]`),
		"in the sections of the runbook": found(runbook, `(?m)^## (\w+)$`),
		"that fire in a test":            slices.Compact(fires),
		"that do not fire in a test":     slices.Compact(quiet),
	} {
		want := names
		if strings.HasSuffix(what, "test") {
			want = slices.Sorted(slices.Values(names))
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("alerts %s (-rules +have):\n%s", what, diff)
		}
	}
}

// found returns what the group of a pattern matches.
func found(text, pattern string) (all []string) {
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		all = append(all, match[1])
	}
	return all
}

// testedAlerts returns the alerts of the unit tests.
func testedAlerts(t *testing.T) (fires, quiet []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "tests", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		var file struct {
			Tests []struct {
				AlertRuleTest []struct {
					Alertname string
					ExpAlerts []struct{} `json:"exp_alerts"`
				} `json:"alert_rule_test"`
			}
		}
		if err := yaml.Unmarshal(read(t, path), &file); err != nil {
			t.Fatalf("reading %s: %v", path, err)
		}
		for _, group := range file.Tests {
			for _, test := range group.AlertRuleTest {
				if len(test.ExpAlerts) > 0 {
					fires = append(fires, test.Alertname)
				} else {
					quiet = append(quiet, test.Alertname)
				}
			}
		}
	}
	return fires, quiet
}

// grafana is the part of a dashboard that the tests read.
type grafana struct {
	Panels []struct {
		Title, Description, Type string
		FieldConfig              struct {
			Defaults struct{ Unit string }
		}
		Targets []struct{ Expr string }
	}
	Annotations struct {
		List []struct{ Target struct{ Expr string } }
	}
}

func readDashboard(t *testing.T) (dashboard grafana) {
	t.Helper()
	if err := json.Unmarshal(read(t, filepath.Join(folder, "dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	return dashboard
}

// dashboardQueries returns the expressions of the dashboard with its variables
// replaced. The keys are only for these tests.
func dashboardQueries(t *testing.T) map[string]string {
	t.Helper()
	queries, dashboard := map[string]string{}, readDashboard(t)
	variables := strings.NewReplacer("$namespace", ".*", "$__rate_interval", "5m", "$__range", "1h")
	for _, panel := range dashboard.Panels {
		for i, target := range panel.Targets {
			queries[fmt.Sprintf("%s %d", panel.Title, i+1)] = variables.Replace(target.Expr)
		}
	}
	for i, annotation := range dashboard.Annotations.List {
		queries[fmt.Sprintf("annotation %d", i+1)] = variables.Replace(annotation.Target.Expr)
	}
	for name, query := range queries {
		if query == "" || strings.Contains(query, "$") || strings.Count(query, "{") != strings.Count(query, `namespace=~".*`) {
			t.Errorf("%s has the query %q", name, query)
		}
	}
	return queries
}

// Each panel has a title, a description, a unit and queries. TestScrape runs these.
func TestDashboard(t *testing.T) {
	titles := map[string]bool{}
	for _, panel := range readDashboard(t).Panels {
		if titles[panel.Title] || panel.Title == "" || panel.Description == "" || panel.FieldConfig.Defaults.Unit == "" || len(panel.Targets) == 0 {
			t.Errorf("panel %q of type %s has description %q, unit %q and %d queries", panel.Title, panel.Type, panel.Description, panel.FieldConfig.Defaults.Unit, len(panel.Targets))
		}
		titles[panel.Title] = true
	}
	if len(titles) == 0 || len(titles) > 17 {
		t.Errorf("there are %d panels", len(titles))
	}
}

// selector matches the name of a metric and its selector. Metrics without a selector
// are recorded by our rules.
var selector = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)\{([^}]*)\}`)

// usedMetrics returns the metrics in rules and dashboard.
func usedMetrics(t *testing.T) []string {
	t.Helper()
	used := map[string]bool{}
	expressions := slices.Collect(maps.Values(dashboardQueries(t)))
	for _, r := range readRules(t) {
		expressions = append(expressions, r.Expr)
	}
	for _, expression := range expressions {
		for _, match := range selector.FindAllStringSubmatch(expression, -1) {
			used[match[1]] = true
			if !strings.Contains(match[2], `job="`+job+`"`) && match[1] != "ALERTS" {
				t.Errorf("%s is not selected by its job in %s", match[1], expression)
			}
		}
		bare := regexp.MustCompile(`\b(samplecrd|workqueue|rest_client|leader_election|process|go)_\w+`)
		if rest := bare.FindString(selector.ReplaceAllString(regexp.MustCompile(`\w+:\w+:\w+|on \(.*?\)|by \(.*?\)|\(version, go_version\)`).ReplaceAllString(expression, ""), "")); rest != "" {
			t.Errorf("%s has no selector in %s", rest, expression)
		}
	}
	delete(used, "ALERTS")
	delete(used, "up")
	return slices.Sorted(maps.Keys(used))
}
