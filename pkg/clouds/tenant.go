package clouds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
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
	wantedAt    time.Time
	credentials *openstack.Credentials
	problem     error // why there is no login, if the cloud is one without
	unusable    error // why the latest Secret is not the one in use, or nil

	// Only the goroutine uses these.
	cloud      *cloud        // that the namespace belongs to, or nil
	version    string        // of the Secret that was used last
	goneSince  time.Time     // when the Secret was found to be gone, or zero
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
	if c == nil || c.isOwn() && !c.IsIdle() {
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
		return readRetry
	case secret == nil:
		t.withoutSecret(ctx)
		return t.pause()
	}
	t.goneSince = time.Time{}
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
		t.loginAt = time.Now().Add(t.retryLogin)
		return min(t.set.CheckPeriod, t.retryLogin)
	}
	t.retryLogin = 0
	return t.pause()
}

// pause returns the time until the next check of a Secret. It is spread, so that the Secrets
// are not all read at once.
func (t *tenant) pause() time.Duration { return wait.Jitter(t.set.CheckPeriod*3/4, 1.0/3) }

// read returns the Secret, or nil if there is none that the controller may read.
func (t *tenant) read(ctx context.Context) (*corev1.Secret, error) {
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
	if t.cloud.isOwn() {
		logger := klog.FromContext(ctx)
		if t.goneSince.IsZero() {
			t.goneSince = time.Now()
			logger.Info("The Secret of a namespace is gone; the namespace keeps its cloud for a while", "secret", SecretName)
		}
		isDeleted := func(n *samplecrdv1.Network) bool { return n.DeletionTimestamp != nil }
		if time.Since(t.goneSince) < t.set.GracePeriod || slices.ContainsFunc(t.set.division.In(t.namespace), isDeleted) {
			return
		}
		logger.Info("The namespace has no cloud of its own any more", "secret", SecretName)
	}
	t.version, t.retryLogin = "", 0
	t.move(ctx, t.set.rest)
}

// use logs in with a Secret, and enters the cloud that it leads to.
func (t *tenant) use(ctx context.Context, secret *corev1.Secret) error {
	credentials, err := openstack.ParseCredentials(openstack.Source{
		Name:       fmt.Sprintf("the Secret %s/%s", t.namespace, SecretName),
		CloudsYAML: secret.Data[keyCloudsYAML], CACertificate: secret.Data[keyCACertificate], Addresses: t.set.addresses,
	})
	if err != nil {
		return err
	}
	login := &login{credentials: credentials}
	client, err := openstack.NewFromCredentials(login.latest, t.set.Connect())
	if err != nil {
		return err
	}
	identity, err := t.login(ctx, client, credentials.Keystone())
	if err != nil {
		return err
	}
	place := credentials.Place(identity)
	t.set.mu.Lock()
	c := t.set.clouds[place]
	if c == nil {
		c = t.set.begin(place, client, func() (string, bool) { return identity, true })
		login.leadsTo(c)
		klog.FromContext(ctx).Info("Using the cloud of a namespace", "identity", identity, "secret", SecretName)
	}
	t.credentials, t.unusable = credentials, nil
	t.set.mu.Unlock()
	t.move(ctx, c)
	return nil
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
		if !t.cloud.isOwn() {
			t.show(&neutron.Error{Op: "login", Class: neutron.ErrUnavailable, Keystone: keystone,
				Message: "the login with the Secret " + SecretName + " takes long"})
		}
		<-done
	}
	return identity, err
}

// move enters another cloud. If both may be the same project, what the controller of the
// first one has requested there has to end first: both would create a network. Otherwise,
// the cloud that a Network records keeps the second one from it.
func (t *tenant) move(ctx context.Context, c *cloud) {
	if t.cloud != c {
		t.leaveLogin()
	}
	if left := time.Until(t.leftAt.Add(t.set.MoveDelay)); t.former != nil && t.former != c && left > 0 && t.former.mayBe(c) {
		t.set.division.Assign(t.namespace, nil)
		select {
		case <-ctx.Done():
			return
		case <-time.After(left):
		}
	}
	t.set.enter(t, c)
}

// leaveLogin notes that the namespace leaves its cloud now, if that has a login.
func (t *tenant) leaveLogin() {
	if t.cloud.isOwn() || t.cloud == t.set.rest {
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
	if !t.cloud.isOwn() {
		t.show(err)
	}
}

// show makes the conditions of the Networks show a problem.
func (t *tenant) show(problem error) {
	t.set.mu.Lock()
	c, isSame := t.cloud, t.problem != nil && t.problem.Error() == problem.Error()
	t.problem = problem
	if c.isOwn() || c != nil && c != t.set.rest && isSame || t.set.ctx.Err() != nil {
		t.set.mu.Unlock()
		return
	}
	if c == nil || c == t.set.rest {
		c = t.set.begin("", openstack.NewUnavailable(t.theProblem), func() (string, bool) { return "", false })
	}
	t.set.mu.Unlock()
	if t.cloud != c {
		t.leaveLogin()
	}
	t.set.enter(t, c)
	t.set.division.Assign(t.namespace, c.part) // again, if it is the same
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

// login are the Credentials of a client: those of one namespace until its cloud is known,
// and then those of all namespaces of the cloud.
type login struct {
	mu          sync.Mutex
	credentials *openstack.Credentials
	cloud       *cloud
}

func (l *login) leadsTo(c *cloud) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cloud = c
}

func (l *login) latest(ctx context.Context, refused bool) (*openstack.Credentials, error) {
	l.mu.Lock()
	c := l.cloud
	l.mu.Unlock()
	if c == nil {
		return l.credentials, nil
	}
	return c.latest(ctx, refused)
}
