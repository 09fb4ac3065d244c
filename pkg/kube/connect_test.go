package kube_test

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

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

// TestWithProtobuf: what is sent and accepted is protobuf, and the configuration that it
// is made from stays as it is, for custom resources.
func TestWithProtobuf(t *testing.T) {
	var sent, accepted string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, accepted = r.Header.Get("Content-Type"), r.Header.Get("Accept")
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	_, _ = kubernetes.NewForConfigOrDie(kube.WithProtobuf(config)).EventsV1().Events("shop").Create(t.Context(), &eventsv1.Event{}, metav1.CreateOptions{})
	if sent != "application/vnd.kubernetes.protobuf" || !strings.HasPrefix(accepted, sent) || config.ContentType != "" {
		t.Errorf("the client sends %q and accepts %q; the configuration has %q", sent, accepted, config.ContentType)
	}
}
