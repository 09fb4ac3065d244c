package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/samplecrd/network-controller/test/running"
)

const everything = `{
	"resourceQuota": {"pods": "5", "requests.cpu": "1000m"},
	"limitRange": {"limits": [{"type": "Container", "max": {"cpu": "2"}}]},
	"defaultDeny": ["Ingress", "Egress"],
	"podDisruptionBudget": {"maxUnavailable": 1},
	"members": [{"role": "admin", "name": "alice"}, {"role": "view", "kind": "ServiceAccount", "namespace": "ci", "name": "reader"}],
	"networkCIDR": "10.9.0.0/24"
}`

const owned = "resourcequotas,limitranges,networkpolicies,poddisruptionbudgets,rolebindings,networks"

// TestGiven: a tenant gets everything. Without a spec, it gets a quota of nothing. Then
// the controller is quiet, and a restarted one sends no request but to fill its caches.
func TestGiven(t *testing.T) {
	_, before := requests(t, 0)
	controller := start(t)
	mustApply(t, "given", everything)
	mustApply(t, "given-nothing", `{}`)
	wantCondition(t, "given", "Ready", "True Applied")
	wantCondition(t, "given-nothing", "Ready", "True Applied")
	objects := kubectl(t, "get", owned, "-n", "given", "-l", "mygroup.my.domain/tenant=given", "-o", "name")
	if strings.Count(objects, "\n") != 7 {
		t.Errorf("the tenant has %s", objects)
	}
	want(t, "^0 0 0$", "get", "resourcequota", "namespaceplus", "-n", "given-nothing",
		"-o", "jsonpath={.spec.hard.cpu} {.spec.hard.memory} {.spec.hard.pods}")
	want(t, "^10.9.0.0/24$", "get", "network", "namespaceplus", "-n", "given", "-o", "jsonpath={.spec.cidr}")

	stop(controller)
	sent, after := requests(t, before)
	t.Logf("writes for two tenants: %v", writes(sent))
	restarted := start(t)
	mustApply(t, "given-later", `{}`) // it is reconciled after all that was there
	wantCondition(t, "given-later", "Ready", "True Applied")
	stop(restarted)
	sent, _ = requests(t, after)
	for _, one := range sent {
		if name := one.ObjectRef.Name + one.ObjectRef.Namespace; !strings.Contains(name, "given-later") && len(writes([]request{one})) > 0 {
			t.Errorf("a restarted controller sends %v for %s", one, name)
		}
	}
}

// TestDrift: what somebody changes, deletes or hides is repaired because of the event.
// What somebody adds beside it stays.
func TestDrift(t *testing.T) {
	start(t)
	mustApply(t, "drift", everything)
	wantCondition(t, "drift", "Ready", "True Applied")
	pods := []string{"get", "resourcequota", "namespaceplus", "-n", "drift", "-o", "jsonpath={.spec.hard.pods} {.spec.hard.services}"}
	kubectl(t, "patch", "resourcequota", "namespaceplus", "-n", "drift", "--type=merge", "-p", `{"spec":{"hard":{"pods":"500","services":"1"}}}`)
	want(t, "^5 1$", pods...)
	kubectl(t, "delete", "networkpolicy", "namespaceplus", "-n", "drift")
	want(t, "Ingress.*Egress", "get", "networkpolicy", "namespaceplus", "-n", "drift", "-o", "jsonpath={.spec.policyTypes}")
	kubectl(t, "label", "rolebinding", "namespaceplus-admin", "-n", "drift", "mygroup.my.domain/tenant-")
	want(t, "rolebinding", "get", "rolebinding", "-n", "drift", "-l", "mygroup.my.domain/tenant=drift", "-o", "name", "namespaceplus-admin")
	kubectl(t, "patch", "rolebinding", "namespaceplus-view", "-n", "drift", "--type=json",
		"-p", `[{"op":"add","path":"/subjects/-","value":{"kind":"User","name":"mallory","apiGroup":"rbac.authorization.k8s.io"}}]`)
	want(t, "^reader$", "get", "rolebinding", "namespaceplus-view", "-n", "drift", "-o", "jsonpath={.subjects[*].name}")
	kubectl(t, "label", "namespace", "drift", "mygroup.my.domain/tenant-")
	want(t, "^drift$", "get", "namespace", "drift", "-o", `jsonpath={.metadata.labels.mygroup\.my\.domain/tenant}`)

	// It is created again when it is gone.
	uid := kubectl(t, "get", "namespace", "drift", "-o", "jsonpath={.metadata.uid}")
	kubectl(t, "delete", "namespace", "drift")
	want(t, "^5", pods...)
	if again := kubectl(t, "get", "namespace", "drift", "-o", "jsonpath={.metadata.uid}"); again == uid {
		t.Error("the namespace was not deleted")
	}
	wantCondition(t, "drift", "Ready", "True Applied")
}

