package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	"github.com/samplecrd/network-controller/test/controlplane"
)

const (
	// storiesAtOnce is how many stories are told at the same time, each with a
	// control plane to itself: the controller watches the Networks of all
	// namespaces. They wait more than they work.
	storiesAtOnce = 4
	// storyPatience is how long a story waits for anything.
	storyPatience = 2 * time.Minute
	// maxStoryLog is how much of a controller's log is shown, in bytes.
	maxStoryLog = 100_000
)

// TestStories tells every story in example/stories, and the storm, with a real
// kube-apiserver and the controller as a process of its own. With
// NEUTRON_ENDPOINT they are about the Neutron there, in place of an embedded
// one. The README next to the stories explains the words they are written in.
func TestStories(t *testing.T) {
	t.Parallel()
	places := storiesAtOnce
	if os.Getenv("NEUTRON_ENDPOINT") != "" {
		places = 2 // it may be one process in Python
	}
	teller := &storyTeller{T: t, places: newStoryPlaces(t, places)}
	teller.Run("storm", func(t testscript.T) { storm(t.(*storyTeller)) })
	testscript.RunT(teller, testscript.Params{
		Dir:                "example/stories",
		Setup:              setUpStory,
		Cmds:               storyCommands(),
		Condition:          storyCondition,
		RequireUniqueNames: true,
	})
	teller.running.Wait()
}

// storyTeller is a test, as testscript wants it. It runs as many stories side by
// side as there are places, whatever -parallel says: that number is for tests
// that need the processor.
type storyTeller struct {
	*testing.T
	places  chan *storyPlace
	place   *storyPlace // where this story is told
	running sync.WaitGroup
}

func (s *storyTeller) Parallel() {}

func (s *storyTeller) Verbose() bool { return testing.Verbose() }

func (s *storyTeller) Run(name string, tell func(testscript.T)) {
	place := <-s.places
	s.running.Go(func() {
		defer func() { s.places <- place }()
		s.T.Run(name, func(t *testing.T) { tell(&storyTeller{T: t, place: place}) })
	})
}

// storyPlace has a control plane from the first story on that is told there.
type storyPlace struct{ cluster *controlplane.Cluster }

func newStoryPlaces(t *testing.T, number int) chan *storyPlace {
	places := make(chan *storyPlace, number)
	for range number {
		places <- &storyPlace{}
	}
	t.Cleanup(func() {
		for range number {
			if place := <-places; place.cluster != nil {
				_ = place.cluster.Stop()
			}
		}
	})
	return places
}

// story is what one story is about: a Kubernetes, a Neutron, and controllers.
type story struct {
	*testing.T
	cluster     *controlplane.Cluster
	clusterName string // the controllers', and nobody else's
	namespace   string
	client      clientset.Interface
	kube        kubernetes.Interface
	neutron     *storyNeutron
	controllers map[string]*storyController // by what the story calls them
	noted       map[string]storyIDs         // by Network
	setenv      func(name, value string)    // sets a variable of the script
}

type storyKey struct{}

// setUpStory prepares what a script needs.
func setUpStory(env *testscript.Env) error {
	s, err := newStory(env.T().(*storyTeller))
	if err != nil {
		return err
	}
	env.Defer(s.end)
	kubeconfig := filepath.Join(env.WorkDir, ".kubeconfig")
	env.Values[storyKey{}] = s
	env.Vars = append(env.Vars,
		"KUBECONFIG="+kubeconfig,
		"KUBECACHEDIR="+filepath.Join(s.cluster.Dir(), "kubectl"),
		"NAMESPACE="+s.namespace,
		"CLUSTER="+s.clusterName,
	)
	return s.writeKubeconfig(kubeconfig)
}

// newStory begins a story. Its namespace is called as the story is.
func newStory(t *storyTeller) (*story, error) {
	var err error
	if t.place.cluster == nil {
		t.place.cluster, err = controlplane.Start(t.Context(), controlplane.Options{Apply: []string{"crd"}})
	}
	if err != nil {
		return nil, err
	}
	config := t.place.cluster.RESTConfig()
	s := &story{
		T:           t.T,
		cluster:     t.place.cluster,
		clusterName: "story-" + rand.String(8),
		namespace:   t.Name()[strings.LastIndex(t.Name(), "/")+1:],
		client:      clientset.NewForConfigOrDie(config),
		kube:        kubernetes.NewForConfigOrDie(config),
		controllers: map[string]*storyController{},
		noted:       map[string]storyIDs{},
	}
	_, err = s.kube.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("creating the story's namespace: %w", err)
	}
	s.neutron, err = newStoryNeutron(os.Getenv("NEUTRON_ENDPOINT"), s.clusterName)
	return s, err
}

// writeKubeconfig writes one that has the story's namespace as the default.
func (s *story) writeKubeconfig(path string) error {
	config, err := clientcmd.LoadFromFile(s.cluster.Kubeconfig())
	if err != nil {
		return err
	}
	config.Contexts[config.CurrentContext].Namespace = s.namespace
	return clientcmd.WriteToFile(*config, path)
}

