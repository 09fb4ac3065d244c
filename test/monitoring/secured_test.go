package monitoring

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/internal/require"
)

// inNamespace is the environment variable of this test binary in a private network
// namespace, which has an address other than loopback.
const inNamespace = "MONITORING_TEST_IN_NAMESPACE"

// podAddress is that address.
const podAddress = "192.0.2.1"

// With the example configuration and the token of deploy/monitoring/reader,
// Prometheus scrapes metrics over HTTPS with authorization. pkg/server tests what other
// tokens get.
func TestScrapeSecured(t *testing.T) {
	t.Parallel()
	if os.Getenv(inNamespace) != "" {
		scrapeSecured(t)
		return
	}
	needed(t, "prometheus")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.CommandContext(t.Context(), "unshare", "--net", "ip", "link", "set", "lo", "up").Run(); err != nil {
		require.Skip(t, "making a network namespace, which needs Linux, root, unshare and ip: %v", err)
	}
	command := exec.CommandContext(t.Context(), "unshare", "--net", "sh", "-c",
		"ip link set lo up && ip addr add "+podAddress+`/32 dev lo && exec "$@"`, "sh", self, "-test.run=^TestScrapeSecured$", "-test.v", "-test.timeout=5m")
	command.Env = append(os.Environ(), inNamespace+"=1")
	output, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "--- PASS: TestScrapeSecured") {
		t.Fatalf("in a network namespace: %v\n%s", err, output)
	}
}

func scrapeSecured(t *testing.T) {
	cluster := controlplane.StartForTest(t, controlplane.Options{Apply: []string{"crd"}, ControllerManager: true})
	for _, folder := range []string{"deploy/base", filepath.Join(folder, "reader")} {
		if output, err := cluster.Kubectl(t.Context(), "apply", "-k", folder); err != nil {
			t.Fatalf("applying %s: %v\n%s", folder, err, output)
		}
	}
	token := write(t, "token", tokenOfTheReader(t, cluster))
	metrics := podAddress + ":8443"
	kubeconfig, err := cluster.KubeconfigFor(t.Context(), "samplecrd-system", "samplecrd-controller")
	if err != nil {
		t.Fatal(err)
	}
	start(t, buildController(t), "-kubeconfig="+kubeconfig, "-metrics-bind-address="+metrics)
	p := startPrometheus(t, exampleFor(t, metrics, token))
	p.number(t, `up{job="`+job+`"} == 1`, 1)
	p.number(t, `samplecrd_build_info`, 1)
}

// tokenOfTheReader waits until Kubernetes has filled the Secret, and returns its
// token.
func tokenOfTheReader(t *testing.T, cluster *controlplane.Cluster) (token string) {
	t.Helper()
	eventually(t, "the token in the Secret", func(ctx context.Context) error {
		output, err := cluster.Kubectl(ctx, "get", "secret", "samplecrd-metrics-reader", "--namespace=samplecrd-system", "-o", "jsonpath={.data.token}")
		if err != nil {
			return err
		}
		decoded, err := base64.StdEncoding.DecodeString(string(output))
		if err == nil && len(decoded) == 0 {
			err = errors.New("there is none yet")
		}
		token = string(decoded)
		return err
	})
	return token
}

// exampleFor returns the example configuration with one target and short intervals.
// It omits the discovery of targets: Debian builds Prometheus without a Kubernetes client.
func exampleFor(t *testing.T, target, tokenFile string) string {
	t.Helper()
	text := string(read(t, filepath.Join(folder, "prometheus.yaml")))
	for _, change := range [][2]string{
		{`(?ms)^    kubernetes_sd_configs:\n.*?\n\n`, "    static_configs: [{targets: ['" + target + "']}]\n\n"},
		{`_interval: 30s`, "_interval: 500ms"},
		{`credentials_file: \S+`, "credentials_file: " + tokenFile},
		{`(?m)^rule_files:\n.*\n`, ""},
	} {
		pattern := regexp.MustCompile(change[0])
		if !pattern.MatchString(text) {
			t.Fatalf("the example does not match %s", pattern)
		}
		text = pattern.ReplaceAllString(text, change[1])
	}
	return text
}
