package leaderelection

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock is a Lease that does three things that client-go's does not. It notices that it
// was lost as soon as that is read. It opens the fence when it is renewed. It releases
// the Lease without taking it from another holder.
type lock struct {
	*resourcelock.LeaseLock
	fence       *Fence
	observer    observer
	leading     atomic.Bool  // since the Lease was acquired
	transitions int          // of the Lease, when it was acquired
	holder      atomic.Value // the last one that was read or written
}

// observer sees what a lock reads and creates.
type observer interface {
	// lost is called if another replica can have led while this one did.
	lost(reason string)
	// found is called when the Lease was read or created, also if it has no holder.
	found(holder string)
	// failed is called when the Lease could not be read or created.
	failed(err error)
}

var errLost = errors.New("the Lease is lost")

// Get implements resourcelock.Interface.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.LeaseLock.Get(ctx)
	if reason := l.lossIn(record, err); reason != "" {
		l.observer.lost(reason)
		return nil, nil, errLost // otherwise, client-go would acquire it again
	}
	switch {
	case err == nil:
		l.holder.Store(record.HolderIdentity)
		l.observer.found(record.HolderIdentity)
	case !apierrors.IsNotFound(err): // then client-go creates it
		l.observer.failed(err)
	}
	return record, raw, err
}

// lossIn returns why a Lease that was read shows that another replica can have led while
// this one did, or nothing. What this one remembers is then outdated.
func (l *lock) lossIn(record *resourcelock.LeaderElectionRecord, err error) (reason string) {
	switch {
	case !l.leading.Load():
		return ""
	case apierrors.IsNotFound(err):
		return "it was deleted"
	case err != nil:
		return ""
	case record.HolderIdentity == "":
		return "another replica has held and released it"
	case record.HolderIdentity != l.Identity():
		return "another replica holds it: " + record.HolderIdentity
	case record.LeaderTransitions != l.transitions:
		return "another replica has held it meanwhile"
	}
	return ""
}

// Create implements resourcelock.Interface.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	start := l.fence.now()
	err := l.LeaseLock.Create(ctx, record)
	switch {
	case err == nil:
		l.written(record, start)
		l.observer.found(record.HolderIdentity)
	case apierrors.IsForbidden(err):
		l.observer.failed(fmt.Errorf("the Lease does not exist, and the controller may not create it: install it again "+
			"with kubectl apply -k deploy/overlays/…: %w", err))
	default:
		l.observer.failed(err)
	}
	return err
}

// Update implements resourcelock.Interface.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	start := l.fence.now()
	err := l.LeaseLock.Update(ctx, record)
	if err == nil {
		l.written(record, start)
	}
	return err
}

// written notes a Lease that a request has written which began at start.
func (l *lock) written(record resourcelock.LeaderElectionRecord, start moment) {
	l.holder.Store(record.HolderIdentity)
	if record.HolderIdentity == l.Identity() {
		l.transitions = record.LeaderTransitions
		l.fence.renew(start)
		l.leading.Store(true)
	}
}

// release releases the Lease if this replica holds it. Nothing else may use the
// lock at that time.
func (l *lock) release(ctx context.Context) error {
	record, _, err := l.LeaseLock.Get(ctx)
	if apierrors.IsNotFound(err) || err == nil && record.HolderIdentity != l.Identity() {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the Lease: %w", err)
	}
	record.HolderIdentity, record.LeaseDurationSeconds = "", 1
	record.RenewTime, record.AcquireTime = metav1.Now(), metav1.Now()
	if err := l.Update(ctx, *record); err != nil { // rejected if it has changed since
		return fmt.Errorf("updating the Lease: %w", err)
	}
	return nil
}
