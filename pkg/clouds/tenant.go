package clouds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
)

// tenant finds the cloud of a namespace that has Networks, in a goroutine of its own: a
// login that takes long delays no other namespace.
type tenant struct {
	set       *Set
	namespace string
	kicked    chan struct{}

	// The lock of the Set protects these.
	wantedAt time.Time
	problem  error // why there is no login, if the cloud is one without
	unusable error // why the latest Secret is not the one in use, or nil

	// Only the goroutine uses these.
	cloud      *cloud        // that the namespace belongs to, or nil
	version    string        // of the Secret that was used last
	isAbsent   bool          // the Secret was when it was read last
	leaving    time.Time     // since when the Secret does not lead to the cloud, or zero
	retryLogin time.Duration // after another failed login
	loginAt    time.Time     // not before
	former     *cloud        // the last one with a login that the namespace has left
	leftAt     time.Time
}

const (
	readTimeout   = 10 * time.Second // of a Secret
	readRetry     = 2 * time.Second
	minLoginRetry = 2 * time.Second
	maxLoginRetry = 2 * time.Minute
	// showLogin is how long a first login takes until the Networks show it.
	showLogin = 3 * time.Second
	// maxStay is how long a namespace stays in a cloud to which its Secret no longer leads, if
	// a request there has no response: longer than Neutron may take to execute one.
	maxStay = 20 * time.Minute
	// forget is how long a namespace without Networks is known after somebody looked for one.
	forget = 5 * time.Minute
)

// kick makes the tenant read its Secret now.
func (t *tenant) kick() {
	select {
	case t.kicked <- struct{}{}:
	default:
	}
}

func (t *tenant) run(ctx context.Context) {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("namespace", t.namespace))
	for ctx.Err() == nil && !t.isOver() {
		timer := time.NewTimer(t.check(ctx))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-t.kicked:
		}
		timer.Stop()
	}
}

// isOver reports whether the namespace needs no cloud any more. If so, it leaves its cloud.
func (t *tenant) isOver() bool {
	c := t.cloud
	if c == nil || c.hasLogin() && !c.IsIdle() {
		return false
	}
	t.set.mu.Lock()
	over := time.Since(t.wantedAt) > forget && len(t.set.division.In(t.namespace)) == 0
	if over {
		t.set.leave(t, c)
		delete(t.set.tenants, t.namespace)
	}
	t.set.mu.Unlock()
	if over {
		t.set.division.Assign(t.namespace, nil)
		if len(t.set.division.In(t.namespace)) > 0 { // one came just now
			t.set.want(t.namespace)
		}
	}
	return over
}

// check reads the Secret, and enters the cloud that it leads to. It returns the time until
// the next check.
func (t *tenant) check(ctx context.Context) time.Duration {
	secret, err := t.read(ctx)
	switch {
	case ctx.Err() != nil:
		return 0
	case err != nil:
		klog.FromContext(ctx).Error(err, "Reading the Secret of a namespace failed; the namespace keeps its cloud")
		return wait.Jitter(readRetry, 1)
	case secret == nil && t.cloud == nil && !t.isAbsent:
		t.isAbsent = true // is it just not there yet?
		return min(readRetry, t.set.CheckPeriod)
	case secret == nil:
		t.withoutSecret(ctx)
		return t.pause()
	}
	t.isAbsent = false
	switch isNew := secret.ResourceVersion != t.version; {
	case !isNew && t.retryLogin == 0:
		return t.pause()
	case isNew:
		t.version, t.retryLogin, t.loginAt = secret.ResourceVersion, 0, time.Time{}
	case time.Now().Before(t.loginAt):
		return min(t.set.CheckPeriod, time.Until(t.loginAt))
	}
	if err := t.use(ctx, secret); err != nil && ctx.Err() == nil {
		t.report(ctx, err)
		t.retryLogin = min(max(minLoginRetry, 2*t.retryLogin), maxLoginRetry)
		t.loginAt = time.Now().Add(wait.Jitter(t.retryLogin, 0.25))
		return min(t.set.CheckPeriod, t.retryLogin)
	}
	t.retryLogin = 0
	return t.pause()
}

