package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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
	"members": [
		{"role": "admin", "name": "alice"},
		{"role": "view", "kind": "ServiceAccount", "namespace": "ci", "name": "reader"}
	],
	"networkCIDR": "10.9.0.0/24"
}`

const owned = "resourcequotas,limitranges,networkpolicies,poddisruptionbudgets,rolebindings,networks"

// TestGiven: a tenant gets everything. Without a spec, it gets a quota of nothing. The debug
// page shows what a tenant has cost.
func TestGiven(tt *testing.T) {
	t := newTest(tt)
	controller := t.start()
	t.give("given", everything, ready)
	t.give("given-nothing", `{}`, ready)
	objects := t.Do("get", owned, "-n", "given", "-l", "mygroup.my.domain/tenant=given", "-o", "name")
	if strings.Count(objects, "\n") != 7 {
		t.Errorf("the tenant has %s", objects)
	}
	t.Want("^0 0 0$", "get", "resourcequota", "namespaceplus", "-n", "given-nothing",
		"-o", "jsonpath={.spec.hard.cpu} {.spec.hard.memory} {.spec.hard.pods}")
	t.Want("^10.9.0.0/24$", "get", "network", "namespaceplus", "-n", "given", "-o", "jsonpath={.spec.cidr}")

	url := controller.URL("the debug page")
	running.Eventually(tt, func() error {
		journeys, err := running.Get(url + "api/journeys?key=given")
		if err == nil && !strings.Contains(journeys, "patch namespacepluses status") {
			err = fmt.Errorf("the page shows %s", journeys)
		}
		return err
	})
}

// TestDrift: what somebody changes, deletes or hides is repaired because of the event. What
// somebody adds beside it stays. Two replicas without a leader do so twice, and then both
// are quiet.
func TestDrift(tt *testing.T) {
	t := newTest(tt)
	replicas := []*running.Program{t.start(), t.start()}
	t.give("drift", everything, ready)
	pods := []string{"get", "resourcequota", "namespaceplus", "-n", "drift",
		"-o", "jsonpath={.spec.hard.pods} {.spec.hard.services}"}
	t.Do("patch", "resourcequota", "namespaceplus", "-n", "drift", "--type=merge",
		"-p", `{"spec":{"hard":{"pods":"500","services":"1"}}}`)
	t.Want("^5 1$", pods...)
	t.Do("delete", "networkpolicy", "namespaceplus", "-n", "drift")
	t.Want("Ingress.*Egress", "get", "networkpolicy", "namespaceplus", "-n", "drift", "-o", "jsonpath={.spec.policyTypes}")
	t.Do("label", "rolebinding", "namespaceplus-admin", "-n", "drift", "mygroup.my.domain/tenant-")
	t.Want("rolebinding", "get", "rolebinding", "-n", "drift", "-l", "mygroup.my.domain/tenant=drift", "-o", "name",
		"namespaceplus-admin")
	t.Do("set", "subject", "rolebinding", "namespaceplus-view", "-n", "drift", "--user=mallory")
	t.Want("^reader$", "get", "rolebinding", "namespaceplus-view", "-n", "drift", "-o", "jsonpath={.subjects[*].name}")
	t.Do("label", "namespace", "drift", "mygroup.my.domain/tenant-")
	t.Want("^drift$", "get", "namespace", "drift", "-o", `jsonpath={.metadata.labels.mygroup\.my\.domain/tenant}`)

	// It is created again when it is gone.
	uid := t.Do("get", "namespace", "drift", "-o", "jsonpath={.metadata.uid}")
	t.Do("delete", "namespace", "drift")
	t.Want("^5", pods...)
	if again := t.Do("get", "namespace", "drift", "-o", "jsonpath={.metadata.uid}"); again == uid {
		t.Error("the namespace was not deleted")
	}
	t.wantCondition("drift", "Ready", ready)

	// Both have handled all events of the tenant when they have handled a few later ones.
	t.give("later", `{}`, ready)
	var offset int
	for range 3 {
		_, offset = t.requests(0)
		t.Do("delete", "resourcequota", "namespaceplus", "-n", "later")
		t.Want("resourcequota", "get", "resourcequota", "-n", "later", "-o", "name")
	}
	for _, replica := range replicas {
		stop(replica)
	}
	if sent := t.writes(offset, "drift"); len(sent) > 0 {
		t.Errorf("the replicas send %v", sent)
	}
}

// TestEditInUse: an edit changes and removes what the spec names, and nothing else: not
// the namespace, its Pods, nor an object of the tenant.
func TestEditInUse(tt *testing.T) {
	t := newTest(tt)
	t.start()
	t.give("edit", everything, ready)
	t.Do("create", "-n", "edit", "deployment", "web", "--image=web")
	t.Do("create", "-n", "edit", "rolebinding", "own", "--clusterrole=view", "--user=bob")
	t.Do("label", "-n", "edit", "rolebinding", "own", "mygroup.my.domain/tenant=edit")
	before := t.Do("get", "namespace/edit", "-o", "jsonpath={.metadata.uid}")
	t.give("edit", `{"resourceQuota": {"pods": "9"}, "members": [{"role": "edit", "name": "alice"}]}`, ready)
	t.Want(`^\{"pods":"9"\}$`, "get", "resourcequota", "namespaceplus", "-n", "edit", "-o", "jsonpath={.spec.hard}")
	t.Want("^namespaceplus namespaceplus-edit own $", "get", owned, "-n", "edit", "--sort-by=.metadata.name",
		"-o", `jsonpath={range .items[*]}{.metadata.name} {end}`)
	t.Want("^"+before+"$", "get", "namespace/edit", "-o", "jsonpath={.metadata.uid}")
	t.Want("web", "get", "-n", "edit", "deployment", "-o", "name")
}

// TestTakeover: a namespace of somebody else stays untouched until the spec says so, and then
// its contents stay. An object of somebody else that has the name of ours is not overwritten.
func TestTakeover(tt *testing.T) {
	t := newTest(tt)
	controller := t.start()
	t.Do("create", "namespace", "taken")
	t.Do("create", "-n", "taken", "configmap", "theirs")
	t.give("taken", `{}`, "False NamespaceExists: .*spec.adopt")
	t.Want("^$", "get", "resourcequota,rolebindings", "-n", "taken", "-o", "name")
	t.wantRejected("taken", `{"adopt": true, "deletionPolicy": "Delete"}`, "never deleted")
	t.give("taken", `{"adopt": true}`, ready)
	t.wantRejected("taken", `{"deletionPolicy": "Delete"}`, "cannot be taken back")
	t.Want("theirs", "get", "-n", "taken", "configmap", "-o", "name")

	t.give("conflict", `{}`, ready)
	stop(controller)
	t.Do("create", "-n", "conflict", "poddisruptionbudget", "namespaceplus", "--selector=a=b", "--max-unavailable=3")
	t.start()
	t.give("conflict", `{"podDisruptionBudget": {"maxUnavailable": 1}}`, "False Conflict: .*PodDisruptionBudget")
	t.Want("^3$", "get", "-n", "conflict", "poddisruptionbudget", "namespaceplus", "-o", "jsonpath={.spec.maxUnavailable}")
}

// TestDeletionWhileDown: what a deletion does needs no controller. Delete deletes the
// namespace with its contents, Retain keeps it, and a later NamespacePlus continues with
// it, without being asked.
func TestDeletionWhileDown(tt *testing.T) {
	t := newTest(tt)
	controller := t.start()
	t.give("deleted", `{"deletionPolicy": "Delete"}`, ready)
	t.give("retained", `{"resourceQuota": {"pods": "5"}}`, ready)
	t.Do("create", "-n", "retained", "deployment", "web", "--image=web")
	t.wantRejected("deleted", `{"deletionPolicy": "Retain"}`, "cascade=orphan")
	stop(controller)
	t.Do("delete", "namespaceplus", "deleted", "retained")
	t.Do("wait", "--for=delete", "--timeout=60s", "namespace/deleted")
	t.Want("deployment.*web", "get", "-n", "retained", "deployment,resourcequota", "-o", "name")
	t.start()
	t.give("retained", `{"resourceQuota": {"pods": "6"}}`, ready)
	t.Want("^6$", "get", "-n", "retained", "resourcequota", "namespaceplus", "-o", "jsonpath={.spec.hard.pods}")
}

// TestForbidden: without a permission, the condition names verb and resource, and nobody
// gets in while a limit is missing. With the permission, the tenant becomes ready.
func TestForbidden(tt *testing.T) {
	t := newTest(tt)
	t.start()
	restore := t.withoutPermission(`"resourcequotas",`, "")
	t.give("forbidden", everything,
		`False Forbidden: .*cannot (create|patch) resource "resourcequotas".*rbac.yaml`)
	t.Want("^$", "get", "rolebindings", "-n", "forbidden", "-o", "name")
	restore()
	t.wantCondition("forbidden", "Ready", ready)
	t.Want("attempting to grant", "create", "rolebinding", "x", "-n", "forbidden", "--clusterrole=cluster-admin",
		"--user=me", "--as="+identity)
}

// TestForbiddenNamespaces: a controller that may not even list namespaces says so, too.
func TestForbiddenNamespaces(tt *testing.T) {
	if strings.Contains(filepath.Base(program), "runtime") {
		tt.Skip("a Manager of controller-runtime waits two minutes for its caches, and ends; no status says why")
	}
	t := newTest(tt)
	restore := t.withoutPermission(`"namespaces"`, `"nodes"`)
	t.Want("forbidden", "get", "namespaces", "--as="+identity)
	controller := t.start()
	t.give("forbidden-namespaces", `{}`,
		`False Forbidden: namespaces is forbidden: .*cannot list resource "namespaces".*rbac.yaml`)
	restore()
	stop(controller) // it would try again, too, but not for up to a minute
	t.start()
	t.wantCondition("forbidden-namespaces", "Ready", ready)
}

// withoutPermission changes the text of the controller's role. It returns what restores it.
func (t test) withoutPermission(before, after string) (restore func()) {
	t.Helper()
	role := regexp.MustCompile(`"(resourceVersion|uid)": "[^"]*",?`).
		ReplaceAllString(t.Do("get", "clusterrole", "namespaceplus", "-o", "json"), "")
	file := filepath.Join(t.TempDir(), "role.json")
	replace := func(text string) {
		err := os.WriteFile(file, []byte(text), 0o600)
		_, failed := cluster.Kubectl(context.Background(), "replace", "-f", file) // also after the test
		if err := errors.Join(err, failed); err != nil {
			t.Error(err)
		}
	}
	replace(strings.Replace(role, before, after, 1))
	restore = sync.OnceFunc(func() { replace(role) })
	t.Cleanup(restore)
	return restore
}

