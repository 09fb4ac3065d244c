package v1_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"

	"github.com/samplecrd/network-controller/test/running"
)

const validations = "x-kubernetes-validations"

// TestRulesHaveAGuard checks that no rule runs when its value has not changed. Each
// access of a rule to a field of spec copies the schemas of all fields, and the
// controller writes each Network several times without a change of spec.
func TestRulesHaveAGuard(t *testing.T) {
	var rules, guarded int
	walk(openAPISchema(t, readCRD(t)), "", func(path string, node map[string]any) {
		list, _, _ := unstructured.NestedSlice(node, validations)
		properties, _, _ := unstructured.NestedMap(node, "properties")
		small := node["type"] == "object" && len(properties) <= 3 && path != "" // the guard costs more than the rule
		inList := strings.Contains(path, "[]")                                  // oldSelf does not exist there
		for _, rule := range list {
			rules++
			rule := rule.(map[string]any)["rule"].(string)
			switch {
			case strings.HasPrefix(rule, "oldSelf.hasValue() && self == oldSelf.value() ||"), rule == "self == oldSelf":
				guarded++
			case path == "" && strings.HasPrefix(rule, "oldSelf.hasValue() || "): // a name cannot change
				guarded++
			case !small && !inList:
				t.Errorf("a rule of %q runs even if the value has not changed: %s", path, rule)
			}
		}
		if path == ".spec" && len(list) != 1 {
			t.Errorf("spec has %d rules: each has to compare the old spec with the new one, so merge them", len(list))
		}
	})
	if guarded < 5 || rules < 15 {
		t.Errorf("found %d rules, %d of them with a guard", rules, guarded)
	}
}

