package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// Of several processes, one works, and the others wait with warm caches. Who
// holds the Lease has the lead. A Lease does not keep what a former leader has
// sent from reaching Neutron: that is why nothing is created without a look
// first, and why what another may still be at is waited for (memory.go).

// election are the settings of leader election, named as in Kubernetes' own
// controllers.
type election struct {
	enabled         bool
	namespace, name string // of the Lease; the process's own namespace where it is empty

	leaseDuration, renewDeadline, retryPeriod time.Duration
}

// ownNamespaceFile names the namespace of a process in a cluster.
const ownNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

func (e *election) addFlags(flags *flag.FlagSet) {
	flags.BoolVar(&e.enabled, "leader-elect", false, "Work only while holding a Lease, and wait with warm caches otherwise. (default true in a cluster)")
	flags.StringVar(&e.namespace, "leader-elect-resource-namespace", "", "`namespace` of the Lease. (default the own one, in a cluster)")
	flags.StringVar(&e.name, "leader-elect-resource-name", controllerName, "`name` of the Lease. Controllers of different -namespaces need different ones.")
	flags.DurationVar(&e.leaseDuration, "leader-elect-lease-duration", 15*time.Second, "How long the others wait before they take over a Lease that is not renewed.")
	flags.DurationVar(&e.renewDeadline, "leader-elect-renew-deadline", 10*time.Second, "After how long without renewing the Lease the program ends.")
	flags.DurationVar(&e.retryPeriod, "leader-elect-retry-period", 2*time.Second, "How long to wait between two tries to get or renew the Lease.")
}

// check says which setting cannot be.
func (e election) check() error {
	switch {
	case !e.enabled:
		return nil
	case e.name == "":
		return errors.New("-leader-elect-resource-name is empty")
	case e.retryPeriod <= 0:
		return fmt.Errorf("-leader-elect-retry-period is %v: it must be positive", e.retryPeriod)
	case e.renewDeadline <= time.Duration(float64(e.retryPeriod)*leaderelection.JitterFactor):
		return fmt.Errorf("-leader-elect-renew-deadline is %v: it must be more than %v times -leader-elect-retry-period (%v)", e.renewDeadline, leaderelection.JitterFactor, e.retryPeriod)
	case e.leaseDuration%time.Second != 0:
		return fmt.Errorf("-leader-elect-lease-duration is %v: it must be whole seconds, as a Lease has them", e.leaseDuration)
	case len(validation.IsDNS1123Subdomain(e.name)) > 0:
		return fmt.Errorf("-leader-elect-resource-name is %q, which no Lease can be called", e.name)
	case e.namespace != "" && len(validation.IsDNS1123Label(e.namespace)) > 0:
		return fmt.Errorf("-leader-elect-resource-namespace is %q, which no namespace can be called", e.namespace)
	case e.leaseDuration <= e.renewDeadline:
		return fmt.Errorf("-leader-elect-lease-duration is %v: it must be more than -leader-elect-renew-deadline (%v)", e.leaseDuration, e.renewDeadline)
	}
	return nil
}

// leaseLock is the Lease of an election. Of two things it knows more than
// client-go: that it has been lost, as soon as another holder is seen, and how to
// give it back without taking it from another one.
type leaseLock struct {
	*resourcelock.LeaseLock
	leading atomic.Bool
	lost    func(holder string) // called when another process holds it while we lead
	found   func()              // called whenever it has been read or made
}