// TestTwoReplicas: without a leader, two replicas do the work twice, and then both are quiet.
func TestTwoReplicas(t *testing.T) {
	replicas := []*running.Program{start(t), start(t)}
	mustApply(t, "replicas", everything)
	mustApply(t, "replicas-marker", `{}`)
	wantCondition(t, "replicas", "Ready", "True Applied")
	wantCondition(t, "replicas-marker", "Ready", "True Applied")
	for range 2 { // both have handled all events of the tenant when they have handled a later one
		kubectl(t, "delete", "resourcequota", "namespaceplus", "-n", "replicas-marker")
		want(t, "resourcequota", "get", "resourcequota", "-n", "replicas-marker", "-o", "name")
	}
	_, offset := requests(t, 0)
	kubectl(t, "delete", "resourcequota", "namespaceplus", "-n", "replicas-marker")
	want(t, "resourcequota", "get", "resourcequota", "-n", "replicas-marker", "-o", "name")
	for _, replica := range replicas {
		stop(replica)
	}
	sent, _ := requests(t, offset)
	for _, one := range sent {
		if (one.ObjectRef.Name == "replicas" || one.ObjectRef.Namespace == "replicas") && len(writes([]request{one})) > 0 {
			t.Errorf("a replica sends %v", one)
		}
	}
}

// TestEditInUse: an edit changes and removes what the spec names, and nothing else: not
// the namespace, its Pods, nor an object of the tenant.
func TestEditInUse(t *testing.T) {
	start(t)
	mustApply(t, "edit", everything)
	wantCondition(t, "edit", "Ready", "True Applied")
	kubectl(t, "create", "-n", "edit", "deployment", "web", "--image=web")
	kubectl(t, "create", "-n", "edit", "rolebinding", "own", "--clusterrole=view", "--user=bob")
	kubectl(t, "label", "-n", "edit", "rolebinding", "own", "mygroup.my.domain/tenant=edit")
	before := kubectl(t, "get", "namespace/edit", "-o", "jsonpath={.metadata.uid}")
	mustApply(t, "edit", `{"resourceQuota": {"pods": "9"}, "members": [{"role": "edit", "name": "alice"}]}`)
	wantCondition(t, "edit", "Ready", "True Applied")
	want(t, `^\{"pods":"9"\}$`, "get", "resourcequota", "namespaceplus", "-n", "edit", "-o", "jsonpath={.spec.hard}")
	want(t, "^namespaceplus namespaceplus-edit own $", "get", owned, "-n", "edit", "--sort-by=.metadata.name",
		"-o", `jsonpath={range .items[*]}{.metadata.name} {end}`)
	want(t, "^"+before+"$", "get", "namespace/edit", "-o", "jsonpath={.metadata.uid}")
	want(t, "web", "get", "-n", "edit", "deployment", "-o", "name")
}

// TestTakeover: a namespace of somebody else stays untouched until the spec says so. Then
// its contents stay, and so does a value that somebody else has set.
func TestTakeover(t *testing.T) {
	start(t)
	kubectl(t, "create", "namespace", "taken")
	kubectl(t, "create", "-n", "taken", "configmap", "theirs")
	mustApply(t, "taken", `{}`)
	wantCondition(t, "taken", "Ready", "False NamespaceExists: .*spec.adopt")
	want(t, "^$", "get", "resourcequota,rolebindings", "-n", "taken", "-o", "name")
	if err := apply(t, "taken", `{"adopt": true, "deletionPolicy": "Delete"}`); err == nil || !strings.Contains(err.Error(), "never deleted") {
		t.Errorf("adopting with deletionPolicy Delete returns %v", err)
	}
	mustApply(t, "taken", `{"adopt": true}`)
	wantCondition(t, "taken", "Ready", "True Applied")
	if err := apply(t, "taken", `{"deletionPolicy": "Delete"}`); err == nil || !strings.Contains(err.Error(), "cannot be taken back") {
		t.Errorf("taking adopt back, so that Delete is possible, returns %v", err)
	}
	want(t, "theirs", "get", "-n", "taken", "configmap", "-o", "name")
}

