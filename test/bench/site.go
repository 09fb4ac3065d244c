package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/test/bench/bare"
	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/internal/process"
)

// site is a Kubernetes and a Neutron for one measurement, with a peer at work.
type site struct {
	cluster *controlplane.Cluster
	kube    *rest.RESTClient // for the Networks of the peer's group
	neutron *neutron
	peer    peer
	process *process.Process // of the peer; nil while it is stopped
	watch   *observer
}

const (
	// workers is the number of workers of each peer.
	workers = 32
	// tenants is the number of namespaces that the Networks are spread over.
	tenants = 10
	// stopTime is how long a peer may take to end.
	stopTime = 30 * time.Second
)

// startSite returns when the peer works.
func startSite(ctx context.Context, p peer, latency time.Duration) (s *site, err error) {
	cluster, err := controlplane.Start(ctx, controlplane.Options{Apply: []string{"crd", "test/bench/crd"}})
	if err != nil {
		return nil, err
	}
	s = &site{cluster: cluster, neutron: startNeutron(latency), peer: p}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", p.Name, err), s.stop())
	}
	return s, nil
}

func (s *site) start(ctx context.Context) (err error) {
	if s.kube, err = bare.NewClient(s.cluster.RESTConfig(), s.peer.group); err != nil {
		return err
	}
	for i := range tenants {
		if err := s.createNamespace(ctx, tenant(i)); err != nil {
			return err
		}
	}
	if err := s.waitForCalm(ctx); err != nil {
		return err
	}
	if err := s.startPeer(s.peer.flags...); err != nil {
		return err
	}
	s.watch = observe(ctx, s.kube, "")
	return s.warmUp(ctx)
}

// waitForCalm waits until the API server has nothing to do.
func (s *site) waitForCalm(ctx context.Context) error {
	for {
		before := s.cpuTime().APIServer
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
		if s.cpuTime().APIServer-before < calmCPU {
			return nil
		}
	}
}

// warmUp creates a Network and deletes it, so that the peer has its connections.
func (s *site) warmUp(ctx context.Context) error {
	const name = "warm-up"
	if _, err := s.createOne(ctx, tenant(0), name); err != nil {
		return err
	}
	done := s.watch.expect(1)
	s.watch.begin(tenant(0), name, gone)
	if err := s.remove(ctx, tenant(0), name); err != nil {
		return err
	}
	if err := s.wait(ctx, done, giveUp); err != nil {
		return err
	}
	return s.settle(ctx)
}

// stop ends all processes.
func (s *site) stop() error {
	if s.watch != nil {
		s.watch.stop()
	}
	s.stopPeer()
	s.neutron.server.Close()
	return s.cluster.Stop()
}

// startPeer starts the peer.
func (s *site) startPeer(flags ...string) (err error) {
	args := append([]string{
		s.peer.program, "-kubeconfig=" + s.cluster.Kubeconfig(), "-neutron-endpoint=" + s.neutron.server.URL,
		"-workers=" + strconv.Itoa(workers),
	}, flags...)
	s.process, err = process.Start(s.cluster.Dir(), process.Program{Name: s.peer.Name, Args: args})
	return err
}

// stopPeer ends the peer as Kubernetes does.
func (s *site) stopPeer() {
	s.process.Stop(stopTime)
	s.process = nil
}

func tenant(i int) string { return "tenant-" + strconv.Itoa(i%tenants) }

func networkName(i int) string { return fmt.Sprintf("network-%06d", i) }

func (s *site) createNamespace(ctx context.Context, name string) error {
	body := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name)
	return s.kube.Post().AbsPath("/api/v1/namespaces").Body(body).Do(ctx).Error()
}

// post creates a Network. The last part of its CIDR is chosen by a number.
func (s *site) post(ctx context.Context, namespace, name string, i int) error {
	prefix := fmt.Sprintf("10.%d.%d.", i/256%256, i%256)
	return s.kube.Post().Namespace(namespace).Resource(bare.Resource).Body(&samplecrdv1.Network{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       samplecrdv1.NetworkSpec{CIDR: prefix + "0/24", Gateway: prefix + "1"},
	}).Do(ctx).Error()
}

// edit changes the gateway of a Network.
func (s *site) edit(ctx context.Context, namespace, name string, i int) error {
	body := fmt.Appendf(nil, `{"spec":{"gateway":"10.%d.%d.2"}}`, i/256%256, i%256)
	return s.kube.Patch(types.MergePatchType).Namespace(namespace).Resource(bare.Resource).Name(name).
		Body(body).Do(ctx).Error()
}

func (s *site) remove(ctx context.Context, namespace, name string) error {
	return s.kube.Delete().Namespace(namespace).Resource(bare.Resource).Name(name).Do(ctx).Error()
}

// events returns the number of Events that exist.
func (s *site) events(ctx context.Context) (int, error) {
	text, err := s.kube.Get().AbsPath("/api/v1/events").Param("limit", "1").DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal(text, &list); err != nil || list.RemainingItemCount == nil {
		return len(list.Items), err
	}
	return len(list.Items) + int(*list.RemainingItemCount), nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
