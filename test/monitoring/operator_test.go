package monitoring

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"
)

// manifest is the part of a Kubernetes object that the tests read.
type manifest struct {
	Kind     string
	Metadata struct {
		Name, Namespace string
		Labels          map[string]string
	}
	Spec struct {
		Selector  json.RawMessage
		Ports     []struct{ Name string }
		Endpoints []struct {
			Port          string
			Authorization struct{ Credentials struct{ Name string } }
		}
	}
	RoleRef struct{ Name string }
}

// kustomize builds a folder, and returns its objects by kind and name.
func kustomize(t *testing.T, folder string) map[string]manifest {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), filepath.Join("build", "bin", "kubectl"), "kustomize", folder).Output()
	if err != nil {
		t.Fatalf("kubectl kustomize %s: %v", folder, err)
	}
	all := map[string]manifest{}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(output), 4096)
	for {
		var m manifest
		if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[m.Kind+"/"+m.Metadata.Name] = m
	}
}

// The objects of the Prometheus Operator match those in deploy/base.
func TestOperator(t *testing.T) {
	installed, ours := kustomize(t, "deploy/base"), kustomize(t, filepath.Join(folder, "operator"))
	service, monitor := installed["Service/samplecrd-controller-metrics"], ours["ServiceMonitor/samplecrd-controller"]
	var chosen struct{ MatchLabels map[string]string }
	if err := json.Unmarshal(monitor.Spec.Selector, &chosen); err != nil || len(chosen.MatchLabels) == 0 || len(monitor.Spec.Endpoints) != 1 {
		t.Fatalf("the ServiceMonitor selects by %s: %v", monitor.Spec.Selector, err)
	}
	for key, value := range chosen.MatchLabels {
		if service.Metadata.Labels[key] != value {
			t.Errorf("the Service has labels %v, and the ServiceMonitor wants %s=%s", service.Metadata.Labels, key, value)
		}
	}
	endpoint := monitor.Spec.Endpoints[0]
	if len(service.Spec.Ports) != 1 || service.Spec.Ports[0].Name != endpoint.Port || service.Metadata.Namespace != monitor.Metadata.Namespace {
		t.Errorf("the Service in %s has ports %v, and the ServiceMonitor in %s wants %s", service.Metadata.Namespace, service.Spec.Ports, monitor.Metadata.Namespace, endpoint.Port)
	}
	if _, ok := ours["Secret/"+endpoint.Authorization.Credentials.Name]; !ok {
		t.Errorf("there is no Secret %q with a token", endpoint.Authorization.Credentials.Name)
	}
	if _, ok := ours["PrometheusRule/samplecrd-controller"]; !ok {
		t.Error("there is no PrometheusRule")
	}
	role := ours["ClusterRoleBinding/samplecrd-metrics-reader"].RoleRef.Name
	if _, ok := installed["ClusterRole/"+role]; !ok {
		t.Errorf("there is no ClusterRole %q", role)
	}
}
