package openstack

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
	"gopkg.in/yaml.v2"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// Credentials are the settings of a cloud that somebody else than the administrator has
// written. They name no file, and lead only to addresses that the administrator allows.
type Credentials struct {
	config    *cloudConfig
	authority [sha256.Size]byte // the hash of the certificates to trust
}

// Source is where Credentials come from.
type Source struct {
	Name          string // for messages
	CloudsYAML    []byte
	CACertificate []byte // in PEM, or empty for the usual ones
	Addresses     *Addresses
}

// The limits of a Source, in bytes.
const (
	maxCloudsYAML    = 64 << 10
	maxCACertificate = 256 << 10
)

// defaultCloud is the cloud of a clouds.yaml that has several.
const defaultCloud = "openstack"

// ParseCredentials returns the Credentials of the only cloud of a source, or of the one with
// the name openstack. No environment variable has an effect. Its errors hold no secret.
func ParseCredentials(s Source) (*Credentials, error) {
	if len(s.CloudsYAML) > maxCloudsYAML || len(s.CACertificate) > maxCACertificate {
		return nil, fmt.Errorf("%s is too large: at most %d bytes of clouds.yaml and %d of cacert are used",
			s.Name, maxCloudsYAML, maxCACertificate)
	}
	if len(s.CloudsYAML) == 0 {
		return nil, fmt.Errorf("%s has no clouds.yaml: write one into its key clouds.yaml", s.Name)
	}
	path := "clouds.yaml in " + s.Name
	name, err := s.reduce(path)
	if err != nil {
		return nil, err
	}
	file, err := parseCloudFile(path, s.CloudsYAML)
	if err != nil {
		return nil, err
	}
	config, err := s.parse(name, file.clouds[name])
	if err != nil {
		return nil, fmt.Errorf("cloud %q of %s: %w", name, path, err)
	}
	return &Credentials{config, sha256.Sum256(s.CACertificate)}, nil
}

// usedFields are those of a cloud that have an effect, or are rejected.
type usedFields struct {
	Auth         *clouds.AuthInfo `yaml:"auth,omitempty"`
	AuthType     string           `yaml:"auth_type,omitempty"`
	Region       string           `yaml:"region_name,omitempty"`
	EndpointType string           `yaml:"endpoint_type,omitempty"`
	Interface    string           `yaml:"interface,omitempty"`
	Verify       *bool            `yaml:"verify,omitempty"`
	Override     string           `yaml:"network_endpoint_override,omitempty"`
	CACert       string           `yaml:"cacert,omitempty"`
	Cert         string           `yaml:"cert,omitempty"`
	Key          string           `yaml:"key,omitempty"`
	Profile      string           `yaml:"profile,omitempty"`
	Cloud        string           `yaml:"cloud,omitempty"`
}

// reducing lets one file at a time be as large as its aliases make it.
var reducing sync.Mutex

// reduce leaves one cloud in clouds.yaml, without aliases and the fields that have no effect,
// and returns its name. An alias takes a few bytes, and can repeat thousands of times what is
// large in memory or as text.
func (s *Source) reduce(path string) (name string, err error) {
	reducing.Lock()
	defer reducing.Unlock()
	var all struct{ Clouds map[string]usedFields }
	if err := unmarshal(path, s.CloudsYAML, &all); err != nil {
		return "", err
	}
	names := slices.Sorted(maps.Keys(all.Clouds))
	switch _, ok := all.Clouds[defaultCloud]; {
	case len(names) == 1:
		name = names[0]
	case ok:
		name = defaultCloud
	default:
		return "", fmt.Errorf("%s must have one cloud, or one with the name %q; %s", path, defaultCloud, listNames(names))
	}
	all.Clouds = map[string]usedFields{name: all.Clouds[name]}
	s.CloudsYAML, err = yaml.Marshal(all)
	if err != nil || len(s.CloudsYAML) > maxCloudsYAML {
		return "", fmt.Errorf("%s is too large: at most %d bytes are used, without aliases", path, maxCloudsYAML)
	}
	return name, nil
}

