package main

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
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
		APIServerArgs:     []string{"--audit-policy-file=" + filepath.Join(dir, "policy.yaml"), "--audit-log-path=" + auditLog},
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
	policy := fmt.Sprintf(`{"apiVersion": "audit.k8s.io/v1", "kind": "Policy",
		"rules": [{"level": "Metadata", "users": [%q], "omitStages": ["RequestReceived", "Panic"]}, {"level": "None"}]}`, identity)
	if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(policy), 0o600); err != nil {
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

// test is a test with kubectl.
type test struct{ running.Kubectl }

func newTest(t *testing.T) test { return test{running.Kubectl{T: t, Cluster: cluster}} }

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
	return fmt.Sprintf(`{"apiVersion": "mygroup.my.domain/v1", "kind": "NamespacePlus", "metadata": {"name": %q}, "spec": %s}`,
		name, spec)
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
		var object struct {
			Metadata struct{ Generation int64 }
			Status   struct {
				Conditions []struct {
					Type, Status, Reason, Message string
					ObservedGeneration            int64
				}
			}
		}
		output, err := cluster.Kubectl(t.Context(), "get", "namespaceplus", name, "-o", "json")
		if err := errors.Join(err, json.Unmarshal(output, &object)); err != nil {
			return err
		}
		for _, c := range object.Status.Conditions {
			text := fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
			if c.Type == condition && c.ObservedGeneration == object.Metadata.Generation &&
				regexp.MustCompile(pattern).MatchString(text) {
				return nil
			}
		}
		return fmt.Errorf("the status is %+v, want %s %s", object, condition, pattern)
	})
}

// request is an entry of the audit log.
type request struct {
	Verb      string
	ObjectRef struct{ Resource, Subresource, Namespace, Name string }
}

// requests returns the requests of the controller since an offset in the audit log, and
// the offset of the next ones.
func (t test) requests(offset int64) (all []request, next int64) {
	t.Helper()
	file, err := os.Open(auditLog)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return all, offset // the rest is being written
		}
		offset += int64(len(line))
		var one request
		if err := json.Unmarshal(line, &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
}

// writes returns the requests since an offset that change something for tenants whose name
// has a prefix.
func (t test) writes(offset int64, prefix string) []request {
	t.Helper()
	all, _ := t.requests(offset)
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
