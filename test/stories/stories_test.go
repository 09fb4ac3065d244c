// Package stories runs the built controller from outside: each script in this
// folder runs with a real kube-apiserver, a Neutron behind a proxy that injects
// faults, and the controller as a process. README.md explains the commands.
package stories

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/internal/program"
)

const (
	// patience limits how long a story waits for one condition.
	patience = 2 * time.Minute
	// pollInterval is the pause between two checks of a condition.
	pollInterval = 50 * time.Millisecond
	// maxShownLog limits how much of a controller's log a failed story shows, in bytes.
	maxShownLog = 100_000
)

var (
	// builtProgram is the path of the controller under test.
	builtProgram string
	// parallelStories is how many stories run at the same time. Stories mostly wait;
	// but a real Neutron can be a single Python process.
	parallelStories = 4
	// realNeutron is the endpoint of a Neutron without authentication. If it is
	// empty, each story has an embedded Neutron.
	realNeutron = os.Getenv("NEUTRON_ENDPOINT")
)

func TestMain(m *testing.M) {
	if realNeutron != "" {
		parallelStories = 2
	}
	_ = flag.Set("test.parallel", strconv.Itoa(parallelStories)) // unless the command line has it
	flag.Parse()
	os.Exit(program.RunTests(m, &builtProgram))
}

// TestStories runs every script in this folder.
func TestStories(t *testing.T) {
	clusters := newClusterPool(t)
	testscript.Run(t, testscript.Params{
		Dir: ".",
		Setup: func(env *testscript.Env) error {
			s, err := newStory(env.T().(testing.TB), clusters)
			if err != nil {
				return err
			}
			env.Defer(s.end)
			env.Values[storyKey{}] = s
			env.Vars = append(env.Vars, "NAMESPACE="+s.namespace, "CLUSTER="+s.clusterName, "CLOUD="+s.cloud())
			return nil
		},
		Cmds: commands(),
		Condition: func(condition string) (bool, error) {
			if condition == "embedded" {
				return realNeutron == "", nil
			}
			return false, fmt.Errorf("unknown condition %q", condition)
		},
		RequireUniqueNames: true,
	})
}

// clusterPool has a control plane for each story that runs. An entry is nil until
// a story starts a control plane for it. (A controller watches all namespaces, so
// two stories cannot share a control plane at the same time.)
type clusterPool chan *controlplane.Cluster

func newClusterPool(t *testing.T) clusterPool {
	pool := make(clusterPool, parallelStories)
	for range parallelStories {
		pool <- nil
	}
	t.Cleanup(func() {
		for range parallelStories {
			if cluster := <-pool; cluster != nil {
				_ = cluster.Stop()
			}
		}
	})
	return pool
}

// story has the environment of one story: a Kubernetes, a Neutron, and controllers.
type story struct {
	testing.TB
	script      *testscript.TestScript
	clusters    clusterPool // where cluster comes from
	cluster     *controlplane.Cluster
	clusterName string // -cluster-name of the controllers
	namespace   string // named after the story
	client      clientset.Interface
	kube        kubernetes.Interface
	neutron     *neutronServer
	controllers map[string]*controller
	names       names // of the objects in Neutron
	nextNames   names // with those of the last printed state
}

type storyKey struct{}

func newStory(t testing.TB, clusters clusterPool) (s *story, err error) {
	s = &story{
		TB:          t,
		clusters:    clusters,
		cluster:     <-clusters,
		clusterName: "story-" + rand.String(8),
		namespace:   t.Name()[strings.LastIndex(t.Name(), "/")+1:],
		controllers: map[string]*controller{},
		names:       names{},
	}
	defer func() {
		if err != nil {
			clusters <- s.cluster
		}
	}()
	if s.cluster == nil {
		if s.cluster, err = controlplane.Start(t.Context(), controlplane.Options{Apply: []string{"crd"}}); err != nil {
			return s, err
		}
	}
	s.client = clientset.NewForConfigOrDie(s.cluster.RESTConfig())
	s.kube = kubernetes.NewForConfigOrDie(s.cluster.RESTConfig())
	if _, err := s.kubectl([]string{"create", "namespace", s.namespace}); err != nil {
		return s, err
	}
	s.neutron, err = newNeutronServer(realNeutron)
	return s, err
}