func (s Source) parse(name string, entry cloudEntry) (*cloudConfig, error) {
	for field, value := range map[string]string{
		"cacert": entry.CACertFile, "cert": entry.ClientCertFile, "key": entry.ClientKeyFile,
		"profile": entry.Profile, "cloud": entry.Cloud.Cloud,
	} {
		if value != "" {
			return nil, fmt.Errorf("%s names a file of the controller; remove it "+
				"(certificates to trust belong into the key cacert of the Secret)", field)
		}
	}
	config, err := parseCloud(clouds.Cloud{}, entry.Cloud, "", []clouds.ParseOption{
		clouds.WithCloudName(name), clouds.WithCloudsYAML(bytes.NewReader(s.CloudsYAML)), clouds.WithRegion(entry.RegionName),
		clouds.WithEndpointType(cmp.Or(entry.EndpointType, entry.Interface)),
	})
	if err != nil {
		return nil, err
	}
	unverified := entry.Verify != nil && !*entry.Verify
	config.tls = &tls.Config{InsecureSkipVerify: unverified} //nolint:gosec // the tenant's choice
	if len(s.CACertificate) > 0 {
		config.tls.RootCAs = x509.NewCertPool()
		if !config.tls.RootCAs.AppendCertsFromPEM(s.CACertificate) {
			return nil, errors.New("the key cacert of the Secret has no certificate in PEM")
		}
	}
	if !s.Addresses.allows(config.identity) {
		return nil, errors.New("auth_url is not one that the administrator of the controller allows (-allowed-auth-urls)")
	}
	if entry.Override != "" {
		if config.override, err = parseURL(entry.Override, "v2.0"); err != nil {
			return nil, fmt.Errorf("network_endpoint_override %w", err)
		}
		if !s.Addresses.allows(config.override) {
			return nil, errors.New("network_endpoint_override is not a URL that the administrator of the controller allows " +
				"(-allowed-auth-urls)")
		}
	}
	config.name, config.from, config.addresses = name, s.Name, s.Addresses
	return config, nil
}

// Place identifies where Credentials lead, given the identity of the cloud after their
// login: the cloud, and what makes that identity trustworthy. A Keystone can claim to be
// in any region, and that a token is for any project.
func (c *Credentials) Place(cloud string) string {
	override := ""
	if c.config.override != nil {
		override = c.config.override.String()
	}
	return fmt.Sprintf("%s of %s, interface %s, endpoint %q, authority %x, verified %t", cloud, c.config.identity,
		c.config.endpoint.Availability, override, c.authority, !c.config.tls.InsecureSkipVerify)
}

// Equal reports whether both lead to the same login.
func (c *Credentials) Equal(other *Credentials) bool {
	return c.config.equal(other.config) && c.authority == other.authority
}

// Keystone returns the address of the Identity service.
func (c *Credentials) Keystone() string { return c.config.identity.String() }

// Format writes only what the Credentials come from, for every verb: the fields hold secrets.
func (c *Credentials) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.config.from) }

// NewFromCredentials returns a client like that of NewFromCloud, for the Credentials that
// latest returns. Latest is called every few seconds, and after a failed login, with refused
// as true.
func NewFromCredentials(
	latest func(ctx context.Context, refused bool) (*Credentials, error), o Options,
) (neutron.Client, error) {
	return newClient(o, func(ctx context.Context, refused bool) (*cloudConfig, error) {
		credentials, err := latest(ctx, refused)
		if err != nil {
			return nil, err
		}
		own := *credentials.config // each client has its own connections
		return &own, nil
	})
}

// NewUnavailable returns a client that sends no request, for a namespace without a cloud. All
// its requests fail with the problem: a failed login, or a message.
func NewUnavailable(problem func() neutron.Error) neutron.Client {
	return &client{unavailable{problem}, Options{}.withDefaults()}
}

type unavailable struct{ problem func() neutron.Error }

func (u unavailable) login(context.Context, *session) (*session, error) {
	failed := u.problem()
	failed.Op, failed.Class, failed.Cause = opLogin, neutron.ErrUnavailable, neutron.ErrNoCloud
	return nil, &failed
}
func (unavailable) check(string, *session, int, bool) (again bool, _ error) { return false, nil }
func (unavailable) host() string                                            { return "Neutron" }
func (unavailable) secrets() []string                                       { return nil }
func (u unavailable) String() string                                        { return "no cloud" }
