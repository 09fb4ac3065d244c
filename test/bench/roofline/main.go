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
	kube    *bare.Client
	neutron string
	group   string
	http    *http.Client

	mu   sync.Mutex
	done map[string]int64 // the generation that was handled, by key
	gone map[string]bool  // the finalizer was removed
}

func run(kubeconfig, endpoint, group string, workers int) error {
	kube, err := bare.FromKubeconfig(kubeconfig)
	if err != nil {
		return err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = workers
	c := &client{
		kube: kube, neutron: endpoint, group: group, http: &http.Client{Transport: transport},
		done: map[string]int64{}, gone: map[string]bool{},
	}
	work := newQueue()
	failed := make(chan error, workers+1)
	for range workers {
		go func() {
			for {
				if err := c.handle(context.Background(), work.get()); err != nil {
					failed <- err
				}
			}
		}()
	}
	go func() {
		failed <- kube.Watch(context.Background(), group, "", func(e bare.Event) { c.enqueue(work, e) })
	}()
	return <-failed
}

// enqueue adds what needs requests: a new generation, or a deletion.
func (c *client) enqueue(work *queue, event bare.Event) {
	network := event.Object
	key := network.Key()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch deleted := network.Metadata.DeletionTimestamp != ""; {
	case event.Type == "DELETED":
		delete(c.done, key)
		delete(c.gone, key)
	case deleted && !c.gone[key] && len(network.Metadata.Finalizers) > 0:
		c.gone[key] = true
		work.add(network)
	case !deleted && c.done[key] < network.Metadata.Generation:
		c.done[key] = network.Metadata.Generation
		work.add(network)
	}
}

// handle sends the requests for one change.
func (c *client) handle(ctx context.Context, network bare.Network) error {
	path := bare.Path(c.group, network.Metadata.Namespace, network.Metadata.Name)
	switch {
	case network.Metadata.DeletionTimestamp != "":
		if err := c.send(ctx, http.MethodDelete, "/v2.0/networks/"+network.Status.NetworkID, nil, nil); err != nil {
			return err
		}
		return c.kube.Do(ctx, http.MethodPatch, path, bare.MergePatch, `{"metadata":{"finalizers":null}}`, nil)
	case network.IsReady():
		return nil // from an earlier run
	case network.Status.SubnetID != "":
		update := object{"subnet": object{"gateway_ip": network.Spec.Gateway, "allocation_pools": poolsWithout(network.Spec.CIDR, network.Spec.Gateway)}}
		if err := c.send(ctx, http.MethodPut, "/v2.0/subnets/"+network.Status.SubnetID, update, nil); err != nil {
			return err
		}
		return c.writeStatus(ctx, path, network, network.Status.NetworkID, network.Status.SubnetID)
	}
	return c.create(ctx, path, network)
}

func (c *client) create(ctx context.Context, path string, network bare.Network) error {
	finalizer := `{"metadata":{"finalizers":["samplecrd.k8s.io/neutron"],"annotations":{"samplecrd.k8s.io/cloud":"RegionOne/benchmark"}}}`
	if err := c.kube.Do(ctx, http.MethodPatch, path, bare.MergePatch, finalizer, nil); err != nil {
		return err
	}
	description := "samplecrd.k8s.io owner: benchmark/" + network.Key()
	var created struct {
		Network struct{ ID string }
		Subnet  struct{ ID string }
	}
	if err := c.send(ctx, http.MethodPost, "/v2.0/networks",
		object{"network": object{"name": network.Key(), "description": description}}, &created); err != nil {
		return err
	}
	if err := c.send(ctx, http.MethodPost, "/v2.0/subnets", object{"subnet": object{
		"network_id": created.Network.ID, "name": network.Key(), "description": description,
		"ip_version": 4, "cidr": network.Spec.CIDR, "gateway_ip": network.Spec.Gateway,
	}}, &created); err != nil {
		return err
	}
	return c.writeStatus(ctx, path, network, created.Network.ID, created.Subnet.ID)
}

// writeStatus writes a status of the size that the controller writes.
func (c *client) writeStatus(ctx context.Context, path string, network bare.Network, networkID, subnetID string) error {
	body, err := json.Marshal(object{"status": object{
		"observedGeneration": network.Metadata.Generation, "matchedGeneration": network.Metadata.Generation,
		"networkID": networkID, "subnetID": subnetID, "cloud": "RegionOne/benchmark",
		"cidr": network.Spec.CIDR, "gateway": network.Spec.Gateway, "mtu": 1450, "defaultMTU": 1450,
		"conditions": []object{{
			"type": "Ready", "status": "True", "reason": "Provisioned", "observedGeneration": network.Metadata.Generation,
			"message": "The network and its subnet match the spec.", "lastTransitionTime": "2026-01-01T00:00:00Z",
		}},
	}})
	if err != nil {
		return err
	}
	return c.kube.Do(ctx, http.MethodPatch, path+"/status", bare.MergePatch, string(body), nil)
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

// queue is a queue without a bound.
type queue struct {
	mu    sync.Mutex
	added *sync.Cond
	items []bare.Network
}

func newQueue() *queue {
	q := &queue{}
	q.added = sync.NewCond(&q.mu)
	return q
}

func (q *queue) add(network bare.Network) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = append(q.items, network)
	q.added.Signal()
}

func (q *queue) get() bare.Network {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) == 0 {
		q.added.Wait()
	}
	network := q.items[0]
	q.items = q.items[1:]
	return network
}
