package monitoring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/internal/process"
	"github.com/samplecrd/network-controller/test/launch"
)

// timeout limits everything that should take seconds.
const timeout = 2 * time.Minute

// stopTimeout is the time that a program gets to end before it is killed.
const stopTimeout = 10 * time.Second

// start starts a program that ends with the test.
func start(t *testing.T, program string, args ...string) *process.Process {
	t.Helper()
	p, err := process.Start(t.TempDir(), process.Program{Name: filepath.Base(program), Args: append([]string{program}, args...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Stop(stopTimeout)
		if t.Failed() {
			t.Logf("%s printed\n%s", program, p.Log())
		}
	})
	return p
}

// freeAddress returns a loopback address at which no server listens now.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := launch.FreeAddress(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// eventually waits until a check passes, and fails with its last error.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	if err := process.WaitUntil(ctx, check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// prometheus is a real Prometheus at a loopback address.
type prometheus struct{ address string }

func startPrometheus(t *testing.T, config string) prometheus {
	t.Helper()
	p := prometheus{freeAddress(t)}
	start(t, needed(t, "prometheus"), "--config.file="+write(t, "prometheus.yaml", config), "--web.listen-address="+p.address,
		"--storage.tsdb.path="+t.TempDir(), "--log.level=warn")
	return p
}

// get reads from the HTTP API.
func (p prometheus) get(ctx context.Context, path string, values url.Values, data any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+"/api/v1/"+path+"?"+values.Encode(), nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("reading from Prometheus: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("decoding the response of Prometheus (%s): %w", response.Status, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("reading %s %v from Prometheus: %s", path, values, answer.Error)
	}
	return nil
}

// sample is a series that a query returns.
type sample struct {
	Metric map[string]string
	Value  [2]any
}

func (p prometheus) query(ctx context.Context, expression string) ([]sample, error) {
	var data struct{ Result []sample }
	err := p.get(ctx, "query", url.Values{"query": {expression}}, &data)
	return data.Result, err
}

// number waits until a query returns this number of series.
func (p prometheus) number(t *testing.T, expression string, want int) (found []sample) {
	t.Helper()
	eventually(t, expression, func(ctx context.Context) (err error) {
		if found, err = p.query(ctx, expression); err == nil && len(found) != want {
			err = fmt.Errorf("found %d series, want %d: %v", len(found), want, found)
		}
		return err
	})
	return found
}

// configuration has short intervals. The second file of rules is the first one with
// alerts that fire after a second, under other names.
const configuration = `
global: {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}
rule_files: [%q, %q]
scrape_configs:
  - job_name: ` + job + `
    static_configs: [{targets: [%q, %q]}]
`

const soon = "Soon"

// hasten returns the alerts of rules with other names and a wait of a second.
func hasten(t *testing.T, rules string) string {
	t.Helper()
	_, alerts, ok := strings.Cut(rules, "\n    - name: samplecrd-controller.alerts\n")
	if !ok {
		t.Fatal("the rules have no group samplecrd-controller.alerts")
	}
	alerts = regexp.MustCompile(`\bfor: \w+`).ReplaceAllString(alerts, "for: 1s")
	alerts = regexp.MustCompile(`\balert: \w+`).ReplaceAllString(alerts, "${0}"+soon)
	return "  groups:\n    - name: soon\n" + alerts
}

// setting is a cluster, a Neutron, a leader, a standby replica, and a Prometheus.
type setting struct {
	prometheus
	cluster         *controlplane.Cluster
	neutron         *embedded.Server
	leader, standby *process.Process
	// addresses at which the two are scraped
	leaderAddress, standbyAddress string
}

func newSetting(t *testing.T) *setting {
	t.Helper()
	needed(t, "prometheus")
	s := &setting{neutron: embedded.New(embedded.Options{})}
	if err := s.neutron.Listen(""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.neutron.Close() })
	var err error
	if s.cluster, err = controlplane.Start(t.Context(), controlplane.Options{Apply: []string{"crd"}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cluster.Stop() })

	controller := buildController(t)
	startController := func() (*process.Process, string) {
		address := freeAddress(t)
		return start(t, controller, "-kubeconfig="+s.cluster.Kubeconfig(), "-neutron-endpoint="+s.neutron.URL(), "-metrics-bind-address="+address,
			"-resync-period=1s"), address
	}
	s.leader, s.leaderAddress = startController()
	eventually(t, "waiting for a leader", func(context.Context) error {
		if !strings.Contains(s.leader.Log(), "Starting workers") {
			return errors.New("the first replica does not lead")
		}
		return nil
	})
	s.standby, s.standbyAddress = startController()

	text := string(rules(t))
	config := fmt.Sprintf(configuration, write(t, "rules.yaml", text), write(t, "soon.yaml", hasten(t, text)), s.leaderAddress, s.standbyAddress)
	s.prometheus = startPrometheus(t, config)
	return s
}

