package browser

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/samplecrd/network-controller/test/internal/process"
	"github.com/samplecrd/network-controller/test/launch"
)

// controller is one whose objects the tests know, and nothing else of it.
type controller struct {
	build        func(t *testing.T, dir, page string) (command []string) // page is the address to serve it at
	crd          string                                                  // in dir, or in the repository
	name         string                                                  // on the page
	ready, fails string                                                  // objects
	keys         [2]string                                               // of these
	before, heal []string                                                // arguments of kubectl, for the one that fails
	stages       string                                                  // of a sync
	external     string                                                  // server beside Kubernetes
}

var controllers = map[string]controller{
	"the smallest controller of lesson 14": {
		build: buildFarewell, crd: "learn.example.org_farewells.yaml", name: "farewell", stages: "sync",
		ready:  "{apiVersion: learn.example.org/v1, kind: Farewell, metadata: {name: ada, namespace: default}, spec: {person: Ada}}",
		fails:  "{apiVersion: learn.example.org/v1, kind: Farewell, metadata: {name: bob, namespace: default}, spec: {person: Bob}}",
		keys:   [2]string{"default/ada", "default/bob"},
		before: []string{"create", "configmap", "bob"}, heal: []string{"delete", "configmap", "bob"},
	},
	"namespaceplus on controller-runtime": {
		build: buildRuntime, crd: "example/namespaceplus/deploy/mygroup.my.domain_namespacepluses.yaml",
		name: "namespaceplus on controller-runtime", stages: "sync",
		ready:  "{apiVersion: mygroup.my.domain/v1, kind: NamespacePlus, metadata: {name: team-a}, spec: {}}",
		fails:  "{apiVersion: mygroup.my.domain/v1, kind: NamespacePlus, metadata: {name: team-b}, spec: {}}",
		keys:   [2]string{"/team-a", "/team-b"},
		before: []string{"create", "namespace", "team-b"}, heal: []string{"patch", "namespaceplus", "team-b", "--type=merge", "-p", `{"spec":{"adopt":true}}`},
	},
	"the controller of Networks": {
		build: buildNetworks, crd: "crd/network.yaml", name: "samplecrd-controller", stages: "desired,actual,plan,apply,report", external: "Neutron",
		ready: "{apiVersion: samplecrd.k8s.io/v1, kind: Network, metadata: {name: ada, namespace: default}, spec: {cidr: 10.1.0.0/24}}",
		fails: "{apiVersion: samplecrd.k8s.io/v1, kind: Network, metadata: {name: bob, namespace: default}, spec: {cidr: 10.1.1.0/24}}",
		keys:  [2]string{"default/ada", "default/bob"},
	},
}

// TestPrograms: the page shows each program that serves it: its keys on their way, its
// journeys, a failure with its retry, and neither more stages nor servers than it has.
func TestPrograms(t *testing.T) {
	for name, program := range controllers {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			address, err := launch.FreeAddress(t.Context(), "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			command := program.build(t, dir, address)
			path := filepath.Join(dir, program.crd)
			if _, err := os.Stat(path); err != nil {
				path = filepath.Join(root, program.crd)
			}
			kubectl(t, "apply", "--server-side", "-f", path)
			kubectl(t, "wait", "--for=condition=Established", "-f", path)
			running, err := process.Start(dir, process.Program{Name: "program", Args: command})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				running.Stop(patience)
				if t.Failed() {
					t.Logf("the program's log:\n%s", running.Log())
				}
			})
			program.try(t, address)
		})
	}
}

