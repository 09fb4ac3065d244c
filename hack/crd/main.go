// Command crd reads a CustomResourceDefinition that controller-gen has written, adds
// the defaults and rules of a schema.yaml, joins the lines of each description, which
// kubectl explain wraps itself, and writes the result to its output.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	yamlv2 "gopkg.in/yaml.v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/samplecrd/network-controller/hack/crd/rules"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: crd SCHEMA-YAML <CRD >CRD")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "crd:", err)
		os.Exit(1)
	}
}

func run(path string, in io.Reader, out io.Writer) error {
	additions, err := rules.Read(path)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	var crd map[string]any
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return fmt.Errorf("reading the output of controller-gen: %w", err)
	}
	for _, added := range additions.Defaults {
		node, err := find(crd, added.At)
		if err != nil {
			return err
		}
		node["default"] = added.Value
	}
	for _, validation := range additions.Validations {
		node, err := find(crd, validation.At)
		if err != nil {
			return err
		}
		all, _ := node["x-kubernetes-validations"].([]any)
		node["x-kubernetes-validations"] = append(all, validation.Compose())
	}
	joinLines(crd)
	if text, err = yamlv2.Marshal(crd); err != nil { // formats as controller-gen does
		return err
	}
	_, err = fmt.Fprintf(out, "---\n%s", text)
	return err
}

// joinLines makes each description in a schema one line.
func joinLines(schema any) {
	switch node := schema.(type) {
	case map[string]any:
		if text, ok := node["description"].(string); ok {
			node["description"] = strings.ReplaceAll(text, "\n", " ")
		}
		for _, child := range node {
			joinLines(child)
		}
	case []any:
		for _, child := range node {
			joinLines(child)
		}
	}
}

// find returns the schema at a path such as spec.tags[].
func find(crd map[string]any, path string) (map[string]any, error) {
	versions, _, err := unstructured.NestedFieldNoCopy(crd, "spec", "versions")
	all, ok := versions.([]any)
	if err != nil || !ok || len(all) != 1 {
		return nil, errors.New("the CustomResourceDefinition does not have exactly one version")
	}
	fields := []string{"schema", "openAPIV3Schema"}
	for name := range strings.SplitSeq(path, ".") {
		if name == "" {
			break
		}
		name, isItem := strings.CutSuffix(name, "[]")
		fields = append(fields, "properties", name)
		if isItem {
			fields = append(fields, "items")
		}
	}
	found, _, err := unstructured.NestedFieldNoCopy(all[0].(map[string]any), fields...)
	node, ok := found.(map[string]any)
	if err != nil || !ok {
		return nil, fmt.Errorf("the CustomResourceDefinition has no field %s", path)
	}
	return node, nil
}
