package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// account is the controller's user name.
const account = "system:serviceaccount:" + system + ":" + controller

// request is the part of a line of the audit log that this test reads.
type request struct {
	User       struct{ Username string }
	Verb       string
	RequestURI string
	At         time.Time `json:"requestReceivedTimestamp"`
	Object     struct {
		APIGroup, Resource, Subresource, Namespace, Name string
	} `json:"objectRef"`
	Response struct {
		Code    int
		Message string
	} `json:"responseStatus"`
	Annotations map[string]string
}

// right is a part of an RBAC rule: one verb on one resource.
type right struct {
	namespace             string // empty for all
	verb, group, resource string
	names                 []string // empty for all
}

func (r right) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s.%s %s in %q", r.verb, r.resource, r.group, strings.Join(r.names, ","), r.namespace))
}

// usedBy reports whether a request has used the right.
func (r right) usedBy(request request) bool {
	o := request.Object
	resource := o.Resource
	if o.Subresource != "" {
		resource += "/" + o.Subresource
	}
	return request.Verb == r.verb && o.APIGroup == r.group && resource == r.resource && request.Response.Code < http.StatusBadRequest &&
		(r.namespace == "" || r.namespace == o.Namespace || r.resource == "namespaces" && r.namespace == o.Name) &&
		(len(r.names) == 0 || slices.Contains(r.names, o.Name))
}

// rights compares the controller's rights with its requests since a time.
type rights struct {
	*cluster
	since time.Time
}

// watchRights begins to watch the controller's requests.
func (c *cluster) watchRights(t *testing.T) *rights {
	t.Helper()
	return &rights{c, time.Now()}
}

// requests returns the controller's requests.
func (r *rights) requests(t *testing.T) (all []request) {
	t.Helper()
	r.needsNode(t, "the audit log of the API server is read")
	file, err := os.Open(r.node.auditLog)
	if err != nil {
		t.Fatalf("opening the audit log: %v", err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var one request
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			// kube-apiserver was killed while it wrote it.
			t.Logf("decoding a line of the audit log: %v", err)
			continue
		}
		if one.User.Username == account && !one.At.Before(r.since) {
			all = append(all, one)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatalf("reading the audit log: %v", err)
	}
	if len(all) < 10 {
		t.Fatalf("the audit log has only %d requests of the controller", len(all))
	}
	return all
}

// nothingForbidden fails if a request of the controller was forbidden. An API server
// that has just started forbids everything for a moment.
func (r *rights) nothingForbidden(t *testing.T) {
	all := r.requests(t)
	for _, one := range all {
		starting := slices.ContainsFunc(r.unready, func(p period) bool { return p.from.Before(one.At) && one.At.Before(p.to) })
		if !starting && (one.Response.Code == http.StatusForbidden || one.Annotations["authorization.k8s.io/decision"] != "allow") {
			t.Errorf("forbidden: %s %s: %d %s %v", one.Verb, one.RequestURI, one.Response.Code, one.Response.Message, one.Annotations)
		}
	}
	t.Logf("%d requests of the controller", len(all))
}

// allUsed fails if the controller has a right that it has not used.
func (r *rights) allUsed(t *testing.T) {
	all := r.requests(t)
	granted := r.granted(t)
	for _, right := range granted {
		count := 0
		for _, one := range all {
			if right.usedBy(one) {
				count++
			}
		}
		if count == 0 {
			t.Errorf("never used: %s", right)
		} else {
			t.Logf("%5d times %s", count, right)
		}
	}
	if len(granted) < 15 {
		t.Errorf("the controller has only the rights %v", granted)
	}
}

// sameRules fails if a Role of deploy/watched-namespace has other rules than the
// ClusterRole of deploy/base. Another part of the test checks that the controller uses
// each of these.
func (c *cluster) sameRules(t *testing.T, namespaces ...string) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(c.kubectl(t, "create", "--dry-run=client", "-o", "json", "-f", "deploy/base/rbac.yaml")))
	var ofCluster rbacv1.ClusterRole
	for ofCluster.Kind != "ClusterRole" || ofCluster.Name != controller {
		ofCluster = rbacv1.ClusterRole{}
		if err := decoder.Decode(&ofCluster); err != nil {
			t.Fatalf("looking for the ClusterRole %s in deploy/base/rbac.yaml: %v", controller, err)
		}
	}
	for _, namespace := range namespaces {
		role, err := c.kube.RbacV1().Roles(namespace).Get(t.Context(), controller, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(ofCluster.Rules, role.Rules); diff != "" {
			t.Errorf("the Role in %s (-ClusterRole +Role):\n%s", namespace, diff)
		}
	}
}

