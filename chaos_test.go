package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"

	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	networkclient "github.com/samplecrd/network-controller/pkg/client/clientset/versioned/typed/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/reconcile"
	"github.com/samplecrd/network-controller/test/controlplane"
)

// pace says how fast a round is. The controllers divide their limits by scale.
type pace struct {
	seeds    []uint64 // unless the environment has others
	length   time.Duration
	distance time.Duration // between two acts of a user, on average
	scale    time.Duration
}

var (
	paceOfEmbedded = pace{[]uint64{1, 2, 3}, 15 * time.Second, 250 * time.Millisecond, 30}
	paceOfReal     = pace{[]uint64{1}, time.Minute, time.Second, 6}
)

const (
	chaosLease  = 2 * time.Second
	orphanGrace = 10 * time.Minute // divided by the scale
)

// TestChaos plays everything at once: users, an operator who changes Neutron
// directly, processes that die, pause and lead at the same time, and lost and late
// requests. In the end, it compares Kubernetes with Neutron once.
//
// CHAOS_SEED=n plays one round, CHAOS_TIME=30m plays random ones for so long,
// CHAOS_WITHOUT=name,name switches ingredients off, and CHAOS_LOGS=DIR keeps the logs
// and the whole journal of rounds that fail.
func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	t.Parallel()
	// Without -namespaces, which excludes -allow-adoption, a controller needs a cluster
	// of its own. Its controller manager collects garbage.
	own := controlplane.StartForTest(t, controlplane.Options{Apply: []string{"crd"}, ControllerManager: true})
	pace := paceOfEmbedded
	if os.Getenv("NEUTRON_ENDPOINT") != "" {
		pace = paceOfReal
	}
	play := func(seed uint64, without string) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			newChaos(t, own, newSchedule(t, seed, pace, without)).run()
		})
	}
	if text := os.Getenv("CHAOS_TIME"); text != "" {
		length, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("CHAOS_TIME: %v", err)
		}
		for end := time.Now().Add(length); time.Now().Before(end); {
			play(rand.Uint64N(1_000_000), cmp.Or(os.Getenv("CHAOS_WITHOUT"), diesOrAdopts))
		}
		return
	}
	if text := os.Getenv("CHAOS_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("CHAOS_SEED: %v", err)
		}
		pace.seeds = []uint64{seed}
	}
	if os.Getenv("CHAOS_SEED") != "" {
		play(pace.seeds[0], os.Getenv("CHAOS_WITHOUT"))
		return
	}
	for _, seed := range pace.seeds {
		play(seed, diesOrAdopts)
	}
	// The ledger alone: nothing ends the leader, and nothing deletes orphans.
	play(pace.seeds[0], "kill,pause,term,third,partition,stall,cut,set-clock,delete-orphans")
}

// diesOrAdopts omits adoption where the leader may die: a Network that vanishes
// before its leader dies leaves its subnet on an adopted network, which is no orphan. See
// what no object names, in docs/operate/promises.md.
const diesOrAdopts = "adopt"

// chaos is a round.
type chaos struct {
	*testing.T
	schedule
	*truth
	ambushes ambushes
	journal  *journal

	cluster                *controlplane.Cluster
	client                 clientset.Interface
	kube                   kubernetes.Interface
	namespace, clusterName string
	neutron                *neutronFront
	timeout, maxInFlight   time.Duration // of requests to Neutron, as the controllers know them

	replicas  []*chaosReplica
	leader    atomic.Int64
	apiWrites atomic.Uint64
	trap      atomic.Pointer[func(*chaosReplica)] // pauses a replica, once
	calm      context.Context                     // ends with the faults
	endFaults context.CancelFunc
	guests    sync.WaitGroup // ports of the operator
}

