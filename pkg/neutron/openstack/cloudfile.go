package openstack

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
	"gopkg.in/yaml.v2"
)

// maxFile bounds what is read of a file, in bytes.
const maxFile = 4 << 20

// file is a file as it was read; nil content stands for one that is not there.
type file struct {
	path    string
	content []byte
}

// cloudFiles are the files that say how to log in, as they were at one time.
type cloudFiles struct {
	clouds, secure, public file
}

// readCloudFiles reads the files where gophercloud would look for them, but all
// at one time, so that what is compared is what is used. Besides, it knows
// OS_CLIENT_SECURE_FILE, as OpenStack's own clients do: in Kubernetes, the file
// with the secrets is often in another directory.
func readCloudFiles() (files cloudFiles, err error) {
	if files.clouds, err = readNamed("OS_CLIENT_CONFIG_FILE"); err != nil {
		return files, err
	}
	if files.clouds.content == nil {
		places := standardPlaces("clouds.yaml")
		if files.clouds, err = readFirst(places); err != nil {
			return files, err
		}
		if files.clouds.content == nil {
			return files, fmt.Errorf("there is no clouds.yaml: OS_CLIENT_CONFIG_FILE is not set, and there is none of %s", strings.Join(places, ", "))
		}
	}
	if files.secure, err = readNamed("OS_CLIENT_SECURE_FILE"); err != nil {
		return files, err
	}
	if files.secure.content == nil {
		beside := filepath.Join(filepath.Dir(files.clouds.path), "secure.yaml")
		if files.secure, err = readFirst([]string{beside}); err != nil {
			return files, err
		}
	}
	files.public, err = readFirst(standardPlaces("clouds-public.yaml"))
	return files, err
}

// standardPlaces are where a file is looked for; the first one counts.
func standardPlaces(name string) []string {
	var places []string
	if dir, err := os.Getwd(); err == nil {
		places = append(places, filepath.Join(dir, name))
	}
	if config := os.Getenv("XDG_CONFIG_HOME"); config != "" {
		places = append(places, filepath.Join(config, "openstack", name))
	} else if home, err := os.UserHomeDir(); err == nil {
		places = append(places, filepath.Join(home, ".config", "openstack", name))
	}
	return append(places, filepath.Join("/etc", "openstack", name))
}

// readNamed reads the file that a variable of the environment names, which must
// be there; nothing where the variable is not set.
func readNamed(variable string) (file, error) {
	path := os.Getenv(variable)
	if path == "" {
		return file{}, nil
	}
	f, err := readFirst([]string{path})
	switch {
	case err != nil:
		return f, err
	case f.content == nil:
		return f, fmt.Errorf("%s names %s, which is not there", variable, path)
	}
	return f, nil
}

// readFirst reads the first of the files that is there.
func readFirst(paths []string) (file, error) {
	for _, path := range paths {
		content, err := readFile(path)
		if err != nil {
			return file{path: path}, err
		}
		if content != nil {
			return file{path, content}, nil
		}
	}
	return file{}, nil
}

// readFile returns the content of a file, and nil where there is none.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // the operator says which file
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading a file: %w", err)
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading a file: %w", err)
	case len(content) > maxFile:
		return nil, fmt.Errorf("reading %s: it has more than %d bytes", path, maxFile)
	case content == nil:
		content = []byte{}
	}
	return content, nil
}

// entry is what the files say of one cloud, before it is put together: in
// secure.yaml, in clouds.yaml and in clouds-public.yaml, the former before the
// latter.
type entry struct {
	name   string
	files  []file // that it is in
	layers []clouds.Cloud
}

// entry finds the cloud of a name.
func (files cloudFiles) entry(name string) (entry, error) {
	all, _, err := files.clouds.decode()
	if err != nil {
		return entry{}, err
	}
	cloud, ok := all[name]
	if !ok {
		return entry{}, fmt.Errorf("%s has no cloud %q; %s", files.clouds.path, name, listNames(slices.Sorted(maps.Keys(all))))
	}
	e := entry{name: name, files: []file{files.clouds}, layers: []clouds.Cloud{cloud}}
	if all, _, err = files.secure.decode(); err != nil {
		return entry{}, err
	}
	if secure, ok := all[name]; ok {
		e.files = append(e.files, files.secure)
		e.layers = slices.Insert(e.layers, 0, secure)
	}
	profile := e.first(func(c clouds.Cloud) string { return c.Profile })
	if profile == "" {
		profile = e.first(func(c clouds.Cloud) string { return c.Cloud })
	}
	if profile == "" {
		return e, nil
	}
	if len(bytes.TrimSpace(files.public.content)) == 0 {
		return entry{}, e.wrong("its profile is %q, and there is none of %s", profile, strings.Join(standardPlaces("clouds-public.yaml"), ", "))
	}
	if _, all, err = files.public.decode(); err != nil {
		return entry{}, err
	}
	public, ok := all[profile]
	if !ok {
		return entry{}, e.wrong("its profile is %q, which is not in %s; %s", profile, files.public.path, listNames(slices.Sorted(maps.Keys(all))))
	}
	e.files = append(e.files, files.public)
	e.layers = append(e.layers, public)
	return e, nil
}