// try makes an object and another one that fails, and looks at the page.
func (program controller) try(t *testing.T, address string) {
	eventually(t, "the page is served", func() error {
		return run("curl", "-fsS", "http://"+address+"/api/state")
	})
	p := openTab(t, "http://"+address+"/#"+program.keys[0], look{width: 1280})
	p.waitFor("the page is connected", `document.querySelector('#connection[data-state=open]') && document.querySelector('h1').textContent === `+literal(program.name))
	apply(t, program.ready)
	p.waitFor("the key has travelled", `observed.lit.includes('queue') && observed.lit.includes('worker')`)
	p.waitFor("its journey is listed", `document.querySelector('#journeys details:not(.failed, .running)')`)
	shown := evaluate[string](p, `Array.from(document.querySelectorAll('.words [data-stage]:not([data-stage=worker])'), e => e.dataset.stage).join()`)
	servers := evaluate[string](p, `document.querySelector('.servers').checkVisibility() ? document.querySelector('[data-stage=server] .name').textContent : ''`)
	if shown != program.stages || servers != program.external {
		t.Errorf("the stages are %q and the servers %q, want %q and %q", shown, servers, program.stages, program.external)
	}
	if found := evaluate[bool](p, `document.body.innerText.includes('Neutron')`); found != (program.external == "Neutron") {
		t.Errorf("the page mentions Neutron: %v", found)
	}
	p.do(chromedp.Evaluate[chromedp.Void](fitScript))
	for _, width := range []int64{360, 820, 1280, 1920} {
		p.do(chromedp.EmulateViewport(width, height))
		for _, misfit := range evaluate[[]string](p, `misfits()`) {
			t.Errorf("at %d: %s", width, misfit)
		}
	}
	if program.before == nil {
		return // TestBackoffAndReconnect
	}
	kubectl(t, program.before...)
	apply(t, program.fails)
	key := strings.TrimPrefix(program.keys[1], "/")
	p.do(chromedp.Evaluate[chromedp.Void](`location.hash = ` + literal(program.keys[1])))
	p.waitFor("the key waits for its retry", `document.querySelector('#backoff [data-key="`+key+`"] .countdown')?.textContent`)
	p.waitFor("its failure is listed", `document.querySelector('#journeys .failed')`)
	kubectl(t, program.heal...)
	p.waitFor("it succeeds", `!document.querySelector('#backoff li') && document.querySelector('#journeys details:not(.failed, .running)')`)
}

func buildNetworks(_ *testing.T, _, page string) []string {
	return []string{built, "-kubeconfig=" + cluster.Kubeconfig(), "-namespaces=default", "-debug-bind-address=" + page, "-leader-elect=false"}
}

func buildRuntime(t *testing.T, dir, page string) []string {
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "runtime"), ".")
	build.Dir = filepath.Join(root, "example", "namespaceplus", "runtime")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, output)
	}
	return []string{filepath.Join(dir, "runtime"), "-kubeconfig=" + cluster.Kubeconfig(), "-debug-bind-address=" + page}
}

// typed finds the commands of a lesson in its first terminal.
var typed = regexp.MustCompile("(?ms)^```sh\\n(.*?)^```")

// buildFarewell types what lesson 14 says, until the program is complete.
func buildFarewell(t *testing.T, dir, page string) []string {
	text, err := os.ReadFile(filepath.Join(root, "docs", "learn", "14-write-your-own.md"))
	if err != nil {
		t.Fatal(err)
	}
	var script bytes.Buffer
	fmt.Fprintln(&script, "set -e")
	for _, block := range typed.FindAllStringSubmatch(string(text), -1) {
		if strings.HasPrefix(block[1], "cat >rbac.yaml") {
			break
		}
		script.WriteString(block[1])
	}
	fmt.Fprintln(&script, "go build -o farewell .")
	commands := strings.NewReplacer("../farewell", dir, "127.0.0.1:8123", page).Replace(script.String())
	bash := exec.Command("bash", "-c", commands)
	bash.Dir = root
	if output, err := bash.CombinedOutput(); err != nil {
		t.Fatalf("typing the lesson: %v\n%s", err, output)
	}
	return []string{filepath.Join(dir, "farewell"), "-kubeconfig=" + cluster.Kubeconfig()}
}