func buildController(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), job)
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the controller: %v\n%s", err, output)
	}
	return path
}

// A real Prometheus scrapes two real replicas: it finds every metric of rules and
// dashboard, fires no alert for a healthy system, and fires when something breaks.
func TestScrape(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	if output, err := s.cluster.Kubectl(t.Context(), "apply", "-f", "example/example-network.yaml"); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	s.number(t, `up == 1`, 2)
	s.number(t, `samplecrd_networks{ready="True", reason="Provisioned"} == 1`, 1)

	t.Run("every metric is stored", s.everyMetricIsThere)
	t.Run("every panel shows something", s.everyPanelShowsSomething)
	t.Run("every rule can be evaluated", s.noRuleIsBroken)
	t.Run("only the leader reconciles", s.theLeaderWorks)
	t.Run("no alert on a healthy system", s.noAlert)
	t.Run("Neutron stops", s.neutronStops)
	t.Run("the leader stops", s.leaderStops)
}

func (s *setting) everyMetricIsThere(t *testing.T) {
	for _, name := range usedMetrics(t) {
		s.number(t, "count("+name+") > 0", 1)
	}
}

// emptyWhenHealthy are the queries that return nothing for a healthy system.
var emptyWhenHealthy = map[string]string{
	"Failed requests to Neutron 1": "no request fails",
	"annotation 1":                 "no alert fires",
}

func (s *setting) everyPanelShowsSomething(t *testing.T) {
	for name, query := range dashboardQueries(t) {
		if _, empty := emptyWhenHealthy[name]; empty {
			s.number(t, query, 0)
			continue
		}
		s.number(t, "count("+query+") > 0", 1)
	}
}

func (s *setting) noRuleIsBroken(t *testing.T) {
	eventually(t, "rules", func(ctx context.Context) error {
		var data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
		if err := s.get(ctx, "rules", nil, &data); err != nil {
			return err
		}
		evaluated := 0
		for _, group := range data.Groups {
			for _, rule := range group.Rules {
				if rule.Health != "ok" {
					return fmt.Errorf("%s is %s: %s", rule.Name, rule.Health, rule.LastError)
				}
				evaluated++
			}
		}
		if evaluated <= len(readRules(t)) {
			return fmt.Errorf("only %d rules are evaluated", evaluated)
		}
		return nil
	})
}

func (s *setting) theLeaderWorks(t *testing.T) {
	s.number(t, `leader_election_master_status{name="samplecrd-controller"}`, 2)
	works := s.number(t, `instance:samplecrd_working:bool`, 1)
	if works[0].Metric["instance"] != s.leaderAddress {
		t.Errorf("%s reconciles, and %s leads", works[0].Metric["instance"], s.leaderAddress)
	}
}

// noAlert waits until no alert is even pending. At the start, some are: there was no
// leader for a moment.
func (s *setting) noAlert(t *testing.T) { s.number(t, "ALERTS", 0) }

// waitForAlerts waits until each of these alerts is in a state.
func (s *setting) waitForAlerts(t *testing.T, state string, names ...string) {
	t.Helper()
	for _, name := range names {
		s.number(t, fmt.Sprintf(`count(ALERTS{alertname=%q, alertstate=%q})`, name, state), 1)
	}
}

func (s *setting) neutronStops(t *testing.T) {
	if err := s.neutron.Close(); err != nil {
		t.Fatal(err)
	}
	if output, err := s.cluster.Kubectl(t.Context(), "apply", "-f", "example/ipv6-network.yaml"); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	s.waitForAlerts(t, "firing", "SamplecrdNeutronFailing"+soon, "SamplecrdNetworksNotReady"+soon)
	s.waitForAlerts(t, "pending", "SamplecrdNeutronFailing", "SamplecrdNetworksNotReady")
	found := s.number(t, `samplecrd_networks{ready="False"} == 1`, 1)
	if found[0].Metric["reason"] != "NeutronUnavailable" {
		t.Errorf("the Network is not Ready because of %s", found[0].Metric["reason"])
	}
	if found, err := s.query(t.Context(), dashboardQueries(t)["Failed requests to Neutron 1"]); err != nil || len(found) == 0 {
		t.Errorf("the dashboard shows no failed requests: %v", err)
	}
}

func (s *setting) leaderStops(t *testing.T) {
	s.leader.Stop(stopTimeout)
	s.waitForAlerts(t, "firing", "SamplecrdInstanceDown"+soon)
	s.number(t, `instance:samplecrd_working:bool{instance="`+s.standbyAddress+`"}`, 1)
	s.number(t, `samplecrd_networks{reason="Provisioned", instance="`+s.standbyAddress+`"} == 1`, 1)
	s.standby.Stop(stopTimeout)
	s.waitForAlerts(t, "firing", "SamplecrdDown"+soon)
	s.waitForAlerts(t, "pending", "SamplecrdDown", "SamplecrdInstanceDown")
}
