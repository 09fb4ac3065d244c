package main

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/report"
)

// What a process remembers beyond its caches. All of it can be lost: it saves
// requests, and it bridges the moments in which Neutron does not know yet what
// it was asked for.

// seen remembers, of each Network, what this process has done with it.
type seen struct {
	mu       sync.Mutex
	networks map[cache.ObjectName]sighting
}

type sighting struct {
	uid types.UID
	// settled is the generation whose spec Neutron was seen to have; 0 for none.
	settled int64
	// status is the last one that we wrote, or found to be right.
	status samplecrdv1.NetworkStatus
	// coming is whether it has not been ready yet.
	coming bool
}

// settled reports whether Neutron was seen to have what a Network asks for.
func (s *seen) settled(network *samplecrdv1.Network) bool {
	return s.last(network).settled == network.Generation
}

// settle notes whether Neutron has what a Network asks for.
func (s *seen) settle(network *samplecrdv1.Network, settled bool) {
	s.change(network, func(sighting *sighting) {
		sighting.settled = 0
		if settled {
			sighting.settled = network.Generation
		}
	})
}

// willWrite notes the status that a Network is about to get, or has: before it
// is written, since it may come back before the answer does.
func (s *seen) willWrite(network *samplecrdv1.Network, status samplecrdv1.NetworkStatus) {
	s.change(network, func(sighting *sighting) { sighting.status = status })
}

// comes reports whether a Network gets ready for the first time with the status
// that was just written. (Of one that had a network already when this process
// took over, and was not ready, that is not known.)
func (s *seen) comes(network *samplecrdv1.Network, status samplecrdv1.NetworkStatus) (comes bool) {
	s.change(network, func(sighting *sighting) {
		coming := sighting.coming || network.Status.NetworkID == "" && !report.IsReady(network.Status)
		comes = coming && report.IsReady(status)
		sighting.coming = coming && !comes
	})
	return comes
}

// wrote reports whether the status of a Network is our last word.
func (s *seen) wrote(network *samplecrdv1.Network) bool {
	last := s.last(network)
	return last.uid == network.UID && equality.Semantic.DeepEqual(last.status, network.Status)
}

// last returns what is remembered of a Network, or nothing where that was of
// another object of the same name.
func (s *seen) last(network *samplecrdv1.Network) sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.networks[cache.MetaObjectToName(network)]
	if last.uid != network.UID {
		return sighting{}
	}
	return last
}

func (s *seen) forget(key cache.ObjectName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.networks, key)
}

func (s *seen) change(network *samplecrdv1.Network, change func(*sighting)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := cache.MetaObjectToName(network)
	last := s.networks[key]
	if last.uid != network.UID {
		last = sighting{uid: network.UID}
	}
	change(&last)
	s.networks[key] = last
}

// inFlight remembers for which owners Neutron may still be at a request to
// create a network whose answer nobody waits for any more. For as long, that
// there is no network does not mean that none comes: none is created, and the
// object is held.
type inFlight struct {
	// wait is how long Neutron may be at such a request.
	wait time.Duration

	mu    sync.Mutex
	until map[neutron.Owner]time.Time // of requests of this process
	// inherited are the objects that an earlier process may have been at when it
	// ended, as they were when this one took over.
	inherited map[types.UID]inheritance
	started   time.Time
}

type inheritance struct {
	readySince time.Time // zero where it was not ready
	networkID  string
}

func newInFlight(wait time.Duration) *inFlight {
	return &inFlight{
		wait:      wait,
		until:     map[neutron.Owner]time.Time{},
		inherited: map[types.UID]inheritance{},
	}
}

// inherit notes the objects that there are when this process begins to work.
// One without our finalizer was not worked on yet.
func (f *inFlight) inherit(networks []*samplecrdv1.Network) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started = time.Now()
	for _, network := range networks {
		if !hasFinalizer(network) {
			continue
		}
		found := inheritance{networkID: network.Status.NetworkID}
		ready := meta.FindStatusCondition(network.Status.Conditions, samplecrdv1.ConditionReady)
		if ready != nil && ready.Status == metav1.ConditionTrue {
			found.readySince = ready.LastTransitionTime.Time
		}
		f.inherited[network.UID] = found
	}
}

// note looks at the error that a step has ended with.
func (f *inFlight) note(desired plan.Desired, step plan.Step, err error) {
	var failure *neutron.Error
	if !staysUnseen(desired, step) || !errors.As(err, &failure) || failure.Type != "" {
		return // a type is Neutron's own answer; a proxy's says nothing of the request behind it
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.until[desired.Owner] = time.Now().Add(f.wait)
}

// staysUnseen reports whether what a step makes could come after all was looked
// at, and stay: a second network, a second range of a subnet pool, or a subnet
// on a network that does not go with the object. (Of a range of the user's own,
// Neutron refuses a second one, and it goes with its network.)
func staysUnseen(desired plan.Desired, step plan.Step) bool {
	switch step.(type) {
	case plan.CreateNetwork:
		return true
	case plan.CreateSubnet:
		return desired.SubnetPool != nil || desired.Adopted != ""
	}
	return false
}

// mustWait returns an error where a step must not be taken yet. found is the
// network that was there when the sync began, or empty.
func (f *inFlight) mustWait(network *samplecrdv1.Network, desired plan.Desired, step plan.Step, found string) error {
	_, removes := step.(plan.RemoveFinalizer)
	if !staysUnseen(desired, step) && !removes {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	left, why := time.Until(f.until[desired.Owner]), "an earlier request was not answered, and Neutron may still be at it"
	if left <= 0 {
		delete(f.until, desired.Owner)
	}
	if inherited := f.inheritedWait(network, found); removes && inherited > left {
		left, why = inherited, "the controller has just started, and Neutron may still be at what it was asked for before"
	}
	if left <= 0 {
		return nil
	}
	op := step.String()
	if removes {
		op = "let the object go"
	}
	return &neutron.Error{
		Op: op, Class: notYet{}, RetryAfter: left,
		Message: fmt.Sprintf("%s; looking again within %v", why, f.wait),
	}
}

// notYet is what there is to say of a step that has to wait: in all but words,
// Neutron is unavailable for it.
type notYet struct{}

func (notYet) Error() string        { return "not yet" }
func (notYet) Is(target error) bool { return target == neutron.ErrUnavailable }

// inheritedWait returns how long to wait for what a process that has ended may
// have asked for. It asks for a network where it sees none: so nothing is under
// way where the network that the status names was found, and the object was
// ready for long when the process ended.
func (f *inFlight) inheritedWait(network *samplecrdv1.Network, found string) time.Duration {
	left := time.Until(f.started.Add(f.wait))
	if left <= 0 {
		clear(f.inherited)
		return 0
	}
	was, inherited := f.inherited[network.UID]
	quiet := !was.readySince.IsZero() && f.started.Sub(was.readySince) > f.wait && found != "" && found == was.networkID
	if !inherited || quiet {
		return 0
	}
	return left
}
