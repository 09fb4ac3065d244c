package leaderelection

import (
	"context"
	"fmt"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock is a Lease that does two things that client-go's does not: it notices that
// it was lost as soon as another holder is read, and it releases the Lease without
// taking it from another holder.
type lock struct {
	*resourcelock.LeaseLock
	leading atomic.Bool
	holder  atomic.Value        // the last one that was read or written
	lost    func(holder string) // called if another replica holds the Lease while this one leads
	found   func(holder string) // called when the Lease was read or created, also if it has no holder
	failed  func(error)         // called when the Lease could not be read or created
}

// Get implements resourcelock.Interface.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.LeaseLock.Get(ctx)
	switch {
	case err == nil:
		if holder := record.HolderIdentity; l.leading.Load() && holder != l.Identity() && holder != "" {
			l.lost(holder)
		}
		l.holder.Store(record.HolderIdentity)
		l.found(record.HolderIdentity)
	case !apierrors.IsNotFound(err): // then client-go creates it
		l.failed(err)
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.LeaseLock.Create(ctx, record)
	switch {
	case err == nil:
		l.holder.Store(record.HolderIdentity)
		l.found(record.HolderIdentity)
	case apierrors.IsForbidden(err):
		l.failed(fmt.Errorf("the Lease does not exist, and the controller may not create it: install it again with kubectl apply -k deploy/overlays/…: %w", err))
	default:
		l.failed(err)
	}
	return err
}

// Update implements resourcelock.Interface.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.LeaseLock.Update(ctx, record)
	if err == nil {
		l.holder.Store(record.HolderIdentity)
	}
	return err
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
