package deployments

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
)

// deploymentOf returns a Deployment with annotations, each as "name=value" with
// the name after the slash.
func deploymentOf(annotations ...string) *metav1.PartialObjectMetadata {
	deployment := &metav1.PartialObjectMetadata{}
	deployment.Namespace, deployment.Name, deployment.UID = "default", "web", "uid-1"
	for _, annotation := range annotations {
		name, value, _ := strings.Cut(annotation, "=")
		metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, samplecrdv1.GroupName+"/"+name, value)
	}
	return deployment
}

var (
	annotated = Options{Which: Annotated}
	every     = Options{Which: All, DefaultSubnetPool: "campus"}
)

func TestRequestOf(t *testing.T) {
	const anID = "0db7e4ba-9a5c-4e3b-8a41-b1c2f3d4e5f6"
	for name, test := range map[string]struct {
		options     Options
		annotations []string
		want        *samplecrdv1.NetworkSpec
		byDefault   bool
		problem     string // a part of it
	}{
		"nothing":                     {options: annotated, byDefault: true},
		"nothing, and all get one":    {options: every, want: &samplecrdv1.NetworkSpec{SubnetPool: &samplecrdv1.SubnetPoolReference{Name: "campus"}}, byDefault: true},
		"declined":                    {options: every, annotations: []string{"network=none"}},
		"declined, though not needed": {options: annotated, annotations: []string{"network=none"}},
		"a range":                     {options: annotated, annotations: []string{"cidr=192.168.0.0/16"}, want: &samplecrdv1.NetworkSpec{CIDR: "192.168.0.0/16"}},
		"a range and a gateway":       {options: every, annotations: []string{"cidr=192.168.0.0/16", "gateway=192.168.0.1"}, want: &samplecrdv1.NetworkSpec{CIDR: "192.168.0.0/16", Gateway: "192.168.0.1"}},
		"no gateway":                  {options: annotated, annotations: []string{"cidr=10.0.0.0/24", "gateway=None"}, want: &samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24", Gateway: "None"}},
		"a subnet pool":               {options: annotated, annotations: []string{"subnet-pool=campus"}, want: &samplecrdv1.NetworkSpec{SubnetPool: &samplecrdv1.SubnetPoolReference{Name: "campus"}}},
		"a subnet pool by ID":         {options: annotated, annotations: []string{"subnet-pool=" + anID}, want: &samplecrdv1.NetworkSpec{SubnetPool: &samplecrdv1.SubnetPoolReference{ID: anID}}},
		"the shortest prefix length":  {options: annotated, annotations: []string{"subnet-pool=campus", "prefix-length=1"}, want: &samplecrdv1.NetworkSpec{SubnetPool: &samplecrdv1.SubnetPoolReference{Name: "campus", PrefixLength: 1}}},
		"the longest prefix length":   {options: annotated, annotations: []string{"subnet-pool=campus", "prefix-length=126"}, want: &samplecrdv1.NetworkSpec{SubnetPool: &samplecrdv1.SubnetPoolReference{Name: "campus", PrefixLength: 126}}},
		"a prefix length of 127":      {options: annotated, annotations: []string{"subnet-pool=campus", "prefix-length=127"}, problem: "from 1 to 126"},
		"a name like an ID":           {options: annotated, annotations: []string{"subnet-pool=campus00-pool-0001-0000-000000000000"}, want: &samplecrdv1.NetworkSpec{SubnetPool: &samplecrdv1.SubnetPoolReference{Name: "campus00-pool-0001-0000-000000000000"}}},
		"a /26 of a subnet pool":      {options: annotated, annotations: []string{"subnet-pool=campus", "prefix-length=26"}, want: &samplecrdv1.NetworkSpec{SubnetPool: &samplecrdv1.SubnetPoolReference{Name: "campus", PrefixLength: 26}}},

		"a range that is none":        {options: annotated, annotations: []string{"cidr=my network"}, problem: `samplecrd.k8s.io/cidr "my network" is not a range in CIDR notation`},
		"an empty range":              {options: annotated, annotations: []string{"cidr="}, problem: "must contain either samplecrd.k8s.io/cidr"},
		"a gateway outside":           {options: annotated, annotations: []string{"cidr=10.0.0.0/24", "gateway=10.0.1.1"}, problem: "samplecrd.k8s.io/gateway 10.0.1.1 is not inside samplecrd.k8s.io/cidr"},
		"a gateway alone":             {options: annotated, annotations: []string{"gateway=10.0.0.1"}, problem: "must contain either samplecrd.k8s.io/cidr"},
		"a range and a subnet pool":   {options: annotated, annotations: []string{"cidr=10.0.0.0/24", "subnet-pool=campus"}, problem: "must contain either samplecrd.k8s.io/cidr"},
		"an empty subnet pool":        {options: annotated, annotations: []string{"subnet-pool="}, problem: "must contain either samplecrd.k8s.io/cidr"},
		"a subnet pool and a gateway": {options: annotated, annotations: []string{"subnet-pool=campus", "gateway=10.0.0.1"}, problem: "the range is not known in advance"},
		"a prefix length and a range": {options: annotated, annotations: []string{"cidr=10.0.0.0/24", "prefix-length=24"}, problem: "samplecrd.k8s.io/prefix-length applies only to samplecrd.k8s.io/subnet-pool"},
		"a prefix length in words":    {options: annotated, annotations: []string{"subnet-pool=campus", "prefix-length=/24"}, problem: `samplecrd.k8s.io/prefix-length is "/24"`},
		"a prefix length of 0":        {options: annotated, annotations: []string{"subnet-pool=campus", "prefix-length=0"}, problem: "from 1 to 126"},
		"a slip of the pen":           {options: annotated, annotations: []string{"cdir=10.0.0.0/24"}, problem: "The annotation samplecrd.k8s.io/cdir is unknown: use one of samplecrd.k8s.io/cidr"},
		"declined in other words":     {options: every, annotations: []string{"network=false"}, problem: `the only valid value is "none"`},
		"declined, and asked for":     {options: every, annotations: []string{"network=none", "cidr=10.0.0.0/24"}, problem: "remove one or the other"},
		"something that is not of us": {options: annotated, annotations: nil, byDefault: true},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := deploymentOf(test.annotations...)
			metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, "deployment.kubernetes.io/revision", "1")
			got := test.options.requestOf(deployment)
			if diff := cmp.Diff(test.want, got.spec); diff != "" || got.byDefault != test.byDefault {
				t.Errorf("by default: %v, spec (-want +got):\n%s", got.byDefault, diff)
			}
			if (got.problem == "") != (test.problem == "") || !strings.Contains(got.problem, test.problem) {
				t.Errorf("the problem is %q, want %q", got.problem, test.problem)
			}
		})
	}
	for length, problem := range map[int]string{63: "", 64: "at most 63 characters"} {
		long := deploymentOf("cidr=10.0.0.0/24")
		long.Name = strings.Repeat("x", length)
		if got := annotated.requestOf(long).problem; !strings.Contains(got, problem) || (got == "") != (problem == "") {
			t.Errorf("with a name of %d characters, the problem is %q, want %q", length, got, problem)
		}
	}
}

