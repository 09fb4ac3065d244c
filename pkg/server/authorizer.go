package server

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// authorizer accepts requests with a bearer token that Kubernetes accepts, if its
// user is permitted to get the path (a nonResourceURL in RBAC).
type authorizer struct {
	client kubernetes.Interface
	next   http.Handler
	clock  clock.PassiveClock
	// limits bound the requests to the API server that strangers can cause: those of
	// each host, and separately those with tokens that are no signed ones. They are
	// of type *rate.Limiter.
	limits *lru.Cache
	// decisions has the latest decision for each path and token.
	decisions *lru.Cache
}

// decision is the status of a response, which is 200 if the request is permitted.
type decision struct {
	status     int
	validUntil time.Time
}

const (
	// A scraper returns every few seconds.
	permissionLifetime = time.Minute
	// A denial may be a passing failure.
	denialLifetime = 10 * time.Second
	maxDecisions   = 1000
	maxHosts       = 1000

	// For each host of strangers, and for all unsigned tokens together.
	reviewsPerSecond = 5
	reviewsAtOnce    = 20
)

func newAuthorizer(client kubernetes.Interface, next http.Handler, clock clock.PassiveClock) *authorizer {
	return &authorizer{
		client: client, next: next, clock: clock, limits: lru.New(maxHosts), decisions: lru.New(maxDecisions),
	}
}

func (a *authorizer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		http.Error(w, "a bearer token is required: the user or ServiceAccount must be permitted to get the nonResourceURL "+
			r.URL.Path, http.StatusUnauthorized)
		return
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	status, err := a.decide(r.Context(), host, token, r.URL.Path)
	switch {
	case err != nil:
		klog.FromContext(r.Context()).Error(err,
			"Authorizing a metrics request failed (required ClusterRole: system:auth-delegator)")
		http.Error(w, "authorization is unavailable: see the controller's log", http.StatusInternalServerError)
	case status != http.StatusOK:
		http.Error(w, http.StatusText(status), status)
	default:
		a.next.ServeHTTP(w, r)
	}
}

// decide returns the decision of Kubernetes, or a recent one. Clients that were
// permitted before do not compete with strangers for the limit.
func (a *authorizer) decide(ctx context.Context, host, token, path string) (status int, err error) {
	hash := sha256.Sum256([]byte(path + "\n" + token))
	cached, _ := a.decisions.Get(hash)
	last, _ := cached.(decision)
	switch {
	case a.clock.Now().Before(last.validUntil):
		return last.status, nil
	case last.status != http.StatusOK && !a.limit(host, token).Allow():
		return http.StatusTooManyRequests, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if status, err = a.review(ctx, token, path); err != nil {
		return 0, err
	}
	lifetime := permissionLifetime
	if status != http.StatusOK {
		lifetime = denialLifetime
	}
	a.decisions.Add(hash, decision{status, a.clock.Now().Add(lifetime)})
	return status, nil
}

// limit returns the limit for a client that was not permitted before. A client with a token
// in the form of those of ServiceAccounts and of OpenID Connect competes with those on its
// own host only. Other tokens may be valid, but most strangers send one of them.
func (a *authorizer) limit(host, token string) *rate.Limiter {
	if isSigned := strings.Count(token, ".") == 2; !isSigned {
		host = "unsigned"
	}
	if limit, ok := a.limits.Get(host); ok {
		return limit.(*rate.Limiter)
	}
	limit := rate.NewLimiter(reviewsPerSecond, reviewsAtOnce)
	a.limits.Add(host, limit)
	return limit
}

// review sends a token and a path to the API server. client-go logs the bodies of
// requests from -v=8 on, with the token: so these requests have a silent logger.
func (a *authorizer) review(ctx context.Context, token, path string) (status int, err error) {
	ctx = klog.NewContext(ctx, klog.Logger{})
	reviewed, err := a.client.AuthenticationV1().TokenReviews().Create(ctx,
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("reviewing a token: %w", err)
	}
	if !reviewed.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user, extra := reviewed.Status.User, map[string]authorizationv1.ExtraValue{}
	for key, value := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	access, err := a.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("reviewing the access of %s: %w", user.Username, err)
	}
	if !access.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}
