package chaos

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// ingredients are what a round of chaos is made of. CHAOS_WITHOUT=name,name
// switches some off; the rest of a schedule does not change with them.
var ingredients = []string{
	// users
	"delete", "flash", "ambush", "recreate", "retain", "adopt", "router", "deployment", "crowd",
	// the operator of the cloud
	"rename", "describe", "delete-subnet", "delete-network", "tag", "foreign", "port",
	// the processes
	"kill", "pause", "term", "third", "partition", "stall", "cut", "set-clock",
	// requests to Neutron
	"late", "later", "ages", "lost", "drop", "error-before", "error-after",
	// requests to Kubernetes
	"api-lost", "api-drop",
	// the flag; without it, what an object leaves that vanished before the controller died
	// stays
	"delete-orphans",
}

// act is something that somebody does at a time. Who does it knows what the verb
// means; pick decides the details.
type act struct {
	at   time.Duration
	verb string
	name string // of a Network or Deployment
	pick uint64
}

// schedule is what happens in a round of chaos. All of it follows from the seed.
type schedule struct {
	pace
	seed           uint64
	without        []string
	users          [][]act
	operator, host []act
}

func newSchedule(t *testing.T, seed uint64, pace pace, without string) schedule {
	t.Helper()
	s := schedule{pace: pace, seed: seed}
	for name := range strings.FieldsFuncSeq(without, func(r rune) bool { return r == ',' }) {
		if !slices.Contains(ingredients, name) {
			t.Fatalf("CHAOS_WITHOUT has %q; the ingredients are %v", name, ingredients)
		}
		s.without = append(s.without, name)
	}
	// The first letter of a name is its kind; its number is in its ranges.
	users := [][]string{
		{"n1", "n2", "r3"}, {"r4", "w5", "r6"}, {"a7", "d8", "n9"}, {"d10", "r11", "w12"}, {"n13", "a14", "r15"},
	}
	userVerbs := []string{
		"apply", "apply", "apply", "apply", "apply", "apply", "delete", "delete", "recreate", "recreate",
		"flash", "ambush", "ambush",
	}
	for i, names := range users {
		s.users = append(s.users, s.acts(fmt.Sprint("user", i), s.distance, userVerbs, names))
	}
	for i := range s.crowd { // users who have many Networks, and are quick
		var names []string
		for number := 20 * (i + 1); len(names) < 20; number++ {
			names = append(names, fmt.Sprint("n", number))
		}
		if verbs := []string{"apply", "apply", "apply", "delete"}; s.has("crowd") {
			s.users = append(s.users, s.acts(fmt.Sprint("crowd", i), s.distance/5, verbs, names))
		}
	}
	s.operator = s.acts("operator", s.distance/2,
		[]string{"rename", "describe", "delete-subnet", "delete-network", "tag", "foreign", "port"}, slices.Concat(users...))
	s.host = s.acts("host", 500*time.Millisecond,
		[]string{"kill", "kill", "pause", "pause", "term", "partition", "stall", "cut", "set-clock"}, []string{""})
	return s
}

func (s schedule) has(ingredient string) bool { return !slices.Contains(s.without, ingredient) }

// acts returns the acts of one actor, at random times with this mean distance.
func (s schedule) acts(actor string, distance time.Duration, verbs, names []string) (acts []act) {
	random := s.random(actor, 0)
	for at := time.Duration(0); ; {
		at += time.Duration(random.ExpFloat64() * float64(distance))
		a := act{at, verbs[random.IntN(len(verbs))], names[random.IntN(len(names))], random.Uint64()}
		if at > s.length {
			return acts
		}
		if s.has(a.verb) && s.hasKind(a.name) {
			acts = append(acts, a)
		}
	}
}

// hasKind reports whether the kind of a name is among the ingredients.
func (s schedule) hasKind(name string) bool {
	kinds := map[byte]string{'a': "adopt", 'd': "deployment", 'w': "router"}
	return name == "" || s.has(kinds[name[0]])
}

// random returns the generator of the n-th decision about something.
func (s schedule) random(about string, n uint64) *rand.Rand {
	hash := fnv.New64a()
	_, _ = fmt.Fprint(hash, about, n)
	return rand.New(rand.NewPCG(s.seed, hash.Sum64()))
}

// deletesOrphans reports whether the controllers run with -delete-orphans.
func (s schedule) deletesOrphans() bool { return s.has("delete-orphans") }

// fate is what happens to one request.
type fate struct {
	ingredient string
	slow       time.Duration // until the server executes the request
	status     int           // of the response, for errors
}

// inNeutron returns the fate of the n-th request to Neutron that writes or reads.
// timeout is that of the client, and maxInFlight what it expects beyond.
func (s schedule) inNeutron(writes bool, n uint64, timeout, maxInFlight time.Duration) fate {
	random := s.random(fmt.Sprint("neutron", writes), n)
	part := func(from, to float64) time.Duration { // of maxInFlight, after the timeout
		return timeout + time.Duration((from+random.Float64()*(to-from))*float64(maxInFlight))
	}
	f := fate{slow: time.Duration(random.Int64N(int64(20 * time.Millisecond)))}
	choices, statuses, rate := []string{"lost", "drop", "error-before", "error-before"}, []int{500, 503}, 0.04
	if writes {
		choices = []string{"late", "late", "later", "ages", "lost", "lost", "drop", "error-before", "error-after"}
		statuses, rate = []int{409, 412, 500, 503}, 0.15
	}
	if random.Float64() > rate {
		return f
	}
	f.ingredient = choices[random.IntN(len(choices))]
	f.status = statuses[random.IntN(len(statuses))]
	switch f.ingredient {
	case "late":
		f.slow = part(0, 0.9)
	case "later":
		f.slow = part(1, 3)
	case "ages":
		f.slow = part(4, 10)
	}
	if !s.has(f.ingredient) {
		return fate{slow: time.Millisecond}
	}
	return f
}

// inKubernetes returns the fate of the n-th write to Kubernetes.
func (s schedule) inKubernetes(n uint64) fate {
	random := s.random("kubernetes", n)
	f := fate{slow: time.Duration(random.Int64N(int64(10 * time.Millisecond)))}
	if random.Float64() < 0.06 {
		f.ingredient = []string{"api-lost", "api-drop"}[random.IntN(2)]
	}
	if !s.has(f.ingredient) {
		f.ingredient = ""
	}
	return f
}