// TestNotInstalled: without the CRD of Networks, a tenant gets everything else.
func TestNotInstalled(tt *testing.T) {
	t := newTest(tt)
	const crd = "crd/networks.samplecrd.k8s.io"
	t.Do("annotate", crd, "samplecrd.k8s.io/allow-deletion=true")
	t.Do("delete", crd)
	t.Want("NotFound", "get", "--raw", "/apis/samplecrd.k8s.io")
	t.Cleanup(func() { // the context of the test has ended
		_, err := cluster.Kubectl(context.Background(), "apply", "-f", "../../crd")
		_, failed := cluster.Kubectl(context.Background(), "wait", "--for=condition=Established", crd)
		if err := errors.Join(err, failed); err != nil {
			t.Error(err)
		}
	})
	t.start()
	t.give("not-installed", everything,
		"False NotInstalled: applying Network namespaceplus: .*CustomResourceDefinition of Networks")
	t.Want("resourcequota", "get", "resourcequota", "-n", "not-installed", "-o", "name")
}

// TestRejected: the API server rejects what is dangerous, with a sentence that says why.
// What it lets through becomes a condition.
func TestRejected(tt *testing.T) {
	t := newTest(tt)
	for _, test := range []struct{ name, spec, why string }{
		{"kube-system", `{"adopt": true}`, "not for tenants"},
		{"a.b", `{}`, "valid name of a namespace"},
		{"r", `{"members": [{"role": "cluster-admin", "name": "me"}]}`, "Unsupported value"},
		{"r", `{"members": [{"role": "view", "kind": "ServiceAccount", "name": "x"}]}`, "requires a namespace"},
		{"r", `{"notification": {"url": "http://example.com/x"}}`, "https://"},
		{"r", `{"notification": {"url": "file:///etc/passwd"}}`, "https://"},
		{"r", `{"notification": {"url": "http://localhost.example.com"}}`, "https://"},
		{"r", `{"notification": {"url": "http://localhost@example.com"}}`, "https://"},
		{"r", `{"defaultDeny": ["Everything"]}`, "Unsupported value"},
	} {
		t.wantRejected(test.name, test.spec, test.why)
	}
	t.start()
	t.give("invalid", `{"resourceQuota": {"a b/c": "1"}, "members": [{"role": "admin", "name": "alice"}]}`,
		`False Invalid: applying ResourceQuota`)
	t.Want("^$", "get", "rolebindings", "-n", "invalid", "-o", "name")
}

