package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/samplecrd/network-controller/test/bench/bare"
	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/internal/process"
)

// site is where a peer works: a Kubernetes, a Neutron, and the process of the peer.
type site struct {
	cluster *controlplane.Cluster
	kube    *bare.Client
	dirs    int // number of folders of earlier Neutrons and peers
	dir     string
	neutron *neutron
	peer    *process.Process
	made    counts // the writes of the benchmark itself, by verb and resource
}

// tenants is the number of namespaces that the Networks are spread over.
const tenants = 10

func startSite(ctx context.Context) (*site, error) {
	cluster, err := controlplane.Start(ctx, controlplane.Options{Apply: []string{"crd", "test/bench/crd"}})
	if err != nil {
		return nil, err
	}
	s := &site{cluster: cluster, made: counts{}}
	if s.kube, err = bare.New(cluster.RESTConfig()); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	for i := range tenants {
		if err := s.createNamespace(ctx, tenant(i)); err != nil {
			return nil, errors.Join(err, s.stop())
		}
	}
	return s, nil
}

func tenant(i int) string { return "tenant-" + strconv.Itoa(i%tenants) }

func (s *site) createNamespace(ctx context.Context, name string) error {
	return s.kube.Do(ctx, http.MethodPost, "/api/v1/namespaces", bare.JSON, fmt.Sprintf(`{"metadata":{"name":%q}}`, name), nil)
}

// stop ends all processes.
func (s *site) stop() error {
	s.stopPeer()
	s.stopNeutron()
	return s.cluster.Stop()
}

// startNeutron starts an empty Neutron, after the previous one has ended.
func (s *site) startNeutron(ctx context.Context, latency, perObject time.Duration) (err error) {
	s.stopNeutron()
	s.dirs++
	s.dir = filepath.Join(s.cluster.Dir(), "bench-"+strconv.Itoa(s.dirs))
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return err
	}
	s.neutron, err = startNeutron(ctx, s.dir, latency, perObject)
	return err
}

func (s *site) stopNeutron() {
	if s.neutron != nil {
		s.neutron.process.Kill()
		s.neutron = nil
	}
}

// startPeer starts a peer. Networks must be created only after it watches.
func (s *site) startPeer(p peer, workers int) (err error) {
	args := append([]string{p.program, "-kubeconfig=" + s.cluster.Kubeconfig(), "-neutron-endpoint=" + s.neutron.url, "-workers=" + strconv.Itoa(workers)}, p.flags...)
	s.peer, err = process.Start(s.dir, process.Program{Name: p.Name, Args: args})
	return err
}

// stopPeer ends the peer as Kubernetes does.
func (s *site) stopPeer() {
	s.peer.Stop(30 * time.Second)
	s.peer = nil
}

// usage is the CPU time of the processes, in seconds.
type usage struct{ Peer, APIServer, Etcd, Neutron float64 }

func (u usage) minus(before usage) usage {
	return usage{u.Peer - before.Peer, u.APIServer - before.APIServer, u.Etcd - before.Etcd, u.Neutron - before.Neutron}
}

func (s *site) usage() usage {
	pids := s.cluster.PIDs()
	u := usage{APIServer: cpuSeconds(pids["kube-apiserver"]), Etcd: cpuSeconds(pids["etcd"]), Neutron: cpuSeconds(s.neutron.process.PID())}
	if s.peer != nil {
		u.Peer = cpuSeconds(s.peer.PID())
	}
	return u
}

// requestTotal matches a counter of the API server.
var (
	requestTotal = regexp.MustCompile(`(?m)^apiserver_request_total\{([^}]*)\} (\S+)$`)
	labelValue   = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// writes returns how many writes of Networks and Events the API server has received,
// without those of the benchmark itself.
func (s *site) writes(ctx context.Context) (counts, error) {
	text, err := s.kube.Text(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	all := counts{}
	for _, line := range requestTotal.FindAllSubmatch(text, -1) {
		labels := map[string]string{}
		for _, label := range labelValue.FindAllSubmatch(line[1], -1) {
			labels[string(label[1])] = string(label[2])
		}
		switch labels["verb"] {
		case "POST", "PUT", "PATCH", "APPLY", "DELETE":
		default:
			continue
		}
		if labels["resource"] != "networks" && labels["resource"] != "events" {
			continue
		}
		name := labels["verb"] + " " + labels["resource"]
		if labels["subresource"] != "" {
			name += "/" + labels["subresource"]
		}
		value, _ := strconv.ParseFloat(string(line[2]), 64)
		all[name] += int(value)
	}
	for name, n := range s.made {
		all[name] -= n
	}
	return all, nil
}

// events returns the number of Events that exist.
func (s *site) events(ctx context.Context) (int, error) {
	var list struct {
		Metadata struct{ RemainingItemCount int }
		Items    []struct{}
	}
	err := s.kube.Do(ctx, http.MethodGet, "/api/v1/events?limit=1", "", "", &list)
	return len(list.Items) + list.Metadata.RemainingItemCount, err
}