// TestConflict: an object of somebody else that has the name of ours is not overwritten.
func TestConflict(t *testing.T) {
	controller := start(t)
	mustApply(t, "conflict", `{}`)
	wantCondition(t, "conflict", "Ready", "True Applied")
	stop(controller)
	kubectl(t, "create", "-n", "conflict", "poddisruptionbudget", "namespaceplus", "--selector=a=b", "--max-unavailable=3")
	start(t)
	mustApply(t, "conflict", `{"podDisruptionBudget": {"maxUnavailable": 1}}`)
	wantCondition(t, "conflict", "Ready", "False Conflict: .*PodDisruptionBudget")
	want(t, "^3$", "get", "-n", "conflict", "poddisruptionbudget", "namespaceplus", "-o", "jsonpath={.spec.maxUnavailable}")
}

// TestDeletionWhileDown: what a deletion does needs no controller. Delete deletes the
// namespace with its contents, Retain keeps it, and a later NamespacePlus continues with
// it, without being asked.
func TestDeletionWhileDown(t *testing.T) {
	controller := start(t)
	mustApply(t, "deleted", `{"deletionPolicy": "Delete"}`)
	mustApply(t, "retained", `{"resourceQuota": {"pods": "5"}}`)
	wantCondition(t, "deleted", "Ready", "True Applied")
	wantCondition(t, "retained", "Ready", "True Applied")
	kubectl(t, "create", "-n", "retained", "deployment", "web", "--image=web")
	if err := apply(t, "deleted", `{"deletionPolicy": "Retain"}`); err == nil || !strings.Contains(err.Error(), "cascade=orphan") {
		t.Errorf("changing Delete to Retain returns %v", err)
	}
	stop(controller)
	kubectl(t, "delete", "namespaceplus", "deleted", "retained")
	kubectl(t, "wait", "--for=delete", "--timeout=60s", "namespace/deleted")
	want(t, "deployment.*web", "get", "-n", "retained", "deployment,resourcequota", "-o", "name")
	start(t)
	mustApply(t, "retained", `{"resourceQuota": {"pods": "6"}}`)
	wantCondition(t, "retained", "Ready", "True Applied")
	want(t, "^6$", "get", "-n", "retained", "resourcequota", "namespaceplus", "-o", "jsonpath={.spec.hard.pods}")
}

// TestForbidden: without a permission, the condition names verb and resource, and nobody
// gets in while a limit is missing. With the permission, the tenant becomes ready.
func TestForbidden(t *testing.T) {
	start(t)
	restore := withoutPermission(t, `"resourcequotas",`, "")
	mustApply(t, "forbidden", everything)
	wantCondition(t, "forbidden", "Ready", `False Forbidden: .*cannot (create|patch) resource "resourcequotas".*rbac.yaml`)
	want(t, "^$", "get", "rolebindings", "-n", "forbidden", "-o", "name")
	restore()
	wantCondition(t, "forbidden", "Ready", "True Applied")
	if _, err := cluster.Kubectl(t.Context(), "create", "rolebinding", "x", "-n", "forbidden", "--clusterrole=cluster-admin", "--user=me", "--as="+identity); err == nil {
		t.Error("the controller may bind cluster-admin")
	}
}

// TestForbiddenNamespaces: a controller that may not even list namespaces says so, too.
func TestForbiddenNamespaces(t *testing.T) {
	if strings.Contains(filepath.Base(program), "runtime") {
		t.Skip("a Manager of controller-runtime waits two minutes for its caches, and ends; no status says why")
	}
	restore := withoutPermission(t, `"namespaces"`, `"nodes"`)
	want(t, "forbidden", "get", "namespaces", "--as="+identity)
	controller := start(t)
	mustApply(t, "forbidden-namespaces", `{}`)
	wantCondition(t, "forbidden-namespaces", "Ready", `False Forbidden: namespaces is forbidden: .*cannot list resource "namespaces".*rbac.yaml`)
	restore()
	stop(controller) // it would try again, too, but not for up to a minute
	start(t)
	wantCondition(t, "forbidden-namespaces", "Ready", "True Applied")
}

// withoutPermission changes the text of the controller's role. It returns what restores it.
func withoutPermission(t *testing.T, before, after string) (restore func()) {
	t.Helper()
	role := regexp.MustCompile(`"(resourceVersion|uid)": "[^"]*",?`).
		ReplaceAllString(kubectl(t, "get", "clusterrole", "namespaceplus", "-o", "json"), "")
	file := t.TempDir() + "/role.json"
	replace := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Error(err)
		}
		if _, err := cluster.Kubectl(context.Background(), "replace", "-f", file); err != nil { // also after the test
			t.Error(err)
		}
	}
	replace(strings.Replace(role, before, after, 1))
	restore = sync.OnceFunc(func() { replace(role) })
	t.Cleanup(restore)
	return restore
}

