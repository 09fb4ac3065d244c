package monitoring

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// kustomize builds a folder, and returns its objects by kind and name.
func kustomize(t *testing.T, folder string) map[string]any {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), filepath.Join("build", "bin", "kubectl"), "kustomize", folder).Output()
	if err != nil {
		t.Fatalf("kubectl kustomize %s: %v", folder, err)
	}
	all := map[string]any{}
	for document := range strings.SplitSeq(string(output), "\n---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		name, _ := at(object, "metadata", "name").(string)
		all[object["kind"].(string)+"/"+name] = object
	}
	return all
}

// at returns the value at a path of fields, with the only element of each list, or nil.
func at(value any, path ...string) any {
	for _, field := range path {
		if list, ok := value.([]any); ok && len(list) == 1 {
			value = list[0]
		}
		object, _ := value.(map[string]any)
		value = object[field]
	}
	return value
}

// The objects of the Prometheus Operator match those in deploy/base.
func TestOperator(t *testing.T) {
	installed, ours := kustomize(t, "deploy/base"), kustomize(t, filepath.Join(folder, "operator"))
	service, monitor := installed["Service/samplecrd-controller-metrics"], ours["ServiceMonitor/samplecrd-controller"]
	const label = "app.kubernetes.io/name"
	selected := []any{map[string]any{label: at(service, "metadata", "labels", label)}, at(service, "metadata", "namespace"),
		at(service, "spec", "ports", "name")}
	selects := []any{at(monitor, "spec", "selector", "matchLabels"), at(monitor, "metadata", "namespace"),
		at(monitor, "spec", "endpoints", "port")}
	if diff := cmp.Diff(selected, selects); diff != "" || selected[2] == nil {
		t.Errorf("the ServiceMonitor does not select the port of the Service (-Service +ServiceMonitor):\n%s", diff)
	}
	secret, _ := at(monitor, "spec", "endpoints", "authorization", "credentials", "name").(string)
	role, _ := at(ours["ClusterRoleBinding/samplecrd-metrics-reader"], "roleRef", "name").(string)
	for what, object := range map[string]any{
		"Secret with a token": ours["Secret/"+secret], "PrometheusRule": ours["PrometheusRule/samplecrd-controller"],
		"ClusterRole": installed["ClusterRole/"+role],
	} {
		if object == nil {
			t.Errorf("there is no %s", what)
		}
	}
}
