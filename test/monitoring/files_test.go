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
)

type rule struct {
	Record, Alert, Expr, For string
	Labels, Annotations      map[string]string
}

func readRules(t *testing.T) (all []rule) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal([]byte(rules(t)), &file); err != nil {
		t.Fatalf("reading the rules: %v", err)
	}
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// rules returns what the command in the README writes to rules.yaml.
func rules(t *testing.T) string {
	t.Helper()
	readme := read(t, filepath.Join(folder, "README.md"))
	command, _, _ := strings.Cut(regexp.MustCompile(`(?m)^ *sed .*$`).FindString(readme), ">")
	output, err := exec.CommandContext(t.Context(), "sh", "-c", command).Output()
	if err != nil || len(output) == 0 {
		t.Fatalf("the command in the README, %s, prints %q: %v", command, output, err)
	}
	return string(output)
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestRules runs promtool's checks and unit tests of the rules, beside which the unit
// tests expect a folder of theirs.
func TestRules(t *testing.T) {
	t.Parallel()
	program, path := needed(t, "promtool"), write(t, "rules.yaml", rules(t))
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

// Each alert has a meaning, an action, a link to its section of the runbook, a unit test in
// which it fires, and one in which it does not. The runbook has them in the order of the rules.
func TestAlerts(t *testing.T) {
	var names []string
	for _, r := range readRules(t) {
		if r.Alert == "" {
			continue
		}
		names = append(names, r.Alert)
		_, anchor, _ := strings.Cut(r.Annotations["runbook_url"], "/docs/reference/alerts.md#")
		isRight := r.For != "" && slices.Contains([]string{"warning", "critical"}, r.Labels["severity"]) &&
			anchor == strings.ToLower(r.Alert)
		keys := fmt.Sprint(slices.Sorted(maps.Keys(r.Annotations)))
		if !isRight || keys != "[action description runbook_url summary]" {
			t.Errorf("%s has for %q, labels %v and annotations %v", r.Alert, r.For, r.Labels, r.Annotations)
		}
	}
	runbook := read(t, "docs/reference/alerts.md")
	var tests strings.Builder
	files, _ := filepath.Glob(filepath.Join(folder, "tests", "*.yaml"))
	for _, file := range files {
		tests.WriteString(read(t, file))
	}
	index, _, _ := strings.Cut(runbook, "\n## ")
	sorted := slices.Sorted(slices.Values(names))
	fires := slices.Sorted(slices.Values(found(tests.String(), `alertname: (\w+)\n *exp_alerts:\n`)))
	quiet := slices.Sorted(slices.Values(found(tests.String(), `alertname: (\w+),? *\n? *exp_alerts: \[\]`)))
	for what, alerts := range map[string][2][]string{
		"in the index of the runbook":    {names, found(index, `\[(Samplecrd\w+)\]`)},
		"in the sections of the runbook": {names, found(runbook, `(?m)^## (\w+)$`)},
		"that fire in a test":            {sorted, slices.Compact(fires)},
		"that do not fire in a test":     {sorted, slices.Compact(quiet)},
	} {
		if diff := cmp.Diff(alerts[0], alerts[1]); diff != "" {
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

// dashboardQueries returns the expressions of the dashboard by the titles of their panels,
// with its variables replaced. Each panel has a title, a description, a unit and queries.
func dashboardQueries(t *testing.T) map[string]string {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title, Description, Type string
			FieldConfig              struct{ Defaults struct{ Unit string } }
			Targets                  []struct{ Expr string }
		}
		Annotations struct {
			List []struct{ Target struct{ Expr string } }
		}
	}
	if err := json.Unmarshal([]byte(read(t, filepath.Join(folder, "dashboard.json"))), &dashboard); err != nil {
		t.Fatal(err)
	}
	queries := map[string]string{}
	add := func(name, query string) {
		variables := strings.NewReplacer("$namespace", ".*", "$__rate_interval", "5m", "$__range", "1h")
		query = variables.Replace(query)
		isSelected := strings.Count(query, "{") == strings.Count(query, `namespace=~".*`)
		if queries[name] != "" || query == "" || strings.Contains(query, "$") || !isSelected {
			t.Errorf("%s has the queries %q and %q", name, queries[name], query)
		}
		queries[name] = query
	}
	for _, panel := range dashboard.Panels {
		if panel.Title == "" || panel.Description == "" || panel.FieldConfig.Defaults.Unit == "" || len(panel.Targets) == 0 {
			t.Errorf("the panel lacks something: %+v", panel)
		}
		for i, target := range panel.Targets {
			add(fmt.Sprintf("%s %d", panel.Title, i+1), target.Expr)
		}
	}
	for i, annotation := range dashboard.Annotations.List {
		add(fmt.Sprintf("annotation %d", i+1), annotation.Target.Expr)
	}
	if n := len(dashboard.Panels); n == 0 || n > 17 {
		t.Errorf("there are %d panels", n)
	}
	return queries
}

var (
	// selector matches the name of a metric and its selector. Metrics without a selector
	// are recorded by our rules.
	selector = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)\{([^}]*)\}`)
	// others are the parts of expressions that have names, too.
	others = regexp.MustCompile(`\w+:\w+:\w+|on \(.*?\)|by \(.*?\)|\(version, go_version\)`)
	bare   = regexp.MustCompile(`\b(samplecrd|workqueue|rest_client|leader_election|process|go)_\w+`)
)

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
		if rest := bare.FindString(selector.ReplaceAllString(others.ReplaceAllString(expression, ""), "")); rest != "" {
			t.Errorf("%s has no selector in %s", rest, expression)
		}
	}
	delete(used, "ALERTS")
	return slices.Sorted(maps.Keys(used))
}
