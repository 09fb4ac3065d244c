package openstack

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
	"gopkg.in/yaml.v2"
)

// cloudConfig holds the settings of one cloud in clouds.yaml and secure.yaml, or in a Secret.
type cloudConfig struct {
	name      string
	from      string     // what has the settings, for messages
	addresses *Addresses // those that requests may go to, or nil for all
	auth      gophercloud.AuthOptions
	endpoint  gophercloud.EndpointOpts
	identity  *url.URL // the Identity API, with its version
	override  *url.URL // of Neutron's address in the catalog, or nil
	tls       *tls.Config
	secrets   []string // also those that no login uses
	transport *boundedTransport
}

// loadCloud reads the settings of a cloud. The errors name the files and hold no secret.
func loadCloud(name string) (*cloudConfig, error) {
	plain, secure, err := readCloudFiles()
	if err != nil {
		return nil, err
	}
	entry, ok := plain.clouds[name]
	if !ok {
		return nil, fmt.Errorf("%s has no cloud %q; %s", plain.path, name, listNames(slices.Sorted(maps.Keys(plain.clouds))))
	}
	paths := plain.path
	options := []clouds.ParseOption{clouds.WithCloudName(name), clouds.WithCloudsYAML(bytes.NewReader(plain.content))}
	secret, ok := secure.clouds[name]
	if ok {
		paths += " and " + secure.path
		options = append(options, clouds.WithSecureYAML(bytes.NewReader(secure.content)))
	}
	config, err := parseCloud(secret.Cloud, entry.Cloud, os.Getenv("OS_INTERFACE"), options)
	if err != nil {
		return nil, fmt.Errorf("cloud %q in %s: %w", name, paths, err)
	}
	if address := cmp.Or(secret.Override, entry.Override); address != "" {
		if config.override, err = parseURL(address, "v2.0"); err != nil {
			return nil, fmt.Errorf("cloud %q in %s: network_endpoint_override %w", name, paths, err)
		}
	}
	config.name, config.from = name, "clouds.yaml"
	return config, nil
}

// parseCloud has gophercloud merge the entry of a cloud in secure.yaml, which may
// be empty, with the one in clouds.yaml, and checks the result. The preset is an interface
// that overrides those of both.
func parseCloud(secret, entry clouds.Cloud, preset string, options []clouds.ParseOption) (*cloudConfig, error) {
	if secret.AuthInfo == nil && entry.AuthInfo == nil { // gophercloud would panic
		return nil, errors.New("auth is missing")
	}
	config := &cloudConfig{secrets: secretsOf(secret.AuthInfo, entry.AuthInfo)}
	var err error
	if config.auth, config.endpoint, config.tls, err = clouds.Parse(options...); err != nil {
		text := strings.TrimPrefix(err.Error(), "unable to compute TLS configuration: ")
		return nil, errors.New(description{secrets: config.secrets}.clean(text))
	}
	// gophercloud takes an unknown interface for "public".
	name := cmp.Or(preset, secret.EndpointType, entry.EndpointType, secret.Interface, entry.Interface)
	if !slices.Contains([]string{"", "public", "internal", "admin"}, strings.TrimSuffix(name, "URL")) {
		return nil, fmt.Errorf("interface is %.80q; set it to public, internal or admin", name)
	}
	if config.identity, err = identityURL(config.auth.IdentityEndpoint); err != nil {
		return nil, err
	}
	return config, checkAuth(string(cmp.Or(secret.AuthType, entry.AuthType)), &config.auth)
}

// equal reports whether two configurations lead to the same login.
func (c *cloudConfig) equal(other *cloudConfig) bool {
	certificate := func(config *tls.Config) any {
		if len(config.Certificates) == 0 {
			return nil
		}
		return config.Certificates[0].Certificate
	}
	return reflect.DeepEqual(c.auth, other.auth) && reflect.DeepEqual(c.endpoint, other.endpoint) &&
		reflect.DeepEqual(c.override, other.override) &&
		c.tls.InsecureSkipVerify == other.tls.InsecureSkipVerify && c.tls.RootCAs.Equal(other.tls.RootCAs) &&
		reflect.DeepEqual(certificate(c.tls), certificate(other.tls))
}

// mayBeSameCloud reports whether two configurations name the same cloud, and verify
// certificates equally. An application credential does not name its project: only a
// login tells.
func (c *cloudConfig) mayBeSameCloud(other *cloudConfig) bool {
	return *c.identity == *other.identity && reflect.DeepEqual(c.auth.Scope, other.auth.Scope) &&
		reflect.DeepEqual(c.endpoint, other.endpoint) && reflect.DeepEqual(c.override, other.override) &&
		c.tls.InsecureSkipVerify == other.tls.InsecureSkipVerify
}

// cloudFile is a clouds.yaml or a secure.yaml; the zero value is a file that
// does not exist.
type cloudFile struct {
	path    string
	content []byte
	clouds  map[string]cloudEntry
}

// cloudEntry is a cloud in a file.
type cloudEntry struct {
	clouds.Cloud `yaml:",inline"`
	// Override replaces Neutron's address in the catalog. (gophercloud ignores it.)
	Override string `yaml:"network_endpoint_override"`
}

