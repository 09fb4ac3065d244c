package deployments

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/client/clientset/versioned/fake"
	"github.com/samplecrd/network-controller/pkg/observe"
	"github.com/samplecrd/network-controller/pkg/store"
)

// TestProblem: a problem is reported to the Deployment, and to its own Network. It is
// reported again after half an hour, because events expire. Neither a deletion of the
// Deployment nor its correction leaves the condition.
func TestProblem(t *testing.T) {
	valid, invalid := deploymentOf("cidr=10.0.0.0/24"), deploymentOf("cidr=nonsense")
	own := &samplecrdv1.Network{Spec: samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24"}}
	own.Namespace, own.Name, own.Labels = "default", "web", labelsFor(valid, annotated.requestOf(valid))
	foreign := own.DeepCopy()
	own.OwnerReferences, foreign.Labels = []metav1.OwnerReference{ownerReference(valid)}, nil
	marked := own.DeepCopy()
	marked.Status.Conditions = []metav1.Condition{{Type: samplecrdv1.ConditionDeploymentInvalid, Status: metav1.ConditionTrue, Reason: "InvalidRequest"}}
	for name, test := range map[string]struct {
		deployment *metav1.PartialObjectMetadata
		network    *samplecrdv1.Network
		notListed  bool
		excluded   []string // namespaces
		event      string
		conditions string // in the patch of the status, if there is one
	}{
		"valid":                            {deployment: valid, network: own},
		"invalid":                          {deployment: invalid, network: own, event: "NetworkNotMade", conditions: `"type":"DeploymentInvalid"`},
		"still invalid":                    {deployment: invalid, network: marked, event: "NetworkNotMade", conditions: `"type":"DeploymentInvalid"`},
		"corrected":                        {deployment: valid, network: marked, conditions: `"conditions":null`},
		"invalid, and a foreign Network":   {deployment: invalid, network: foreign, event: "NetworkNotMade"},
		"in an excluded namespace":         {deployment: invalid, network: own, excluded: []string{"default"}},
		"in another one than that":         {deployment: invalid, network: foreign, excluded: []string{"other"}, event: "NetworkNotMade"},
		"deleted":                          {network: marked, conditions: `"conditions":null`},
		"perhaps deleted: not listed yet":  {network: marked, notListed: true},
		"a Network without any Deployment": {network: foreign},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				key := cache.MetaObjectToName(test.network)
				client, events := fake.NewClientset(test.network), record.NewFakeRecorder(10)
				var patches []string
				client.PrependReactor("patch", "networks", func(action clienttesting.Action) (bool, runtime.Object, error) {
					patches = append(patches, string(action.(clienttesting.PatchAction).GetPatch()))
					return true, test.network, nil
				})
				networks, err := store.NewStatic(klog.Background(), store.ByNamespace[[]*samplecrdv1.Network]{"": {test.network}})
				if err != nil {
					t.Fatal(err)
				}
				informer := listed{cache.NewSharedIndexInformer(nil, test.network, 0, cache.Indexers{}), !test.notListed}
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

				if err := c.syncHandler(t.Context(), key); (err != nil) != test.notListed {
					t.Error(err)
				}

				if got := strings.Join(patches, ""); !strings.Contains(got, test.conditions) || (got == "") != (test.conditions == "") {
					t.Errorf("the status was patched with %q, want %s", got, test.conditions)
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

// listed is an informer that has listed its objects, or has not.
type listed struct {
	cache.SharedIndexInformer
	synced bool
}

func (l listed) HasSynced() bool { return l.synced }
