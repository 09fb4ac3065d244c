package preview

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/client/clientset/versioned/fake"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/reconcile"
	"github.com/samplecrd/network-controller/pkg/store"
)

const (
	cluster = "prod"
	cloud   = "RegionOne/project"
)

var createdAt = time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)

// reader is a Neutron with a fixed state, which no request may change. It counts the
// requests.
type reader struct {
	neutron.Client // nil: a request that is not expected panics
	networks       []neutron.Network
	subnets        []neutron.Subnet
	requests       int
	poolErr        error
	deleteOrphans  bool // an option of the controller
}

func (r *reader) Networks(context.Context, neutron.NetworkFilter) ([]neutron.Network, error) {
	r.requests++
	return r.networks, nil
}

func (r *reader) Subnets(context.Context, neutron.SubnetFilter) ([]neutron.Subnet, error) {
	r.requests++
	return r.subnets, nil
}

func (r *reader) SubnetPools(context.Context, neutron.SubnetPoolFilter) ([]neutron.SubnetPool, error) {
	r.requests++
	return nil, r.poolErr
}

func (r *reader) RouterInterfaces(context.Context, string) ([]neutron.RouterInterface, error) {
	r.requests++
	return nil, nil
}

func (r *reader) Cloud(context.Context) (string, error) { return cloud, nil }

func (r *reader) Extensions(context.Context) ([]string, error) {
	r.requests++
	return []string{neutron.ExtensionSubnetPools}, nil
}

// addNetwork adds a network with a subnet.
func (r *reader) addNetwork(id, name, description, cidr string) {
	prefix := netip.MustParsePrefix(cidr)
	gateway := prefix.Addr().Next()
	r.networks = append(r.networks, neutron.Network{
		ID: id, Name: name, Description: description, SubnetIDs: []string{"sub-" + id}, CreatedAt: createdAt,
		NetworkSettings: neutron.NetworkSettings{AdminStateUp: new(true)},
	})
	r.subnets = append(r.subnets, neutron.Subnet{
		ID: "sub-" + id, NetworkID: id, Name: name, Description: description, CIDR: prefix, Gateway: gateway, DHCP: true, CreatedAt: createdAt,
		Pools: []neutron.Pool{{Start: gateway.Next(), End: netip.MustParseAddr(strings.TrimSuffix(cidr, "0/24") + "254")}},
	})
}

// remove removes the only network, as if it had not been created yet.
func (r *reader) remove(network *samplecrdv1.Network) {
	r.networks, r.subnets = nil, nil
	network.Status.NetworkID, network.Status.SubnetID, network.Status.CIDR = "", "", ""
}

// newNetwork returns a Network that no controller has reconciled yet.
func newNetwork(name, cidr string) *samplecrdv1.Network {
	network := &samplecrdv1.Network{Spec: samplecrdv1.NetworkSpec{CIDR: cidr}}
	network.Namespace, network.Name, network.Generation, network.ResourceVersion = "shop", name, 1, "1"
	return network
}

