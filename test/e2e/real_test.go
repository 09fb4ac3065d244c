package e2e

import (
	"bytes"
	"cmp"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/yaml"
)

// realCloud is the part of test/openstack's clouds.yaml and secure.yaml that this
// test reads.
type realCloud struct {
	Clouds map[string]struct {
		Auth struct {
			AuthURL     string `json:"auth_url"`
			Username    string
			Password    string
			ProjectName string `json:"project_name"`
		}
	}
}

// startReal lets pods reach the Keystone and the Neutron of test/openstack, which
// listen on loopback.
func startReal(t *testing.T, address string) *cloud {
	t.Helper()
	clouds := os.Getenv("OS_CLIENT_CONFIG_FILE")
	public := readCloud(t, clouds).Clouds["ours"].Auth
	secret := readCloud(t, filepath.Join(filepath.Dir(clouds), "secure.yaml")).Clouds["ours"].Auth
	inside := os.Getenv("NEUTRON_KEYSTONE_ENDPOINT")
	if inside == "" || public.AuthURL == "" || secret.Password == "" {
		t.Fatalf("the environment of test/openstack has no Neutron or no login: %s", clouds)
	}
	neutron := startProxy(t, address, inside, func(*http.Response) error { return nil })
	// In the catalog, Neutron must have the address for pods.
	given := new(tokens)
	keystone := startProxy(t, address, public.AuthURL, func(r *http.Response) error {
		given.add(r.Header.Get("X-Subject-Token"))
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		_ = r.Body.Close()
		body = bytes.ReplaceAll(body, []byte(inside), []byte(neutron))
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Header.Set("Content-Length", strconv.Itoa(len(body)))
		return nil
	})
	return &cloud{
		keystone: keystone + "/v3", neutron: neutron, user: public.Username, project: cmp.Or(public.ProjectName, public.Username),
		password: secret.Password, secrets: func() []string { return append(given.all(), secret.Password) },
	}
}

func readCloud(t *testing.T, path string) (c realCloud) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(text, &c)
	}
	if err != nil {
		t.Fatalf("reading %s: %v", filepath.Base(path), err)
	}
	return c
}

// startProxy starts a proxy for the server at a URL, and returns the proxy's URL.
func startProxy(t *testing.T, address, to string, change func(*http.Response) error) string {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatalf("listening at an address that pods can reach: %v", err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host },
		ModifyResponse: change,
	}
	server := &http.Server{Handler: proxy, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Close
	t.Cleanup(func() { _ = server.Close() })
	return "http://" + listener.Addr().String()
}