func newChaos(t *testing.T, own *controlplane.Cluster, s schedule) *chaos {
	t.Helper()
	config := own.RESTConfig()
	c := &chaos{
		T: t, schedule: s, ambushes: ambushes{laid: sets.New[string]()}, truth: newTruth(), journal: newJournal(),
		cluster: own, client: clientset.NewForConfigOrDie(config), kube: kubernetes.NewForConfigOrDie(config),
		timeout: 30 * time.Second / s.scale, maxInFlight: limits.maxInFlight / s.scale,
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "chaos-"}}
	namespace, err := c.kube.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.namespace, c.clusterName = namespace.Name, namespace.Name
	c.calm, c.endFaults = context.WithCancel(t.Context())
	c.neutron = newNeutronFront(c, os.Getenv("NEUTRON_ENDPOINT"))
	t.Cleanup(c.cleanUp)
	router := map[string]any{"router": map[string]any{"name": c.routerName()}}
	if err := c.do(http.MethodPost, "routers", router, nil); err != nil {
		t.Fatal(err)
	}
	for _, acts := range s.users {
		for _, a := range acts {
			if a.name[0] == 'a' && c.adoptable[a.name] == "" {
				c.adoptable[a.name] = c.createForeign("to-adopt-"+a.name, "of somebody who lends it")
			}
		}
	}
	return c
}

func (c *chaos) networks() networkclient.NetworkInterface {
	return c.client.SamplecrdV1().Networks(c.namespace)
}

func (c *chaos) routerName() string { return "edge-" + c.clusterName }

// run plays the schedule, and compares.
func (c *chaos) run() {
	defer c.endFaults()
	for number := range 3 {
		c.replicas = append(c.replicas, newChaosReplica(c, number))
	}
	c.leader.Store(noReplica)
	c.replicas[0].begin()
	c.replicas[1].begin()
	for c.leader.Load() == noReplica && time.Since(c.journal.began) < time.Minute {
		time.Sleep(10 * time.Millisecond) //nolint:forbidigo // between two looks
	}
	began := time.Now()
	time.AfterFunc(c.length, c.endFaults)
	var actors sync.WaitGroup
	play := func(acts []act, do func(act)) {
		actors.Go(func() {
			for _, a := range acts {
				c.pause(time.Until(began.Add(a.at)))
				if c.calm.Err() != nil {
					return
				}
				do(a)
			}
		})
	}
	for _, acts := range c.users {
		play(acts, c.use)
	}
	play(c.operator, c.operate)
	play(c.host, c.strike)
	if c.has("third") {
		actors.Go(c.third)
	}
	actors.Wait()
	c.trap.Store(nil)
	c.guests.Wait()
	for _, replica := range c.replicas[:2] {
		replica.carryOn()
	}
	c.journal.add("", "all is calm")
	c.compare()
	c.Logf("%d writes to Neutron, %d to Kubernetes, %d changes of the leader, %d ambushes; it took %v",
		c.neutron.writes.Load(), c.apiWrites.Load(), c.journal.count(" leads"), c.journal.count("while the finalizer"),
		time.Since(c.journal.began).Round(time.Second))
	for _, replica := range c.replicas {
		replica.end()
	}
	if c.Failed() {
		c.writeLogs()
	}
}

// patience is the longest time until all is as desired: the longest retry delays one
// after the other, a pause of an informer of up to 30 seconds, and the grace period.
func (c *chaos) patience() time.Duration {
	patience := 30*time.Second + chaosLease + (3*limits.retry.Rejected+2*reconcile.MaxBackoff)/c.scale
	if c.deletesOrphans() {
		patience += orphanGrace / c.scale
	}
	return patience
}

