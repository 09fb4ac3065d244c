// Package chaos plays everything at once: users, an operator who changes Neutron
// directly, processes that die, pause and lead at the same time, and lost and late
// requests. In the end, it compares Kubernetes with Neutron once.
//
// The processes are the built program. The build adds testdata/chaos.go to it, which
// shortens the limits that no flag changes, and can set the wall clock.
package chaos

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
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
	"k8s.io/client-go/kubernetes"

	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	networkclient "github.com/samplecrd/network-controller/pkg/client/clientset/versioned/typed/samplecrd/v1"
	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/internal/program"
)

// builtProgram is the path of the controller under test.
var builtProgram string

func TestMain(m *testing.M) { os.Exit(program.RunTests(m, &builtProgram, "testdata/chaos.go")) }

// pace determines how fast a round is. The controllers divide their limits by scale.
type pace struct {
	length   time.Duration
	distance time.Duration // between two acts of a user, on average
	scale    time.Duration
	crowd    int // users with 20 Networks each
}

var (
	paceOfEmbedded = pace{15 * time.Second, 250 * time.Millisecond, 30, 4}
	paceOfReal     = pace{time.Minute, time.Second, 6, 0}
)

const leaseDuration = 2 * time.Second

// Durations of the controllers, which are divided by the scale.
const (
	neutronTimeout = 30 * time.Second
	maxInFlight    = 30 * time.Second // see options.go
	orphanGrace    = 10 * time.Minute
	longestRetries = 3*5*time.Minute + 2*2*time.Minute // one after the other
)

// diesOrAdopts omits adoption where the leader may die: a Network that vanishes
// before its leader dies leaves its subnet on an adopted network, which is no orphan. See
// what no object names, in docs/operate/promises.md.
const diesOrAdopts = "adopt"

// onlyLedger omits what ends the leader, what deletes orphans, and the crowd.
const onlyLedger = "crowd,kill,pause,term,third,partition,stall,cut,set-clock,delete-orphans"

// TestChaos plays rounds with fixed seeds.
//
// CHAOS_SEED=n plays one round, CHAOS_TIME=30m plays random ones for so long,
// CHAOS_WITHOUT=name,name switches ingredients off, and CHAOS_LOGS=DIR keeps the logs
// and the whole journal of rounds that fail.
func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	// Without -namespaces, which excludes -allow-adoption, a controller needs a cluster
	// of its own. Its controller manager collects garbage.
	own := controlplane.StartForTest(t, controlplane.Options{Apply: []string{"crd"}, ControllerManager: true})
	pace, seeds := paceOfEmbedded, []uint64{1, 2, 3}
	if os.Getenv("NEUTRON_ENDPOINT") != "" {
		pace, seeds = paceOfReal, seeds[:1]
	}
	play := func(seed uint64, without string) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			newRound(t, own, newSchedule(t, seed, pace, without)).run()
		})
	}
	without := os.Getenv("CHAOS_WITHOUT")
	if text := os.Getenv("CHAOS_TIME"); text != "" {
		length, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("CHAOS_TIME: %v", err)
		}
		for end := time.Now().Add(length); time.Now().Before(end); {
			play(rand.Uint64N(1_000_000), cmp.Or(without, diesOrAdopts))
		}
		return
	}
	if text := os.Getenv("CHAOS_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("CHAOS_SEED: %v", err)
		}
		play(seed, without)
		return
	}
	for _, seed := range seeds {
		play(seed, diesOrAdopts)
	}
	play(seeds[0], onlyLedger)
}

// round has the servers, the processes and the people of one round.
type round struct {
	*testing.T
	schedule
	*truth
	ambushes sync.Map // of names: their Networks are deleted while a controller sets the finalizer
	journal  *journal

	cluster     *controlplane.Cluster
	client      clientset.Interface
	kube        kubernetes.Interface
	namespace   string // and -cluster-name
	neutron     *neutronFront
	timeout     time.Duration // of requests to Neutron
	maxInFlight time.Duration

	replicas  []*replica
	leader    atomic.Int64
	apiWrites atomic.Uint64
	trap      atomic.Pointer[func(*replica)] // pauses a replica, once
	calm      context.Context                // ends with the faults
	endFaults context.CancelFunc
	guests    sync.WaitGroup // ports of the operator
}

