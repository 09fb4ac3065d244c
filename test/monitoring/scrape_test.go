// Package monitoring tests deploy/monitoring: the rules with promtool, and rules and
// dashboard with a real Prometheus that scrapes a real controller.
package monitoring

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/internal/program"
	"github.com/samplecrd/network-controller/test/internal/require"
	"github.com/samplecrd/network-controller/test/running"
)

const (
	// job is the name of the scrape job, by which rules and dashboard select.
	job = "samplecrd-controller"
	// inNamespace is the environment variable of this test binary in a private network
	// namespace. It has an address other than loopback: there, metrics need a token.
	inNamespace = "MONITORING_TEST_IN_NAMESPACE"
	podAddress  = "192.0.2.1"
	// stopTimeout is the time that a replica gets to end before it is killed.
	stopTimeout = 10 * time.Second
)

var (
	// folder contains the files, in the module's root, in which the tests run.
	folder = filepath.Join("deploy", "monitoring")

	builtProgram string
)

// TestMain runs the tests in a network namespace, if it can make one.
func TestMain(m *testing.M) {
	const prepare = "ip link set lo up && ip addr add " + podAddress + "/32 dev lo"
	unshare, err := exec.LookPath("unshare")
	if err == nil && os.Getenv(inNamespace) == "" && exec.Command(unshare, "--net", "sh", "-c", prepare).Run() == nil {
		args := append([]string{"unshare", "--net", "sh", "-c", prepare + ` && exec "$@"`, "sh"}, os.Args...)
		err = syscall.Exec(unshare, args, append(os.Environ(), inNamespace+"=1"))
		panic(err)
	}
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(program.RunTests(m, &builtProgram))
}

// needed returns the path of a program of Debian's package prometheus.
func needed(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		require.Skip(t, "%s is not installed, so THE RULES WERE NOT TESTED: "+
			"apt-get install prometheus (with RUNLEVEL=1 in the environment, it starts no service)", program)
	}
	return path
}

func write(t *testing.T, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// setting is a Kubernetes, a Neutron, a leader, a standby replica, and a Prometheus.
type setting struct {
	running.Kubectl
	neutron         *embedded.Server
	leader, standby *running.Program
}

// The addresses of the replicas and of Prometheus.
const (
	leaderAddress     = podAddress + ":8443"
	standbyAddress    = podAddress + ":8444"
	prometheusAddress = "127.0.0.1:9090" // in the namespace
)

func newSetting(t *testing.T) *setting {
	t.Helper()
	prometheus := needed(t, "prometheus")
	if os.Getenv(inNamespace) == "" {
		require.Skip(t, "no network namespace: that needs Linux, root, unshare and ip")
	}
	cluster := controlplane.StartForTest(t, controlplane.Options{Apply: []string{"crd"}, ControllerManager: true})
	s := &setting{Kubectl: running.Kubectl{T: t, Cluster: cluster}, neutron: embedded.New(embedded.Options{})}
	if err := s.neutron.Listen(""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.neutron.Close() })
	s.Do("apply", "-k", "deploy/base")
	s.Do("apply", "-k", filepath.Join(folder, "reader"))
	kubeconfig, err := cluster.KubeconfigFor(t.Context(), "samplecrd-system", "samplecrd-controller")
	if err != nil {
		t.Fatal(err)
	}
	replica := func(address string) *running.Program {
		return running.Start(t, nil, builtProgram, "-kubeconfig="+kubeconfig, "-neutron-endpoint="+s.neutron.URL(),
			"-metrics-bind-address="+address, "-resync-period=1s")
	}
	s.leader = replica(leaderAddress)
	s.leader.WaitFor("Starting workers")
	s.standby = replica(standbyAddress)
	running.Start(t, nil, prometheus, "--config.file="+write(t, "prometheus.yaml", s.configuration()),
		"--web.listen-address="+prometheusAddress, "--storage.tsdb.path="+t.TempDir(), "--log.level=warn")
	return s
}

// configuration returns the example configuration with two targets and short intervals. It
// omits the discovery of targets: Debian builds Prometheus without a Kubernetes client. A
// second file of rules has the alerts again.
func (s *setting) configuration() string {
	s.Helper()
	text, all := read(s.T, filepath.Join(folder, "prometheus.yaml")), rules(s.T)
	const targets = "    static_configs: [{targets: ['" + leaderAddress + "', '" + standbyAddress + "']}]\n"
	for pattern, replacement := range map[string]string{
		`(?ms)^    kubernetes_sd_configs:\n.*?\n\n`: targets,
		`_interval: 30s`:        "_interval: 500ms",
		`credentials_file: \S+`: "credentials_file: " + write(s.T, "token", s.token()),
		`(?m)^rule_files:\n.*\n`: fmt.Sprintf("rule_files: [%q, %q]\n",
			write(s.T, "rules.yaml", all), write(s.T, "soon.yaml", hasten(all))),
	} {
		if !regexp.MustCompile(pattern).MatchString(text) {
			s.Fatalf("the example does not match %s", pattern)
		}
		text = regexp.MustCompile(pattern).ReplaceAllString(text, replacement)
	}
	return text
}