// compare waits until there are no differences for several resync periods, and
// reports the last ones.
func (c *chaos) compare() {
	var problems map[string]string
	var err error
	const wanted = 12 // times without a difference, one after the other
	found := 0
	for end := time.Now().Add(c.patience()); found < wanted && time.Now().Before(end); {
		time.Sleep(250 * time.Millisecond) //nolint:forbidigo // between two looks
		if problems, err = c.differences(); err == nil && len(problems) == 0 && c.neutron.held.Load() == 0 {
			found++
		} else {
			found = 0
		}
	}
	if found == wanted {
		return
	}
	var text strings.Builder
	for i, name := range slices.Sorted(maps.Keys(problems)) {
		fmt.Fprintf(&text, "%s: %s\n", name, problems[name])
		if i < 2 {
			text.WriteString(c.journal.of(name))
		}
	}
	c.Errorf("Kubernetes and Neutron differ (%v). To repeat it: "+
		"CHAOS_SEED=%d CHAOS_WITHOUT=%s go test -count=1 -run 'TestChaos$' .\n%s",
		err, c.seed, strings.Join(c.without, ","), &text)
}

// do sends a request to Neutron without faults.
func (c *chaos) do(method, path string, body, response any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if body == nil {
		text = nil
	}
	recorder := httptest.NewRecorder()
	request := httptest.NewRequest(method, c.neutron.url+"/v2.0/"+path, bytes.NewReader(text))
	request.Header.Set("Content-Type", "application/json")
	c.neutron.next.ServeHTTP(recorder, request)
	if recorder.Code >= 300 {
		return fmt.Errorf("%s %s: %d %s", method, path, recorder.Code, recorder.Body)
	}
	if response == nil || recorder.Body.Len() == 0 {
		return nil
	}
	return json.Unmarshal(recorder.Body.Bytes(), response)
}

func (c *chaos) getNetwork(path string) (neutronNetwork, error) {
	var response struct{ Network neutronNetwork }
	err := c.do(http.MethodGet, path, nil, &response)
	return response.Network, err
}

// cleanUp deletes what the next round would see.
func (c *chaos) cleanUp() {
	ctx := context.Background()
	all := metav1.ListOptions{}
	_ = c.kube.AppsV1().Deployments(c.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all)
	_ = c.networks().DeleteCollection(ctx, metav1.DeleteOptions{}, all)
	if list, err := c.networks().List(ctx, all); err == nil {
		for _, network := range list.Items {
			noFinalizers := []byte(`{"metadata":{"finalizers":null}}`)
			_, _ = c.networks().Patch(ctx, network.Name, types.MergePatchType, noFinalizers, metav1.PatchOptions{})
		}
	}
	if os.Getenv("NEUTRON_ENDPOINT") != "" {
		c.cleanNeutron()
	}
}

// cleanNeutron deletes the objects of the round in a Neutron that continues.
func (c *chaos) cleanNeutron() {
	w, err := c.look()
	if err != nil {
		c.Error(err)
		return
	}
	var routers struct{ Routers []struct{ ID string } }
	_ = c.do(http.MethodGet, "routers?name="+c.routerName(), nil, &routers)
	for _, router := range routers.Routers {
		for _, subnet := range w.subnets {
			path := "routers/" + router.ID + "/remove_router_interface"
			_ = c.do(http.MethodPut, path, map[string]any{"subnet_id": subnet.ID}, nil)
		}
		_ = c.do(http.MethodDelete, "routers/"+router.ID, nil, nil)
	}
	for id, network := range w.byID {
		owner, _ := ownerIn(network.Description)
		if _, foreign := c.foreign[id]; foreign || owner.Cluster == c.clusterName {
			_ = c.do(http.MethodDelete, "networks/"+id, nil, nil)
		}
	}
}

// writeLogs writes the logs of the processes and the journal.
func (c *chaos) writeLogs() {
	dir := os.Getenv("CHAOS_LOGS")
	if dir == "" {
		return
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(c.seed, "-", name)), []byte(text), 0o600); err != nil {
			c.Error(err)
		}
	}
	write("journal", c.journal.String())
	for _, replica := range c.replicas {
		write(fmt.Sprint("replica-", replica.number), replica.log.String())
	}
}
