package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// request is the part of a line of the audit log that this test reads.
type request struct {
	User       struct{ Username string }
	Verb       string
	RequestURI string
	At         time.Time `json:"requestReceivedTimestamp"`
	Object     struct {
		APIGroup, Resource, Subresource, Name string
	} `json:"objectRef"`
	Response struct {
		Code    int
		Message string
	} `json:"responseStatus"`
	Annotations map[string]string
}

// requests returns the controller's requests since a time.
func (n *node) requests(t *testing.T, since time.Time) (all []request) {
	t.Helper()
	text, err := os.ReadFile(n.auditLog)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var one request
		if err := json.Unmarshal(line, &one); err != nil {
			t.Fatalf("decoding %s: %v", line, err)
		}
		if one.User.Username == "system:serviceaccount:"+system+":"+controller && !one.At.Before(since) {
			all = append(all, one)
		}
	}
	if len(all) < 10 {
		t.Fatalf("the audit log has only %d requests of the controller", len(all))
	}
	return all
}

// nothingForbidden fails if a request of the controller was forbidden.
func (n *node) nothingForbidden(t *testing.T, since time.Time) {
	for _, one := range n.requests(t, since) {
		if one.Response.Code == http.StatusForbidden || one.Annotations["authorization.k8s.io/decision"] != "allow" {
			t.Errorf("forbidden: %s %s: %d %s %v", one.Verb, one.RequestURI, one.Response.Code, one.Response.Message, one.Annotations)
		}
	}
}

// allUsed fails if deploy/base/rbac.yaml grants a right that the controller has not used.
func (n *node) allUsed(t *testing.T, since time.Time) {
	text, err := os.ReadFile("deploy/base/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all, rules := n.requests(t, since), 0
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		var role rbacv1.ClusterRole // a Role has the same rules, and a binding has none
		if err := decoder.Decode(&role); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			rules++
			for _, verb := range rule.Verbs {
				if !slices.ContainsFunc(all, func(r request) bool { return uses(r, rule, verb) }) {
					t.Errorf("never used: %s %v %v", verb, rule.Resources, rule.ResourceNames)
				}
			}
		}
	}
	if rules < 7 {
		t.Errorf("the controller has only %d rules", rules)
	}
}

// uses reports whether a request has used a verb of a rule. Two verbs may be unused: the
// controller requests a watch with the state at its beginning instead of a list, if the
// API server has it, and it patches only an event that repeats.
func uses(r request, rule rbacv1.PolicyRule, verb string) bool {
	switch {
	case verb == "list":
		verb = "watch"
	case verb == "patch" && rule.Resources[0] == "events":
		verb = "create"
	}
	resource := strings.TrimSuffix(r.Object.Resource+"/"+r.Object.Subresource, "/")
	return r.Verb == verb && r.Response.Code < http.StatusBadRequest && rule.APIGroups[0] == r.Object.APIGroup && rule.Resources[0] == resource &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, r.Object.Name))
}
