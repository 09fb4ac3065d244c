// Package leaderelection lets one of several replicas work, while the others wait
// with filled caches. Only the holder of a Lease works. A Lease is not a fencing token:
// a server does not compare it. So each replica has a Fence, which sends no write when
// another replica can hold the Lease. Nothing can stop a write that was sent before.
//
// By default, all controllers of a cluster use one Lease, which is in a namespace
// that every cluster has. A controller that somebody starts outside of the cluster
// therefore waits for the one inside, and the reverse.
package leaderelection

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// Options configure leader election. The flags have the names that Kubernetes' own
// controllers use.
type Options struct {
	enabled         bool
	namespace, name string // of the Lease

	leaseDuration, renewDeadline, retryPeriod time.Duration
}

// AddFlags adds the flags of the options.
func (o *Options) AddFlags(flags *flag.FlagSet, defaultName string) {
	flags.BoolVar(&o.enabled, "leader-elect", true, "Reconcile only while holding a Lease, so that of all controllers "+
		"of a cluster one reconciles. The others keep their caches up to date and wait.")
	flags.StringVar(&o.namespace, "leader-elect-resource-namespace", metav1.NamespaceSystem,
		"The `namespace` of the Lease.")
	flags.StringVar(&o.name, "leader-elect-resource-name", defaultName, "The `name` of the Lease. Controllers that "+
		"reconcile at the same time, because they watch different namespaces (-namespaces), need different names.")
	flags.DurationVar(&o.leaseDuration, "leader-elect-lease-duration", 15*time.Second,
		"Duration after which another replica takes over a Lease that its holder no longer renews. Must be whole seconds.")
	flags.DurationVar(&o.renewDeadline, "leader-elect-renew-deadline", 10*time.Second,
		"Duration after which the leader exits if it cannot renew the Lease.")
	flags.DurationVar(&o.retryPeriod, "leader-elect-retry-period", 2*time.Second,
		"Interval between attempts to acquire or renew the Lease.")
}

// IsEnabled reports whether only the holder of a Lease reconciles.
func (o Options) IsEnabled() bool { return o.enabled }

// Validate returns an error that names the flag with an invalid value.
func (o Options) Validate() error {
	switch {
	case !o.enabled:
		return nil
	case o.name == "":
		return errors.New("-leader-elect-resource-name is empty: set it to the name of the Lease")
	case o.retryPeriod <= 0:
		return fmt.Errorf("-leader-elect-retry-period is %v: it must be positive", o.retryPeriod)
	case o.renewDeadline <= time.Duration(float64(o.retryPeriod)*leaderelection.JitterFactor):
		return fmt.Errorf("-leader-elect-renew-deadline is %v: it must be more than %v times -leader-elect-retry-period (%v)",
			o.renewDeadline, leaderelection.JitterFactor, o.retryPeriod)
	case o.leaseDuration%time.Second != 0:
		return fmt.Errorf("-leader-elect-lease-duration is %v: it must be a whole number of seconds", o.leaseDuration)
	case len(validation.IsDNS1123Subdomain(o.name)) > 0:
		return fmt.Errorf("-leader-elect-resource-name is %q, which is not a valid name of a Lease", o.name)
	case len(validation.IsDNS1123Label(o.namespace)) > 0:
		return fmt.Errorf("-leader-elect-resource-namespace is %q, which is not a valid namespace name", o.namespace)
	case o.leaseDuration <= o.renewDeadline:
		return fmt.Errorf("-leader-elect-lease-duration is %v: it must be more than -leader-elect-renew-deadline (%v)",
			o.leaseDuration, o.renewDeadline)
	}
	return nil
}

// Health is what an Elector reports about this replica.
type Health interface {
	// WaitFor reports what is missing: the Lease, which could not be read or created.
	WaitFor(what string)
	// ReadyAs reports that the replica works, or could work at once. The role is empty
	// for the leader.
	ReadyAs(role string)
}

// Elector runs work while this replica is the leader.
type Elector struct {
	options  Options
	logger   klog.Logger
	health   Health
	fence    *Fence
	lock     *lock
	watchDog *leaderelection.HealthzAdaptor

	hasRead bool   // the Lease, once
	waited  string // the holder that was logged last
}

// New returns an Elector. If leader election is disabled, this replica is always the
// leader. The wall clock is that of this machine, which somebody may set.
func (o Options) New(ctx context.Context, config *rest.Config, wall clock.PassiveClock,
	health Health) (*Elector, error) {
	if !o.enabled {
		return &Elector{health: health, fence: &Fence{always: true}}, nil
	}
	// After a request that times out, there must be time for another one before
	// the deadline.
	config = rest.CopyConfig(config)
	config.Timeout = max(time.Second, o.renewDeadline/2)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client for leader election: %w", err)
	}
	return o.newElector(klog.FromContext(ctx), client.CoordinationV1(), wall, health), nil
}