// addReady adds a Network to Neutron, and returns it as it is when it is Ready.
func (r *reader) addReady(name, cidr string) *samplecrdv1.Network {
	network := newNetwork(name, cidr)
	owner := neutron.Owner{Cluster: cluster, Namespace: network.Namespace, Name: name}
	r.addNetwork("net-"+name, owner.String(), owner.Marker(), cidr)
	network.Finalizers = []string{samplecrdv1.Finalizer}
	network.Annotations = map[string]string{samplecrdv1.AnnotationCloud: cloud}
	network.Status = samplecrdv1.NetworkStatus{
		ObservedGeneration: 1, MatchedGeneration: 1, NetworkID: "net-" + name, SubnetID: "sub-net-" + name, CIDR: cidr,
		Conditions: []metav1.Condition{{Type: samplecrdv1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Provisioned", ObservedGeneration: 1}},
	}
	return network
}

// planFor returns the plan of a controller with options for Networks.
func planFor(t testing.TB, r *reader, options reconcile.Options, networks ...*samplecrdv1.Network) Plan {
	t.Helper()
	listed, err := store.NewStatic(klog.Background(), store.ByNamespace[[]*samplecrdv1.Network]{metav1.NamespaceAll: networks})
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := neutron.NewSnapshot(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	options.Cluster = cluster
	reconciler := reconcile.New(reconcile.Dependencies{
		Client: fake.NewClientset(), Networks: listed, Neutron: snapshot, Events: &record.FakeRecorder{},
		Clock: clock.RealClock{},
	}, options)
	return New(t.Context(), Input{
		Cluster: cluster, Networks: listed, Selected: networks, Neutron: snapshot, Reconciler: reconciler, DeleteOrphans: r.deleteOrphans,
	})
}

// TestManyNetworks: 10,000 Networks that are as desired need as many requests as one.
func TestManyNetworks(t *testing.T) {
	r, networks := &reader{deleteOrphans: true}, []*samplecrdv1.Network{}
	for i := range 10_000 {
		networks = append(networks, r.addReady(fmt.Sprintf("n-%d", i), fmt.Sprintf("10.%d.%d.0/24", i/200, i%200)))
	}
	p := planFor(t, r, reconcile.Options{}, networks...)
	if p.Summary != (Summary{Unchanged: 10_000}) || p.ExitCode() != 0 {
		t.Errorf("Summary = %+v, exit code %d, want that all are as desired", p.Summary, p.ExitCode())
	}
	if r.requests != 4 {
		t.Errorf("the plan needed %d requests to Neutron, want 4", r.requests)
	}
	if got, want := p.text(), "Nothing to do. 10000 Networks are as desired.\n"; got != want {
		t.Errorf("the plan is %q, want %q", got, want)
	}
}

// TestPrint shows a plan as text and as JSON.
func TestPrint(t *testing.T) {
	r := &reader{}
	retained := neutron.Owner{Cluster: cluster, Namespace: "shop", Name: "old"}
	orphan := neutron.Owner{Cluster: cluster, Namespace: "lab", Name: "gone"}
	r.addNetwork("net-1", "shop/old", retained.RetainedMarker(), "10.0.8.0/24")
	r.addNetwork("net-2", "lab/gone", orphan.Marker(), "10.0.9.0/24")
	drifted, blocked := r.addReady("drifted", "10.0.1.0/24"), newNetwork("blocked", "10.0.0.0/8")
	r.subnets[2].DHCP = false
	blocked.Spec.Gateway = "192.168.0.1"
	p := planFor(t, r, reconcile.Options{}, drifted, newNetwork("new", "10.0.2.0/24"), blocked, r.addReady("healthy", "10.0.3.0/24"))

	want := `Network shop/drifted: Neutron differs from the spec, although the Network was Ready
  ~ update subnet: DHCP false → true

Network shop/new: new
  ~ add finalizer
  + create network shop/new
  + create subnet: 10.0.2.0/24, gateway 10.0.2.1

Network shop/blocked
  ! blocked: InvalidSpec: spec.gateway 192.168.0.1 is not inside spec.cidr: use an address from 10.0.0.1 to 10.255.255.254

Not in Kubernetes: networks in Neutron that belong to this cluster
To keep one, apply a Network with its namespace and name again. To delete one, run the command.

  NAMESPACE   NAME   RANGE         CREATED                MARKER                                    COMMAND
  lab         gone   10.0.9.0/24   2026-03-01 09:30:00Z   samplecrd.k8s.io owner: prod/lab/gone     openstack network delete net-2
  shop        old    10.0.8.0/24   2026-03-01 09:30:00Z   samplecrd.k8s.io retained: prod/shop/old  openstack network delete net-1

Plan: 2 to create, 2 to update, 0 to delete. 1 Network is as desired, 1 Network would be blocked, 2 networks are not in Kubernetes.
`
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	if diff := cmp.Diff(squeeze(want), squeeze(p.text())); diff != "" {
		t.Errorf("the text differs (-want +got):\n%s\n%s", diff, p.text())
	}
	var out strings.Builder
	if err := p.print(&out, "json"); err != nil {
		t.Fatal(err)
	}
	var decoded Plan
	if err := json.Unmarshal([]byte(out.String()), &decoded); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, decoded); diff != "" {
		t.Errorf("the JSON differs (-plan +decoded):\n%s", diff)
	}
}

// TestPrintEscapes: texts of others cannot control the terminal.
func TestPrintEscapes(t *testing.T) {
	p := Plan{
		Networks:        []Network{{Namespace: "shop", Name: "a", Error: "\x1b[2J\nPlan: nothing"}},
		NotInKubernetes: []Leftover{{Namespace: "shop", Name: "b", Marker: "\x1b[2J"}},
	}
	if got := p.text(); strings.Contains(got, "\x1b") || !strings.Contains(got, `unknown: \x1b[2J\nPlan: nothing`+"\n") {
		t.Errorf("the text is %q", got)
	}
}

// TestOrphansToDelete: with -delete-orphans, the plan has the deletion.
func TestOrphansToDelete(t *testing.T) {
	r := &reader{deleteOrphans: true}
	orphan := neutron.Owner{Cluster: cluster, Namespace: "lab", Name: "gone"}
	r.addNetwork("net-1", "lab/gone", orphan.Marker(), "10.0.9.0/24")
	p := planFor(t, r, reconcile.Options{})
	want := "Network lab/gone: an orphan, which -delete-orphans deletes after -orphan-grace-period, within -max-orphan-deletions\n  - delete network net-1\n\n"
	if got := p.text(); !strings.HasPrefix(got, want) || p.ExitCode() != 2 {
		t.Errorf("the plan is %q with exit code %d, want %q", got, p.ExitCode(), want)
	}
}

// TestExitCode: steps and new obstacles give 2, unknown steps 1.
func TestExitCode(t *testing.T) {
	invalid := newNetwork("invalid", "10.0.0.0/32")
	pooled := newNetwork("pooled", "")
	pooled.Spec.SubnetPool = &samplecrdv1.SubnetPoolReference{Name: "campus"}
	unavailable := &neutron.Error{Op: "list subnet pools", Class: neutron.ErrUnavailable}
	for name, test := range map[string]struct {
		network *samplecrdv1.Network
		want    int
	}{
		"its network is gone":         {(&reader{}).addReady("gone", "10.0.0.0/24"), 2},
		"blocked, and not reported":   {invalid, 3},
		"Neutron becomes unavailable": {pooled, 1},
	} {
		if got := planFor(t, &reader{poolErr: unavailable}, reconcile.Options{}, test.network); got.ExitCode() != test.want {
			t.Errorf("%s: exit code %d, want %d: %+v", name, got.ExitCode(), test.want, got)
		}
	}
}

// TestBlockedAtRest: a Network that is blocked, as its status reports, has no steps.
func TestBlockedAtRest(t *testing.T) {
	for reason, test := range map[plan.Reason]struct {
		options reconcile.Options
		prepare func(r *reader, network *samplecrdv1.Network)
	}{
		plan.ReasonNamespaceLimit: {reconcile.Options{MaxNetworksPerNamespace: 1}, func(r *reader, network *samplecrdv1.Network) {
			r.remove(network)
			r.addReady("another", "10.0.1.0/24")
		}},
		plan.ReasonInvalidSpec: {reconcile.Options{}, func(r *reader, network *samplecrdv1.Network) {
			r.remove(network)
			network.Spec.CIDR = "10.0.0.0/32"
		}},
		plan.ReasonAdoptionNotAllowed: {reconcile.Options{}, func(r *reader, network *samplecrdv1.Network) {
			r.remove(network)
			network.Spec.NetworkID = "net-2"
		}},
		plan.ReasonOtherCloud: {reconcile.Options{}, func(_ *reader, network *samplecrdv1.Network) {
			network.Annotations[samplecrdv1.AnnotationCloud] = "RegionTwo/project"
		}},
		plan.ReasonAmbiguous: {reconcile.Options{}, func(r *reader, network *samplecrdv1.Network) {
			r.addNetwork("net-2", "shop/example", r.networks[0].Description, "10.0.0.0/24")
			r.networks[1].CreatedAt = createdAt.Add(time.Hour) // not by a lost response
			network.Status.NetworkID, network.Status.SubnetID = "", ""
		}},
		plan.ReasonExtensionMissing: {reconcile.Options{}, func(_ *reader, network *samplecrdv1.Network) {
			network.Spec.MTU = new(int32(1400))
		}},
		plan.ReasonPaused: {reconcile.Options{}, func(_ *reader, network *samplecrdv1.Network) {
			network.Annotations[samplecrdv1.AnnotationPaused] = ""
			ready := network.Status.Conditions[0] // it stays as it is
			network.Status.Conditions = []metav1.Condition{{Type: samplecrdv1.ConditionReconciling, Status: metav1.ConditionTrue}, ready}
		}},
		plan.ReasonDrifted: {reconcile.Options{ReportDrift: true}, func(r *reader, _ *samplecrdv1.Network) {
			r.subnets[0].DHCP = false
		}},
	} {
		t.Run(string(reason), func(t *testing.T) {
			r := &reader{}
			network := r.addReady("example", "10.0.0.0/24")
			test.prepare(r, network)
			reported := &network.Status.Conditions[0]
			if reported.Reason = string(reason); reported.Type == samplecrdv1.ConditionReady {
				reported.Status = metav1.ConditionFalse
			}
			p := planFor(t, r, test.options, network)
			if blocked := p.Networks[0].Blocked; blocked == nil || blocked.Reason != reason {
				t.Errorf("the Network is not blocked for this reason: %+v", p.Networks[0])
			}
			if p.ExitCode() != 0 || p.Summary.Create+p.Summary.Update+p.Summary.Delete > 0 {
				t.Errorf("exit code %d for a Network at rest:\n%s", p.ExitCode(), p.text())
			}
		})
	}
}

// TestOneCause: one obstacle of many Networks is one paragraph. If the controller does not
// report it, the plan has other flags, and does not propose to change those of the controller.
func TestOneCause(t *testing.T) {
	r, networks := &reader{}, []*samplecrdv1.Network{}
	for i := range 7 {
		network := r.addReady(fmt.Sprintf("n-%d", i), fmt.Sprintf("10.0.%d.0/24", i))
		network.Annotations[samplecrdv1.AnnotationCloud] = "RegionTwo/project"
		networks = append(networks, network)
	}
	want := `7 Networks: shop/n-0, shop/n-1, shop/n-2, shop/n-3, shop/n-4 and 2 more
  ! blocked: OtherCloud: the network is in the cloud "RegionTwo/project", but the controller is connected to ` +
		`"RegionOne/project". But its status is Provisioned, so the plan has other flags than the controller: set the same

Nothing to do. 7 Networks would be blocked.
`
	p := planFor(t, r, reconcile.Options{}, networks...)
	if diff := cmp.Diff(want, p.text()); diff != "" || p.ExitCode() != 3 {
		t.Errorf("exit code %d, want 3, and the text differs:\n%s", p.ExitCode(), diff)
	}
}

// TestForbiddenAdoption: a Network that may not adopt a network does not keep another one from it.
func TestForbiddenAdoption(t *testing.T) {
	r := &reader{}
	r.addNetwork("net-1", "lab", "", "10.0.0.0/24")
	forbidden, allowed := newNetwork("a", "10.0.0.0/24"), newNetwork("b", "10.0.0.0/24")
	forbidden.UID, allowed.UID, allowed.Namespace = "a", "b", "lab" // the lower one has precedence
	for _, network := range []*samplecrdv1.Network{forbidden, allowed} {
		network.Spec.NetworkID = "net-1"
	}
	for _, network := range planFor(t, r, reconcile.Options{AllowAdoption: reconcile.Namespaces{"lab"}}, forbidden, allowed).Networks {
		if isBlocked := network.Blocked != nil; isBlocked != (network.Namespace == forbidden.Namespace) {
			t.Errorf("%+v: want that only the Network in shop is blocked", network)
		}
	}
}

// TestLimitOfPlan: the networks that the plan creates count against the limit.
func TestLimitOfPlan(t *testing.T) {
	p := planFor(t, &reader{}, reconcile.Options{MaxNetworksPerNamespace: 2},
		newNetwork("a", "10.0.0.0/24"), newNetwork("b", "10.0.1.0/24"), newNetwork("c", "10.0.2.0/24"))
	for i, network := range p.Networks {
		if isBlocked := network.Blocked != nil && network.Blocked.Reason == plan.ReasonNamespaceLimit; isBlocked != (i == 2) {
			t.Errorf("Network %s: %+v, want that only the third is blocked by the limit 2", network.Name, network)
		}
	}
	if p.Summary.Create != 4 || p.ExitCode() != 2 {
		t.Errorf("Summary = %+v, exit code %d, want two networks with their subnets", p.Summary, p.ExitCode())
	}
}

// TestAnnotationsOfManifests: a Network with an annotation in its manifest is planned with it,
// whether it exists or not.
func TestAnnotationsOfManifests(t *testing.T) {
	const manifest = "{apiVersion: samplecrd.k8s.io/v1, kind: Network, metadata: {name: %s, namespace: shop, " +
		"annotations: {samplecrd.k8s.io/paused: ''}}, spec: {cidr: 10.9.0.0/24}}\n---\n"
	r := &reader{}
	live := r.addReady("live", "10.0.0.0/24")
	selected, err := Command{Options: Options{files: []string{"-"}}}.selectFrom(
		networkLists{metav1.NamespaceAll: {live}}, strings.NewReader(fmt.Sprintf(manifest+manifest, "live", "new")))
	if err != nil || len(selected.networks) != 2 {
		t.Fatalf("selectFrom() = %+v, %v", selected, err)
	}
	for _, network := range planFor(t, r, reconcile.Options{}, selected.networks...).Networks {
		if network.Blocked == nil || network.Blocked.Reason != plan.ReasonPaused || network.Steps != nil {
			t.Errorf("the plan is %+v, want that it is paused", network)
		}
	}
	if live.Annotations[samplecrdv1.AnnotationCloud] != cloud {
		t.Errorf("the annotations are %v, want the other ones, too", live.Annotations)
	}
}

// TestReadManifests: files, folders, lists and the standard input.
func TestReadManifests(t *testing.T) {
	const header = "apiVersion: samplecrd.k8s.io/v1\nkind: Network\n"
	folder := t.TempDir()
	for name, content := range map[string]string{
		"a.yaml":   header + "metadata: {name: a, namespace: shop}\nspec: {cidr: 10.0.0.0/24}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: s}\n---\n" + header + "metadata: {name: b}\nspec: {cidr: 10.0.1.0/24}\n",
		"c.json":   `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"samplecrd.k8s.io/v1","kind":"Network","metadata":{"name":"c"},"spec":{"cidr":"10.0.2.0/24"}}]}`,
		"notes.md": "not a manifest",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		paths []string
		stdin string
		want  string // names, or a part of the error
	}{
		"a folder":           {paths: []string{folder}, want: "shop/a 10.0.0.0/24, mine/b 10.0.1.0/24, mine/c 10.0.2.0/24"},
		"a file":             {paths: []string{filepath.Join(folder, "c.json")}, want: "mine/c 10.0.2.0/24"},
		"the standard input": {paths: []string{"-"}, stdin: header + "metadata: {name: d}\nspec: {cidr: 10.0.3.0/24}\n", want: "mine/d 10.0.3.0/24"},
		"twice":              {paths: []string{folder, filepath.Join(folder, "c.json")}, want: "-f names the Network mine/c twice"},
		"no such file":       {paths: []string{filepath.Join(folder, "none")}, want: "-f: open "},
		"no Network":         {paths: []string{"-"}, stdin: "kind: Service\napiVersion: v1\n", want: "-f names no Network of samplecrd.k8s.io/v1"},
		"a mistyped field": {
			paths: []string{"-"}, stdin: header + "metadata: {name: d}\nspec: {cdir: 10.0.3.0/24}\n---\n" + header + "metadata: {name: e}\nspec: {cidr: 10.0.4.0/24}\n",
			want: `mine/e 10.0.4.0/24, -: the Network d is invalid: strict decoding error: unknown field "spec.cdir"`,
		},
		"no name":             {paths: []string{"-"}, stdin: header, want: "a Network has no metadata.name"},
		"no object in a list": {paths: []string{"-"}, stdin: "{kind: List, apiVersion: v1, items: [5, {apiVersion: samplecrd.k8s.io/v1, kind: Network, metadata: {name: f}}]}", want: "reading -: "},
		"no YAML":             {paths: []string{"-"}, stdin: "a: b: c", want: "reading -: "},
	} {
		t.Run(name, func(t *testing.T) {
			read, err := readManifests(test.paths, strings.NewReader(test.stdin), "mine")
			got := fmt.Sprint(err)
			if err == nil {
				var names []string
				for _, network := range read.networks {
					names = append(names, network.Namespace+"/"+network.Name+" "+network.Spec.CIDR)
				}
				got = strings.Join(append(names, read.errors...), ", ")
			}
			if !strings.Contains(got, test.want) {
				t.Errorf("readManifests() = %s, want %s", got, test.want)
			}
		})
	}
}

// TestFlagsIn: plan in a container has the flags of its controller, and only of a controller.
func TestFlagsIn(t *testing.T) {
	for commandLine, want := range map[string]string{
		"/samplecrd-controller\x00-cloud=a\x00-cluster-name\x00b c\x00": "-cloud=a|-cluster-name|b c",
		"/samplecrd-controller\x00":                                     "",
		"/samplecrd-controller\x00plan\x00-cloud=a\x00":                 "",
		"/pause\x00-v\x00":                                              "",
		"":                                                              "",
	} {
		if got := strings.Join(flagsIn(commandLine, "samplecrd-controller"), "|"); got != want {
			t.Errorf("flagsIn(%q) = %s, want %s", commandLine, got, want)
		}
	}
}

// TestOnlyReads: the transport of a plan sends nothing that could change something.
func TestOnlyReads(t *testing.T) {
	files := http.NewFileTransport(http.Dir(t.TempDir())) // accepts every method
	for method, allowed := range map[string]bool{
		http.MethodGet: true, http.MethodHead: true,
		http.MethodPost: false, http.MethodPut: false, http.MethodPatch: false, http.MethodDelete: false,
	} {
		response, err := onlyReads(files).RoundTrip(httptest.NewRequest(method, "/", http.NoBody))
		if err == nil {
			_ = response.Body.Close()
		}
		if (err == nil) != allowed {
			t.Errorf("%s: error %v", method, err)
		}
	}
}