// TestUpdates changes the spec of a stored Network, which may be invalid: an older
// CRD accepted more.
func TestUpdates(t *testing.T) {
	strict, lax := readCRD(t), readCRD(t)
	walk(openAPISchema(t, lax), "", func(_ string, node map[string]any) { delete(node, validations) })
	const group = "older.example.org"
	client := install(t, lax, group)

	type spec = map[string]any
	valid := spec{"cidr": "10.0.0.0/24", "gateway": "10.0.0.1"}
	tests := map[string]struct {
		old     spec
		patch   string // of the spec
		refusal string // part of the error; empty if the change is accepted
	}{
		"valid to valid":                  {valid, `{"gateway":"10.0.0.2"}`, ""},
		"valid to invalid":                {valid, `{"gateway":"10.0.1.1"}`, "gateway 10.0.1.1 is outside of cidr"},
		"valid to an invalid field":       {valid, `{"gateway":"router"}`, `"router": gateway must be`},
		"valid by the other field":        {valid, `{"cidr":"10.0.1.0/24"}`, "gateway 10.0.0.1 is outside of cidr"},
		"valid, then two ranges":          {valid, `{"subnetPool":{"name":"a"}}`, "but both are"},
		"valid, then no range":            {valid, `{"cidr":null}`, "but neither is"},
		"valid, then networkID":           {valid, `{"networkID":"abc"}`, "it is not set, and the request has abc"},
		"networkID changes":               {spec{"cidr": "10.0.0.0/24", "networkID": "abc"}, `{"networkID":"abd"}`, "it is abc, and the request has abd"},
		"networkID is removed":            {spec{"cidr": "10.0.0.0/24", "networkID": "abc"}, `{"networkID":null}`, "it is set, and the request has none"},
		"networkID stays":                 {spec{"cidr": "10.0.0.0/24", "networkID": "abc"}, `{"gateway":"10.0.0.9"}`, ""},
		"invalid to valid":                {spec{"cidr": "10.0.0.0/24", "gateway": "10.0.1.1"}, `{"gateway":"10.0.0.1"}`, ""},
		"invalid to invalid":              {spec{"cidr": "10.0.0.0/24", "gateway": "10.0.1.1"}, `{"gateway":"10.0.1.2"}`, "gateway 10.0.1.2 is outside of cidr"},
		"invalid, another field":          {spec{"cidr": "10.0.0.0/24", "gateway": "10.0.1.1"}, `{"deletionPolicy":"Retain"}`, "gateway 10.0.1.1 is outside of cidr"},
		"an invalid field, another field": {spec{"cidr": "10.0.0.0/24", "gateway": "router"}, `{"deletionPolicy":"Retain"}`, ""},
		"words, another field":            {spec{"cidr": "words"}, `{"deletionPolicy":"Retain"}`, ""},
		"bad DNS domain, another field":   {spec{"cidr": "10.0.0.0/24", "dnsDomain": "a_b"}, `{"deletionPolicy":"Retain"}`, ""},
		"no range at all":                 {spec{}, `{"deletionPolicy":"Retain"}`, "but neither is"},
		"duplicate servers":               {spec{"cidr": "10.0.0.0/24", "dnsNameservers": []any{"9.9.9.9", "9.9.9.9"}}, `{"enableDHCP":true}`, ""},
		"tags in another order":           {spec{"cidr": "10.0.0.0/24", "tags": []any{"a", "b"}}, `{"tags":["b","a"]}`, ""},
	}
	names := map[string]string{}
	for name, test := range tests {
		names[name] = client.create(t, test.old)
	}
	applyCRD(t, strict, group)
	running.Eventually(t, func() error { // until the rules are in effect
		if client.try(t, spec{"cidr": "words"}) == nil {
			return errors.New("the API server accepts any cidr")
		}
		return nil
	})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := names[name]
			// What the controller writes is accepted, even if the spec is invalid.
			if err := errors.Join(
				client.patch(t, object, `{"metadata":{"finalizers":["samplecrd.k8s.io/neutron"],"annotations":{"a":"b"}}}`),
				client.patch(t, object, `{"status":{"observedGeneration":1,"conditions":[{"type":"Ready","status":"False",`+
					`"reason":"Invalid","message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, "status"),
				client.patch(t, object, `{"metadata":{"finalizers":null}}`),
			); err != nil {
				t.Error(err)
			}
			err := client.patch(t, object, `{"spec":`+test.patch+`}`)
			if test.refusal == "" && err != nil || test.refusal != "" && (err == nil || !strings.Contains(err.Error(), test.refusal)) {
				t.Errorf("got error %v, want one that contains %q", err, test.refusal)
			}
		})
	}
}

// readCRD returns the CRD of this module.
func readCRD(t *testing.T) map[string]any {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(moduleRoot, "crd", "network.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var crd map[string]any
	if err := yaml.Unmarshal(content, &crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

func openAPISchema(t *testing.T, crd map[string]any) map[string]any {
	t.Helper()
	versions, _, err := unstructured.NestedSlice(crd, "spec", "versions")
	if err != nil || len(versions) != 1 {
		t.Fatalf("the CRD has %d versions (%v)", len(versions), err)
	}
	// NestedSlice returns a copy.
	return crd["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
}

// walk calls visit for each node of a schema.
func walk(node map[string]any, path string, visit func(path string, node map[string]any)) {
	visit(path, node)
	if properties, ok := node["properties"].(map[string]any); ok {
		for name, property := range properties {
			walk(property.(map[string]any), path+"."+name, visit)
		}
	}
	if items, ok := node["items"].(map[string]any); ok {
		walk(items, path+"[]", visit)
	}
}

// objects are the objects of a CRD of this module under another group.
type objects struct {
	dynamic.ResourceInterface
	group string
}

func (o objects) object(spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": o.group + "/v1", "kind": "Network", "metadata": map[string]any{"generateName": "n-"}, "spec": spec,
	}}
}

// create creates an object and returns its name.
func (o objects) create(t *testing.T, spec map[string]any) string {
	t.Helper()
	created, err := o.Create(t.Context(), o.object(spec), metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating a Network: %v", err)
	}
	return created.GetName()
}

func (o objects) patch(t *testing.T, name, patch string, subresource ...string) error {
	t.Helper()
	_, err := o.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresource...)
	return err
}

// install installs a CRD under another group for the time of a test, and returns a
// client for its objects.
func install(t *testing.T, crd map[string]any, group string) objects {
	t.Helper()
	applyCRD(t, crd, group)
	t.Cleanup(func() { kubectlAfter(t, "delete", "crd", "networks."+group) })
	networks := crdObjects(group)
	running.Eventually(t, func() error {
		_, err := networks.List(t.Context(), metav1.ListOptions{})
		return err
	})
	return networks
}

func applyCRD(t *testing.T, crd map[string]any, group string) {
	t.Helper()
	crd["spec"].(map[string]any)["group"] = group
	crd["metadata"].(map[string]any)["name"] = "networks." + group
	text, err := json.Marshal(crd)
	if err != nil {
		t.Fatal(err)
	}
	kubectl(t, "apply", "-f", write(t, string(text)))
}
