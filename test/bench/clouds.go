package main

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	"github.com/samplecrd/network-controller/pkg/clouds"
	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/internal/process"
	"github.com/samplecrd/network-controller/test/keystone"
)

// The numbers of clouds, one for each namespace, and how many Networks each has.
var cloudCounts = []int{1, 10, 100}

const networksOfCloud = 100

// manyClouds is the controller with a cloud for each namespace.
type manyClouds struct {
	cluster  *controlplane.Cluster
	kube     *kubernetes.Clientset
	networks *clientset.Clientset
	cloud    *keystone.Cloud
	args     []string
}

// cloudCost is what a number of clouds costs.
type cloudCost struct {
	clouds                        int
	resident, peak                float64 // MB, after the start
	quiet, cpu                    float64 // seconds of the start
	startRequests, logins         int64
	restRequests, restGets, rests float64 // in a minute at rest: to Neutron, to Kubernetes; CPU seconds
}

// clouds prints what each number of clouds costs, as a table in Markdown.
func (b *bench) clouds(ctx context.Context) error {
	cluster, err := controlplane.Start(ctx, controlplane.Options{Apply: []string{"crd"}})
	if err != nil {
		return err
	}
	defer func() { _ = cluster.Stop() }()
	config := rest.CopyConfig(cluster.RESTConfig())
	config.QPS = -1
	m := &manyClouds{cluster: cluster, cloud: keystone.Start()}
	m.kube, m.networks = kubernetes.NewForConfigOrDie(config), clientset.NewForConfigOrDie(config)
	defer m.cloud.Close()
	m.args = []string{filepath.Join(b.root, "build/bin/samplecrd-controller"), "-kubeconfig=" + cluster.Kubeconfig(),
		"-allowed-auth-urls=" + m.cloud.URL, "-leader-elect=false", "-deployment-networks=none"}
	fmt.Println("| clouds | memory | peak | start: quiet after | CPU time | requests to Neutron | logins " +
		"| at rest, in a minute: requests to Neutron | Secrets read | CPU time |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|")
	have := 0
	for _, n := range cloudCounts {
		c, err := m.measure(ctx, have, n)
		if err != nil {
			return fmt.Errorf("%d clouds: %w", n, err)
		}
		have = n
		fmt.Printf("| %d | %.0f MB | %.0f MB | %.1f s | %.1f s | %d | %d | %.0f | %.0f | %.2f s |\n",
			c.clouds, c.resident, c.peak, c.quiet, c.cpu, c.startRequests, c.logins, c.restRequests, c.restGets, c.rests)
	}
	return nil
}

// measure adds clouds, and measures a restart and a minute at rest.
func (m *manyClouds) measure(ctx context.Context, have, n int) (c cloudCost, err error) {
	p, err := process.Start(m.cluster.Dir(), process.Program{Name: "controller", Args: m.args})
	if err != nil {
		return c, err
	}
	for i := have; i < n && err == nil; i++ {
		err = m.addCloud(ctx, fmt.Sprintf("tenant-%d", i))
	}
	if err == nil {
		err = m.waitReady(ctx, n)
	}
	p.Stop(stopTime)
	if err != nil {
		return c, err
	}

	c.clouds = n
	requests, logins, began := m.cloud.Requests.Load(), m.cloud.Logins.Load(), time.Now()
	if p, err = process.Start(m.cluster.Dir(), process.Program{Name: "controller", Args: m.args}); err != nil {
		return c, err
	}
	defer p.Stop(stopTime)
	lastWork := began
	for before := -1.0; time.Since(lastWork) < 5*time.Second; {
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return c, err
		}
		if now := cpuSeconds(p.PID()); now > before+0.02 {
			lastWork, before = time.Now(), now
		}
	}
	c.quiet, c.cpu = lastWork.Sub(began).Seconds(), cpuSeconds(p.PID())
	c.startRequests, c.logins = m.cloud.Requests.Load()-requests, m.cloud.Logins.Load()-logins

	if err := pause(ctx, 30*time.Second); err != nil {
		return c, err
	}
	requests, gets, cpu := m.cloud.Requests.Load(), m.secretGets(ctx), cpuSeconds(p.PID())
	if err := pause(ctx, time.Minute); err != nil {
		return c, err
	}
	c.restRequests, c.restGets = float64(m.cloud.Requests.Load()-requests), m.secretGets(ctx)-gets
	c.rests = cpuSeconds(p.PID()) - cpu
	c.resident, c.peak = memory(p.PID())
	return c, nil
}

// addCloud adds a namespace with its Secret and Networks.
func (m *manyClouds) addCloud(ctx context.Context, namespace string) error {
	created := metav1.CreateOptions{}
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := m.kube.CoreV1().Namespaces().Create(ctx, object, created); err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: clouds.SecretName},
		StringData: map[string]string{"clouds.yaml": m.cloud.AddProject(namespace).CloudsYAML()}}
	if _, err := m.kube.CoreV1().Secrets(namespace).Create(ctx, secret, created); err != nil {
		return err
	}
	var group sync.WaitGroup
	failed := make([]error, 8)
	for worker := range failed {
		group.Go(func() {
			for i := worker; i < networksOfCloud && failed[worker] == nil; i += len(failed) {
				network := &samplecrdv1.Network{ObjectMeta: metav1.ObjectMeta{Name: "n" + strconv.Itoa(i)},
					Spec: samplecrdv1.NetworkSpec{CIDR: fmt.Sprintf("10.0.%d.0/24", i)}}
				_, failed[worker] = m.networks.SamplecrdV1().Networks(namespace).Create(ctx, network, created)
			}
		})
	}
	group.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

// waitReady waits until the Networks of a number of clouds are Ready.
func (m *manyClouds) waitReady(ctx context.Context, n int) error {
	for i := range n {
		namespace := fmt.Sprintf("tenant-%d", i)
		err := process.Poll(ctx, 2*time.Second, func(ctx context.Context) (bool, error) {
			list, err := m.networks.SamplecrdV1().Networks(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
			if err != nil {
				return false, err
			}
			isWaiting := func(network samplecrdv1.Network) bool {
				return !meta.IsStatusConditionTrue(network.Status.Conditions, samplecrdv1.ConditionReady)
			}
			return !slices.ContainsFunc(list.Items, isWaiting), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

var secretGet = regexp.MustCompile(`(?m)^apiserver_request_total\{.*resource="secrets".*verb="GET".*\} (\S+)$`)

// secretGets returns how many Secrets the API server has been asked for.
func (m *manyClouds) secretGets(ctx context.Context) (total float64) {
	metrics, _ := m.kube.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	for _, counter := range secretGet.FindAllSubmatch(metrics, -1) {
		value, _ := strconv.ParseFloat(strings.TrimSpace(string(counter[1])), 64)
		total += value
	}
	return total
}