// TestNotInstalled: without the CRD of Networks, a tenant gets everything else.
func TestNotInstalled(t *testing.T) {
	const crd = "crd/networks.samplecrd.k8s.io"
	kubectl(t, "annotate", crd, "samplecrd.k8s.io/allow-deletion=true")
	kubectl(t, "delete", crd)
	want(t, "NotFound", "get", "--raw", "/apis/samplecrd.k8s.io")
	t.Cleanup(func() { // the context of the test has ended
		for _, args := range [][]string{
			{"apply", "-f", "../../crd"}, {"wait", "--for=condition=Established", crd},
		} {
			if _, err := cluster.Kubectl(context.Background(), args...); err != nil {
				t.Error(err)
			}
		}
	})
	start(t)
	mustApply(t, "not-installed", everything)
	wantCondition(t, "not-installed", "Ready", "False NotInstalled: applying Network namespaceplus: .*CustomResourceDefinition of Networks")
	want(t, "resourcequota", "get", "resourcequota", "-n", "not-installed", "-o", "name")
}

// TestRejected: the API server rejects what is dangerous, with a sentence that says why.
// What it lets through becomes a condition.
func TestRejected(t *testing.T) {
	for name, test := range map[string]struct{ name, spec, why string }{
		"a namespace of Kubernetes":      {"kube-system", `{"adopt": true}`, "not for tenants"},
		"no name of a namespace":         {"a.b", `{}`, "valid name of a namespace"},
		"cluster-admin":                  {"r", `{"members": [{"role": "cluster-admin", "name": "me"}]}`, "Unsupported value"},
		"a ServiceAccount of nowhere":    {"r", `{"members": [{"role": "view", "kind": "ServiceAccount", "name": "x"}]}`, "requires a namespace"},
		"a notification without TLS":     {"r", `{"notification": {"url": "http://example.com/x"}}`, "https://"},
		"a notification to a file":       {"r", `{"notification": {"url": "file:///etc/passwd"}}`, "https://"},
		"a loopback that is none":        {"r", `{"notification": {"url": "http://localhost.example.com"}}`, "https://"},
		"a loopback that is a user name": {"r", `{"notification": {"url": "http://localhost@example.com"}}`, "https://"},
		"a direction that is none":       {"r", `{"defaultDeny": ["Everything"]}`, "Unsupported value"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := apply(t, test.name, test.spec); err == nil || !strings.Contains(err.Error(), test.why) {
				t.Errorf("the API server returns %v, want %q", err, test.why)
			}
		})
	}
	start(t)
	mustApply(t, "invalid", `{"resourceQuota": {"a b/c": "1"}, "members": [{"role": "admin", "name": "alice"}]}`)
	wantCondition(t, "invalid", "Ready", `False Invalid: applying ResourceQuota`)
	want(t, "^$", "get", "rolebindings", "-n", "invalid", "-o", "name")
}

// TestNotification: a receiver gets a signed message, again with the same key until it
// accepts it, and then never again. A redirect is no success, and the status has no path.
func TestNotification(t *testing.T) {
	createWebhookKey(t)
	r := newReceiver(t)
	controller := start(t)
	mustApply(t, "notified", fmt.Sprintf(`{"notification": {"url": "%s/secret-path"}}`, r.URL))
	wantCondition(t, "notified", "Ready", "True Applied")
	wantCondition(t, "notified", "Notified", "False Failed: .*status code 307")
	r.accept()
	wantCondition(t, "notified", "Notified", "True Accepted")
	stop(controller)
	restarted := start(t)
	mustApply(t, "notified-later", `{}`)
	wantCondition(t, "notified-later", "Ready", "True Applied")
	stop(restarted)
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, times := range r.keys {
		if times != 1 {
			t.Errorf("the key %s was accepted %d times", key, times)
		}
	}
	if len(r.keys) != 1 || len(r.attempted) != 1 || len(r.bad) > 0 {
		t.Errorf("accepted: %v, attempted: %v, wrong: %v", r.keys, r.attempted, r.bad)
	}
	for _, text := range []string{controller.Log(), restarted.Log(), kubectl(t, "get", "namespaceplus", "notified", "-o", "jsonpath={.status}")} {
		if strings.Contains(text, "secret-path") || strings.Contains(text, webhookKey) {
			t.Errorf("a secret is in %s", text)
		}
	}
}