func newRound(t *testing.T, own *controlplane.Cluster, s schedule) *round {
	t.Helper()
	config := own.RESTConfig()
	c := &round{
		T: t, schedule: s, truth: newTruth(), journal: newJournal(),
		cluster: own, client: clientset.NewForConfigOrDie(config), kube: kubernetes.NewForConfigOrDie(config),
		timeout: neutronTimeout / s.scale, maxInFlight: maxInFlight / s.scale,
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "chaos-"}}
	namespace, err := c.kube.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.namespace = namespace.Name
	c.calm, c.endFaults = context.WithCancel(t.Context())
	c.neutron = newNeutronFront(c, os.Getenv("NEUTRON_ENDPOINT"))
	t.Cleanup(c.cleanUp)
	router := map[string]any{"router": map[string]any{"name": c.routerName()}}
	if err := c.neutron.Do(http.MethodPost, "routers", router, nil); err != nil {
		t.Fatal(err)
	}
	for _, a := range slices.Concat(s.users...) {
		if a.name[0] == 'a' && c.adoptable[a.name] == "" {
			c.adoptable[a.name] = c.createForeign("to-adopt-"+a.name, "of somebody who lends it")
		}
	}
	return c
}

func (c *round) networks() networkclient.NetworkInterface {
	return c.client.SamplecrdV1().Networks(c.namespace)
}

func (c *round) routerName() string { return "edge-" + c.namespace }

// run plays the schedule, and compares.
func (c *round) run() {
	defer c.endFaults()
	for number := range 3 {
		c.replicas = append(c.replicas, newReplica(c, number))
	}
	c.leader.Store(noReplica)
	c.replicas[0].begin()
	c.replicas[1].begin()
	for c.leader.Load() == noReplica && time.Since(c.journal.began) < time.Minute {
		c.pause(10 * time.Millisecond)
	}
	c.play()
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
		if strings.Contains(replica.log(), "DATA RACE") { // with PROGRAM_RACE
			c.Errorf("replica %d has a data race", replica.number)
		}
	}
	if c.Failed() {
		c.writeLogs()
	}
}

// play plays the schedule.
func (c *round) play() {
	began := time.Now()
	time.AfterFunc(c.length, c.endFaults)
	var actors sync.WaitGroup
	start := func(acts []act, do func(act)) {
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
		start(acts, c.use)
	}
	start(c.operator, c.operate)
	start(c.host, c.strike)
	if c.has("third") {
		actors.Go(c.third)
	}
	actors.Wait()
}

// patience is the longest time until all is as desired: the longest retries, a pause of
// an informer of up to 30 seconds, and the grace period.
func (c *round) patience() time.Duration {
	patience := 30*time.Second + leaseDuration + longestRetries/c.scale
	if c.deletesOrphans() {
		patience += orphanGrace / c.scale
	}
	return patience
}

// compare waits until there are no differences for several resync periods, and
// reports the last ones.
func (c *round) compare() {
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
		"CHAOS_SEED=%d CHAOS_WITHOUT=%s go test -count=1 ./test/chaos\n%s",
		err, c.seed, strings.Join(c.without, ","), &text)
}

// cleanUp deletes what the next round would see.
func (c *round) cleanUp() {
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
func (c *round) cleanNeutron() {
	w, err := c.look()
	if err != nil {
		c.Error(err)
		return
	}
	for id, network := range w.byID {
		owner, _ := ownerIn(network.Description)
		if _, foreign := c.foreign[id]; foreign || owner.Cluster == c.namespace {
			_ = c.neutron.Remove(id)
		}
	}
	var own struct{ Routers []struct{ ID string } }
	_ = c.neutron.Do(http.MethodGet, "routers?name="+c.routerName(), nil, &own)
	for _, router := range own.Routers {
		_ = c.neutron.Do(http.MethodDelete, "routers/"+router.ID, nil, nil)
	}
}

// writeLogs writes the logs of the processes and the journal.
func (c *round) writeLogs() {
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
		write(fmt.Sprint("replica-", replica.number), replica.log())
	}
}
