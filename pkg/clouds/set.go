// Package clouds gives namespaces clouds of their own. A namespace with the Secret
// samplecrd-cloud has its Networks reconciled by a controller for the cloud in that Secret.
// Each cloud has a controller, which knows nothing of the others: its client, its cache of
// Neutron's state, its ledger, its queue and its workers. So a cloud that is slow, dead or
// hostile delays nobody else.
//
//	a namespace has                             its Networks belong to
//	------------------------------------------  ----------------------------------------------
//	a Secret whose login has succeeded          the controller of the cloud it leads to, which
//	                                            namespaces with equal credentials share
//	one that is unusable, or is rejected        a controller without a cloud, which reports
//	                                            that, or the one that they belonged to
//	none that may be read, and never had one    the controller of the controller's own cloud
//	none any more                               the same as before for GracePeriod, and as long
//	                                            as a Network is being deleted or a request may
//	                                            still be executed; then the controller's own
//	                                            cloud. New Networks wait meanwhile
//
// A Network records the cloud in which its network is. The controller of another cloud does
// not touch it (the reason OtherCloud), so a move between clouds loses nothing.
//
// Nobody acts with the credentials of somebody else: two namespaces with other users in the
// same project have a controller each.
package clouds

import (
	"context"
	"sync"
	"time"

	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
	"github.com/samplecrd/network-controller/pkg/store"
)

// Controller reconciles the Networks of one cloud.
type Controller interface {
	WarmUp(ctx context.Context, skipNamespaces ...string) bool
	Run(ctx context.Context, workers int, timeout time.Duration) error
	// TakeOver is called before the Networks of a namespace belong to the controller: what it
	// remembers of them may be from an earlier time.
	TakeOver(namespace string, networks []*samplecrdv1.Network)
	// HasRequests reports whether a request for a Network of a namespace may have made
	// something that its status does not name yet.
	HasRequests(namespace string) bool
	// IsIdle reports whether nothing may exist in the cloud that no Network names.
	IsIdle() bool
}

// Config is what a Set needs.
type Config struct {
	Options
	Networks *store.Networks
	Secrets  typedcorev1.SecretsGetter
	// Connect returns the options for the client of another cloud.
	Connect func() openstack.Options
	// New returns a controller for the Networks of a cloud.
	New func(client neutron.Client, networks *store.Networks) Controller
	// SkipNamespaces are those for whose Networks no controller waits.
	SkipNamespaces []string
	// Identity returns the identity of the controller's own cloud, which is empty if it has
	// none, or false if it is unknown.
	Identity func() (string, bool)
}

// Set has a controller for each cloud that a namespace has.
type Set struct {
	Config
	addresses *openstack.Addresses
	division  *store.Division
	rest      *cloud // the controller's own, or none
	running   sync.WaitGroup

	mu      sync.Mutex
	ctx     context.Context // of Run; nil before
	timeout time.Duration
	clouds  map[*cloud]bool    // those with a login
	tenants map[string]*tenant // by namespace
}

// cloud is a controller, and the namespaces whose Networks belong to it.
type cloud struct {
	Controller
	set      *Set
	login    *login // or nil
	identity func() (string, bool)
	part     *store.Networks
	cancel   context.CancelFunc
	members  map[string]*tenant // by namespace
}

// login is where a Secret has led to. All members of its cloud have equal credentials.
type login struct {
	credentials *openstack.Credentials
	identity    string // of the cloud
}

// isSame reports whether somebody who logs in as one of both acts as the other one.
func (l login) isSame(other login) bool {
	return l.identity == other.identity && l.credentials.Equal(other.credentials)
}

// place identifies where a login leads.
func (l login) place() string { return l.credentials.Place(l.identity) }

// New returns a Set. Without AllowedURLs, all Networks belong to the controller's own cloud.
func New(config Config) (*Set, error) {
	if !config.IsEnabled() {
		return &Set{Config: config, rest: &cloud{part: config.Networks}}, nil
	}
	addresses, err := openstack.ParseAddresses(config.AllowedURLs)
	if err != nil {
		return nil, err
	}
	s := &Set{Config: config, addresses: addresses, clouds: map[*cloud]bool{}, tenants: map[string]*tenant{}}
	s.division = config.Networks.Divide(s.want)
	s.rest = &cloud{set: s, identity: config.Identity, part: s.division.Rest(), members: map[string]*tenant{}}
	return s, nil
}

