package kube_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samplecrd/network-controller/pkg/kube"
)

func parse(t *testing.T, args ...string) (options kube.Options) {
	t.Helper()
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	options.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return options
}

// TestDefaultNamespace: objects without a namespace belong to that of the current
// context, as in kubectl.
func TestDefaultNamespace(t *testing.T) {
	const kubeconfig = `{"current-context":"b","contexts":[
		{"name":"a","context":{"namespace":"other"}}, {"name":"b","context":{"namespace":"shop"}}, {"name":"c","context":{}}]}`
	file := filepath.Join(t.TempDir(), "kubeconfig")
	for _, test := range []struct{ content, want string }{
		{kubeconfig, "shop"},
		{`{"current-context":"c","contexts":[{"name":"c","context":{}}]}`, "default"},
		{`{}`, "default"},
		{`nonsense`, "default"},
	} {
		if err := os.WriteFile(file, []byte(test.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := parse(t, "-kubeconfig="+file).DefaultNamespace(); got != test.want {
			t.Errorf("DefaultNamespace() = %q, want %q, with %s", got, test.want, test.content)
		}
	}
}

// TestSecretInAddress: the address of the API server is logged. So it may have no password and
// no query, and the error does not repeat it.
func TestSecretInAddress(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", t.TempDir())
	for _, address := range []string{"https://me:SECRET@k", "https://k?token=SECRET"} {
		_, err := parse(t, "-master="+address).Config(t.Context(), "")
		if err == nil || strings.Contains(err.Error(), "SECRET") || !strings.Contains(err.Error(), "must be a URL without") {
			t.Errorf("with %s, the error is %v", address, err)
		}
	}
}