// readCloudFiles reads clouds.yaml and secure.yaml. gophercloud would look in
// the same places, except that it ignores OS_CLIENT_SECURE_FILE. In Kubernetes,
// the file with the secrets is often in another directory.
func readCloudFiles() (plain, secure cloudFile, err error) {
	path := os.Getenv("OS_CLIENT_CONFIG_FILE")
	if path == "" {
		places := standardPlaces()
		i := slices.IndexFunc(places, exists)
		if i < 0 {
			return plain, secure, fmt.Errorf("there is no clouds.yaml; set OS_CLIENT_CONFIG_FILE, or create one of %s",
				strings.Join(places, ", "))
		}
		path = places[i]
	}
	if plain, err = readCloudFile(path); err != nil {
		return plain, secure, err
	}
	beside := filepath.Join(filepath.Dir(path), "secure.yaml")
	if path = os.Getenv("OS_CLIENT_SECURE_FILE"); path == "" && exists(beside) {
		path = beside
	}
	if path != "" {
		secure, err = readCloudFile(path)
	}
	return plain, secure, err
}

// standardPlaces lists the places of clouds.yaml; the first that exists is used.
func standardPlaces() []string {
	config := os.Getenv("XDG_CONFIG_HOME")
	if home, err := os.UserHomeDir(); config == "" && err == nil {
		config = filepath.Join(home, ".config")
	}
	dir, _ := os.Getwd() // without one, the path is relative
	return []string{
		filepath.Join(dir, "clouds.yaml"), filepath.Join(config, "openstack", "clouds.yaml"),
		filepath.Join("/etc", "openstack", "clouds.yaml"),
	}
}

func exists(path string) bool {
	_, err := os.Stat(path) //nolint:gosec // the operator chooses the places
	return !errors.Is(err, fs.ErrNotExist)
}

// readCloudFile reads one of the files. An error of the YAML library can quote
// the file, and with it a password: only the line number is taken from it.
func readCloudFile(path string) (cloudFile, error) {
	content, err := os.ReadFile(path) //nolint:gosec // the operator chooses the file
	if err != nil {
		return cloudFile{}, fmt.Errorf(
			"reading the cloud configuration: %w (see OS_CLIENT_CONFIG_FILE and OS_CLIENT_SECURE_FILE)", err)
	}
	return parseCloudFile(path, content)
}

func parseCloudFile(path string, content []byte) (cloudFile, error) {
	var all struct{ Clouds map[string]cloudEntry }
	if err := unmarshal(path, content, &all); err != nil {
		return cloudFile{}, err
	}
	return cloudFile{path, content, all.Clouds}, nil
}

func unmarshal(path string, content []byte, into any) error {
	err := yaml.Unmarshal(content, into) //nolint:gosec // into plain data; the library bounds aliases
	if err == nil {
		return nil
	}
	problem := "is not valid YAML"
	if form := (*yaml.TypeError)(nil); errors.As(err, &form) {
		problem = "does not have the structure of a clouds.yaml"
	}
	if line := yamlLine.FindStringSubmatch(err.Error()); line != nil {
		problem += "; see line " + line[1]
	}
	return fmt.Errorf("%s %s", path, problem)
}

var yamlLine = regexp.MustCompile(`\bline (\d+):`)

// listNames describes which clouds a file has.
func listNames(names []string) string {
	const most = 20
	switch {
	case len(names) == 0:
		return "it has none"
	case len(names) > most:
		return fmt.Sprintf("it has %q and %d more", names[:most], len(names)-most)
	}
	return fmt.Sprintf("it has %q", names)
}

func secretsOf(infos ...*clouds.AuthInfo) (all []string) {
	for _, info := range infos {
		if info != nil {
			all = append(all, info.Password, info.ApplicationCredentialSecret, info.Token)
		}
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// checkAuth removes the credentials that auth_type does not select, and returns what
// gophercloud would reject at a login. Without auth_type, a password counts first, then a
// token.
func checkAuth(authType string, auth *gophercloud.AuthOptions) error {
	hasApplication := auth.ApplicationCredentialID != "" || auth.ApplicationCredentialName != ""
	switch {
	case authType != "" || auth.Password != "":
	case auth.TokenID != "":
		authType = "token"
	case hasApplication:
		authType = "v3applicationcredential"
	}
	switch authType {
	case "v3applicationcredential":
		auth.Password, auth.TokenID = "", ""
		if !hasApplication {
			return errors.New("application_credential_id is missing")
		}
	case "token", "v3token":
		*auth = gophercloud.AuthOptions{IdentityEndpoint: auth.IdentityEndpoint, Scope: auth.Scope, TokenID: auth.TokenID}
		if auth.TokenID == "" {
			return errors.New("token is missing")
		}
	case "", "password", "v3password":
		auth.TokenID, auth.ApplicationCredentialID, auth.ApplicationCredentialName = "", "", ""
		if auth.Username == "" {
			auth.DomainID, auth.DomainName = "", "" // an ID needs no domain, and gophercloud allows none
		}
	default:
		return fmt.Errorf("auth_type is %.80q; set it to password, token or v3applicationcredential", authType)
	}
	tried := *auth // gophercloud writes into it
	scope, err := tried.ToTokenV3ScopeMap()
	if err == nil {
		_, err = tried.ToTokenV3CreateMap(scope)
	}
	return err // gophercloud's errors are constants
}

// identityURL returns the URL of version 3 of the Identity API. No response of the
// server at auth_url decides where a password is sent.
func identityURL(text string) (*url.URL, error) {
	if text == "" {
		return nil, errors.New("auth_url is missing")
	}
	u, err := parseURL(text, "v3")
	if err != nil {
		return nil, fmt.Errorf("auth_url %w", err)
	}
	if strings.HasSuffix(u.Path, "/v2.0") {
		return nil, errors.New("auth_url ends with /v2.0; set it to version 3 of the Identity API")
	}
	return u.JoinPath("v3"), nil
}