// granted returns the rights of the controller's ServiceAccount in the API server,
// without those of every ServiceAccount.
func (r *rights) granted(t *testing.T) (all []right) {
	t.Helper()
	ofCluster, err := r.kube.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, binding := range ofCluster.Items {
		if isBound(binding.Subjects) {
			all = append(all, r.rulesOf(t, "", binding.RoleRef)...)
		}
	}
	inNamespaces, err := r.kube.RbacV1().RoleBindings("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, binding := range inNamespaces.Items {
		if isBound(binding.Subjects) {
			all = append(all, r.rulesOf(t, binding.Namespace, binding.RoleRef)...)
		}
	}
	return all
}

func isBound(subjects []rbacv1.Subject) bool {
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		return s.Kind == rbacv1.ServiceAccountKind && s.Namespace == system && s.Name == controller
	})
}

func (r *rights) rulesOf(t *testing.T, namespace string, ref rbacv1.RoleRef) (all []right) {
	t.Helper()
	var rules []rbacv1.PolicyRule
	if ref.Kind == "ClusterRole" {
		role, err := r.kube.RbacV1().ClusterRoles().Get(t.Context(), ref.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		rules = role.Rules
	} else {
		role, err := r.kube.RbacV1().Roles(namespace).Get(t.Context(), ref.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		rules = role.Rules
	}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, right{namespace, verb, group, resource, rule.ResourceNames})
				}
			}
		}
	}
	return all
}

// serviceAccount creates a ServiceAccount that is deleted when the test ends, and
// returns a token of it. If a role is given, it is bound to that ClusterRole: in one
// namespace by a rolebinding, in all by a clusterrolebinding.
func (c *cluster) serviceAccount(t *testing.T, name string, binding, role string) (token string) {
	t.Helper()
	c.kubectl(t, "create", "serviceaccount", "-n", home, name)
	c.goesAfter(t, "serviceaccount", name)
	if role != "" {
		c.kubectl(t, "create", binding, "-n", home, name, "--clusterrole="+role, "--serviceaccount="+home+":"+name)
		c.goesAfter(t, binding, name)
	}
	return strings.TrimSpace(c.kubectl(t, "create", "token", "-n", home, name))
}

func (c *cluster) goesAfter(t *testing.T, kind, name string) {
	t.Cleanup(func() {
		if _, _, err := c.tryKubectl(context.Background(), "", "delete", "-n", home, kind, name); err != nil {
			t.Errorf("tidying up: %v", err)
		}
	})
}

// users checks that the standard ClusterRoles edit and view cover Networks.
func (c *cluster) users(t *testing.T) {
	c.wantMay(t, "edit", map[string]bool{"create": true, "update": true, "patch": true, "delete": true, "deletecollection": true, "get": true, "list": true, "watch": true})
	c.wantMay(t, "view", map[string]bool{"create": false, "update": false, "patch": false, "delete": false, "deletecollection": false, "get": true, "list": true, "watch": true})
	editor := c.serviceAccount(t, "e2e-editor", "rolebinding", "edit")
	viewer := c.serviceAccount(t, "e2e-viewer", "rolebinding", "view")
	const network = `{"apiVersion": "samplecrd.k8s.io/v1", "kind": "Network", "metadata": {"name": "by-user"}, "spec": {"cidr": "10.3.0.0/24"}}`
	as := func(token, namespace string, args ...string) error {
		args = append([]string{"--kubeconfig=" + c.withToken(t, token), "-n", namespace}, args...)
		_, _, err := c.tryKubectl(t.Context(), network, args...)
		return err
	}
	if err := as(viewer, home, "create", "-f", "-"); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("a user with view creates a Network: %v, want Forbidden", err)
	}
	if err := as(editor, "kube-public", "create", "-f", "-"); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("a user with edit in one namespace creates a Network in another: %v, want Forbidden", err)
	}
	if err := as(editor, home, "create", "-f", "-"); err != nil {
		t.Errorf("a user with edit creates a Network: %v", err)
	}
	c.ready(t, home, "by-user", "10.3.0.1")
	if err := as(viewer, home, "get", "network", "by-user"); err != nil {
		t.Errorf("a user with view reads a Network: %v", err)
	}
	if err := as(editor, home, "patch", "network", "by-user", "--subresource=status", "--type=merge", "-p", `{"status":{"networkID":"x"}}`); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("a user with edit writes a status: %v, want Forbidden", err)
	}
	if err := as(editor, home, "delete", "network", "by-user", "--timeout=30s"); err != nil {
		t.Errorf("a user with edit deletes a Network: %v", err)
	}
}

