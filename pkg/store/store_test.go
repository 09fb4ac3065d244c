package store_test

import (
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/client/clientset/versioned/fake"
	informers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions"
	networkinformers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/observe"
	"github.com/samplecrd/network-controller/pkg/store"
)

var key = cache.NewObjectName("default", "example")

// newNetworks returns Networks whose informer has received one with the version 1.
func newNetworks(t *testing.T) (*store.Networks, cache.Store) {
	t.Helper()
	informer := informers.NewSharedInformerFactory(fake.NewClientset(), 0).Samplecrd().V1().Networks()
	networks, err := store.New(klog.Background(),
		store.ByNamespace[networkinformers.TypedNetworkInformer]{metav1.NamespaceAll: informer}, nil, observe.Nothing{})
	if err != nil {
		t.Fatal(err)
	}
	received := informer.Informer().GetStore()
	if err := received.Add(network("1", "")); err != nil {
		t.Fatal(err)
	}
	return networks, received
}

func network(version, networkID string) *samplecrdv1.Network {
	return &samplecrdv1.Network{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, ResourceVersion: version},
		Status:     samplecrdv1.NetworkStatus{NetworkID: networkID},
	}
}

// TestOwnWritesAreRead: a sync reads what an earlier one wrote, although the informer has not
// received it yet, and what the informer has received since.
func TestOwnWritesAreRead(t *testing.T) {
	networks, received := newNetworks(t)
	want := func(version string) {
		t.Helper()
		if got, err := networks.Get(key); err != nil || got == nil || got.ResourceVersion != version {
			t.Errorf("Get() = %+v, %v, want version %s", got, err, version)
		}
	}
	want("1")
	networks.Written(network("2", "ours"))
	want("2")
	if err := received.Update(network("3", "ours")); err != nil {
		t.Fatal(err)
	}
	want("3")
}

// TestSharedValues: the Networks in memory share what nearly all of them have, although each
// comes with a response of its own.
func TestSharedValues(t *testing.T) {
	networks, _ := newNetworks(t)
	var kept [2]*samplecrdv1.Network
	for i := range kept {
		object := network(strconv.Itoa(i+2), "")
		object.Annotations = map[string]string{samplecrdv1.AnnotationCloud: "cloud"}
		object.Finalizers = []string{strings.Clone(samplecrdv1.Finalizer)}
		networks.Written(object)
		kept[i], _ = networks.Get(key)
	}
	if reflect.ValueOf(kept[0].Annotations).Pointer() != reflect.ValueOf(kept[1].Annotations).Pointer() {
		t.Error("the annotations are in memory twice")
	}
	if unsafe.StringData(kept[0].Finalizers[0]) != unsafe.StringData(kept[1].Finalizers[0]) {
		t.Error("the finalizer is in memory twice")
	}
}
