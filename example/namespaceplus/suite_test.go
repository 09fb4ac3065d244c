package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clientset "github.com/samplecrd/network-controller/example/namespaceplus/client/clientset/versioned"
	typed "github.com/samplecrd/network-controller/example/namespaceplus/client/clientset/versioned/typed/mygroup/v1"
	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/running"
)

// programVariable names the program to test, if it is not this one. make test-examples
// tests the program on controller-runtime.
const programVariable = "NAMESPACEPLUS_PROGRAM"

// identity is the user name of the controller.
const identity = "system:serviceaccount:namespaceplus-system:namespaceplus"

var (
	cluster    *controlplane.Cluster
	program    string
	kubeconfig string // with the permissions of deploy/rbac.yaml
	auditLog   string
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "namespaceplus-")
	if err == nil {
		err = prepare(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "namespaceplus:", err)
		os.Exit(1)
	}
	code := controlplane.RunTests(m, controlplane.Options{
		Apply:             []string{"crd", "example/namespaceplus/deploy"},
		ControllerManager: true,
		APIServerArgs:     []string{"--audit-policy-file=" + auditLog + ".policy", "--audit-log-path=" + auditLog},
	}, func(c *controlplane.Cluster) {
		cluster = c
		if kubeconfig, err = c.KubeconfigFor(context.Background(), "namespaceplus-system", "namespaceplus"); err != nil {
			panic(err)
		}
	})
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// prepare builds the program, and writes the audit policy.
func prepare(dir string) (err error) {
	auditLog = filepath.Join(dir, "audit.log")
	policy := `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata", "users": ["` + identity +
		`"], "omitStages": ["RequestReceived", "Panic"]}, {"level": "None"}]}`
	if err := os.WriteFile(auditLog+".policy", []byte(policy), 0o600); err != nil {
		return err
	}
	if program = os.Getenv(programVariable); program != "" {
		program, err = filepath.Abs(program)
		return err
	}
	program = filepath.Join(dir, "namespaceplus")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Stderr = os.Stderr
	return build.Run()
}

// test is a test with clients.
type test struct {
	running.Kubectl
	tenants typed.NamespacePlusInterface
}

func newTest(t *testing.T) test {
	client := clientset.NewForConfigOrDie(cluster.RESTConfig())
	return test{running.Kubectl{T: t, Cluster: cluster}, client.MygroupV1().NamespacePluses()}
}

// start starts the controller, and waits until it works.
func (t test) start() *running.Program {
	t.Helper()
	p := running.Start(t.T, nil, program, "-kubeconfig="+kubeconfig, "-debug-bind-address=127.0.0.1:0")
	p.WaitFor(`(?i)starting workers`)
	return p
}

func stop(p *running.Program) { p.Stop(running.Patience) }

// manifest returns a NamespacePlus with a spec in JSON.
func manifest(name, spec string) string {
	return fmt.Sprintf(`{"apiVersion": "mygroup.my.domain/v1", "kind": "NamespacePlus", `+
		`"metadata": {"name": %q}, "spec": %s}`, name, spec)
}

const ready = "True Applied"

// give applies a NamespacePlus, and waits for its condition Ready.
func (t test) give(name, spec, want string) {
	t.Helper()
	t.Apply(manifest(name, spec))
	t.wantCondition(name, "Ready", want)
}

// wantRejected applies a NamespacePlus that the API server must reject for a reason.
func (t test) wantRejected(name, spec, why string) {
	t.Helper()
	if err := t.TryApply(manifest(name, spec)); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("%s is rejected with %v, want %q", spec, err, why)
	}
}

// wantCondition waits for a condition of the present generation.
func (t test) wantCondition(name, condition, pattern string) {
	t.Helper()
	running.Eventually(t.T, func() error {
		object, err := t.tenants.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		text := ""
		if c := apimeta.FindStatusCondition(object.Status.Conditions, condition); c != nil {
			text = fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
			if c.ObservedGeneration == object.Generation && regexp.MustCompile(pattern).MatchString(text) {
				return nil
			}
		}
		return fmt.Errorf("the condition %s of %s is %q, want %s", condition, name, text, pattern)
	})
}

// request is an entry of the audit log.
type request struct {
	Verb      string
	ObjectRef struct{ Resource, Subresource, Namespace, Name string }
}

// requests returns the requests of the controller without the first ones, and how many there
// are with these.
func (t test) requests(without int) (all []request, number int) {
	t.Helper()
	text, err := os.ReadFile(auditLog)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(text, []byte("\n")) // the last one is empty, or being written
	for _, line := range lines[without : len(lines)-1] {
		var one request
		if err := json.Unmarshal(line, &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all, len(lines) - 1
}

// writes returns the requests, without the first ones, that change something for tenants whose
// name has a prefix.
func (t test) writes(without int, prefix string) []request {
	t.Helper()
	all, _ := t.requests(without)
	return slices.DeleteFunc(all, func(r request) bool {
		return slices.Contains([]string{"get", "list", "watch"}, r.Verb) ||
			!strings.HasPrefix(r.ObjectRef.Name, prefix) && !strings.HasPrefix(r.ObjectRef.Namespace, prefix)
	})
}

const webhookKey = "a key of the tests"

// receiver receives notifications.
type receiver struct {
	*httptest.Server
	mu        sync.Mutex
	respond   func(http.ResponseWriter) // nil accepts
	attempted map[string]bool           // keys
	accepted  map[string]int            // keys
	forged    int
}

// newReceiver starts a receiver, and creates the Secret with the key of signatures.
func (t test) newReceiver(respond func(http.ResponseWriter)) *receiver {
	t.Helper()
	t.Apply(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "namespaceplus-webhook", ` +
		`"namespace": "namespaceplus-system"}, "stringData": {"key": "` + webhookKey + `"}}`)
	r := &receiver{respond: respond, accepted: map[string]int{}, attempted: map[string]bool{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	mac := hmac.New(sha256.New, []byte(webhookKey))
	mac.Write(body)
	r.mu.Lock()
	defer r.mu.Unlock()
	key := request.Header.Get("Idempotency-Key")
	r.attempted[key] = true
	if request.Header.Get("X-Namespaceplus-Signature") != "sha256="+hex.EncodeToString(mac.Sum(nil)) {
		r.forged++
	}
	if r.respond != nil {
		r.respond(w)
	} else {
		r.accepted[key]++
	}
}

// become changes what the receiver responds.
func (r *receiver) become(respond func(http.ResponseWriter)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.respond = respond
}
