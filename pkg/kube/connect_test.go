package kube_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/samplecrd/network-controller/pkg/kube"
)

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
		var options kube.Options
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		options.AddFlags(flags)
		if err := flags.Parse([]string{"-kubeconfig=" + file}); err != nil {
			t.Fatal(err)
		}
		if got := options.DefaultNamespace(); got != test.want {
			t.Errorf("DefaultNamespace() = %q, want %q, with %s", got, test.want, test.content)
		}
	}
}
