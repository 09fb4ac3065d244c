package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/internal/process"
)

// site is a Kubernetes and a cloud for one measurement, with a peer at work.
type site struct {
	root      string
	cluster   *controlplane.Cluster
	kube      rest.Interface // for Networks
	cloud     cloud
	peer      peer
	flags     []string         // that the peer has in addition
	process   *process.Process // of the peer; nil while it is stopped
	watch     *observer
	namespace func(i int) string // of the Network with a number
}

// cloud is the OpenStack of a measurement.
type cloud interface {
	flag() string                  // with which a peer finds it
	requests() (all, complete int) // that it has received: all, and complete lists
	Close()
}

const (
	// tenants is the number of namespaces that the Networks are spread over.
	tenants = 10
	// stopTime is how long a peer may take to end.
	stopTime = 30 * time.Second
)

func tenantOf(i int) string { return "tenant-" + strconv.Itoa(i%tenants) }

// onSite calls a function when the peer of a measurement works.
func onSite(ctx context.Context, root string, m step, measure func(*site) error) error {
	s := &site{root: root, peer: m.Peer, cloud: startNeutron(m.latency), namespace: tenantOf}
	return s.use(ctx, func() error {
		for i := range tenants {
			if err := s.createNamespace(ctx, tenantOf(i)); err != nil {
				return err
			}
		}
		if err := s.waitForCalm(ctx); err != nil {
			return err
		}
		if err := s.startPeer(s.flags...); err != nil {
			return err
		}
		_, _, err := s.createOne(ctx, tenantOf(0), "warm-up") // so that the peer has its connections
		if err := errors.Join(err, s.settle(ctx)); err != nil {
			return fmt.Errorf("starting %s: %w", m.Peer.Name, err)
		}
		return measure(s)
	})
}

// use calls a function with a Kubernetes, and ends everything after it.
func (s *site) use(ctx context.Context, call func() error) (err error) {
	defer s.cloud.Close()
	s.cluster, err = controlplane.Start(ctx, controlplane.Options{Apply: []string{"crd"}})
	if err != nil {
		return err
	}
	defer func() {
		s.stopPeer()
		err = errors.Join(err, s.cluster.Stop())
	}()
	if s.kube, err = newClient(s.cluster.RESTConfig()); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.watch = observe(ctx, s.kube, "")
	return call()
}

// waitForCalm waits until the API server has nothing to do.
func (s *site) waitForCalm(ctx context.Context) error {
	for {
		before := s.cpuTime()["APIServer"]
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
		if s.cpuTime()["APIServer"]-before < calmCPU {
			return nil
		}
	}
}

// startPeer starts the peer. Flags take the place of its usual ones.
func (s *site) startPeer(flags ...string) (err error) {
	args := append([]string{filepath.Join(s.root, s.peer.command[0])}, s.peer.command[1:]...)
	args = append(args, "-kubeconfig="+s.cluster.Kubeconfig(), s.cloud.flag(), "-workers=32")
	s.process, err = process.Start(s.cluster.Dir(), process.Program{Name: s.peer.Name, Args: append(args, flags...)})
	return err
}

// stopPeer ends the peer as Kubernetes does.
func (s *site) stopPeer() {
	s.process.Stop(stopTime)
	s.process = nil
}

func networkName(i int) string { return fmt.Sprintf("network-%06d", i) }

func (s *site) createNamespace(ctx context.Context, name string) error {
	body := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name)
	return s.kube.Post().AbsPath("/api/v1/namespaces").Body(body).Do(ctx).Error()
}

// post creates a Network, whose CIDR is chosen by a number.
func (s *site) post(ctx context.Context, namespace, name string, i int) error {
	prefix := fmt.Sprintf("10.%d.%d.", i/256%256, i%256)
	return s.kube.Post().Namespace(namespace).Resource(resource).Body(&samplecrdv1.Network{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       samplecrdv1.NetworkSpec{CIDR: prefix + "0/24", Gateway: prefix + "1"},
	}).Do(ctx).Error()
}

// edit changes the gateway of a Network to the second address.
func (s *site) edit(ctx context.Context, namespace, name string, i int) error {
	body := fmt.Appendf(nil, `{"spec":{"gateway":"10.%d.%d.2"}}`, i/256%256, i%256)
	return s.kube.Patch(types.MergePatchType).Namespace(namespace).Resource(resource).Name(name).
		Body(body).Do(ctx).Error()
}

func (s *site) remove(ctx context.Context, namespace, name string, _ int) error {
	return s.kube.Delete().Namespace(namespace).Resource(resource).Name(name).Do(ctx).Error()
}

// settle waits until a peer has sent no Event for a second.
func (s *site) settle(ctx context.Context) error {
	for latest := -1.0; !s.peer.isBare; {
		sent, err := s.requests(ctx)
		if err != nil || sent["Events"] == latest {
			return err
		}
		latest = sent["Events"]
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