// TestNotification: a receiver gets a signed message, again with the same key until it
// accepts it, and then never again. A redirect is no success. The path of the URL and what
// a receiver sends are in no status and no log.
func TestNotification(tt *testing.T) {
	t := newTest(tt)
	r := t.newReceiver(func(w http.ResponseWriter) {
		if connection, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_, _ = connection.Write([]byte("of the receiver\r\n\r\n"))
			_ = connection.Close()
		}
	})
	controller := t.start()
	t.give("notified", fmt.Sprintf(`{"notification": {"url": "%s/secret-path"}}`, r.URL), ready)
	t.wantCondition("notified", "Notified", "False Failed: .*no valid response")
	texts := t.Do("get", "namespaceplus", "notified", "-o", "jsonpath={.status}")
	r.become(func(w http.ResponseWriter) {
		w.Header().Set("Location", r.URL+"/elsewhere")
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	t.wantCondition("notified", "Notified", "False Failed: .*status code 307")
	r.become(nil)
	t.wantCondition("notified", "Notified", "True Accepted")
	stop(controller)
	restarted := t.start()
	t.give("notified-later", `{}`, ready)
	stop(restarted)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.attempted) != 1 || len(r.accepted) != 1 || r.forged > 0 {
		t.Errorf("attempted: %v, accepted: %v, with a wrong signature: %d", r.attempted, r.accepted, r.forged)
	}
	for key, times := range r.accepted {
		if times != 1 {
			t.Errorf("the key %s was accepted %d times", key, times)
		}
	}
	texts += controller.Log() + restarted.Log() + t.Do("get", "namespaceplus", "notified", "-o", "jsonpath={.status}")
	for _, secret := range []string{"secret-path", webhookKey, "of the receiver"} {
		if strings.Contains(texts, secret) {
			t.Errorf("%q is in a status or log:\n%s", secret, texts)
		}
	}
}