// wantMay waits until a ClusterRole has the verbs for Networks, which are aggregated
// to it.
func (c *cluster) wantMay(t *testing.T, role string, want map[string]bool) {
	t.Helper()
	until(t, 30*time.Second, "the ClusterRole "+role+" is aggregated", func(ctx context.Context) error {
		has, err := c.kube.RbacV1().ClusterRoles().Get(ctx, role, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for verb, may := range want {
			found := slices.ContainsFunc(has.Rules, func(rule rbacv1.PolicyRule) bool {
				return slices.Contains(rule.APIGroups, "samplecrd.k8s.io") && slices.Contains(rule.Resources, "networks") && slices.Contains(rule.Verbs, verb)
			})
			if found != may {
				return fmt.Errorf("%s networks: %v, want %v", verb, found, may)
			}
		}
		return nil
	})
}

// metricsReader installs the ServiceAccount for Prometheus until the test ends, and
// returns its token.
func (c *cluster) metricsReader(t *testing.T) (token string) {
	t.Helper()
	const folder = "deploy/monitoring/reader"
	c.kubectl(t, "apply", "-k", folder)
	t.Cleanup(func() {
		if _, _, err := c.tryKubectl(context.Background(), "", "delete", "--ignore-not-found", "-k", folder); err != nil {
			t.Errorf("tidying up: %v", err)
		}
	})
	until(t, 30*time.Second, "Kubernetes fills the Secret with a token", func(ctx context.Context) error {
		secret, err := c.kube.CoreV1().Secrets(system).Get(ctx, "samplecrd-metrics-reader", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if token = string(secret.Data["token"]); token == "" {
			return errors.New("there is none")
		}
		return nil
	})
	return token
}

// metricsOverHTTPS reads metrics from a pod: without a token, with an invalid token,
// and with tokens of ServiceAccounts without and with the right to read them.
func (c *cluster) metricsOverHTTPS(t *testing.T) {
	reader := c.metricsReader(t)
	other := c.serviceAccount(t, "e2e-other", "", "")
	url := "https://" + c.forward(t, c.mustPods(t)[0], "8443") + "/metrics"
	for _, test := range []struct {
		who, token string
		want       int
	}{
		{"a client without a token", "", http.StatusUnauthorized},
		{"a client with an invalid token", "wrong", http.StatusUnauthorized},
		{"a ServiceAccount without the right", other, http.StatusForbidden},
		{"a ServiceAccount with the right", reader, http.StatusOK},
	} {
		status, body := get(t, url, test.token)
		if status != test.want {
			t.Errorf("%s gets %d, want %d: %s", test.who, status, test.want, body)
		}
		if strings.Contains(body, "samplecrd_build_info") != (test.want == http.StatusOK) {
			t.Errorf("%s: the body has metrics, or has none:\n%s", test.who, body)
		}
	}
}

// metricsOnLoopback reads metrics from a pod that serves them only on loopback: to
// users who may forward its ports.
func (c *cluster) metricsOnLoopback(t *testing.T) {
	pod := c.mustPods(t)[0]
	if status, body := get(t, "http://"+c.forward(t, pod, "8443")+"/metrics", ""); status != http.StatusOK || !strings.Contains(body, "samplecrd_build_info") {
		t.Errorf("metrics on loopback: %d\n%s", status, body)
	}
	c.needsNode(t, "connections go to the address of a pod")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+pod.Status.PodIP+":8443/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	if response, err := plain.Do(request); err == nil {
		_ = response.Body.Close()
		t.Errorf("the address of the pod serves metrics, too: %s", response.Status)
	} else if !strings.Contains(err.Error(), "refused") {
		t.Errorf("connecting to the address of the pod: %v, want refused", errors.Unwrap(err))
	}
}
