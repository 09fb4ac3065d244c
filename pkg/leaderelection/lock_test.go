package leaderelection

import (
	"flag"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/samplecrd/network-controller/test/controlplane"
)

var cluster *controlplane.Cluster

func TestMain(m *testing.M) {
	os.Exit(controlplane.RunTests(m, controlplane.Options{}, func(c *controlplane.Cluster) { cluster = c }))
}

// TestRelease: a replica releases its own Lease, and not that of another replica.
func TestRelease(t *testing.T) {
	client := kubernetes.NewForConfigOrDie(cluster.RESTConfig())
	namespace, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	replica := func() *lock {
		var options Options
		flags := flag.NewFlagSet("test", flag.PanicOnError)
		options.AddFlags(flags, "controller")
		if err := flags.Parse([]string{"-leader-elect-resource-namespace=" + namespace.Name}); err != nil {
			t.Fatal(err)
		}
		elector, err := options.New(cluster.RESTConfig())
		if err != nil {
			t.Fatal(err)
		}
		return elector.lock
	}
	holder := func() string {
		lease, err := client.CoordinationV1().Leases(namespace.Name).Get(t.Context(), "controller", metav1.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil {
			t.Fatalf("the Lease is %v (%v)", lease, err)
		}
		return *lease.Spec.HolderIdentity
	}
	first, second := replica(), replica()

	if err := first.release(t.Context()); err != nil {
		t.Errorf("release() = %v without a Lease", err)
	}
	if err := second.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: second.Identity(), LeaseDurationSeconds: 15}); err != nil {
		t.Fatal(err)
	}
	if err := first.release(t.Context()); err != nil || holder() != second.Identity() {
		t.Errorf("release() = %v by another replica, and the holder is %q", err, holder())
	}
	if err := second.release(t.Context()); err != nil || holder() != "" {
		t.Errorf("release() = %v by the holder, and the holder is %q", err, holder())
	}
}
