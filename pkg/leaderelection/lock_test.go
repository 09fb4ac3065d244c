package leaderelection

import (
	"context"
	"errors"
	"flag"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

// losses are the reasons for which a Lease was lost.
type losses []string

func (l *losses) lost(reason string) { *l = append(*l, reason) }
func (*losses) found(string)         {}
func (*losses) failed(error)         {}

// newLock returns a lock of a replica.
func newLock(client kubernetes.Interface, identity string, clock clock.Clock) (*lock, *losses) {
	lost := &losses{}
	return &lock{
		LeaseLock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: "default", Name: "controller"}, Client: client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		fence: newFence(15*time.Second, clock, clock), observer: lost,
	}, lost
}

// newFakeLock returns a lock whose requests to the API server take two seconds, and the
// reasons for which it was lost.
func newFakeLock(clock *clocktesting.FakeClock) (*lock, *fake.Clientset, *losses) {
	client := fake.NewClientset()
	client.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		clock.Step(2 * time.Second)
		return false, nil, nil
	})
	l, lost := newLock(client, "a", clock)
	return l, client, lost
}

// TestRelease: a replica releases its own Lease, and not that of another replica.
func TestRelease(t *testing.T) {
	first, client, _ := newFakeLock(clocktesting.NewFakeClock(someTime))
	second, _ := newLock(client, "b", clock.RealClock{})
	release := func(l *lock, want string) {
		t.Helper()
		err := l.release(t.Context())
		lease, getErr := client.CoordinationV1().Leases("default").Get(t.Context(), "controller", metav1.GetOptions{})
		if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); err != nil || getErr != nil || holder != want {
			t.Errorf("release() = %v by %s, and the holder is %q (%v), want %q", err, l.Identity(), holder, getErr, want)
		}
	}
	if err := first.release(t.Context()); err != nil {
		t.Errorf("release() = %v without a Lease", err)
	}
	if err := second.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "b"}); err != nil {
		t.Fatal(err)
	}
	release(first, "b")
	release(second, "")
}

// TestRenewalsOpenFence: the time of the fence begins with the request that creates or
// renews the Lease, if that succeeds, and with no other.
func TestRenewalsOpenFence(t *testing.T) {
	clock := clocktesting.NewFakeClock(someTime)
	l, client, _ := newFakeLock(clock)
	ctx, held := t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "a"}
	want := func(after string, want time.Duration) {
		t.Helper()
		if got := l.fence.left(); got != want {
			t.Errorf("after %s, the fence stays open for %v, want %v", after, got, want)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	want("the start", 0)
	must(l.Create(ctx, held))
	want("the creation", 12*time.Second)
	_, _, err := l.Get(ctx)
	must(err)
	want("reading it", 10*time.Second)
	must(l.Update(ctx, held))
	want("a renewal", 12*time.Second)

	client.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		clock.Step(2 * time.Second)
		return true, nil, errors.New("no response")
	})
	if l.Update(ctx, held) == nil || l.Create(ctx, held) == nil {
		t.Fatal("the requests succeeded")
	}
	want("failed requests", 8*time.Second)
}

// TestLost: a leader stops if the Lease shows that another replica can have led meanwhile,
// also if no replica holds it now.
func TestLost(t *testing.T) {
	const transitions = 3
	for name, test := range map[string]struct {
		holder string // at first
		change func(*coordinationv1.LeaseSpec)
		want   string
	}{
		"renewed":                  {"a", func(s *coordinationv1.LeaseSpec) { s.RenewTime = &metav1.MicroTime{Time: someTime} }, ""},
		"held by another replica":  {"a", func(s *coordinationv1.LeaseSpec) { s.HolderIdentity = ptr.To("b") }, "another replica holds it: b"},
		"released":                 {"a", func(s *coordinationv1.LeaseSpec) { s.HolderIdentity = nil }, "released it"},
		"released and taken again": {"a", func(s *coordinationv1.LeaseSpec) { s.LeaseTransitions = ptr.To(int32(transitions + 1)) }, "has held it meanwhile"},
		"deleted":                  {"a", nil, "deleted"},
		"of a standby":             {"b", func(*coordinationv1.LeaseSpec) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l, client, losses := newFakeLock(clocktesting.NewFakeClock(someTime))
			record := resourcelock.LeaderElectionRecord{HolderIdentity: test.holder, LeaderTransitions: transitions}
			if err := l.Create(t.Context(), record); err != nil {
				t.Fatal(err)
			}
			leases := client.CoordinationV1().Leases("default")
			if test.change == nil {
				if err := leases.Delete(t.Context(), "controller", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			} else {
				lease, err := leases.Get(t.Context(), "controller", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				test.change(&lease.Spec)
				if _, err := leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			_, _, err := l.Get(t.Context())
			if got := strings.Join(*losses, "; "); test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("lost because of %q, want %q", got, test.want)
			}
			if errors.Is(err, errLost) != (test.want != "") || (l.fence.left() > 0) != (test.holder == "a") {
				t.Errorf("Get() = %v, and the fence is open for %v", err, l.fence.left())
			}
		})
	}
}

// TestWorkBehindFence: the fence is open while the work runs, and closed after that.
func TestWorkBehindFence(t *testing.T) {
	var options Options
	options.AddFlags(flag.NewFlagSet("", flag.PanicOnError), "controller")
	for name, result := range map[string]error{"clean": nil, "failed": errors.New("cut off")} {
		elector := options.newElector(klog.Background(), fake.NewClientset().CoordinationV1(), clock.RealClock{}, noHealth{})
		before, during := elector.Fence().left(), time.Duration(0)
		err := elector.Run(t.Context(), func(context.Context) error {
			during = elector.Fence().left()
			return result
		})
		if after := elector.Fence().left(); before > 0 || during <= 0 || after > 0 || !errors.Is(err, result) {
			t.Errorf("%s: open for %v before, %v during and %v after the work (%v)", name, before, during, after, err)
		}
	}
}

// TestWaitingLog: a standby reads the Lease every other second, and logs each holder once.
func TestWaitingLog(t *testing.T) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	elector := Options{}.newElector(logger, fake.NewClientset().CoordinationV1(), clock.RealClock{}, noHealth{})
	for _, holder := range []string{"b", "b", "c", "c", "c"} {
		elector.found(holder)
	}
	log := logger.GetSink().(ktesting.Underlier).GetBuffer().String() //nolint:forcetypeassert // it is one
	if n := strings.Count(log, "another controller holds the Lease"); n != 2 {
		t.Errorf("two holders are logged %d times:\n%s", n, log)
	}
}

type noHealth struct{}

func (noHealth) WaitFor(string) {}
func (noHealth) ReadyAs(string) {}