// end deletes the objects of the story. If the story failed, end prints the logs
// of its controllers.
func (s *story) end() {
	for name, c := range s.controllers {
		_ = c.end(syscall.SIGKILL)
		log := c.log()
		if strings.Contains(log, "DATA RACE") { // with PROGRAM_RACE
			s.Errorf("the %s controller has a data race", name)
		}
		if s.Failed() {
			s.Logf("the log of the %s controller:\n%s", name, log[max(0, len(log)-maxShownLog):])
		}
	}
	ctx := context.Background()
	err := errors.Join(s.endNeutron(), s.cluster.StartAPIServer(ctx), s.removeObjects(ctx))
	if err != nil {
		s.Errorf("cleaning up after the story: %v", err)
	}
	if s.Failed() { // the next story gets another one
		_ = s.cluster.Stop()
		s.cluster = nil
	}
	s.clusters <- s.cluster
}

// removeObjects deletes the Deployments and Networks of the story, with their
// finalizers. Otherwise the controllers of the next story reconcile them.
func (s *story) removeObjects(ctx context.Context) error {
	client := s.client.SamplecrdV1().Networks(s.namespace)
	if err := errors.Join(
		s.kube.AppsV1().Deployments(s.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
		client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
	); err != nil {
		return err
	}
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, network := range list.Items {
		patch := []byte(`{"metadata":{"finalizers":null}}`)
		_, failure := client.Patch(ctx, network.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		err = errors.Join(err, failure)
	}
	return err
}

// eventually waits until a check passes. It ends early if a controller ends.
func (s *story) eventually(check func() error) error {
	var last, ended error
	err := wait.PollUntilContextTimeout(s.Context(), pollInterval, patience, true, func(context.Context) (bool, error) {
		for name, c := range s.controllers {
			if ended = c.endedByItself(); ended != nil {
				return false, fmt.Errorf("the %s controller: %w", name, ended)
			}
		}
		last = check()
		return last == nil, nil
	})
	if err != nil && ended == nil {
		err = fmt.Errorf("still not after %v: %w", patience, last)
	}
	return err
}

// verb is a command of the scripts. It returns its output.
type verb func(s *story, args []string) (output string, err error)

var verbs map[string]verb

func init() { // check and until call the others
	verbs = map[string]verb{
		"apiserver":  (*story).apiServer,
		"apply":      (*story).apply,
		"check":      (*story).check,
		"condition":  (*story).condition,
		"controller": (*story).control,
		"events":     (*story).events,
		"fault":      (*story).fault,
		"held":       (*story).heldRequests,
		"hold":       (*story).hold,
		"kubectl":    (*story).kubectl,
		"neutron":    (*story).neutronRequest,
		"plan":       (*story).plan,
		"release":    (*story).release,
		"requests":   (*story).requests,
		"state":      (*story).state,
		"until":      (*story).until,
	}
}

// commands returns the verbs as commands of testscript.
func commands() map[string]func(ts *testscript.TestScript, not bool, args []string) {
	all := map[string]func(*testscript.TestScript, bool, []string){}
	for name, do := range verbs {
		all[name] = func(ts *testscript.TestScript, not bool, args []string) {
			s := ts.Value(storyKey{}).(*story)
			s.script = ts
			output, err := do(s, args)
			_, _ = ts.Stdout().Write([]byte(output))
			switch {
			case err != nil && not:
				_, _ = ts.Stderr().Write([]byte(err.Error() + "\n"))
			case err != nil:
				ts.Fatalf("%v", err)
			case not:
				ts.Fatalf("%s succeeded, and must not", name)
			}
			s.commitNames()
		}
	}
	return all
}

// kubectl runs kubectl in the story's namespace.
func (s *story) kubectl(args []string) (string, error) {
	output, err := s.cluster.Kubectl(s.Context(), append([]string{"--namespace=" + s.namespace}, args...)...)
	return string(output), err
}

// apiServer stops and starts the API server, which keeps its data.
func (s *story) apiServer(args []string) (string, error) {
	switch strings.Join(args, " ") {
	case "stop":
		return "", s.cluster.StopAPIServer()
	case "start":
		return "", s.cluster.StartAPIServer(s.Context())
	}
	return "", errors.New("usage: apiserver stop | start")
}

// TestReadmeExplainsVerbs compares the table in README.md with the verbs.
func TestReadmeExplainsVerbs(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range verbs {
		if !strings.Contains(string(text), "\n| `"+name) {
			t.Errorf("README.md does not explain %s", name)
		}
	}
}
