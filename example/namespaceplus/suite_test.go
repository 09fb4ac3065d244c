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
	code := controlplane.RunTests(suite{m}, controlplane.Options{
		Apply: []string{
			"crd", "example/namespaceplus/deploy",
		},
		ControllerManager: true,
		APIServerArgs:     []string{"--audit-policy-file=" + filepath.Join(dir, "policy.yaml"), "--audit-log-path=" + auditLog},
	}, func(c *controlplane.Cluster) { cluster = c })
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// prepare builds the program, and writes the audit policy.
func prepare(dir string) error {
	auditLog = filepath.Join(dir, "audit.log")
	policy := fmt.Sprintf(`{"apiVersion": "audit.k8s.io/v1", "kind": "Policy",
		"rules": [{"level": "Metadata", "users": [%q], "omitStages": ["RequestReceived", "Panic"]}, {"level": "None"}]}`, identity)
	if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(policy), 0o600); err != nil {
		return err
	}
	if program = os.Getenv(programVariable); program != "" {
		var err error
		program, err = filepath.Abs(program)
		return err
	}
	program = filepath.Join(dir, "namespaceplus")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Stderr = os.Stderr
	return build.Run()
}

// suite runs the tests with the permissions that the controller gets.
type suite struct{ tests *testing.M }

func (s suite) Run() int {
	var err error
	if kubeconfig, err = cluster.KubeconfigFor(context.Background(), "namespaceplus-system", "namespaceplus"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return s.tests.Run()
}

// start starts the controller, and waits until it works.
func start(t *testing.T) *running.Program {
	t.Helper()
	p := running.Start(t, nil, program, "-kubeconfig="+kubeconfig)
	p.WaitFor(`(?i)starting workers`)
	return p
}

func stop(p *running.Program) { p.Stop(running.Patience) }

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	output, err := cluster.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return string(output)
}

// apply applies a NamespacePlus with a spec in JSON, which the end of the test deletes.
func apply(t *testing.T, name, spec string) error {
	t.Helper()
	file := filepath.Join(t.TempDir(), name+".yaml")
	text := fmt.Sprintf(`{"apiVersion": "mygroup.my.domain/v1", "kind": "NamespacePlus", "metadata": {"name": %q}, "spec": %s}`, name, spec)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := cluster.Kubectl(t.Context(), "apply", "-f", file)
	if err == nil {
		t.Cleanup(func() {
			_, _ = cluster.Kubectl(context.Background(), "delete", "--ignore-not-found", "--wait=false", "namespaceplus", name)
		})
	}
	return err
}

func mustApply(t *testing.T, name, spec string) {
	t.Helper()
	if err := apply(t, name, spec); err != nil {
		t.Fatal(err)
	}
}

// want waits until kubectl prints a text that matches a regular expression.
func want(t *testing.T, pattern string, args ...string) {
	t.Helper()
	running.Eventually(t, func() error {
		output, err := cluster.Kubectl(t.Context(), args...)
		if err != nil {
			output = []byte(err.Error())
		}
		if !regexp.MustCompile(pattern).Match(output) {
			return fmt.Errorf("kubectl %s prints %q, want %s", strings.Join(args, " "), output, pattern)
		}
		return nil
	})
}

// wantCondition waits for a condition of the present generation.
func wantCondition(t *testing.T, name, condition, pattern string) {
	t.Helper()
	running.Eventually(t, func() error {
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
			if c.Type == condition && c.ObservedGeneration == object.Metadata.Generation && regexp.MustCompile(pattern).MatchString(text) {
				return nil
			}
		}
		return fmt.Errorf("the conditions of generation %d are %+v, want %s %s",
			object.Metadata.Generation, object.Status.Conditions, condition, pattern)
	})
}

// request is an entry of the audit log.
type request struct {
	Verb      string
	Stage     string
	ObjectRef struct{ Resource, Subresource, Namespace, Name string }
}

func (r request) String() string {
	return strings.TrimSuffix(r.Verb+" "+r.ObjectRef.Resource+"/"+r.ObjectRef.Subresource, "/")
}

// requests returns the requests of the controller since an offset in the audit log, and
// the offset of the next ones.
func requests(t *testing.T, offset int64) (all []request, next int64) {
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

// writes returns the requests that change something.
func writes(all []request) (changing []string) {
	for _, one := range all {
		if one.Verb != "get" && one.Verb != "list" && one.Verb != "watch" {
			changing = append(changing, one.String())
		}
	}
	return changing
}

// receiver receives notifications. Until it accepts, it responds with an error.
type receiver struct {
	*httptest.Server
	mu        sync.Mutex
	accepts   bool
	hold      chan struct{}   // delays responses until it is closed, if it is not nil
	attempted map[string]bool // keys
	keys      map[string]int  // accepted
	bad       []string
}

const webhookKey = "a key of the tests"

// createWebhookKey creates the Secret with the key of signatures, again in each test.
func createWebhookKey(t *testing.T) {
	t.Helper()
	kubectl(t, "delete", "secret", "namespaceplus-webhook", "-n", "namespaceplus-system", "--ignore-not-found")
	kubectl(t, "create", "secret", "generic", "namespaceplus-webhook", "-n", "namespaceplus-system", "--from-literal=key="+webhookKey)
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{keys: map[string]int{}, attempted: map[string]bool{}}
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
	if signature := request.Header.Get("X-Namespaceplus-Signature"); signature != "sha256="+hex.EncodeToString(mac.Sum(nil)) {
		r.bad = append(r.bad, "signature "+signature)
	}
	if !r.accepts {
		w.Header().Set("Location", r.URL+"/elsewhere")
		w.WriteHeader(http.StatusTemporaryRedirect)
		return
	}
	r.keys[key]++
	if hold := r.hold; hold != nil {
		r.mu.Unlock()
		<-hold
		r.mu.Lock()
	}
}

func (r *receiver) accept() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.accepts = true
}
