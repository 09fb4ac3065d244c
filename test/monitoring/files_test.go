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

// rulesFile is a file of rules.
type rulesFile struct {
	Groups []struct {
		Rules []rule
	}
}

type rule struct {
	Record, Alert, Expr string
	For                 string
	Labels, Annotations map[string]string
}

func readRules(t *testing.T) (all []rule) {
	t.Helper()
	var file rulesFile
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

func readYAML[T any](t *testing.T, path string) (value T) {
	t.Helper()
	if err := yaml.Unmarshal(read(t, path), &value); err != nil {
		t.Fatalf("reading %s: %v", path, err)
	}
	return value
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

func promtool(t *testing.T, args ...string) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), needed(t, "promtool"), args...).CombinedOutput()
	if err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

// TestRules runs promtool's checks and unit tests of the rules, beside which the unit
// tests expect a folder of theirs.
func TestRules(t *testing.T) {
	t.Parallel()
	path := write(t, "rules.yaml", string(rules(t)))
	promtool(t, "check", "rules", path)
	copied := filepath.Join(filepath.Dir(path), "tests")
	if err := os.CopyFS(copied, os.DirFS(filepath.Join(folder, "tests"))); err != nil {
		t.Fatal(err)
	}
	tests, err := filepath.Glob(filepath.Join(copied, "*.yaml"))
	if err != nil || len(tests) == 0 {
		t.Fatalf("there are no unit tests: %v", err)
	}
	promtool(t, append([]string{"test", "rules"}, tests...)...)
}

func write(t *testing.T, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// testsFile is a file of unit tests.
type testsFile struct {
	Tests []struct {
		AlertRuleTest []struct {
			Alertname string
			ExpAlerts []struct{} `json:"exp_alerts"`
		} `json:"alert_rule_test"`
	}
}

// alertNames returns the names of the alerts in the order of the rules.
func alertNames(t *testing.T) (names []string) {
	t.Helper()
	for _, r := range readRules(t) {
		if r.Alert != "" {
			names = append(names, r.Alert)
		}
	}
	return names
}

// Each alert has a unit test in which it fires, and one in which it does not.
func TestEveryAlertIsTested(t *testing.T) {
	fires, quiet := map[string]bool{}, map[string]bool{}
	files, err := filepath.Glob(filepath.Join(folder, "tests", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		for _, group := range readYAML[testsFile](t, path).Tests {
			for _, test := range group.AlertRuleTest {
				if len(test.ExpAlerts) > 0 {
					fires[test.Alertname] = true
				} else {
					quiet[test.Alertname] = true
				}
			}
		}
	}
	alerts := slices.Sorted(slices.Values(alertNames(t)))
	for what, have := range map[string]map[string]bool{"fire": fires, "do not fire": quiet} {
		if diff := cmp.Diff(alerts, slices.Sorted(maps.Keys(have))); diff != "" {
			t.Errorf("alerts that %s in a test (-rules +tests):\n%s", what, diff)
		}
	}
}

// TestRunbook checks that the index and the sections of the runbook are the alerts, in
// the order of the rules.
func TestRunbook(t *testing.T) {
	runbook := string(read(t, "docs/reference/alerts.md"))
	index, _, _ := strings.Cut(runbook, "\n## ")
	for _, part := range []struct{ name, text, pattern string }{
		{"index", index, `\[(Samplecrd\w+)\]`},
		{"sections", runbook, `(?m)^## (\w+)$`},
	} {
		var have []string
		for _, match := range regexp.MustCompile(part.pattern).FindAllStringSubmatch(part.text, -1) {
			have = append(have, match[1])
		}
		if diff := cmp.Diff(alertNames(t), have); diff != "" {
			t.Errorf("the %s of docs/reference/alerts.md (-rules +have):\n%s", part.name, diff)
		}
	}
}

// TestAlertsAreComplete: an alert contains its meaning, an action, and a link to its
// section in the docs.
func TestAlertsAreComplete(t *testing.T) {
	for _, r := range readRules(t) {
		if r.Alert == "" {
			continue
		}
		if r.For == "" || !strings.HasPrefix(r.Alert, "Samplecrd") || !slices.Contains([]string{"warning", "critical"}, r.Labels["severity"]) {
			t.Errorf("%s has for %q and severity %q", r.Alert, r.For, r.Labels["severity"])
		}
		names := slices.Sorted(maps.Keys(r.Annotations))
		if want := []string{"action", "description", "runbook_url", "summary"}; !slices.Equal(names, want) {
			t.Errorf("%s has annotations %v, want %v", r.Alert, names, want)
		}
		_, anchor, _ := strings.Cut(r.Annotations["runbook_url"], "/docs/reference/alerts.md#")
		if anchor != strings.ToLower(r.Alert) {
			t.Errorf("%s has runbook_url %s", r.Alert, r.Annotations["runbook_url"])
		}
	}
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

// Each panel has a title, a description, a unit and valid queries.
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
	type record struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var records []record
	for _, query := range dashboardQueries(t) {
		records = append(records, record{Record: fmt.Sprintf("panel_query_%d", len(records)), Expr: query})
	}
	text, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": records}}})
	if err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", write(t, "dashboard.yaml", string(text))) // JSON is YAML
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