// token waits until Kubernetes has filled the Secret of the reader, and returns its token.
func (s *setting) token() string {
	s.Helper()
	get := []string{"get", "secret", "samplecrd-metrics-reader", "-n", "samplecrd-system", "-o", "jsonpath={.data.token}"}
	s.Want(".", get...)
	token, err := base64.StdEncoding.DecodeString(s.Do(get...))
	if err != nil {
		s.Fatal(err)
	}
	return string(token)
}

const soon = "Soon"

// hasten returns the alerts of rules with other names and a wait of a second.
func hasten(rules string) string {
	_, alerts, _ := strings.Cut(rules, "\n    - name: samplecrd-controller.alerts\n")
	alerts = regexp.MustCompile(`\bfor: \w+`).ReplaceAllString(alerts, "for: 1s")
	alerts = regexp.MustCompile(`\balert: \w+`).ReplaceAllString(alerts, "${0}"+soon)
	return "  groups:\n    - name: soon\n" + alerts
}

// number waits until a query returns this number of series, and returns them.
func (s *setting) number(expression string, want int) (series string) {
	s.Helper()
	running.Eventually(s, func() error {
		query := exec.CommandContext(s.Context(), "promtool", "query", "instant", "http://"+prometheusAddress, expression)
		output, err := query.CombinedOutput()
		if series = string(output); err != nil || strings.Count(series, " => ") != want {
			err = fmt.Errorf("%s has not %d series, but (%w)\n%s", expression, want, err, series)
		}
		return err
	})
	return series
}

// wait waits until each of these alerts is in a state.
func (s *setting) wait(state string, names ...string) {
	s.Helper()
	for _, name := range names {
		s.number(fmt.Sprintf(`count(ALERTS{alertname=%q, alertstate=%q})`, name, state), 1)
	}
}

// A real Prometheus scrapes two real replicas with the example configuration and the token
// of deploy/monitoring/reader: it finds every metric of rules and dashboard, fires no alert
// for a healthy system, and fires when something breaks. pkg/server tests what other tokens
// get.
func TestScrape(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	s.Do("apply", "-f", "example/example-network.yaml")
	s.number(`up{job="`+job+`"} == 1`, 2)
	s.number(`samplecrd_networks{ready="True", reason="Provisioned"} == 1`, 1)
	s.healthy()

	if err := s.neutron.Close(); err != nil {
		t.Fatal(err)
	}
	s.Do("apply", "-f", "example/ipv6-network.yaml")
	s.wait("firing", "SamplecrdNeutronFailing"+soon, "SamplecrdNetworksNotReady"+soon)
	s.wait("pending", "SamplecrdNeutronFailing", "SamplecrdNetworksNotReady")
	s.number(`samplecrd_networks{ready="False", reason="NeutronUnavailable"} == 1`, 1)
	s.number("count("+dashboardQueries(t)["Failed requests to Neutron 1"]+")", 1)

	s.leader.Stop(stopTimeout)
	s.wait("firing", "SamplecrdInstanceDown"+soon)
	s.number(`instance:samplecrd_working:bool{instance="`+standbyAddress+`"}`, 1)
	s.number(`samplecrd_networks{reason="Provisioned", instance="`+standbyAddress+`"} == 1`, 1)
	s.standby.Stop(stopTimeout)
	s.wait("firing", "SamplecrdDown"+soon)
	s.wait("pending", "SamplecrdDown", "SamplecrdInstanceDown")
}

// healthy checks that rules and dashboard have all metrics that they need, that only the
// leader reconciles, and that no alert is even pending. At the start, some are: there was no
// leader for a moment.
func (s *setting) healthy() {
	for _, name := range usedMetrics(s.T) {
		s.number("count("+name+") > 0", 1)
	}
	for name, query := range dashboardQueries(s.T) {
		switch name {
		case "Failed requests to Neutron 1", "annotation 1": // no request fails, and no alert fires
			s.number(query, 0)
		default:
			s.number("count("+query+") > 0", 1)
		}
	}
	running.Eventually(s, func() error {
		text, err := running.Get("http://" + prometheusAddress + "/api/v1/rules")
		healthy := strings.Count(text, `"health":"ok"`)
		if healthy != strings.Count(text, `"health":`) || healthy <= len(readRules(s.T)) {
			err = errors.Join(err, errors.New("not all rules are evaluated: "+text))
		}
		return err
	})
	s.number(`leader_election_master_status{name="`+job+`"}`, 2)
	if works := s.number(`instance:samplecrd_working:bool`, 1); !strings.Contains(works, leaderAddress) {
		s.Errorf("%s reconciles, and %s leads", works, leaderAddress)
	}
	s.number("ALERTS", 0)
}