// TestNotificationRepeated: if the controller ends before it records that a notification was
// accepted, it sends it again, with the same key. Meanwhile, no other tenant waits.
func TestNotificationRepeated(tt *testing.T) {
	t := newTest(tt)
	received, release := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(received) })
	r := t.newReceiver(func(http.ResponseWriter) { // accepts, but late
		first()
		<-release
	})
	controller := t.start()
	t.Apply(manifest("repeated", fmt.Sprintf(`{"notification": {"url": "%s"}}`, r.URL)))
	<-received
	t.give("repeated-other", `{}`, ready)
	controller.Kill()
	close(release)
	r.become(nil)
	t.start()
	t.wantCondition("repeated", "Notified", "True Accepted")
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.attempted) != 1 || len(r.accepted) != 1 {
		t.Errorf("attempted: %v, accepted: %v", r.attempted, r.accepted)
	}
}

// TestRequests measures what a tenant costs. It prints a line for the page that compares
// the two programs. A restarted controller writes nothing.
func TestRequests(tt *testing.T) {
	t := newTest(tt)
	const tenants = 20
	_, before := t.requests(0)
	controller := t.start()
	started, offset := t.requests(before)
	var all []string
	for i := range tenants {
		all = append(all, manifest(fmt.Sprintf("requests-%d", i), everything))
	}
	t.Apply(strings.Join(all, "\n---\n"))
	for i := range tenants {
		t.wantCondition(fmt.Sprintf("requests-%d", i), "Ready", ready)
	}
	t.give("marker", `{}`, ready) // the queue has handled everything before it
	// The namespace, 7 objects in it, and the status; some twice, before the cache has them.
	perTenant := float64(len(t.writes(offset, "requests-"))) / tenants
	if perTenant < 9 || perTenant > 2*9 {
		t.Errorf("%.1f writes a tenant: %v", perTenant, t.writes(offset, "requests-"))
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", controller.PID()))
	t.Logf("start: %d requests; a tenant: %.1f writes; memory with %d tenants: %s (%v)", len(started), perTenant, tenants,
		regexp.MustCompile(`VmRSS:.*`).Find(status), err)

	stop(controller)
	_, offset = t.requests(offset)
	restarted := t.start()
	t.give("marker-later", `{}`, ready) // it is reconciled after all that was there
	stop(restarted)
	if sent := t.writes(offset, "requests-"); len(sent) > 0 {
		t.Errorf("a restarted controller sends %v", sent)
	}
}