// listNames says which clouds there are.
func listNames(names []string) string {
	const most = 20
	switch {
	case len(names) == 0:
		return "it has none at all"
	case len(names) > most:
		return fmt.Sprintf("it has %q and %d more", names[:most], len(names)-most)
	}
	return fmt.Sprintf("it has %q", names)
}

// decode returns the clouds of a file, and those that are profiles of others.
// An error of the YAML library can quote the file, and with it a password: of
// its text, only the line is told.
func (f file) decode() (own, public map[string]clouds.Cloud, err error) {
	var all struct {
		Clouds map[string]clouds.Cloud `yaml:"clouds"`
		Public map[string]clouds.Cloud `yaml:"public-clouds"`
	}
	if err := yaml.Unmarshal(f.content, &all); err != nil {
		what := "is not valid YAML"
		var form *yaml.TypeError
		if errors.As(err, &form) {
			what = "does not have the form of a clouds.yaml"
		}
		if line := yamlLine.FindStringSubmatch(err.Error()); line != nil {
			what += ", in or near line " + line[1]
		}
		return nil, nil, fmt.Errorf("%s %s", f.path, what)
	}
	return all.Clouds, all.Public, nil
}

var yamlLine = regexp.MustCompile(`\bline (\d+):`)

// first returns the value that counts: the first one that is not empty.
func (e entry) first(value func(clouds.Cloud) string) string {
	for _, layer := range e.layers {
		if v := value(layer); v != "" {
			return v
		}
	}
	return ""
}

// wrong returns what is wrong with the entry, and where it is.
func (e entry) wrong(format string, args ...any) error {
	paths := make([]string, len(e.files))
	for i, f := range e.files {
		paths[i] = f.path
	}
	return fmt.Errorf("the cloud %q of %s: %w", e.name, strings.Join(paths, " and "), fmt.Errorf(format, args...))
}

