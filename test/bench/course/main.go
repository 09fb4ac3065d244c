// Command course is the controller of the well-known course on Kubernetes, from
// which this project began. It creates the same networks, but keeps the habits of
// the course:
//
//   - Every event adds its key with AddRateLimited, so that the default limiter lets
//     ten keys a second pass, after the first hundred.
//   - The informer resyncs every 30 seconds, and each sync reads the network and the
//     subnet from Neutron.
//   - There is no finalizer: a network is deleted after the event of the deletion. If
//     the program does not run at that time, the network stays.
//   - Every sync records an Event.
//
// The course only logs what it would request of Neutron, and has no status. Here, it
// sends the requests and sets the condition Ready: otherwise it could not be measured.
// The client-side limit of five requests a second is lifted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	"github.com/samplecrd/network-controller/pkg/client/clientset/versioned/scheme"
	informers "github.com/samplecrd/network-controller/pkg/client/informers/externalversions"
	listers "github.com/samplecrd/network-controller/pkg/client/listers/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "`path` of a kubeconfig file")
	endpoint := flag.String("neutron-endpoint", "", "`URL` of Neutron")
	workers := flag.Int("workers", 2, "number of concurrent workers")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the process
	if err := run(ctx, *kubeconfig, *endpoint, *workers); err != nil {
		fmt.Fprintln(os.Stderr, "course:", err)
		os.Exit(1)
	}
}

// Controller is the controller of the course.
type Controller struct {
	client   clientset.Interface
	networks listers.NetworkLister
	queue    workqueue.TypedRateLimitingInterface[cache.ObjectName]
	recorder record.EventRecorder
	neutron  neutron.Client
}

func run(ctx context.Context, kubeconfig, endpoint string, workers int) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	neutronClient, err := openstack.New(endpoint)
	if err != nil {
		return err
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedv1.EventSinkImpl{Interface: kube.CoreV1().Events("")})

	factory := informers.NewSharedInformerFactory(client, 30*time.Second)
	networks := factory.Samplecrd().V1().Networks()
	c := &Controller{
		client: client, networks: networks.Lister(), neutron: neutronClient,
		queue:    workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
		recorder: broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "network-controller"}),
	}
	if _, err := networks.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    c.enqueue,
		UpdateFunc: func(_, changed any) { c.enqueue(changed) }, // a resync, too
		DeleteFunc: c.enqueue,
	}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), networks.Informer().HasSynced) {
		return errors.New("the cache did not sync")
	}
	for range workers {
		go c.runWorker(ctx)
	}
	<-ctx.Done()
	c.queue.ShutDown()
	return nil
}

func (c *Controller) enqueue(obj any) {
	key, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil {
		runtime.HandleError(err)
		return
	}
	c.queue.AddRateLimited(key)
}

func (c *Controller) runWorker(ctx context.Context) {
	for c.processNextWorkItem(ctx) {
	}
}

func (c *Controller) processNextWorkItem(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	if err := c.syncHandler(ctx, key); err != nil {
		runtime.HandleError(fmt.Errorf("error syncing %s: %w", key, err))
		c.queue.AddRateLimited(key)
		return true
	}
	c.queue.Forget(key)
	return true
}

func (c *Controller) syncHandler(ctx context.Context, key cache.ObjectName) error {
	marker := neutron.Owner{Cluster: "course", Namespace: key.Namespace, Name: key.Name}.Marker()
	found, err := c.neutron.Networks(ctx, neutron.NetworkFilter{Name: key.String()})
	if err != nil {
		return err
	}
	network, err := c.networks.Networks(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		for _, n := range found {
			if err := c.neutron.DeleteNetwork(ctx, n.ID, n.Revision); err != nil {
				return err
			}
		}
		return nil
	}
	if err != nil {
		return err
	}
	subnet, err := c.sync(ctx, network, marker, found)
	if err != nil {
		return err
	}
	if err := c.updateStatus(ctx, network, subnet); err != nil {
		return err
	}
	c.recorder.Event(network, corev1.EventTypeNormal, "Synced", "Network synced successfully")
	return nil
}

// sync makes Neutron match a Network, and returns its subnet.
func (c *Controller) sync(ctx context.Context, network *samplecrdv1.Network, marker string, found []neutron.Network) (subnet neutron.Subnet, err error) {
	cidr, err := netip.ParsePrefix(network.Spec.CIDR)
	if err != nil {
		return subnet, err
	}
	gateway, err := netip.ParseAddr(network.Spec.Gateway)
	if err != nil {
		return subnet, err
	}
	name := network.Namespace + "/" + network.Name
	if len(found) == 0 {
		created, err := c.neutron.CreateNetwork(ctx, neutron.NewNetwork{Name: name, Description: marker})
		if err != nil {
			return subnet, err
		}
		found = []neutron.Network{created}
	}
	settings := neutron.SubnetSettings{Gateway: &gateway}
	if len(found[0].SubnetIDs) == 0 {
		return c.neutron.CreateSubnet(ctx, neutron.NewSubnet{NetworkID: found[0].ID, Name: name, Description: marker, CIDR: cidr, SubnetSettings: settings})
	}
	subnets, err := c.neutron.Subnets(ctx, neutron.SubnetFilter{NetworkID: found[0].ID})
	if err != nil || len(subnets) == 0 || subnets[0].Gateway == gateway {
		if len(subnets) > 0 {
			subnet = subnets[0]
		}
		return subnet, err
	}
	// The pools must not contain the new gateway: all addresses after it.
	settings.Pools = []neutron.Pool{{Start: gateway.Next(), End: subnets[0].Pools[len(subnets[0].Pools)-1].End}}
	return c.neutron.UpdateSubnet(ctx, subnets[0].ID, neutron.SubnetUpdate{SubnetSettings: settings, Revision: subnets[0].Revision})
}

// updateStatus sets Ready, if it is not set yet.
func (c *Controller) updateStatus(ctx context.Context, network *samplecrdv1.Network, subnet neutron.Subnet) error {
	if network.Status.ObservedGeneration == network.Generation && meta.IsStatusConditionTrue(network.Status.Conditions, samplecrdv1.ConditionReady) {
		return nil
	}
	network = network.DeepCopy()
	network.Status.ObservedGeneration = network.Generation
	network.Status.NetworkID, network.Status.SubnetID = subnet.NetworkID, subnet.ID
	network.Status.CIDR, network.Status.Gateway = subnet.CIDR.String(), subnet.Gateway.String()
	meta.SetStatusCondition(&network.Status.Conditions, metav1.Condition{
		Type: samplecrdv1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Synced", Message: "Network synced successfully",
		ObservedGeneration: network.Generation,
	})
	_, err := c.client.SamplecrdV1().Networks(network.Namespace).UpdateStatus(ctx, network, metav1.UpdateOptions{})
	return err
}