func TestChangeText(t *testing.T) {
	for name, test := range map[string]struct {
		before, after samplecrdv1.NetworkSpec
		want          string
	}{
		"range":             {samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24"}, samplecrdv1.NetworkSpec{CIDR: "10.1.0.0/24"}, "10.0.0.0/24 → 10.1.0.0/24"},
		"gateway":           {samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24", Gateway: "None"}, samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24"}, "10.0.0.0/24, gateway None → 10.0.0.0/24"},
		"other fields":      {samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24", DNSNameservers: []string{"9.9.9.9"}, MTU: new(int32(1400))}, samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24"}, "removed dnsNameservers, removed mtu"},
		"range and a field": {samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24", EnableDHCP: new(false)}, samplecrdv1.NetworkSpec{CIDR: "10.1.0.0/24"}, "10.0.0.0/24 → 10.1.0.0/24, removed enableDHCP"},
		"subnet pool":       {samplecrdv1.NetworkSpec{SubnetPool: &samplecrdv1.SubnetPoolReference{Name: "campus", PrefixLength: 26}}, samplecrdv1.NetworkSpec{SubnetPool: &samplecrdv1.SubnetPoolReference{Name: "campus"}, Gateway: "None"}, "a /26 from subnet pool campus → a range from subnet pool campus, gateway None"},
		"name to ID":        {samplecrdv1.NetworkSpec{SubnetPool: &samplecrdv1.SubnetPoolReference{Name: "a"}}, samplecrdv1.NetworkSpec{SubnetPool: &samplecrdv1.SubnetPoolReference{ID: "a"}}, "changed subnetPool"},
		"kept by its users": {samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24", DeletionPolicy: "Retain"}, samplecrdv1.NetworkSpec{CIDR: "10.1.0.0/24", DeletionPolicy: "Retain"}, "10.0.0.0/24 → 10.1.0.0/24"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := changeText(test.before, test.after); got != test.want {
				t.Errorf("changeText() = %q, want %q", got, test.want)
			}
		})
	}
}

