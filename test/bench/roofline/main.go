// Command roofline sends the requests that a Network needs, and nothing else: it is
// the speed that no controller can exceed. It has a watch and a number of workers.
//
//	create  PATCH finalizer, POST network, POST subnet, PATCH status
//	edit    PUT subnet, PATCH status
//	delete  DELETE network, PATCH finalizer
//
// It is no controller. It looks for nothing, checks nothing, corrects nothing and
// retries nothing: a failed request ends it.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/test/bench/bare"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "`path` of a kubeconfig file")
	endpoint := flag.String("neutron-endpoint", "", "`URL` of Neutron")
	workers := flag.Int("workers", 32, "number of concurrent workers")
	group := flag.String("group", "samplecrd.k8s.io", "API group of the Networks")
	flag.Parse()
	if err := run(*kubeconfig, *endpoint, *group, *workers); err != nil {
		fmt.Fprintln(os.Stderr, "roofline:", err)
		os.Exit(1)
	}
}

type client struct {
	kube    rest.Interface
	neutron string
	http    *http.Client

	mu   sync.Mutex
	done map[string]int64 // the generation that was handled, by key
	gone map[string]bool  // the finalizer was removed
}

func run(kubeconfig, endpoint, group string, workers int) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	kube, err := bare.NewClient(config, group)
	if err != nil {
		return err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = workers
	c := &client{
		kube: kube, neutron: endpoint, http: &http.Client{Transport: transport},
		done: map[string]int64{}, gone: map[string]bool{},
	}
	work := make(chan *samplecrdv1.Network, 1<<16) // more than there are
	failed := make(chan error, workers+1)
	for range workers {
		go func() {
			for {
				if err := c.handle(context.Background(), <-work); err != nil {
					failed <- err
				}
			}
		}()
	}
	go func() {
		failed <- bare.Watch(context.Background(), kube, "", func(change watch.EventType, network *samplecrdv1.Network) {
			if c.needsRequests(change, network) {
				work <- network
			}
		})
	}()
	return <-failed
}

// needsRequests reports whether a change is a new generation, or a deletion.
func (c *client) needsRequests(change watch.EventType, network *samplecrdv1.Network) bool {
	key := keyOf(network)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch deleted := network.DeletionTimestamp != nil; {
	case change == watch.Deleted:
		delete(c.done, key)
		delete(c.gone, key)
	case deleted && !c.gone[key] && len(network.Finalizers) > 0:
		c.gone[key] = true
		return true
	case !deleted && c.done[key] < network.Generation:
		c.done[key] = network.Generation
		return true
	}
	return false
}

func keyOf(network *samplecrdv1.Network) string { return network.Namespace + "/" + network.Name }

// handle sends the requests for one change.
func (c *client) handle(ctx context.Context, network *samplecrdv1.Network) error {
	switch {
	case network.DeletionTimestamp != nil:
		if err := c.send(ctx, http.MethodDelete, "/v2.0/networks/"+network.Status.NetworkID, nil, nil); err != nil {
			return err
		}
		return c.patch(ctx, network, `{"metadata":{"finalizers":null}}`)
	case bare.IsReady(network):
		return nil // from an earlier run
	case network.Status.SubnetID != "":
		update := object{"subnet": object{
			"gateway_ip":       network.Spec.Gateway,
			"allocation_pools": poolsWithout(network.Spec.CIDR, network.Spec.Gateway),
		}}
		if err := c.send(ctx, http.MethodPut, "/v2.0/subnets/"+network.Status.SubnetID, update, nil); err != nil {
			return err
		}
		return c.writeStatus(ctx, network, network.Status.NetworkID, network.Status.SubnetID)
	}
	return c.create(ctx, network)
}

func (c *client) create(ctx context.Context, network *samplecrdv1.Network) error {
	const finalizer = `{"metadata":{"finalizers":["samplecrd.k8s.io/neutron"],` +
		`"annotations":{"samplecrd.k8s.io/cloud":"RegionOne/benchmark"}}}`
	if err := c.patch(ctx, network, finalizer); err != nil {
		return err
	}
	name := keyOf(network)
	description := "samplecrd.k8s.io owner: benchmark/" + name
	var created struct {
		Network struct{ ID string }
		Subnet  struct{ ID string }
	}
	if err := c.send(ctx, http.MethodPost, "/v2.0/networks",
		object{"network": object{"name": name, "description": description}}, &created); err != nil {
		return err
	}
	if err := c.send(ctx, http.MethodPost, "/v2.0/subnets", object{"subnet": object{
		"network_id": created.Network.ID, "name": name, "description": description,
		"ip_version": 4, "cidr": network.Spec.CIDR, "gateway_ip": network.Spec.Gateway,
	}}, &created); err != nil {
		return err
	}
	return c.writeStatus(ctx, network, created.Network.ID, created.Subnet.ID)
}

// writeStatus writes a status of the size that the controller writes.
func (c *client) writeStatus(ctx context.Context, network *samplecrdv1.Network, networkID, subnetID string) error {
	body, err := json.Marshal(object{"status": object{
		"observedGeneration": network.Generation, "matchedGeneration": network.Generation,
		"networkID": networkID, "subnetID": subnetID, "cloud": "RegionOne/benchmark",
		"cidr": network.Spec.CIDR, "gateway": network.Spec.Gateway, "mtu": 1450, "defaultMTU": 1450,
		"conditions": []object{{
			"type": "Ready", "status": "True", "reason": "Provisioned", "observedGeneration": network.Generation,
			"message": "The network and its subnet match the spec.", "lastTransitionTime": "2026-01-01T00:00:00Z",
		}},
	}})
	if err != nil {
		return err
	}
	return c.patch(ctx, network, string(body), "status")
}

// patch sends a patch of a Network, or of its subresource.
func (c *client) patch(ctx context.Context, network *samplecrdv1.Network, body string, subresource ...string) error {
	return c.kube.Patch(types.MergePatchType).Namespace(network.Namespace).Resource(bare.Resource).
		Name(network.Name).SubResource(subresource...).Body([]byte(body)).Do(ctx).Error()
}

type object = map[string]any

// send sends a request to Neutron.
func (c *client) send(ctx context.Context, method, path string, body, into any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, c.neutron+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: status %d: %s: %w", method, path, response.StatusCode, answer, err)
	}
	if into != nil {
		return json.Unmarshal(answer, into)
	}
	return nil
}

// poolsWithout returns the allocation pools of a /24 whose gateway is its first or
// second address.
func poolsWithout(cidr, gateway string) []object {
	prefix := strings.TrimSuffix(cidr, "0/24")
	if strings.HasSuffix(gateway, ".1") {
		return []object{{"start": prefix + "2", "end": prefix + "254"}}
	}
	return []object{{"start": prefix + "1", "end": prefix + "1"}, {"start": prefix + "3", "end": prefix + "254"}}
}
