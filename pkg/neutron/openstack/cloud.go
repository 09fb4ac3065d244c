package openstack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// NewFromCloud returns a client for the Neutron of a cloud in clouds.yaml. If the
// name is empty, OS_CLOUD names the cloud. NewFromCloud makes no request: the
// client logs in with its first request, and again when Neutron rejects its
// token. A failed login is a *neutron.Error of the class neutron.ErrUnavailable.
//
// clouds.yaml is the file in OS_CLIENT_CONFIG_FILE. Without the variable, it is
// in the working directory, ~/.config/openstack or /etc/openstack. secure.yaml is
// the file in OS_CLIENT_SECURE_FILE, or is in the directory of clouds.yaml.
// OS_REGION_NAME, OS_INTERFACE, OS_CACERT, OS_CERT and OS_KEY override the files.
// Errors name the file and the field, and no text of the client holds a secret.
//
// Changed files take effect with the requests of the next seconds, and at once if a
// login or token is rejected. If the files name another region or project, requests
// fail until the files name the first one again, or the process is restarted: its
// Networks have their networks in the first one. If the changed files are unusable,
// the client keeps its previous login while that works; then the error describes
// both problems.
//
// As a fmt.Stringer, the client describes its cloud and, after a login, the
// address of Neutron.
func NewFromCloud(name string, o Options) (neutron.Client, error) {
	if name == "" {
		name = os.Getenv("OS_CLOUD")
	}
	if name == "" {
		return nil, errors.New("no cloud is named; set -cloud or OS_CLOUD")
	}
	return newClient(o, func(context.Context, bool) (*cloudConfig, error) { return loadCloud(name) })
}

// newClient returns a client for the cloud of the settings that load returns.
func newClient(o Options, load loader) (neutron.Client, error) {
	o = o.withDefaults()
	config, err := load(context.Background(), false)
	if err != nil {
		return nil, err
	}
	config.transport = newTransport(config, o.Transport)
	c := &cloud{load: load, wrap: o.Transport, timeout: o.Timeout, now: o.Now}
	c.checked.Store(o.Now().UnixNano())
	c.config.Store(config)
	return &client{c, o}, nil
}

// loader returns the latest settings of a cloud. Refused reports whether the last login
// with those that it returned before has failed.
type loader func(ctx context.Context, refused bool) (*cloudConfig, error)

// cloud is the Neutron of a cloud, with its logins. gophercloud's own renewal of tokens
// keeps the address and credentials of the first login, and one caller that gives up
// fails the login for all.
type cloud struct {
	load    loader
	timeout time.Duration
	now     func() time.Time
	wrap    func(http.RoundTripper) http.RoundTripper

	config  atomic.Pointer[cloudConfig] // what to log in with
	session atomic.Pointer[session]     // nil without a valid login
	former  atomic.Pointer[session]     // of requests that are still in flight

	tokens access // what Neutron does with them

	attempts singleflight.Group // to read the files and log in; there is one at a time
	checked  atomic.Int64       // when the last attempt began, in Unix nanoseconds

	// Only an attempt uses these.
	failure *failure // of the last login, or nil
	pinned  *session // the last successful login; the cloud stays that of the first one
}

func (c *cloud) check(op string, used *session, status int, repeated bool) (again bool, err error) {
	if status != http.StatusUnauthorized {
		c.tokens.noteResponse(op, status, c.now())
		return false, nil
	}
	err = c.tokens.noteRejected(op, used, c.now(), repeated)
	return err == nil, err
}

func (c *cloud) host() string {
	if s := c.session.Load(); s != nil {
		return hostPort(s.endpoint)
	}
	return "Neutron"
}

func (c *cloud) secrets() []string {
	all := slices.Clone(c.config.Load().secrets)
	for _, s := range []*session{c.session.Load(), c.former.Load()} {
		if s != nil {
			all = append(append(all, s.config.secrets...), s.token)
		}
	}
	return all
}

// replace replaces the session. Only an attempt calls it.
func (c *cloud) replace(s *session) {
	if old := c.session.Load(); old != nil {
		c.former.Store(old)
	}
	c.session.Store(s)
}

func (c *cloud) String() string {
	config := c.config.Load()
	text := fmt.Sprintf("cloud %s at %s, interface %s", config.name, config.identity, config.endpoint.Availability)
	if region := config.endpoint.Region; region != "" {
		text += ", region " + region
	}
	if config.tls.InsecureSkipVerify {
		text += ", certificates NOT verified"
	}
	if s := c.session.Load(); s != nil {
		return text + ", Neutron at " + s.endpoint.String()
	}
	return text + ", not logged in"
}