// FuzzRequestOf: any annotations give a valid spec or a problem.
func FuzzRequestOf(f *testing.F) {
	f.Add("192.168.0.0/16", "192.168.0.1", "", "")
	f.Add("", "None", "campus", "24")
	f.Fuzz(func(t *testing.T, cidr, gateway, pool, length string) {
		var annotations []string
		for name, value := range map[string]string{"cidr": cidr, "gateway": gateway, "subnet-pool": pool, "prefix-length": length} {
			if value != "" {
				annotations = append(annotations, name+"="+value)
			}
		}
		got := annotated.requestOf(deploymentOf(annotations...))
		switch {
		case got.spec != nil && got.problem != "", len(annotations) > 0 && got.spec == nil && got.problem == "":
			t.Fatalf("%q: %+v", annotations, got)
		case got.spec != nil && plan.DesiredFor(neutron.Owner{}, *got.spec).Invalid != "":
			t.Fatalf("%q requestsOne for %+v", annotations, *got.spec)
		}
	})
}

// TestDecide walks every row of the table above decide.
func TestDecide(t *testing.T) {
	requestsOne, requestsNone := deploymentOf("cidr=10.0.0.0/24"), deploymentOf()
	beingDeleted := deploymentOf("cidr=10.0.0.0/24")
	beingDeleted.DeletionTimestamp = new(metav1.Now())
	invalid := deploymentOf("cidr=nonsense")

	made := func(changes ...func(*samplecrdv1.Network)) *samplecrdv1.Network {
		network := &samplecrdv1.Network{Spec: samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24"}}
		network.Namespace, network.Name, network.UID = "default", "web", "uid-2"
		network.Labels = labelsFor(requestsOne, annotated.requestOf(requestsOne))
		network.OwnerReferences = []metav1.OwnerReference{ownerReference(requestsOne)}
		for _, change := range changes {
			change(network)
		}
		return network
	}
	edited := func(n *samplecrdv1.Network) { n.Spec.Gateway = "10.0.0.9" }
	unlabelled := func(n *samplecrdv1.Network) { delete(n.Labels, samplecrdv1.LabelSource) }
	byDefault := func(n *samplecrdv1.Network) { n.Labels[samplecrdv1.LabelSource] = samplecrdv1.SourceDefault }
	ownedBy := func(kind, name string, uid types.UID) func(*samplecrdv1.Network) {
		return func(n *samplecrdv1.Network) {
			n.OwnerReferences[0].Kind, n.OwnerReferences[0].Name, n.OwnerReferences[0].UID = kind, name, uid
		}
	}
	left := func(n *samplecrdv1.Network) { n.OwnerReferences = nil }
	byHand := func(n *samplecrdv1.Network) { n.OwnerReferences, n.Labels = nil, nil }
	deleted := func(n *samplecrdv1.Network) { n.DeletionTimestamp = new(metav1.Now()) }

	for name, test := range map[string]struct {
		deployment *metav1.PartialObjectMetadata
		network    *samplecrdv1.Network
		want       action
		all        bool // Deployments without annotations request one, too
	}{
		"Deployment being deleted":                  {beingDeleted, nil, keep, false},
		"Deployment and Network being deleted":      {beingDeleted, made(), keep, false},
		"Network being deleted":                     {requestsOne, made(deleted, edited), keep, false},
		"Network being deleted, and none requested": {requestsNone, made(deleted), keep, false},
		"invalid request, no Network":               {invalid, nil, reportOnly, false},
		"invalid request, own Network":              {invalid, made(), reportOnly, false},
		"requests one, no Network":                  {requestsOne, nil, create, false},
		"requests one, as requested":                {requestsOne, made(), keep, false},
		"requests one, edited by hand":              {requestsOne, made(edited), update, false},
		"requests one, label lost":                  {requestsOne, made(unlabelled), update, false},
		"requests one, orphan":                      {requestsOne, made(left), update, false},
		"requests one, earlier":                     {requestsOne, made(ownedBy("Deployment", "web", "uid-0")), keep, false},
		"requests one, of another Deployment":       {requestsOne, made(ownedBy("Deployment", "other", "uid-0")), reportOnly, false},
		"requests one, of another kind":             {requestsOne, made(ownedBy("Job", "web", "uid-0")), reportOnly, false},
		"requests one, foreign":                     {requestsOne, made(byHand), reportOnly, false},
		"requests none, no Network":                 {requestsNone, nil, keep, false},
		"requests none, owned":                      {requestsNone, made(), remove, false},
		"requests none, created by default":         {requestsNone, made(byDefault), keep, false},
		"opts out, created by default":              {deploymentOf("network=none"), made(byDefault), remove, false},
		"requests none, label lost":                 {requestsNone, made(unlabelled), keep, false},
		"requests one, foreign with a label":        {requestsOne, made(byHand, func(n *samplecrdv1.Network) { n.Labels = map[string]string{samplecrdv1.LabelDeployment: "web"} }), reportOnly, false},
		"requests one, retained":                    {requestsOne, made(func(n *samplecrdv1.Network) { n.Spec.DeletionPolicy = samplecrdv1.DeletionPolicyRetain }), keep, false},
		"requests none, orphan":                     {requestsNone, made(left), keep, false},
		"requests none, foreign":                    {requestsNone, made(byHand), keep, false},

		"by default, missing":                               {requestsNone, nil, create, true},
		"by default, created by default, from another pool": {requestsNone, made(byDefault), keep, true},
		"by default, requested before":                      {requestsNone, made(), update, true},
		"by default, orphan":                                {requestsNone, made(left), keep, true},
		"by default, foreign":                               {requestsNone, made(byHand), keep, true},
		"by default, label lost":                            {requestsNone, made(unlabelled), keep, true},
	} {
		t.Run(name, func(t *testing.T) {
			options := annotated
			if test.all {
				options = every
			}
			got, problem := decide(test.deployment, options.requestOf(test.deployment), test.network)
			if got != test.want || (problem != "") != (got == reportOnly) {
				t.Errorf("decide() = %s, %q; want %s", got, problem, test.want)
			}
		})
	}
}

// TestNetworkChanged: an update that changes the spec, the owner or a label of the
// controller needs a sync, others do not.
func TestNetworkChanged(t *testing.T) {
	owned := func(change func(*samplecrdv1.Network)) *samplecrdv1.Network {
		network := &samplecrdv1.Network{}
		network.Labels = map[string]string{samplecrdv1.LabelDeployment: "web"}
		network.OwnerReferences = []metav1.OwnerReference{ownerReference(deploymentOf())}
		change(network)
		return network
	}
	before := owned(func(*samplecrdv1.Network) {})
	for name, test := range map[string]struct {
		change func(*samplecrdv1.Network)
		want   bool
	}{
		"nothing":       {func(*samplecrdv1.Network) {}, false},
		"another label": {func(n *samplecrdv1.Network) { n.Labels["team"] = "a" }, false},
		"our label":     {func(n *samplecrdv1.Network) { n.Labels[samplecrdv1.LabelDeployment] = "api" }, true},
		"the owner":     {func(n *samplecrdv1.Network) { n.OwnerReferences = nil }, true},
		"the spec":      {func(n *samplecrdv1.Network) { n.Generation++ }, true},
		"the object":    {func(n *samplecrdv1.Network) { n.UID = "another" }, true},
		"the status":    {func(n *samplecrdv1.Network) { n.Status.NetworkID = "net-1" }, false},
	} {
		if got := networkChanged(before, owned(test.change)); got != test.want {
			t.Errorf("%s: networkChanged() = %v, want %v", name, got, test.want)
		}
	}
}

// TestThinned: what the cache holds of a Deployment is small, and leads to the same
// decision.
func TestThinned(t *testing.T) {
	deployment := &metav1.PartialObjectMetadata{}
	deployment.Namespace, deployment.Name, deployment.UID, deployment.Labels = "default", "web", "1", map[string]string{"app": "web"}
	deployment.Annotations = map[string]string{
		samplecrdv1.AnnotationCIDR:    "10.0.0.0/24",
		samplecrdv1.AnnotationGateway: strings.Repeat("1", 100<<10),
		"example.com/large":           strings.Repeat("x", 100<<10),
	}
	for i := range 1000 {
		deployment.Annotations[fmt.Sprintf("%s/unknown-%03d", samplecrdv1.GroupName, i)] = "x"
	}
	kept := thinned(deployment)
	if text, err := json.Marshal(kept); err != nil || len(text) > 2<<10 {
		t.Errorf("%d bytes are kept: %.1000s (%v)", len(text), text, err)
	}
	options := Options{Which: Annotated}
	if before, after := options.requestOf(deployment), options.requestOf(kept); before != after || !strings.Contains(after.problem, "unknown-000") {
		t.Errorf("the request is %+v, and was %+v", after, before)
	}
	for i := range 1000 {
		delete(deployment.Annotations, fmt.Sprintf("%s/unknown-%03d", samplecrdv1.GroupName, i))
	}
	if after := options.requestOf(thinned(deployment)); !strings.Contains(after.problem, "gateway") {
		t.Errorf("the request is %+v, want a problem with the gateway", after)
	}
}