// pause returns the time until the next check of a Secret. It is spread, so that the Secrets
// are not all read at once.
func (t *tenant) pause() time.Duration { return wait.Jitter(t.set.CheckPeriod*3/4, 1.0/3) }

// read returns the Secret, or nil if there is none that the controller may read. client-go
// logs the bodies of responses from -v=8 on: so this request has a silent logger.
func (t *tenant) read(ctx context.Context) (*corev1.Secret, error) {
	ctx = klog.NewContext(ctx, klog.Logger{})
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	secret, err := t.set.Secrets.Secrets(t.namespace).Get(ctx, SecretName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the Secret %s/%s: %w", t.namespace, SecretName, err)
	}
	return secret, nil
}

// withoutSecret makes the namespace belong to the controller's own cloud. One that had a
// cloud of its own keeps it for a while, with the Secret as it was: who deletes a namespace
// deletes the Secret first, and the networks need it to be deleted.
func (t *tenant) withoutSecret(ctx context.Context) {
	t.version, t.retryLogin = "", 0 // if it comes back, even the same, the namespace enters again
	if t.cloud.hasLogin() {
		logger := klog.FromContext(ctx)
		if t.leaving.IsZero() {
			logger.Info("The Secret of a namespace is gone; the namespace keeps its cloud for a while", "secret", SecretName)
		}
		if t.mustStay(t.set.GracePeriod) || t.mustDelete() {
			return
		}
		logger.Info("The namespace has no cloud of its own any more", "secret", SecretName)
	}
	t.move(ctx, t.set.rest, nil)
}

// mustStay reports whether a namespace that leaves its cloud has to stay: for a time, and
// while something may exist there that its Networks do not name. Nothing new is begun
// meanwhile.
func (t *tenant) mustStay(atLeast time.Duration) bool {
	if t.leaving.IsZero() {
		t.leaving = time.Now()
	}
	since := time.Since(t.leaving)
	if since >= atLeast && (!t.cloud.HasRequests(t.namespace) || since >= maxStay) {
		return false
	}
	t.set.division.Limit(t.namespace, isBegun)
	return true
}

// mustDelete reports whether Networks are being deleted. Until they are gone, nothing else
// continues.
func (t *tenant) mustDelete() bool {
	isDeleted := func(n *samplecrdv1.Network) bool { return n.DeletionTimestamp != nil && isBegun(n) }
	if !slices.ContainsFunc(t.set.division.In(t.namespace), isDeleted) {
		return false
	}
	t.set.division.Limit(t.namespace, isDeleted)
	return true
}

// isBegun reports whether something may have been requested for a Network.
func isBegun(network *samplecrdv1.Network) bool {
	return slices.Contains(network.Finalizers, samplecrdv1.Finalizer)
}

// use logs in with a Secret, and enters the cloud that it leads to.
func (t *tenant) use(ctx context.Context, secret *corev1.Secret) error {
	credentials, err := credentialsIn(secret, t.set.addresses)
	if err != nil {
		return err
	}
	settings := t.set.Connect()
	settings.MaxList = maxList
	var used atomic.Pointer[cloud] // the one of this client
	client, err := openstack.NewFromCredentials(func(_ context.Context, refused bool) (*openstack.Credentials, error) {
		if c := used.Load(); c != nil {
			return c.latest(refused)
		}
		return credentials, nil
	}, settings)
	if err != nil {
		return err
	}
	l := login{credentials: credentials}
	if l.identity, err = t.login(ctx, client, credentials.Keystone()); err != nil {
		return err
	}
	if t.cloud.hasLogin() && t.cloud.login.place() != l.place() && t.mustStay(0) {
		t.version = "" // the next check tries again
		return nil
	}
	t.set.mu.Lock()
	c := t.set.find(l)
	switch {
	case c != nil:
	case t.cloud.hasLogin() && t.cloud.login.place() == l.place() && len(t.cloud.members) == 1:
		c = t.cloud // its client uses the new credentials soon
		c.login.credentials = credentials
	default:
		c = t.set.begin(client, &login{credentials, l.identity})
		used.Store(c)
		klog.FromContext(ctx).Info("Using the cloud of a namespace", "identity", l.identity, "secret", SecretName)
	}
	t.unusable = nil
	t.set.mu.Unlock()
	if !t.move(ctx, c, &l) {
		t.version = ""
		t.kick()
	}
	return nil
}

