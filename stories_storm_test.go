package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/samplecrd/network-controller/pkg/neutron/faults"
)

const (
	stormKills    = 20
	stormNetworks = 250
	stormUsers    = 4
	// stormLife is how long a controller lives at most before it is killed.
	stormLife = time.Second
)

// storm: hundreds of Networks come, change and go while Neutron is slow and
// loses requests and answers, and while the controller is killed at random
// moments, and started again at once, twenty times. In the end Neutron has what
// Kubernetes asks for, each network once: no duplicate, nothing left over, no
// deletion lost. STORM_SEED repeats what was random about one.
func storm(t *storyTeller) {
	if testing.Short() {
		t.Skip("it takes most of a minute")
	}
	if os.Getenv("NEUTRON_ENDPOINT") != "" {
		t.Skip("a Neutron in one Python process makes ten networks a second: the storm would be a breeze, for an hour")
	}
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("STORM_SEED"), strconv.FormatInt(time.Now().UnixNano(), 10)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("STORM_SEED=%d", seed)
	s, err := newStory(t)
	if err != nil {
		t.Fatal(err)
	}
	defer s.end()
	w := &weather{story: s, controller: &storyController{}}
	s.controllers["controller"] = w.controller

	w.rage(seed)
	calm := time.Now()
	if err := s.eventually(func() error { return s.asAsked(t.Context()) }); err != nil {
		t.Logf("what the controllers have said of them:\n%s", w.saidOf(err.Error()))
		t.Fatal(err)
	}
	left, err := s.client.SamplecrdV1().Networks(s.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) == 0 {
		t.Fatalf("there are no Networks left: %v", err)
	}
	t.Logf("%d kills survived, %d requests of users and %d to Neutron; %v later there are %d Networks, and %d twins were deleted on the way",
		stormKills, w.asked.Load(), len(s.neutron.Requests()), time.Since(calm).Round(time.Second), len(left.Items),
		strings.Count(w.controller.log(), `reason="TwinDeleted"`))
}

// saidOf returns what the log says of the Networks that a text names.
func (w *weather) saidOf(text string) string {
	var lines []string
	names := regexp.MustCompile(regexp.QuoteMeta(w.namespace)+`/n\d+\b`).FindAllString(text, -1)
	for line := range strings.Lines(w.controller.log()) {
		if slices.ContainsFunc(names, func(name string) bool { return strings.Contains(line, `"`+name+`"`) }) || strings.Contains(line, "Starting workers") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

type weather struct {
	*story
	controller *storyController
	asked      atomic.Int32
}

// rage is the storm itself. It ends with a controller that lives.
func (w *weather) rage(seed uint64) {
	ctx, calm := context.WithCancel(w.Context())
	var users sync.WaitGroup
	for user := range stormUsers {
		random := rand.New(rand.NewPCG(seed, uint64(user)))
		users.Go(func() { w.useIt(ctx, random, user) })
	}
	random := rand.New(rand.NewPCG(seed, stormUsers))
	for range stormKills {
		w.start()
		w.blow(random)
		pauseFor(ctx, time.Duration(random.Int64N(int64(stormLife))))
		if err := w.killController(w.controller, nil); err != nil {
			w.Fatal(err)
		}
	}
	calm()
	users.Wait()
	w.start()
}

// blow has some requests go wrong until the next time: one is lost, and some
// networks are made long after the controller was killed that has asked for
// them.
func (w *weather) blow(random *rand.Rand) {
	w.neutron.healAll()
	lost := faults.Fault{Times: 1, Method: []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete}[random.IntN(4)]}
	lost.DropAnswer = random.IntN(2) == 0
	lost.DropRequest = !lost.DropAnswer
	for _, fault := range []faults.Fault{
		lost,
		{Method: http.MethodPost, Path: "^/v2.0/networks", Work: 2 * stormLife, Times: 10},
		{Method: http.MethodPost, Path: "^/v2.0/networks", Work: stormLife / 5},
	} {
		w.neutron.heal = append(w.neutron.heal, w.neutron.Inject(fault))
	}
}

func (w *weather) start() {
	if err := w.startController(w.controller, []string{"-resync-period=1s", "-workers=20"}); err != nil {
		w.Fatal(err)
	}
}

// useIt wants and deletes Networks at random. Each user has some of its own.
func (w *weather) useIt(ctx context.Context, random *rand.Rand, user int) {
	for ctx.Err() == nil {
		number := random.IntN(stormNetworks/stormUsers)*stormUsers + user
		name := "n" + strconv.Itoa(number)
		var err error
		switch random.IntN(6) {
		case 0:
			err = w.client.SamplecrdV1().Networks(w.namespace).Delete(ctx, name, metav1.DeleteOptions{})
		case 1:
			err = w.want(nil, []string{name, fmt.Sprintf("10.1.%d.0/24", number)})
		default:
			err = w.want(nil, []string{name, fmt.Sprintf("10.0.%d.0/24", number), fmt.Sprintf("10.0.%d.%d", number, 1+random.IntN(254))})
		}
		if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
			w.Errorf("user %d, with %s: %v", user, name, err)
		}
		w.asked.Add(1)
		pauseFor(ctx, time.Duration(random.Int64N(int64(50*time.Millisecond))))
	}
}

func pauseFor(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