// sum is another one whenever something was changed that a login depends on:
// one of the files, or a certificate or key that they name. The latter are read
// here before gophercloud reads them, so that one that is changed in between
// counts as changed the next time.
func (e entry) sum() [sha256.Size]byte {
	hash := sha256.New()
	add := func(f file) {
		_, _ = fmt.Fprintf(hash, "%q %t %d\n%s\n", f.path, f.content == nil, len(f.content), f.content)
	}
	for _, f := range e.files {
		add(f)
	}
	paths := []string{os.Getenv("OS_CACERT"), os.Getenv("OS_CERT"), os.Getenv("OS_KEY")}
	for _, layer := range e.layers {
		paths = append(paths, layer.CACertFile, layer.ClientCertFile, layer.ClientKeyFile)
	}
	for _, path := range paths {
		if path != "" {
			content, _ := readFile(withHome(path)) // gophercloud says what is wrong with it
			add(file{path, content})
		}
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

// withHome puts the home directory in place of a tilde, as gophercloud does.
func withHome(path string) string {
	rest, ok := strings.CutPrefix(path, "~/")
	home, err := os.UserHomeDir()
	if !ok || err != nil {
		return path
	}
	return filepath.Join(home, rest)
}

// secrets returns the secrets of the entry, also those that are not used.
func (e entry) secrets() (all []string) {
	for _, layer := range e.layers {
		if auth := layer.AuthInfo; auth != nil {
			all = append(all, auth.Password, auth.ApplicationCredentialSecret, auth.Token)
		}
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// parse has gophercloud put the entry together.
func (e entry) parse(files cloudFiles) (gophercloud.AuthOptions, gophercloud.EndpointOpts, *tls.Config, error) {
	fail := func(err error) (gophercloud.AuthOptions, gophercloud.EndpointOpts, *tls.Config, error) {
		return gophercloud.AuthOptions{}, gophercloud.EndpointOpts{}, nil, err
	}
	// Without any auth, gophercloud's loader would panic.
	if !slices.ContainsFunc(e.layers, func(c clouds.Cloud) bool { return c.AuthInfo != nil }) {
		return fail(e.wrong("auth is missing"))
	}
	options := []clouds.ParseOption{clouds.WithCloudName(e.name)}
	for _, f := range e.files {
		content := bytes.NewReader(f.content)
		switch f.path {
		case files.clouds.path:
			options = append(options, clouds.WithCloudsYAML(content))
		case files.secure.path:
			options = append(options, clouds.WithSecureYAML(content))
		default:
			options = append(options, clouds.WithCloudsPublicYAML(content))
		}
	}
	auth, endpoint, tlsConfig, err := clouds.Parse(options...)
	if err != nil {
		text := strings.TrimPrefix(err.Error(), "unable to compute TLS configuration: ")
		return fail(e.wrong("%s", request{secrets: e.secrets()}.clean(text)))
	}
	return auth, endpoint, tlsConfig, e.checkInterface()
}

// checkInterface refuses what gophercloud takes for "public".
func (e entry) checkInterface() error {
	name := os.Getenv("OS_INTERFACE")
	for _, value := range []func(clouds.Cloud) string{
		func(c clouds.Cloud) string { return c.EndpointType },
		func(c clouds.Cloud) string { return c.Interface },
	} {
		if name == "" {
			name = e.first(value)
		}
	}
	switch strings.TrimSuffix(name, "URL") {
	case "", "public", "internal", "admin":
		return nil
	}
	return e.wrong("interface is %.80q: it must be public, internal or admin", name)
}

// checkAuth leaves of the credentials those that auth_type names, and says what
// is missing of them.
func (e entry) checkAuth(auth *gophercloud.AuthOptions) error {
	typ := e.first(func(c clouds.Cloud) string { return string(c.AuthType) })
	application := auth.ApplicationCredentialID != "" || auth.ApplicationCredentialName != ""
	switch typ {
	case "", "password", "v3password", "token", "v3token", "v3applicationcredential":
	default:
		return e.wrong("auth_type is %.80q: it must be password, token or v3applicationcredential", typ)
	}
	// Without a type, gophercloud takes what there is, in this order.
	switch {
	case typ == "v3applicationcredential", typ == "" && auth.Password == "" && auth.TokenID == "" && application:
		auth.Password, auth.TokenID = "", ""
		return e.missing(auth,
			missing{!application, "application_credential_id is missing"},
			missing{auth.ApplicationCredentialSecret == "", "application_credential_secret is missing"},
			missing{auth.ApplicationCredentialID == "" && auth.UserID == "" && auth.Username == "", "username is missing, which an application_credential_name needs (an application_credential_id does not)"},
		)
	case typ == "token", typ == "v3token", typ == "" && auth.Password == "" && auth.TokenID != "":
		auth.Username, auth.UserID, auth.Password, auth.DomainID, auth.DomainName = "", "", "", "", ""
		auth.ApplicationCredentialID, auth.ApplicationCredentialName = "", ""
		return e.missing(auth, missing{auth.TokenID == "", "token is missing"})
	}
	auth.TokenID, auth.ApplicationCredentialID, auth.ApplicationCredentialName = "", "", ""
	if auth.UserID != "" && auth.Username == "" {
		auth.DomainID, auth.DomainName = "", "" // an ID says it all
	}
	return e.missing(auth,
		missing{auth.Password == "" && typ == "", "password is missing (or token, or application_credential_id)"},
		missing{auth.Password == "", "password is missing"},
		missing{auth.Username == "" && auth.UserID == "", "username is missing"},
		missing{auth.Username != "" && auth.DomainID == "" && auth.DomainName == "", "user_domain_name is missing"},
	)
}

// missing is what is missing where a condition holds.
type missing struct {
	it   bool
	what string
}

// missing returns the first thing that is missing, or what gophercloud has to
// say against the rest. (Its texts are constants.)
func (e entry) missing(auth *gophercloud.AuthOptions, all ...missing) error {
	for _, m := range all {
		if m.it {
			return e.wrong("%s", m.what)
		}
	}
	if s := auth.Scope; s != nil && s.ProjectName != "" && s.DomainID == "" && s.DomainName == "" {
		return e.wrong("project_domain_name is missing")
	}
	tried := *auth // gophercloud writes into it
	scope, err := tried.ToTokenV3ScopeMap()
	if err == nil {
		_, err = tried.ToTokenV3CreateMap(scope)
	}
	if err != nil {
		return e.wrong("%s", err.Error())
	}
	return nil
}

// identityURL returns the URL of the Identity API of the version 3. It is not
// looked up at auth_url: what a password is sent to is not for an answer to say.
func (e entry) identityURL(text string) (*url.URL, error) {
	if text == "" {
		return nil, e.wrong("auth_url is missing")
	}
	u, err := parseURL(text, "v3")
	if err != nil {
		return nil, e.wrong("auth_url %w", err)
	}
	if strings.HasSuffix(u.Path, "/v2.0") {
		return nil, e.wrong("auth_url ends with /v2.0: want the Identity API of the version 3")
	}
	return u.JoinPath("v3"), nil
}
