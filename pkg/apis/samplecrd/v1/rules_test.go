package v1_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/samplecrd/network-controller/hack/crd/rules"
)

var dryRun = []string{metav1.DryRunAll}

// leftToNeutron are fields that the controller does not check itself: without the CRD,
// Neutron rejects their values.
var leftToNeutron = map[string]bool{"spec.dnsDomain": true, "spec.tags[]": true}

// TestRules checks that each rule in schema.yaml rejects its example with its message, and
// that the controller rejects the same.
func TestRules(t *testing.T) {
	client := crdObjects("samplecrd.k8s.io")
	for _, validation := range readRules(t) {
		for _, rule := range validation.Rules {
			t.Run(rule.Name, func(t *testing.T) {
				err := violate(t, client, validation, rule)
				var about []string
				for _, cause := range allCauses(err) {
					if index.ReplaceAllString(cause.Field, "[]") == place(validation) {
						about = append(about, cause.Message)
					}
				}
				want := sentence(rule)
				if len(about) != 1 || !want.MatchString(about[0]) || strings.Contains(about[0], "<nil>") || len(about[0]) > 1000 {
					t.Errorf("the example has the violations %q of %s, want %s\n%v", about, place(validation), want, err)
				}
				if isChecked := validation.At != "" && rule.Stored == nil && !leftToNeutron[validation.At]; isChecked && invalid(t, rule.Rejects) == "" {
					t.Error("the controller accepts the example")
				}
			})
		}
	}
}

// violate sends the example of a rule, and returns the error.
func violate(t *testing.T, client objects, validation rules.Validation, rule rules.Rule) error {
	t.Helper()
	if rule.Stored != nil {
		return client.tryChange(t, client.create(t, rule.Stored), rule.Rejects)
	}
	if validation.At != "" {
		return client.try(t, rule.Rejects)
	}
	object := client.object(nil)
	object.Object["metadata"], object.Object["spec"] = rule.Rejects["metadata"], rule.Rejects["spec"]
	_, err := client.Create(t.Context(), object, metav1.CreateOptions{DryRun: dryRun})
	return err
}

var index = regexp.MustCompile(`\[\d+\]`)

// place returns the field that the errors of a validation name.
func place(validation rules.Validation) string {
	if validation.FieldPath != "" {
		return strings.TrimPrefix(validation.FieldPath, ".")
	}
	return validation.At
}

// sentence matches what the API server returns for a rule. It returns the value too if
// that is a string.
func sentence(rule rules.Rule) *regexp.Regexp {
	quoted := regexp.QuoteMeta(rule.Message)
	text := regexp.MustCompile(`\\\{.*?\\\}`).ReplaceAllString(quoted, ".+")
	return regexp.MustCompile(`^Invalid value: ("[^"]*": )?` + text + `$`)
}

func allCauses(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}

var moduleRoot = filepath.Join("..", "..", "..", "..")

func readRules(t *testing.T) []rules.Validation {
	t.Helper()
	additions, err := rules.Read("schema.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return additions.Validations
}

// installSeparateRules installs the CRD under another group, in which each rule between
// fields is a rule of its own: the API server reports all that are violated, in order.
func installSeparateRules(t *testing.T) objects {
	t.Helper()
	crd := readCRD(t)
	for _, validation := range readRules(t) {
		if validation.At != "spec" {
			continue
		}
		var separate []any
		for _, rule := range validation.Rules {
			alone := validation
			alone.Rules = []rules.Rule{rule}
			composed, err := runtime.DefaultUnstructuredConverter.ToUnstructured(new(alone.Compose()))
			if err != nil {
				t.Fatal(err)
			}
			separate = append(separate, composed)
		}
		walk(openAPISchema(t, crd), "", func(path string, node map[string]any) {
			if path == ".spec" {
				node[validations] = separate
			}
		})
	}
	return install(t, crd, "separate-rules.example.org")
}

// crdObjects returns a client for the objects of a CRD.
func crdObjects(group string) objects {
	client := dynamic.NewForConfigOrDie(cluster.RESTConfig())
	resource := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "networks"}
	return objects{client.Resource(resource).Namespace(metav1.NamespaceDefault), group}
}

// try returns the error of creating an object, which is not stored.
func (o objects) try(t *testing.T, spec any) error {
	t.Helper()
	object := o.object(nil)
	object.Object["spec"] = spec
	_, err := o.Create(t.Context(), object, metav1.CreateOptions{DryRun: dryRun})
	return err
}

// tryChange returns the error of replacing the spec of an object, which is not stored.
func (o objects) tryChange(t *testing.T, name string, spec any) error {
	t.Helper()
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec", "value": spec}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.Patch(t.Context(), name, types.JSONPatchType, patch, metav1.PatchOptions{DryRun: dryRun})
	return err
}
