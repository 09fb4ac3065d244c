package deployments

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/client/clientset/versioned/fake"
	"github.com/samplecrd/network-controller/pkg/observe"
	"github.com/samplecrd/network-controller/pkg/store"
)

// TestProblem: a problem is reported to the Deployment, and again after half an hour, because
// events expire. The Network stays as it is.
func TestProblem(t *testing.T) {
	valid, invalid := deploymentOf("cidr=10.0.0.0/24"), deploymentOf("cidr=nonsense")
	own := &samplecrdv1.Network{Spec: samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24"}}
	own.Namespace, own.Name, own.Labels = "default", "web", labelsFor(valid, annotated.requestOf(valid))
	foreign := own.DeepCopy()
	own.OwnerReferences, foreign.Labels = []metav1.OwnerReference{ownerReference(valid)}, nil
	for name, test := range map[string]struct {
		deployment *metav1.PartialObjectMetadata
		network    *samplecrdv1.Network
		excluded   []string // namespaces
		event      string
	}{
		"valid":                            {deployment: valid, network: own},
		"invalid":                          {deployment: invalid, network: own, event: "NetworkNotMade"},
		"invalid, and a foreign Network":   {deployment: invalid, network: foreign, event: "NetworkNotMade"},
		"in an excluded namespace":         {deployment: invalid, network: own, excluded: []string{"default"}},
		"in another one than that":         {deployment: invalid, network: own, excluded: []string{"other"}, event: "NetworkNotMade"},
		"a Network without any Deployment": {network: foreign},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, events := fake.NewClientset(test.network), record.NewFakeRecorder(10)
				networks, err := store.NewStatic(klog.Background(), store.ByNamespace[[]*samplecrdv1.Network]{"": {test.network}})
				if err != nil {
					t.Fatal(err)
				}
				informer := cache.NewSharedIndexInformer(nil, test.network, 0, cache.Indexers{})
				if test.deployment != nil {
					if err := informer.GetStore().Add(test.deployment); err != nil {
						t.Fatal(err)
					}
				}
				c, err := New(Config{
					Informers: store.ByNamespace[cache.SharedIndexInformer]{"": informer},
					Networks:  networks, Client: client, Events: events, Options: Options{Which: Annotated, ExcludedNamespaces: test.excluded},
					Observer: observe.Nothing{},
				})
				if err != nil {
					t.Fatal(err)
				}
				defer c.queue.ShutDown()

				if err := c.syncHandler(t.Context(), cache.MetaObjectToName(test.network)); err != nil || len(client.Actions()) > 0 {
					t.Errorf("syncHandler() = %v, after the requests %v", err, client.Actions())
				}

				close(events.Events)
				if event := <-events.Events; !strings.Contains(event, test.event) || (event == "") != (test.event == "") {
					t.Errorf("the event is %q, want %q", event, test.event)
				}
				time.Sleep(repeatProblem) //nolint:forbidigo // no time passes in a bubble
				synctest.Wait()
				if again := c.queue.Len() == 1; again != (test.event != "") {
					t.Errorf("after %v, the key is in the queue: %v", repeatProblem, again)
				}
			})
		})
	}
}