func (o Options) newElector(logger klog.Logger, client coordinationv1.LeasesGetter, wall clock.PassiveClock,
	health Health) *Elector {
	host, _ := os.Hostname() // for people who read the Lease; the UUID makes it unique
	identity := host + "_" + string(uuid.NewUUID())
	e := &Elector{
		options:  o,
		health:   health,
		fence:    newFence(o.leaseDuration, clock.RealClock{}, wall),
		watchDog: leaderelection.NewLeaderHealthzAdaptor(o.retryPeriod),
	}
	e.lock = &lock{fence: e.fence, observer: e, LeaseLock: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: o.namespace, Name: o.name},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}}
	e.logger = logger.WithValues("lease", e.Lease(), "identity", identity)
	return e
}

// Fence returns the fence for the writes of the work.
func (e *Elector) Fence() *Fence { return e.fence }

// Lease returns the namespace and name of the Lease.
func (e *Elector) Lease() string {
	if !e.options.enabled {
		return ""
	}
	return e.lock.Describe()
}

// Holder returns the holder of the Lease when it was last read, or nothing.
func (e *Elector) Holder() string {
	if !e.options.enabled {
		return ""
	}
	holder, _ := e.lock.holder.Load().(string)
	return holder
}

// Check returns an error if the Lease should have been renewed and was not.
func (e *Elector) Check(request *http.Request) error {
	if !e.options.enabled {
		return nil
	}
	return e.watchDog.Check(request)
}

// Run waits until this replica is the leader, and then works until the context
// ends.
//
// If the work ends by itself, the Lease is released, so that another replica takes
// over at once. If the work returns an error, the Lease expires. If the Lease is
// lost, the program exits on the spot: another replica is working already, or soon.
func (e *Elector) Run(ctx context.Context, work func(context.Context) error) error {
	if !e.options.enabled {
		e.health.ReadyAs("")
		return work(ctx)
	}
	electing, endElection := context.WithCancel(context.WithoutCancel(ctx))
	defer endElection()
	began, ended := make(chan struct{}), make(chan error, 1)
	elector, err := e.newLeaderElector(func(leading context.Context) {
		e.health.ReadyAs("")
		close(began)
		working, stop := context.WithCancel(ctx)
		defer stop()
		context.AfterFunc(leading, stop)
		if working.Err() != nil { // the program was stopped at the same moment
			ended <- nil
			return
		}
		ended <- work(working)
	})
	if err != nil {
		return fmt.Errorf("setting up leader election: %w", err)
	}
	e.watchDog.SetLeaderElection(elector)
	over := make(chan struct{})
	go func() {
		defer close(over)
		elector.Run(electing)
	}()
	err = e.awaitEnd(ctx, began, ended, over)
	e.fence.end()
	if err != nil {
		return err // the Lease expires
	}
	endElection()
	<-over
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := e.lock.release(bounded); err != nil {
		e.logger.Error(err, "Releasing the lease failed; it will expire")
	}
	return nil
}

// newLeaderElector returns client-go's elector, which calls lead once it holds the Lease.
func (e *Elector) newLeaderElector(lead func(context.Context)) (*leaderelection.LeaderElector, error) {
	return leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          e.lock,
		Name:          e.options.name,
		LeaseDuration: e.options.leaseDuration,
		RenewDeadline: e.options.renewDeadline,
		RetryPeriod:   e.options.retryPeriod,
		WatchDog:      e.watchDog,
		Callbacks:     leaderelection.LeaderCallbacks{OnStartedLeading: lead, OnStoppedLeading: func() {}},
	})
}

// awaitEnd waits until the work has ended, or until the context ends before it began.
func (e *Elector) awaitEnd(ctx context.Context, began <-chan struct{}, ended <-chan error, over <-chan struct{}) error {
	select {
	case <-ctx.Done():
	case <-began:
	}
	select {
	case <-began:
	default: // the program was stopped before this replica started leading
		return nil
	}
	select {
	case err := <-ended:
		return err
	case <-over:
		e.lost("it was not renewed in time")
		return nil
	}
}

// lost ends the program: another replica may lead.
func (e *Elector) lost(reason string) {
	e.fence.end()
	e.logger.Error(nil, "Lost the lease; exiting", "reason", reason)
	klog.FlushAndExit(klog.ExitFlushTimeout, 1)
}

// found reports who holds the Lease, to people who wonder why this replica does nothing.
func (e *Elector) found(holder string) {
	if e.lock.leading.Load() {
		return
	}
	isOther := holder != "" && holder != e.lock.Identity()
	if isOther {
		e.health.ReadyAs("waiting for the Lease " + e.Lease() + ", which " + holder + " holds")
	} else {
		e.health.ReadyAs("")
	}
	if isOther && holder != e.waited {
		e.logger.Info("Waiting: another controller holds the Lease and reconciles. If it has ended without "+
			"releasing the Lease, as after kill -9, this one starts when the Lease expires",
			"holder", holder, "expiresWithin", e.options.leaseDuration+e.options.retryPeriod*22/10) // with its jitter
	}
	e.hasRead, e.waited = true, holder // this replica stays ready
}

// failed reports why the Lease could not be read or created.
func (e *Elector) failed(err error) {
	if !e.hasRead {
		e.health.WaitFor("the Lease " + e.Lease() + ", which could not be read or created: " + err.Error())
	}
}
