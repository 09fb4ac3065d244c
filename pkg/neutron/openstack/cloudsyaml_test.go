package openstack_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
)

// TestCloudErrors: each problem of the files is described in one line, without a
// secret.
func TestCloudErrors(t *testing.T) {
	const user, project = "username: ours, user_domain_name: Default", "project_name: ours, project_domain_name: Default"
	auth := func(fields ...string) string {
		return clouds("auth: {" + strings.Join(append(fields, "password: "+password), ", ") + "}")
	}
	const url = "auth_url: 'http://127.0.0.1:5000'"
	good := auth(url, user, project)
	const ours, notYAML, notClouds = `cloud "ours" in DIR/clouds.yaml: `, "DIR/clouds.yaml is not valid YAML", "DIR/clouds.yaml does not have the structure of a clouds.yaml; see line "
	var many strings.Builder
	for i := range 30 {
		_, _ = fmt.Fprintf(&many, "n%d: {}, ", 10+i)
	}
	for name, test := range map[string]struct {
		clouds, secure string
		environment    map[string]string
		want           string
	}{
		"unknown name":              {clouds: "clouds: {theirs: {}, another: {}}", want: `DIR/clouds.yaml has no cloud "ours"; it has ["another" "theirs"]`},
		"no names":                  {clouds: "clouds:", want: `DIR/clouds.yaml has no cloud "ours"; it has none`},
		"only in secure.yaml":       {clouds: "clouds: {a: {}}", secure: good, want: `DIR/clouds.yaml has no cloud "ours"; it has ["a"]`},
		"many names":                {clouds: "clouds: {" + many.String() + "}", want: `DIR/clouds.yaml has no cloud "ours"; it has ["n10" "n11" `},
		"no file":                   {want: "reading the cloud configuration: open DIR/clouds.yaml: no such file or directory (see OS_CLIENT_CONFIG_FILE "},
		"no secure file":            {clouds: good, environment: map[string]string{"OS_CLIENT_SECURE_FILE": "DIR/elsewhere.yaml"}, want: "reading the cloud configuration: open DIR/elsewhere.yaml: no such file or directory"},
		"profile without its file":  {clouds: good + "    profile: vendor\n", want: ours + "clouds file not found. Search locations were: "},
		"invalid YAML":              {clouds: "clouds:\n  ours: {password: " + password + "\n" + secret + ": *" + secret, want: notYAML + "; see line "},
		"wrong tag":                 {clouds: "clouds:\n  ours: !!float " + secret, want: "DIR/clouds.yaml"},
		"a list":                    {clouds: "[" + secret + "]", want: notClouds + "1"},
		"a text for a cloud":        {clouds: "clouds:\n  ours: " + secret, want: notClouds + "2"},
		"invalid YAML in secure":    {clouds: good, secure: "clouds: {" + secret, want: "DIR/secure.yaml is not valid YAML; see line "},
		"no auth":                   {clouds: clouds("region_name: RegionOne"), want: ours + "auth is missing"},
		"nothing":                   {clouds: "clouds: {ours: }", secure: "clouds: {ours: }", want: `cloud "ours" in DIR/clouds.yaml and DIR/secure.yaml: auth is missing`},
		"no auth_url":               {clouds: auth(user, project), want: ours + "auth_url is missing"},
		"auth_url with a password":  {clouds: auth("auth_url: 'http://me:"+secret+"@k:5000'", user, project), want: ours + "auth_url holds a user name or password"},
		"auth_url of version 2":     {clouds: auth("auth_url: 'http://k:5000/v2.0/'", user, project), want: ours + "auth_url ends with /v2.0; set it to version 3"},
		"no user":                   {clouds: auth(url, project), want: ours + "Exactly one of Username and UserID must be provided"},
		"no credentials":            {clouds: clouds("auth: {" + url + ", " + user + ", " + project + "}"), want: ours + "You must provide a password to authenticate"},
		"no token":                  {clouds: clouds("auth_type: token", "auth: {"+url+", password: "+secret+"}"), want: ours + "token is missing"},
		"no application credential": {clouds: clouds("auth_type: v3applicationcredential", "auth: {"+url+", application_credential_secret: "+secret+"}"), want: ours + "application_credential_id is missing"},
		"unknown auth_type":         {clouds: clouds("auth_type: v3oidcpassword", "auth: {"+url+"}"), want: ours + `auth_type is "v3oidcpassword"; set it to password, token or v3applicationcredential`},
		"unknown interface":         {clouds: good + "    interface: pubic\n", want: ours + `interface is "pubic"; set it to public, internal or admin`},
		"override without a scheme": {clouds: good + "    network_endpoint_override: neutron:9696\n", want: ours + "network_endpoint_override must begin with http:// or https://"},
		"no CA file":                {clouds: good + "    cacert: DIR/none.pem\n", want: ours + "failed to open the CA cert file: open DIR/none.pem: no such file or directory"},
		"not a CA file":             {clouds: good, environment: map[string]string{"OS_CACERT": "DIR/clouds.yaml"}, want: ours + `failed to parse the CA Cert from "DIR/clouds.yaml"`},
	} {
		t.Run(name, func(t *testing.T) {
			f := useFiles(t)
			here := func(text string) string { return strings.ReplaceAll(text, "DIR", f.dir) }
			if test.clouds != "" {
				f.write("clouds.yaml", here(test.clouds))
			}
			if test.secure != "" {
				f.write("secure.yaml", here(test.secure))
			}
			for key, value := range test.environment {
				t.Setenv(key, here(value))
			}
			_, err := openstack.NewFromCloud("ours", openstack.Options{})
			if err == nil || !strings.HasPrefix(err.Error(), here(test.want)) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error is\n     %v\nwant %s", err, here(test.want))
			}
			noSecrets(t, err)
		})
	}
}

