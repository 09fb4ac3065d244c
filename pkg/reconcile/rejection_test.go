package reconcile

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
)

// TestRequestedRetry: a rejected request is repeated at once when a user requests it.
func TestRequestedRetry(t *testing.T) {
	network := object("1", "")
	r, _ := newReconciler(t, network)
	r.noteRejection(key, network, refused)
	network = network.DeepCopy()
	network.Annotations = map[string]string{"example.com/note": "a label of somebody"}
	if r.rejection(key, network) == nil {
		t.Error("another annotation leads to a retry")
	}
	network.Annotations[samplecrdv1.AnnotationRetry] = "now"
	if err := r.rejection(key, network); err != nil {
		t.Errorf("not retried: %v", err)
	}
	r.noteRejection(key, network, refused)
	if r.rejection(key, network) == nil {
		t.Error("the same request for a retry leads to a second one")
	}
}

// TestQuota: Networks that exceeded the quota are retried after something was created or
// deleted, few at first, and twice as many as that succeeded with.
func TestQuota(t *testing.T) {
	const waiting = 100
	r, clock := newReconciler(t)
	networks := make([]*samplecrdv1.Network, waiting)
	reject := func(failure error) {
		for i := range networks {
			networks[i] = object("1", "")
			networks[i].Name = strconv.Itoa(i)
			r.noteRejection(cache.MetaObjectToName(networks[i]), networks[i], failure)
		}
	}
	list := func() (retried int) {
		clock.Step(time.Minute)
		r.Listed(clock.Now())
		for _, network := range networks {
			if r.mayFitQuota(network) {
				retried++
			}
		}
		return retried
	}
	apply := func(step plan.Step, times int) {
		clock.Step(time.Second)
		for range times {
			r.end(key, attempt{step: step})
		}
	}
	want := func(when string, count int) {
		t.Helper()
		if retried := list(); retried != count {
			t.Errorf("%s: %d Networks were retried, want %d", when, retried, count)
		}
	}
	overQuota := &neutron.Error{Op: "create network", Class: neutron.ErrRefused, Status: 409, Type: neutron.OverQuota}
	r.options.Retry.Rejected = time.Hour

	apply(plan.CreateSubnet{}, 1)
	reject(overQuota)
	want("a change before the rejection", 0)
	apply(plan.UpdateNetwork{}, 1)
	want("a change of what exists", 0)
	apply(plan.DeleteSubnet{}, 1)
	want("a deletion", minQuotaRetries)
	want("nothing since", 0)
	apply(plan.CreateNetwork{}, minQuotaRetries)
	want("these fit", 2*minQuotaRetries)
	apply(plan.DeleteNetwork{}, waiting)
	want("many have gone", waiting-3*minQuotaRetries)

	reject(refused)
	apply(plan.DeleteNetwork{}, 1)
	want("another rejection", 0)
}