// TestNotificationRepeated: if the controller ends before it records that a notification was
// accepted, it sends it again, with the same key.
func TestNotificationRepeated(t *testing.T) {
	createWebhookKey(t)
	r := newReceiver(t)
	r.accept()
	r.mu.Lock()
	r.hold = make(chan struct{})
	r.mu.Unlock()
	controller := start(t)
	mustApply(t, "repeated", fmt.Sprintf(`{"notification": {"url": "%s"}}`, r.URL))
	running.Eventually(t, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.keys) == 0 {
			return errors.New("nothing was received")
		}
		return nil
	})
	mustApply(t, "repeated-other", `{}`)
	wantCondition(t, "repeated-other", "Ready", "True Applied") // nobody waits for a slow receiver
	controller.Kill()
	close(r.hold)
	start(t)
	wantCondition(t, "repeated", "Notified", "True Accepted")
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.keys) != 1 {
		t.Errorf("accepted: %v", r.keys)
	}
}

// TestNotificationHostile: what a receiver sends is in no status and no log.
func TestNotificationHostile(t *testing.T) {
	createWebhookKey(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		connection, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = connection.Write([]byte("of the receiver\r\n\r\n"))
			_ = connection.Close()
		}
	}))
	t.Cleanup(server.Close)
	controller := start(t)
	mustApply(t, "hostile", fmt.Sprintf(`{"notification": {"url": "%s"}}`, server.URL))
	wantCondition(t, "hostile", "Notified", "False Failed: .*no valid response")
	if text := controller.Log() + kubectl(t, "get", "namespaceplus", "hostile", "-o", "jsonpath={.status}"); strings.Contains(text, "of the receiver") {
		t.Error(text)
	}
}

// TestDebugPage: the debug page shows what a tenant has cost.
func TestDebugPage(t *testing.T) {
	controller := running.Start(t, nil, program, "-kubeconfig="+kubeconfig, "-debug-bind-address=127.0.0.1:0")
	url := controller.URL("the debug page")
	mustApply(t, "shown", `{}`)
	wantCondition(t, "shown", "Ready", "True Applied")
	running.Eventually(t, func() error {
		journeys, err := running.Get(url + "api/journeys?key=shown")
		if err == nil && !strings.Contains(journeys, "patch namespacepluses status") {
			err = fmt.Errorf("the page shows %s", journeys)
		}
		return err
	})
}

// TestRequests measures what a tenant costs. It prints a line for the page that compares
// the two programs.
func TestRequests(t *testing.T) {
	const tenants = 20
	_, before := requests(t, 0)
	controller := start(t)
	started, offset := requests(t, before)
	var all []string
	for i := range tenants {
		all = append(all, fmt.Sprintf(`{"apiVersion": "mygroup.my.domain/v1", "kind": "NamespacePlus",
			"metadata": {"name": "requests-%d", "labels": {"test": "requests"}}, "spec": %s}`, i, everything))
	}
	file := t.TempDir() + "/tenants.json"
	list := `{"apiVersion": "v1", "kind": "List", "items": [` + strings.Join(all, ",") + `]}`
	if err := os.WriteFile(file, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl(t, "apply", "-f", file)
	t.Cleanup(func() { _, _ = cluster.Kubectl(context.Background(), "delete", "--wait=false", "-f", file) })
	kubectl(t, "wait", "--for=condition=Ready", "--timeout=2m", "namespaceplus", "-l", "test=requests")
	mustApply(t, "requests-marker", `{}`) // the queue has handled everything before it
	wantCondition(t, "requests-marker", "Ready", "True Applied")
	sent, _ := requests(t, offset)
	perTenant := float64(len(writes(sent))) / tenants
	// The namespace, 7 objects in it, and the status; some twice, before the cache has them.
	if perTenant < 9 || perTenant > 2*9 {
		t.Errorf("%.1f writes a tenant: %v", perTenant, writes(sent))
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", controller.PID()))
	memory := regexp.MustCompile(`VmRSS:\s+(\d+)`).FindSubmatch(status)
	if err != nil || memory == nil {
		memory = [][]byte{nil, []byte("?")}
	}
	t.Logf("start: %d requests; a tenant: %.1f writes; memory with %d tenants: %s kB", len(started), perTenant, tenants, memory[1])
}