// Rest returns the Networks of the namespaces without a cloud of their own.
func (s *Set) Rest() *store.Networks { return s.rest.part }

// Run runs the controllers, and the one for the namespaces without a cloud of their own. It
// returns when the context and all of them have ended.
func (s *Set) Run(ctx context.Context, own Controller, workers int, timeout time.Duration) error {
	if !s.IsEnabled() {
		return own.Run(ctx, workers, timeout)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.ctx, s.timeout, s.rest.Controller = ctx, timeout, own
	s.mu.Unlock()
	if err := s.division.Start(klog.FromContext(ctx)); err != nil && ctx.Err() == nil {
		return err
	}
	err := own.Run(ctx, workers, timeout)
	s.mu.Lock()
	cancel() // no tenant begins from now on
	s.mu.Unlock()
	s.running.Wait()
	return err
}

// want begins to find the cloud of a namespace, if that has not begun.
func (s *Set) want(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil || s.ctx.Err() != nil {
		return
	}
	t := s.tenants[namespace]
	if t == nil {
		t = &tenant{set: s, namespace: namespace, kicked: make(chan struct{}, 1)}
		s.tenants[namespace] = t
		s.running.Go(func() { t.run(s.ctx) })
	}
	t.wantedAt = time.Now()
}

// find returns the cloud whose members log in like this, or nil. The caller holds the lock.
func (s *Set) find(l login) *cloud {
	for c := range s.clouds {
		if c.login.isSame(l) {
			return c
		}
	}
	return nil
}

// begin begins a cloud, without a login if that is nil. The caller holds the lock.
func (s *Set) begin(client neutron.Client, l *login) *cloud {
	c := &cloud{set: s, login: l, part: s.division.NewPart(), members: map[string]*tenant{}}
	c.Controller, c.identity = s.New(client, c.part), func() (string, bool) { return "", false }
	ctx := s.ctx
	if l != nil {
		s.clouds[c], c.identity = true, func() (string, bool) { return l.identity, true }
		ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("cloud", l.identity))
	}
	ctx, c.cancel = context.WithCancel(ctx)
	s.running.Go(func() {
		defer s.division.Drop(c.part)
		c.WarmUp(ctx, s.SkipNamespaces...)
		if err := c.Run(ctx, s.Workers, s.timeout); err != nil {
			klog.FromContext(ctx).Error(err, "The controller of a cloud has failed")
		}
	})
	return c
}

// enter makes a namespace belong to a cloud. It returns false if the cloud has ended, or if
// its members log in otherwise by now.
func (s *Set) enter(t *tenant, c *cloud, l *login) bool {
	s.mu.Lock()
	if l != nil && (!s.clouds[c] || !c.login.isSame(*l)) {
		s.mu.Unlock()
		return false
	}
	if old := t.cloud; old != c {
		t.cloud = c
		c.members[t.namespace] = t
		s.leave(t, old)
	}
	s.mu.Unlock()
	c.TakeOver(t.namespace, s.division.In(t.namespace))
	s.division.Assign(t.namespace, c.part)
	return true
}

// leave ends the membership of a namespace, and a cloud without members. The caller holds
// the lock.
func (s *Set) leave(t *tenant, c *cloud) {
	if c == nil {
		return
	}
	delete(c.members, t.namespace)
	if len(c.members) == 0 && c != s.rest {
		delete(s.clouds, c)
		c.cancel()
	}
}

// hasLogin reports whether a cloud has a login with a Secret. A nil one has not.
func (c *cloud) hasLogin() bool { return c != nil && c.login != nil }

// mayBe reports whether two clouds may be one region and project.
func (c *cloud) mayBe(other *cloud) bool {
	a, isKnown := c.identity()
	b, isOtherKnown := other.identity()
	return !isKnown || !isOtherKnown || a == b
}

// latest returns the Credentials of the members, and why the latest Secret is not in use. If
// they are refused, the Secrets are read again.
func (c *cloud) latest(refused bool) (*openstack.Credentials, error) {
	c.set.mu.Lock()
	defer c.set.mu.Unlock()
	var unusable error
	for _, member := range c.members {
		if unusable = member.unusable; refused {
			member.kick()
		}
	}
	if len(c.members) > 1 {
		unusable = nil // that of one namespace does not concern the others
	}
	return c.login.credentials, unusable
}
