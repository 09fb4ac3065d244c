package reconcile

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Namespaces are none, some, or all: [metav1.NamespaceAll]. They are the value of a flag:
// -flag for all, -flag=a,b for some.
type Namespaces []string

// Has reports whether a namespace is among them.
func (n Namespaces) Has(namespace string) bool {
	return slices.Contains(n, metav1.NamespaceAll) || slices.Contains(n, namespace)
}

// IsBoolFlag lets the flag have no value.
func (n *Namespaces) IsBoolFlag() bool { return true }

// String implements flag.Value.
func (n *Namespaces) String() string {
	if n != nil && slices.Contains(*n, metav1.NamespaceAll) {
		return "true"
	}
	return strings.Join(*n, ",")
}

// Set implements flag.Value.
func (n *Namespaces) Set(text string) error {
	switch text {
	case "true":
		*n = Namespaces{metav1.NamespaceAll}
		return nil
	case "false":
		*n = nil
		return nil
	}
	names := strings.Split(text, ",")
	for _, name := range names {
		if problems := validation.IsDNS1123Label(name); problems != nil {
			return fmt.Errorf("%q is not a valid namespace name: %s", name, problems[0])
		}
	}
	*n = names
	return nil
}