// TestCloudPlaces: the files are found where OpenStack's own clients find them.
func TestCloudPlaces(t *testing.T) {
	k := startOpenStack(t, embedded.Options{})
	good, bad := clouds(withPassword(k.URL, password)...), clouds(withPassword(k.URL, "wrong")...)
	const work, config, home, secure = "cwd/clouds.yaml", "config/openstack/clouds.yaml", "home/.config/openstack/clouds.yaml", "cwd/secure.yaml"
	for name, test := range map[string]struct {
		files       map[string]string
		environment map[string]string // DIR is the directory of the test
		cloud       string
		want        string // the error
	}{
		"nowhere": {cloud: "ours", want: "there is no clouds.yaml; set OS_CLIENT_CONFIG_FILE, or create one of " +
			"DIR/cwd/clouds.yaml, DIR/home/.config/openstack/clouds.yaml, /etc/openstack/clouds.yaml"},
		"no name":                             {files: map[string]string{work: good}, want: "no cloud is named; set -cloud or OS_CLOUD"},
		"in the home directory with OS_CLOUD": {files: map[string]string{home: good}, environment: map[string]string{"OS_CLOUD": "ours"}},
		"XDG_CONFIG_HOME":                     {files: map[string]string{home: bad, config: good}, environment: map[string]string{"XDG_CONFIG_HOME": "DIR/config"}, cloud: "ours"},
		"the working directory first":         {files: map[string]string{home: bad, work: good}, cloud: "ours"},
		"secure.yaml beside it":               {files: map[string]string{work: bad, secure: clouds("auth: {password: " + password + "}")}, cloud: "ours"},
		"OS_CLIENT_SECURE_FILE": {
			files:       map[string]string{work: bad, secure: "bad", "any.yaml": clouds("auth: {password: " + password + "}")},
			environment: map[string]string{"OS_CLIENT_SECURE_FILE": "DIR/any.yaml"}, cloud: "ours",
		},
		"a profile": {files: map[string]string{
			work:                     clouds("profile: vendor", "auth: {"+me+", password: "+password+"}"),
			"cwd/clouds-public.yaml": "public-clouds: {vendor: {auth: {auth_url: '" + k.URL + "'}}}",
		}, cloud: "ours"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := useFiles(t).dir
			here := func(text string) string { return strings.ReplaceAll(text, "DIR", dir) }
			for _, place := range []string{work, config, home} {
				must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, place)), 0o700))
			}
			for path, content := range test.files {
				files{t, dir}.write(path, content)
			}
			t.Chdir(filepath.Join(dir, "cwd"))
			t.Setenv("OS_CLIENT_CONFIG_FILE", "")
			t.Setenv("HOME", filepath.Join(dir, "home"))
			for key, value := range test.environment {
				t.Setenv(key, here(value))
			}
			client, err := openstack.NewFromCloud(test.cloud, openstack.Options{})
			if err == nil {
				err = requests["list networks"](t.Context(), client)
			}
			if got := fmt.Sprint(err); got != cmp.Or(here(test.want), "<nil>") {
				t.Errorf("error is\n     %s\nwant %s", got, here(test.want))
			}
		})
	}
}
