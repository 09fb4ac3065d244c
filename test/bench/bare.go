package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	watchtools "k8s.io/client-go/tools/watch"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	typedv1 "github.com/samplecrd/network-controller/pkg/client/clientset/versioned/typed/samplecrd/v1"
)

// bareClient sends the requests that a Network needs, and nothing else: it is the speed
// that no controller can exceed. It has a watch and a number of workers.
//
//	create  PATCH finalizer, POST network, POST subnet, PATCH status
//	edit    PUT subnet, PATCH status
//	delete  DELETE network, PATCH finalizer
//
// It is no controller. It looks for nothing, checks nothing, corrects nothing and
// retries nothing: a failed request ends it.
type bareClient struct{ kube, neutron rest.Interface }

// bareMain runs a bareClient in a process of its own, with the flags of a controller.
func bareMain(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench bare", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "`path` of a kubeconfig file")
	endpoint := flags.String("neutron-endpoint", "", "`URL` of Neutron")
	workers := flags.Int("workers", 32, "number of concurrent workers")
	_ = flags.Parse(args) // it exits
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = *workers
	kube, err := newClient(config)
	neutron, failed := newClient(&rest.Config{Host: *endpoint}) // it only encodes
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	c := &bareClient{kube, neutron}
	work := make(chan *samplecrdv1.Network, 1<<16) // more than there are
	running, ctx := errgroup.WithContext(ctx)
	for range *workers {
		running.Go(func() error {
			for network := range work {
				if err := c.handle(ctx, network); err != nil {
					return err
				}
			}
			return nil
		})
	}
	running.Go(func() error {
		defer close(work)
		done := map[cache.ObjectName]int64{} // generations; a deletion is one, too
		return watchNetworks(ctx, kube, "", func(change watch.EventType, network *samplecrdv1.Network) {
			key := cache.MetaObjectToName(network)
			isNew := network.Generation > done[key]
			if done[key] = network.Generation; change == watch.Deleted {
				delete(done, key)
			} else if isNew && !isReady(network) {
				work <- network
			}
		})
	})
	return running.Wait()
}

type object = map[string]any

// handle sends the requests for one change.
func (c *bareClient) handle(ctx context.Context, network *samplecrdv1.Network) error {
	switch status := network.Status; {
	case network.DeletionTimestamp != nil:
		_, err := c.send(ctx, http.MethodDelete, "networks/"+status.NetworkID, nil)
		return errors.Join(err, c.patch(ctx, network, object{"metadata": object{"finalizers": nil}}))
	case status.SubnetID != "":
		prefix := strings.TrimSuffix(network.Spec.CIDR, "0/24")
		change := object{"subnet": object{"gateway_ip": network.Spec.Gateway, "allocation_pools": []object{
			{"start": prefix + "1", "end": prefix + "1"}, {"start": prefix + "3", "end": prefix + "254"}, // all but .2
		}}}
		_, err := c.send(ctx, http.MethodPut, "subnets/"+status.SubnetID, change)
		return errors.Join(err, c.writeStatus(ctx, network, status.NetworkID, status.SubnetID))
	}
	err := c.patch(ctx, network, object{"metadata": object{
		"finalizers":  []string{samplecrdv1.Finalizer},
		"annotations": object{samplecrdv1.AnnotationCloud: "RegionOne/benchmark"},
	}})
	if err != nil {
		return err
	}
	name := cache.MetaObjectToName(network).String()
	common := object{"name": name, "description": "samplecrd.k8s.io owner: benchmark/" + name}
	created, err := c.send(ctx, http.MethodPost, "networks", object{"network": common})
	if err != nil {
		return err
	}
	subnet, err := c.send(ctx, http.MethodPost, "subnets", object{"subnet": object{
		"network_id": created.Network.ID, "name": name, "description": common["description"],
		"ip_version": 4, "cidr": network.Spec.CIDR, "gateway_ip": network.Spec.Gateway,
	}})
	return errors.Join(err, c.writeStatus(ctx, network, created.Network.ID, subnet.Subnet.ID))
}

// writeStatus writes a status of the size that the controller writes.
func (c *bareClient) writeStatus(ctx context.Context, network *samplecrdv1.Network, networkID, subnetID string) error {
	return c.patch(ctx, network, object{"status": object{
		"observedGeneration": network.Generation, "matchedGeneration": network.Generation,
		"networkID": networkID, "subnetID": subnetID, "cloud": "RegionOne/benchmark",
		"cidr": network.Spec.CIDR, "gateway": network.Spec.Gateway, "mtu": 1450, "defaultMTU": 1450,
		"conditions": []object{{
			"type": "Ready", "status": "True", "reason": "Provisioned", "observedGeneration": network.Generation,
			"message": "The network and its subnet match the spec.", "lastTransitionTime": "2026-01-01T00:00:00Z",
		}},
	}}, "status")
}

// patch sends a patch of a Network, or of a part of it: its subresource.
func (c *bareClient) patch(ctx context.Context, network *samplecrdv1.Network, body object, part ...string) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return c.kube.Patch(types.MergePatchType).Namespace(network.Namespace).Resource(resource).
		Name(network.Name).SubResource(part...).Body(text).Do(ctx).Error()
}

// created is what a response of Neutron contains.
type created struct{ Network, Subnet struct{ ID string } }

// send sends a request to Neutron.
func (c *bareClient) send(ctx context.Context, method, path string, body object) (response created, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return response, err
	}
	text, err = c.neutron.Verb(method).AbsPath("/v2.0/"+path).SetHeader("Content-Type", "application/json").
		Body(text).DoRaw(ctx)
	if err == nil && len(text) > 0 {
		err = json.Unmarshal(text, &response)
	}
	return response, err
}

// resource is the resource of Networks in requests.
const resource = "networks"

// newClient returns a client for Networks, without a cache or a limit of requests.
func newClient(config *rest.Config) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := typedv1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return client.RESTClient(), nil
}

// watchNetworks calls a function for all Networks of a namespace that exist, and for each
// later change, until the context ends. An empty namespace stands for all.
func watchNetworks(
	ctx context.Context, client rest.Interface, namespace string, handle func(watch.EventType, *samplecrdv1.Network),
) error {
	all := &samplecrdv1.NetworkList{}
	if err := client.Get().Namespace(namespace).Resource(resource).Do(ctx).Into(all); err != nil {
		return fmt.Errorf("listing Networks: %w", err)
	}
	for i := range all.Items {
		handle(watch.Added, &all.Items[i])
	}
	changes := cache.NewListWatchFromClient(client, resource, namespace, fields.Everything())
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, all.ResourceVersion, changes)
	if err != nil {
		return fmt.Errorf("watching Networks: %w", err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		switch object := event.Object.(type) {
		case *samplecrdv1.Network:
			handle(event.Type, object)
		case *metav1.Status:
			return fmt.Errorf("watching Networks: %s", object.Message)
		}
	}
	return errors.Join(ctx.Err(), errors.New("watching Networks: the watch ended"))
}

// isReady reports whether a Network is ready with its current spec.
func isReady(network *samplecrdv1.Network) bool {
	return network.Status.ObservedGeneration == network.Generation &&
		meta.IsStatusConditionTrue(network.Status.Conditions, samplecrdv1.ConditionReady)
}
