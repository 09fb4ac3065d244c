package main

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/samplecrd/network-controller/test/controlplane"
)

// leaseOf returns the Lease that all controllers of a cluster use by default, or nil.
func leaseOf(t *testing.T, c *controlplane.Cluster, name string) *coordinationv1.Lease {
	t.Helper()
	lease, err := kubernetes.NewForConfigOrDie(c.RESTConfig()).CoordinationV1().Leases(metav1.NamespaceSystem).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return lease
}

// TestSecondControllerWaits: without any flag for it, of two controllers of a cluster
// one reconciles. The other one names it in its log and in /readyz, and starts when
// the first one stops.
func TestSecondControllerWaits(t *testing.T) {
	t.Parallel()
	own := ownCluster(t)
	start := func() *program {
		p := newDefaultProgram(t, "-kubeconfig="+own.Kubeconfig(), "-health-probe-bind-address=127.0.0.1:0")
		p.start(t)
		return p
	}
	first := start()
	first.waitFor(t, `"Starting workers"`)
	lease := leaseOf(t, own, controllerName)
	if lease == nil {
		t.Fatal("the first controller leads without a Lease in kube-system")
	}
	holder := *lease.Spec.HolderIdentity
	if host, _ := os.Hostname(); !strings.HasPrefix(holder, host+"_") {
		t.Errorf("the holder is %s, want the name of this host in it", holder)
	}
	second := start()
	second.waitFor(t, `"Waiting: another controller holds the Lease and reconciles.*kill -9.*holder="`+holder+`" expiresWithin="17s"`)
	if err := responds(second.readyz(), http.StatusOK, "ok: waiting for the Lease kube-system/samplecrd-controller, which "+holder+" holds"); err != nil {
		t.Error(err)
	}
	if err := responds(first.readyz(), http.StatusOK, "ok\n"); err != nil {
		t.Error(err)
	}
	if strings.Contains(second.log.String(), `"Starting workers"`) {
		t.Error("both controllers reconcile")
	}
	first.signal(t, syscall.SIGTERM)
	first.wantExit(t, 0)
	second.waitFor(t, `"Starting workers"`)
	if err := responds(second.readyz(), http.StatusOK, "ok\n"); err != nil {
		t.Error(err)
	}
}

// TestLeaseFlags: controllers with different names of the Lease reconcile at the same
// time, and -leader-elect=false needs no Lease.
func TestLeaseFlags(t *testing.T) {
	t.Parallel()
	own := ownCluster(t)
	for _, name := range []string{"of-a", "of-b"} {
		p := newDefaultProgram(t, "-kubeconfig="+own.Kubeconfig(), "-namespaces=default", "-leader-elect-resource-name="+name)
		p.start(t)
		p.waitFor(t, `"Starting workers"`)
		if leaseOf(t, own, name) == nil {
			t.Errorf("there is no Lease %s", name)
		}
	}
	p := newDefaultProgram(t, "-kubeconfig="+own.Kubeconfig(), "-namespaces=default", "-leader-elect=false")
	p.start(t)
	p.waitFor(t, `"Starting workers"`)
	if leaseOf(t, own, controllerName) != nil {
		t.Error("a controller without leader election has a Lease")
	}
}

// TestNeutronMustBeNamedInPod: the environment of a pod makes the embedded Neutron a
// choice that somebody must have made.
func TestNeutronMustBeNamedInPod(t *testing.T) {
	t.Parallel()
	start := func(variable string, args ...string) *program {
		p := newProgram(t, append(args, "-kubeconfig="+cluster.Kubeconfig(), "-namespaces=default")...)
		p.Env = append(p.Env, "KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=1", variable)
		p.start(t)
		return p
	}
	p := start("OS_CLOUD=")
	p.wantExit(t, 2)
	for _, flag := range []string{"-cloud", "OS_CLOUD", "-neutron-endpoint", "-embedded-neutron"} {
		if !strings.Contains(p.log.String(), flag) {
			t.Errorf("the error does not name %s:\n%s", flag, &p.log)
		}
	}
	start("OS_CLOUD=", "-embedded-neutron").waitFor(t, "using the embedded Neutron")
	// A flag has priority over the environment.
	start("OS_CLOUD=nowhere", "-embedded-neutron").waitFor(t, "using the embedded Neutron")
	p = start("OS_CLOUD=", "-neutron-endpoint=http://127.0.0.1:1")
	p.waitFor(t, "Neutron is unavailable; starting anyway")
	p.waitFor(t, "Using Kubernetes")
	start("OS_CLOUD=nowhere").waitFor(t, "-cloud or OS_CLOUD: ")
}