func credentialsIn(secret *corev1.Secret, addresses *openstack.Addresses) (*openstack.Credentials, error) {
	return openstack.ParseCredentials(openstack.Source{
		Name:       fmt.Sprintf("the Secret %s/%s", secret.Namespace, secret.Name),
		CloudsYAML: secret.Data[keyCloudsYAML], CACertificate: secret.Data[keyCACertificate], Addresses: addresses,
	})
}

// login returns the identity of a cloud after a login. If the login takes long, the Networks
// show it meanwhile.
func (t *tenant) login(ctx context.Context, client neutron.Client, keystone string) (identity string, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		identity, err = client.Cloud(ctx)
	}()
	timer := time.NewTimer(showLogin)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		if t.cloud == nil || t.cloud == t.set.rest { // else they have a login, or show a problem
			t.show(&neutron.Error{Op: "login", Class: neutron.ErrUnavailable, Keystone: keystone,
				Message: "the login with the Secret " + SecretName + " takes long"})
		}
		<-done
	}
	return identity, err
}

// move enters another cloud. If both may be the same project, what the controller of the
// first one has requested there has to end first: both would create a network. Otherwise,
// the cloud that a Network records keeps the second one from it. It returns false if the
// cloud cannot be entered any more.
func (t *tenant) move(ctx context.Context, c *cloud, l *login) bool {
	isEntered := t.cloud == c && t.leaving.IsZero()
	if t.leaving = (time.Time{}); isEntered {
		return true
	}
	if t.cloud != c {
		t.leaveLogin()
	}
	left := time.Until(t.leftAt.Add(t.set.MoveDelay))
	if t.former != nil && t.former != c && left > 0 && t.former.mayBe(c) {
		t.set.division.Assign(t.namespace, nil)
		select {
		case <-ctx.Done():
			return true
		case <-time.After(left):
		}
	}
	return t.set.enter(t, c, l)
}

// leaveLogin notes that the namespace leaves its cloud now, if that has a login.
func (t *tenant) leaveLogin() {
	if t.cloud.hasLogin() || t.cloud == t.set.rest {
		t.former, t.leftAt = t.cloud, time.Now()
	}
}

// report shows why there is no login with the Secret. A namespace that has a cloud of its own
// keeps it, and the login that it has, while that works.
func (t *tenant) report(ctx context.Context, err error) {
	klog.FromContext(ctx).Error(err, "The Secret of a namespace cannot be used", "secret", SecretName)
	t.set.mu.Lock()
	t.unusable = err
	t.set.mu.Unlock()
	if !t.cloud.hasLogin() {
		t.show(err)
		return
	}
	t.move(ctx, t.cloud, nil) // it was about to leave it, say
}

// show makes the conditions of the Networks show a problem.
func (t *tenant) show(problem error) {
	t.set.mu.Lock()
	c, isSame := t.cloud, t.problem != nil && t.problem.Error() == problem.Error()
	t.problem = problem
	if c.hasLogin() || c != nil && c != t.set.rest && isSame || t.set.ctx.Err() != nil {
		t.set.mu.Unlock()
		return
	}
	if c == nil || c == t.set.rest {
		c = t.set.begin(openstack.NewUnavailable(t.theProblem), nil)
	}
	t.set.mu.Unlock()
	if t.cloud != c {
		t.leaveLogin()
	}
	t.set.enter(t, c, nil) // again, if it is the same
}

// theProblem returns the failure of a login as it is. Anything else, the namespace's user has
// to correct in the Secret.
func (t *tenant) theProblem() neutron.Error {
	t.set.mu.Lock()
	defer t.set.mu.Unlock()
	var failure *neutron.Error
	if errors.As(t.problem, &failure) {
		return *failure
	}
	return neutron.Error{Message: fmt.Sprintf("%v. Correct the Secret, which the controller reads again every %v",
		t.problem, t.set.CheckPeriod)}
}