// Get implements resourcelock.Interface.
func (l *leaseLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.LeaseLock.Get(ctx)
	if err == nil {
		l.found()
		if holder := record.HolderIdentity; l.leading.Load() && holder != l.Identity() && holder != "" {
			l.lost(holder)
		}
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *leaseLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.LeaseLock.Create(ctx, record)
	if err == nil {
		l.found()
	}
	return err
}

// release gives the Lease back, where it is ours. Nothing else may use the lock
// at that time.
func (l *leaseLock) release(ctx context.Context) error {
	record, _, err := l.LeaseLock.Get(ctx)
	if apierrors.IsNotFound(err) || err == nil && record.HolderIdentity != l.Identity() {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the Lease: %w", err)
	}
	record.HolderIdentity, record.LeaseDurationSeconds = "", 1
	record.RenewTime, record.AcquireTime = metav1.Now(), metav1.Now()
	if err := l.Update(ctx, *record); err != nil { // refused where it has changed since
		return fmt.Errorf("updating the Lease: %w", err)
	}
	return nil
}

// lock returns the lock of the election, or nil where there is none.
func (e election) lock(config *rest.Config) (*leaseLock, error) {
	if !e.enabled {
		return nil, nil
	}
	namespace := e.namespace
	if namespace == "" {
		text, err := os.ReadFile(ownNamespaceFile)
		if err != nil {
			return nil, errors.New("-leader-elect needs -leader-elect-resource-namespace outside of a cluster: the namespace of the Lease")
		}
		namespace = strings.TrimSpace(string(text))
	}
	// A request that hangs must leave time for another one before the deadline.
	config = rest.CopyConfig(config)
	config.Timeout = max(time.Second, e.renewDeadline/2)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for leader election: %w", err)
	}
	host, _ := os.Hostname() // it is for people who read the Lease; the UUID makes it unique
	return &leaseLock{
		LeaseLock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: e.name},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
		},
		found: func() {},
	}, nil
}

// lead waits until this process has the lead, and then works until the context
// ends. Where the work has come to its end by itself, the Lease is given back, so
// that another process takes over at once; where it had to be cut off, the Lease
// expires. Where the Lease is lost, the program ends on the spot: another process
// is at work already, or soon.
func (e election) lead(ctx context.Context, lock *leaseLock, watchDog *leaderelection.HealthzAdaptor, work func(context.Context) error) error {
	logger := klog.FromContext(ctx).WithValues("lease", lock.Describe(), "identity", lock.Identity())
	exit := func(why string) {
		logger.Error(nil, "Lost the lease: ending at once", "why", why)
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
	lock.lost = func(holder string) { exit("it is held by " + holder) }
	electing, endElection := context.WithCancel(context.WithoutCancel(ctx))
	defer endElection()
	began, ended := make(chan struct{}), make(chan error, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          lock,
		Name:          e.name,
		LeaseDuration: e.leaseDuration,
		RenewDeadline: e.renewDeadline,
		RetryPeriod:   e.retryPeriod,
		WatchDog:      watchDog,
		Callbacks: leaderelection.LeaderCallbacks{
			OnNewLeader: func(identity string) { logger.Info("Observed the leader", "leader", identity) },
			OnStartedLeading: func(leading context.Context) {
				lock.leading.Store(true)
				close(began)
				working, stop := context.WithCancel(ctx)
				defer stop()
				context.AfterFunc(leading, stop)
				if working.Err() != nil { // asked to stop just then
					ended <- nil
					return
				}
				ended <- work(working)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("setting up leader election: %w", err)
	}
	watchDog.SetLeaderElection(elector)
	over := make(chan struct{})
	go func() {
		defer close(over)
		elector.Run(electing)
	}()
	if err := awaitEnd(ctx, began, ended, over, exit); err != nil {
		return err // and the Lease expires
	}
	endElection()
	<-over
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := lock.release(bounded); err != nil {
		logger.Info("The Lease could not be given back, and expires", "err", err)
	}
	return nil
}

// awaitEnd waits until the work has ended, or until the context ends before there
// was any.
func awaitEnd(ctx context.Context, began <-chan struct{}, ended <-chan error, over <-chan struct{}, exit func(string)) error {
	select {
	case <-ctx.Done():
	case <-began:
	}
	select {
	case <-began:
	default: // asked to stop before there was a lead
		return nil
	}
	select {
	case err := <-ended:
		return err
	case <-over:
		exit("it could not be renewed in time")
		return nil
	}
}