// kubeconfigFile writes a kubeconfig file with one context, for a server without
// authentication.
func kubeconfigFile(t *testing.T, path, context, server string) string {
	t.Helper()
	text := `{"clusters": [{"name": "c", "cluster": {"server": "` + server + `"}}],
		"contexts": [{"name": "` + context + `", "context": {"cluster": "c"}}], "current-context": "` + context + `"}`
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestWhichCluster: the kubeconfig is found in the order of kubectl, and the log names
// it, its context and its server.
func TestWhichCluster(t *testing.T) {
	t.Parallel()
	home, folder := t.TempDir(), t.TempDir()
	kubeconfigFile(t, filepath.Join(home, ".kube", "config"), "of-home", "http://127.0.0.1:1")
	ofEnv := kubeconfigFile(t, filepath.Join(folder, "env"), "of-env", "http://127.0.0.1:2")
	ofFlag := kubeconfigFile(t, filepath.Join(folder, "flag"), "of-flag", "http://127.0.0.1:3")
	missing := filepath.Join(folder, "missing")
	for name, test := range map[string]struct {
		env, args []string
		want      string
	}{
		"the flag is first":             {[]string{"KUBECONFIG=" + ofEnv}, []string{"-kubeconfig=" + ofFlag}, `configuration="-kubeconfig ` + ofFlag + `" context="of-flag" server="http://127.0.0.1:3"`},
		"then the environment":          {[]string{"KUBECONFIG=" + ofEnv}, nil, `configuration="KUBECONFIG ` + ofEnv + `" context="of-env" server="http://127.0.0.1:2"`},
		"of which files may be missing": {[]string{"KUBECONFIG=" + missing + ":" + ofEnv}, nil, `context="of-env" server="http://127.0.0.1:2"`},
		"but not all":                   {[]string{"KUBECONFIG=" + missing}, nil, "reading KUBECONFIG " + missing + ": it does not exist"},
		"then the home folder":          {nil, nil, `configuration="~/.kube/config" context="of-home" server="http://127.0.0.1:1"`},
		"whose server can be replaced":  {nil, []string{"-master=http://127.0.0.1:4"}, `context="of-home" server="http://127.0.0.1:4"`},
		"a pod without a token":         {[]string{"KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=1"}, []string{"-embedded-neutron"}, `configuration="~/.kube/config"`},
		"else there is no cluster":      {[]string{"HOME=" + folder}, nil, "no cluster configured: set -kubeconfig or KUBECONFIG, create ~/.kube/config, or run"},
		"except with a server":          {[]string{"HOME=" + folder}, []string{"-master=http://127.0.0.1:5"}, `configuration="-master" context="" server="http://127.0.0.1:5"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProgram(t, test.args...)
			p.Env = append(append(p.Env, "HOME="+home), test.env...)
			p.start(t)
			p.waitFor(t, strings.NewReplacer(".", `\.`, "?", `\?`).Replace(test.want))
		})
	}
}

// TestMaster: -master replaces the server of the kubeconfig file and nothing else.
func TestMaster(t *testing.T) {
	t.Parallel()
	config, err := clientcmd.LoadFromFile(cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	entry := config.Clusters[config.Contexts[config.CurrentContext].Cluster]
	server := entry.Server
	entry.Server = "https://127.0.0.1:1"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	p := startProgram(t, "-kubeconfig="+path, "-namespaces=default", "-master="+server)
	p.waitFor(t, `"Using Kubernetes" server="`+server+`"`)
}

// TestProfiles: -profiling-bind-address serves profiles.
func TestProfiles(t *testing.T) {
	t.Parallel()
	p := startProgram(t, "-kubeconfig="+cluster.Kubeconfig(), "-namespaces=default", "-profiling-bind-address=127.0.0.1:0")
	p.waitFor(t, `"Serving profiles" url="http://127.0.0.1:\d+/debug/pprof/"`)
	address := p.served(t, "profiles")
	if err := responds(address+"goroutine?debug=1", http.StatusOK, "goroutine profile: total"); err != nil {
		t.Error(err)
	}
}

// served returns the URL of a server from the log.
func (p *program) served(t *testing.T, name string) string {
	t.Helper()
	_, rest, _ := strings.Cut(p.log.String(), `"Serving `+name+`" url="`)
	address, _, _ := strings.Cut(rest, `"`)
	if _, err := url.Parse(address); err != nil || address == "" {
		t.Fatalf("no URL of the %s in\n%s", name, &p.log)
	}
	return address
}