// end leaves nothing of the story to the next one, and says what the
// controllers said where it has failed.
func (s *story) end() {
	for name, c := range s.controllers {
		c.end()
		log := c.log()
		if strings.Contains(log, "DATA RACE") { // with -race
			s.Errorf("the %s has a data race", name)
		}
		if s.Failed() {
			s.Logf("the log of the %s:\n%s", name, log[max(0, len(log)-maxStoryLog):])
		}
	}
	err := errors.Join(s.neutron.end(), s.cluster.StartAPIServer(context.Background()), s.removeNetworks(context.Background()))
	if err != nil {
		s.Errorf("clearing up after the story: %v", err)
	}
}

// removeNetworks removes all Networks of the cluster, with or without what
// holds them.
func (s *story) removeNetworks(ctx context.Context) error {
	list, err := s.client.SamplecrdV1().Networks("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, network := range list.Items {
		client := s.client.SamplecrdV1().Networks(network.Namespace)
		_, err1 := client.Patch(ctx, network.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		err2 := client.Delete(ctx, network.Name, metav1.DeleteOptions{})
		if err := errors.Join(err1, err2); err != nil && !apierrors.IsNotFound(err1) && !apierrors.IsNotFound(err2) {
			return err
		}
	}
	return nil
}

// eventually waits until a check passes.
func (s *story) eventually(check func() error) error {
	var last, died error
	err := wait.PollUntilContextTimeout(s.Context(), 25*time.Millisecond, storyPatience, true, func(context.Context) (bool, error) {
		for name, c := range s.controllers {
			if died = c.died(); died != nil {
				return false, fmt.Errorf("the %s: %w", name, died)
			}
		}
		last = check()
		return last == nil, nil
	})
	if died != nil {
		return err
	}
	if err != nil {
		return fmt.Errorf("waited in vain for %v: %w", storyPatience, last)
	}
	return nil
}

// phrase is what a line of a story can say: how it goes on after the word or
// two that it begins with, and what it does. In the usage, […] can be left out,
// and … stands for any number of words.
type phrase struct {
	usage string
	do    func(s *story, out io.Writer, args []string) error
}

// takes reports whether a phrase can have that many words.
func (p phrase) takes(words int) bool {
	least, most := 0, 0
	for word := range strings.FieldsSeq(p.usage) {
		most++
		if !strings.HasPrefix(word, "[") {
			least++
		}
	}
	return words >= least && (words <= most || strings.Contains(p.usage, "…"))
}

// storyPhrases are all phrases, by the word or two that they begin with.
func storyPhrases() map[string]phrase {
	all := map[string]phrase{}
	for _, some := range []map[string]phrase{
		kubernetesPhrases, neutronPhrases, faultPhrases,
		controllerPhrases("controller"), controllerPhrases("second-controller"),
	} {
		for begin, p := range some {
			all[begin] = p
		}
	}
	return all
}

// storyCommands are the phrases as commands of testscript, which are one word.
func storyCommands() map[string]func(*testscript.TestScript, bool, []string) {
	commands := map[string]func(*testscript.TestScript, bool, []string){"kubectl": kubectlInStory}
	phrases := storyPhrases()
	for begin := range phrases {
		command, _, _ := strings.Cut(begin, " ")
		commands[command] = func(ts *testscript.TestScript, not bool, args []string) {
			begin := command
			if _, whole := phrases[command]; !whole && len(args) > 0 {
				begin, args = command+" "+args[0], args[1:]
			}
			p, known := phrases[begin]
			switch {
			case !known:
				ts.Fatalf("%q is no phrase of a story", begin)
			case !p.takes(len(args)):
				ts.Fatalf("it is said so: %s %s", begin, p.usage)
			case not && waits.MatchString(begin):
				ts.Fatalf("%q waits for something to be so: it cannot be said with !", begin)
			}
			p.say(ts, not, args)
		}
	}
	return commands
}

// waits matches the phrases that wait for what they say.
var waits = regexp.MustCompile(`^wait-| soon-|^soon-| (says|receives|finishes)$`)

// say does what a phrase says. With not, it must fail.
func (p phrase) say(ts *testscript.TestScript, not bool, args []string) {
	s := ts.Value(storyKey{}).(*story)
	s.setenv = ts.Setenv
	err := p.do(s, storyOutput{ts}, args)
	switch {
	case err != nil && not:
		ts.Logf("as it should not be: %v", err)
	case err != nil:
		ts.Fatalf("%v", err)
	case not:
		ts.Fatalf("it is so, and should not be")
	}
}

// storyOutput is what `stdout` looks at next. (To ask testscript for it without
// writing would empty it.)
type storyOutput struct{ ts *testscript.TestScript }

func (o storyOutput) Write(p []byte) (int, error) { return o.ts.Stdout().Write(p) }

// storyCondition is for lines that begin with [embedded]: they are about what
// only the embedded Neutron can do.
func storyCondition(condition string) (bool, error) {
	if condition == "embedded" {
		return os.Getenv("NEUTRON_ENDPOINT") == "", nil
	}
	return false, fmt.Errorf("%q is unknown", condition)
}

// TestStoryPhrases: the README of the stories explains every phrase.
func TestStoryPhrases(t *testing.T) {
	text := read(t, "example/stories/README.md")
	for begin := range storyPhrases() {
		begin = strings.Replace(begin, "second-controller ", "controller ", 1)
		begin = strings.Replace(begin, "neutron soon-", "soon-", 1)
		if !strings.Contains(text, "`"+begin) && !strings.Contains(text, "`neutron "+begin) {
			t.Errorf("it says nothing of %q", begin)
		}
	}
}
