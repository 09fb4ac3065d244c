package browser

import (
	"path/filepath"
	"testing"

	"github.com/samplecrd/network-controller/test/running"
)

// TestOtherController: the page shows another controller that serves it: its keys on their
// way, its journeys, a failure with its retry, and neither more stages nor servers than it has.
func TestOtherController(t *testing.T) {
	program, address := filepath.Join(t.TempDir(), "runtime"), freeAddress(t)
	source := filepath.Join(root, "example/namespaceplus/runtime")
	if err := run("go", "-C", source, "build", "-o", program, "."); err != nil {
		t.Fatal(err)
	}
	kubectl := running.Kubectl{T: t, Cluster: cluster}
	crd := filepath.Join(root, "example/namespaceplus/deploy/mygroup.my.domain_namespacepluses.yaml")
	kubectl.Do("apply", "--server-side", "-f", crd)
	kubectl.Do("wait", "--for=condition=Established", "-f", crd)
	running.Start(t, nil, program, "-kubeconfig="+cluster.Kubeconfig(), "-debug-bind-address="+address)
	running.Eventually(t, func() error {
		_, err := running.Get("http://" + address + "/api/state")
		return err
	})
	p := openTab(t, "http://"+address+"/#/team-a", look{width: 1280})
	p.waitFor("the page is connected", `document.querySelector('#connection[data-state=open]') &&
		document.querySelector('h1').textContent === 'namespaceplus on controller-runtime'`)
	kubectl.Do("create", "namespace", "team-b")
	const tenant = "apiVersion: mygroup.my.domain/v1\nkind: NamespacePlus\nspec: {}\nmetadata: {name: "
	kubectl.Apply(tenant + "team-a}")
	p.waitFor("the key has travelled", `observed.lit.includes('queue') && observed.lit.includes('worker')`)
	p.waitFor("its journey is listed", `document.querySelector('#journeys details:not(.failed, .running)')`)
	const stages = `Array.from(document.querySelectorAll('.words [data-stage]:not([data-stage=worker])'),
		e => e.dataset.stage).join()`
	const servers = `document.querySelector('.servers').checkVisibility()`
	if shown := evaluate[string](p, stages); shown != "sync" || evaluate[bool](p, servers) {
		t.Errorf("the page has servers, or the stages %q, want only sync", shown)
	}
	if evaluate[bool](p, `document.body.innerText.includes('Neutron')`) {
		t.Error("the page mentions Neutron")
	}
	p.checkFit(look{}, 440)

	kubectl.Apply(tenant + "team-b}") // of a namespace that is there already
	p.run(`location.hash = '/team-b'`)
	p.waitFor("the key waits for its retry",
		`document.querySelector('#backoff [data-key="team-b"] .countdown')?.textContent`)
	p.waitFor("its failure is listed", `document.querySelector('#journeys .failed')`)
	kubectl.Do("patch", "namespaceplus", "team-b", "--type=merge", "-p", `{"spec":{"adopt":true}}`)
	p.waitFor("it succeeds", `!document.querySelector('#backoff li') &&
		document.querySelector('#journeys details:not(.failed, .running)')`)
}
