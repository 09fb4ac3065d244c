package e2e

import (
	"bufio"
	"crypto/tls"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// plain does not verify certificates, like a scraper of the controller's metrics. It
// keeps no connection for another test.
var plain = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
	TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
	DisableKeepAlives: true,
}}

// get sends a GET request, with a token if it is not empty.
func get(t *testing.T, url, token string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := plain.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

var forwarding = regexp.MustCompile(`Forwarding from (127\.0\.0\.1:\d+)`)

// forward forwards a port of this machine to a port of a pod until the test ends, and
// returns its address.
func (c *cluster) forward(t *testing.T, pod corev1.Pod, port string) (address string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "kubectl", "--kubeconfig="+c.kubeconfig, "port-forward", "-n", system, "pod/"+pod.Name, ":"+port)
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatalf("starting kubectl port-forward: %v", err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	line, err := bufio.NewReader(output).ReadString('\n')
	found := forwarding.FindStringSubmatch(line)
	if found == nil {
		t.Fatalf("kubectl port-forward printed %q (%v)", line, err)
	}
	return found[1]
}

// withToken writes a kubeconfig file for a user with a token, without the client
// certificate of the administrator.
func (c *cluster) withToken(t *testing.T, token string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(c.kubeconfig)
	if err != nil {
		t.Fatalf("reading %s: %v", c.kubeconfig, err)
	}
	current := config.Contexts[config.CurrentContext]
	if err := api.FlattenConfig(config); err != nil {
		t.Fatalf("reading the files that %s names: %v", c.kubeconfig, err)
	}
	config.AuthInfos = map[string]*api.AuthInfo{"user": {Token: token}}
	config.Contexts = map[string]*api.Context{"context": {Cluster: current.Cluster, AuthInfo: "user"}}
	config.CurrentContext = "context"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}
