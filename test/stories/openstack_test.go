package stories

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/yaml"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
	"github.com/samplecrd/network-controller/test/controlplane"
)

// realOpenStack is a Keystone and a Neutron, which the controller finds in
// clouds.yaml, and a Kubernetes for one test.
type realOpenStack struct {
	*story
	ours neutron.Client // not through the controller
}

func newRealOpenStack(t *testing.T) *realOpenStack {
	t.Helper()
	if os.Getenv("OPENSTACK_CLOUDS") == "" {
		t.Skip("OPENSTACK_CLOUDS is not set: `make test-openstack` starts an OpenStack and sets it")
	}
	cluster := controlplane.StartForTest(t, controlplane.Options{Apply: []string{"crd"}})
	s := &story{TB: t, cluster: cluster, clusterName: "test-" + rand.String(8), namespace: "default"}
	return &realOpenStack{story: s, ours: connectCloud(t, "ours")}
}

func connectCloud(t *testing.T, name string) neutron.Client {
	t.Helper()
	client, err := openstack.NewFromCloud(name, openstack.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// start runs the controller for a cloud, at the highest log level.
func (o *realOpenStack) start(cloud string, flags ...string) *controller {
	o.Helper()
	c := newController(o, "OS_CLOUD="+cloud, "OS_CLIENT_CONFIG_FILE="+os.Getenv("OS_CLIENT_CONFIG_FILE"))
	o.controllers = map[string]*controller{"first": c}
	o.Cleanup(func() {
		_ = c.end(syscall.SIGKILL)
		o.checkNoSecrets(c.log())
	})
	if err := c.start(append([]string{
		"-kubeconfig=" + o.cluster.Kubeconfig(), "-cluster-name=" + o.clusterName, "-resync-period=1s",
		"-metrics-bind-address=127.0.0.1:0", "-v=9",
	}, flags...)...); err != nil {
		o.Fatal(err)
	}
	return c
}

func (o *realOpenStack) mustKubectl(args ...string) string {
	o.Helper()
	output, err := o.kubectl(args)
	if err != nil {
		o.Fatal(err)
	}
	return output
}

// checkNeutron compares the network and subnet that the project has for the
// Network of the example.
func (o *realOpenStack) checkNeutron(want string) {
	o.Helper()
	filter := neutron.NetworkFilter{Name: o.namespace + "/example-network"}
	networks, err := o.ours.Networks(o.Context(), filter)
	if err != nil {
		o.Fatal(err)
	}
	var got []string
	for _, network := range networks {
		subnets, err := o.ours.Subnets(o.Context(), neutron.SubnetFilter{NetworkID: network.ID})
		if err != nil {
			o.Fatal(err)
		}
		for _, subnet := range subnets {
			got = append(got, network.Name+" "+subnet.CIDR.String()+" "+subnet.Gateway.String())
		}
	}
	if got := strings.Join(got, ", "); got != want {
		o.Errorf("Neutron has %q, want %q", got, want)
	}
}

// checkNoSecrets checks that the log has no passwords and tokens.
func (o *realOpenStack) checkNoSecrets(log string) {
	o.Helper()
	secure, err := os.ReadFile(filepath.Join(filepath.Dir(os.Getenv("OS_CLIENT_CONFIG_FILE")), "secure.yaml"))
	if err != nil {
		o.Fatal(err)
	}
	secrets := regexp.MustCompile(`(?m)(?:password|secret): *"?([^"\s]+)`).FindAllStringSubmatch(string(secure), -1)
	if len(secrets) == 0 {
		o.Error("secure.yaml has no secrets to look for")
	}
	for _, secret := range secrets {
		if strings.Contains(log, secret[1]) {
			o.Error("a secret is in the log")
		}
	}
	if regexp.MustCompile(`gAAAAA[\w-]{20,}`).MatchString(log) {
		o.Error("a token is in the log")
	}
}

// TestRealWalkthrough creates, edits and deletes a Network, as a user of a real
// OpenStack, with each way to log in. The network of another tenant with the same
// name and owner marker stays; and tokens that live for eight seconds are renewed
// without a failure.
func TestRealWalkthrough(t *testing.T) {
	for _, cloud := range []string{"ours", "ours-app", "short"} {
		t.Run(cloud, func(t *testing.T) {
			o := newRealOpenStack(t)
			neighbour := connectCloud(t, "other-tenant")
			same := neutron.NewNetwork{Name: "default/example-network", Description: o.owner("example-network").Marker()}
			theirs, err := neighbour.CreateNetwork(t.Context(), same)
			if err != nil {
				t.Fatal(err)
			}
			c := o.start(cloud)

			o.mustKubectl("apply", "-f", "../../example/example-network.yaml")
			o.mustKubectl("wait", "--for=condition=Ready", "network/example-network", "--timeout=60s")
			o.checkNeutron("default/example-network 192.168.0.0/16 192.168.0.1")
			if cloud == "short" {
				o.waitForLists(10) // one or two seconds each
			}
			o.mustKubectl("patch", "network", "example-network", "--type=merge",
				"--patch", `{"spec":{"cidr":"192.168.1.0/16","gateway":"192.168.1.1"}}`)
			o.mustKubectl("wait", "--for=condition=Ready", "network/example-network", "--timeout=60s") // of the new spec
			o.checkNeutron("default/example-network 192.168.0.0/16 192.168.1.1")
			o.mustKubectl("delete", "network", "example-network", "--timeout=60s")
			o.checkNeutron("")

			if strings.Contains(c.log(), "unavailable") {
				t.Errorf("something was unavailable:\n%s", c.log())
			}
			if err := neighbour.DeleteNetwork(t.Context(), theirs.ID, theirs.Revision); err != nil {
				t.Errorf("the other tenant's network is not as it was: %v", err)
			}
		})
	}
}

// waitForLists waits until the controller has refreshed the cache of Neutron's
// state so many times, which a metric counts.
func (o *realOpenStack) waitForLists(number int) {
	o.Helper()
	lists := regexp.MustCompile(`(?m)^samplecrd_neutron_cache_refreshes_total\{result="success"\} (\d+)$`)
	err := o.eventually(func() error {
		text, err := o.controllers["first"].get("metrics")
		if err != nil {
			return err
		}
		match := lists.FindStringSubmatch(text)
		if match == nil {
			return errors.New("the metrics have no number of refreshes")
		}
		if count, err := strconv.Atoi(match[1]); err != nil || count < number {
			return fmt.Errorf("the controller has refreshed its cache %s times, want %d", match[1], number)
		}
		return nil
	})
	if err != nil {
		o.Fatal(err)
	}
}

// TestRealKeystoneAway suspends Keystone: the condition reports it, and the Network
// is created when Keystone continues.
func TestRealKeystoneAway(t *testing.T) {
	o := newRealOpenStack(t)
	keystone, err := strconv.Atoi(os.Getenv("OPENSTACK_KEYSTONE_PID"))
	if err != nil {
		t.Skip("OPENSTACK_KEYSTONE_PID is not set")
	}
	o.start("ours", "-neutron-timeout=5s")
	if err := syscall.Kill(keystone, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(keystone, syscall.SIGCONT) })

	o.mustKubectl("apply", "-f", "../../example/example-network.yaml")
	o.mustKubectl("wait", "--for=condition=Ready=false", "network/example-network", "--timeout=120s")
	reason := o.mustKubectl("get", "network", "example-network", "-o", `jsonpath={.status.conditions[0].reason}`)
	if reason != "NeutronUnavailable" {
		t.Errorf("the reason is %q", reason)
	}
	if err := syscall.Kill(keystone, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	o.mustKubectl("wait", "--for=condition=Ready", "network/example-network", "--timeout=180s")
	o.checkNeutron("default/example-network 192.168.0.0/16 192.168.0.1")
	o.mustKubectl("delete", "network", "example-network", "--timeout=60s")
	o.checkNeutron("")
}

// cloudConfig is a cloud in a clouds.yaml.
type cloudConfig struct {
	Region string `json:"region_name"`
	Auth   struct {
		URL             string `json:"auth_url"`
		User            string `json:"username"`
		Password        string `json:"password"`
		Project         string `json:"project_name"`
		UserDomainID    string `json:"user_domain_id"`
		ProjectDomainID string `json:"project_domain_id"`
	} `json:"auth"`
}

// readCloud returns a cloud in a clouds.yaml, with its password in the secure.yaml beside it.
func readCloud(t *testing.T, file, name string) (c cloudConfig) {
	t.Helper()
	for _, file := range []string{file, filepath.Join(filepath.Dir(file), "secure.yaml")} {
		text, err := os.ReadFile(file)
		var all struct{ Clouds map[string]json.RawMessage }
		if err := errors.Join(err, yaml.Unmarshal(text, &all)); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(all.Clouds[name], &c); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// secret returns the contents of a Secret for the cloud.
func (c *cloudConfig) secret(namespace string) string {
	text, _ := json.Marshal(map[string]any{"clouds": map[string]any{"openstack": c}})
	secret, _ := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "stringData": map[string]string{"clouds.yaml": string(text)},
		"metadata": map[string]string{"namespace": namespace, "name": "samplecrd-cloud"},
	})
	return string(secret)
}

// connect returns a client for the cloud, with the password that it has at each login.
func (c *cloudConfig) connect(t *testing.T) neutron.Client {
	t.Helper()
	addresses, err := openstack.ParseAddresses(c.urls(t))
	if err != nil {
		t.Fatal(err)
	}
	client, err := openstack.NewFromCredentials(func(context.Context, bool) (*openstack.Credentials, error) {
		text, _ := json.Marshal(map[string]any{"clouds": map[string]any{"openstack": c}})
		return openstack.ParseCredentials(openstack.Source{Name: t.Name(), CloudsYAML: text, Addresses: addresses})
	}, openstack.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// login is the answer of Keystone to a login.
type login struct {
	Token struct {
		User    struct{ ID string }
		Catalog []struct {
			Type      string
			Endpoints []struct{ URL string }
		}
	}
	token string
}

// logIn logs in at Keystone, as the controller does it.
func (c *cloudConfig) logIn() (l login, err error) {
	type object = map[string]any
	domain := object{"id": c.Auth.UserDomainID}
	header, err := post(c.Auth.URL+"/auth/tokens", "", object{"auth": object{
		"identity": object{"methods": []string{"password"}, "password": object{
			"user": object{"name": c.Auth.User, "password": c.Auth.Password, "domain": domain},
		}},
		"scope": object{"project": object{"name": c.Auth.Project, "domain": domain}},
	}}, &l)
	l.token = header.Get("X-Subject-Token")
	return l, err
}

// urls returns the addresses of Keystone and of Neutron: those on this machine have to be
// allowed one by one.
func (c *cloudConfig) urls(t *testing.T) []string {
	t.Helper()
	l, err := c.logIn()
	if err != nil {
		t.Fatal(err)
	}
	urls := []string{c.Auth.URL}
	for _, service := range l.Token.Catalog {
		if service.Type == "network" {
			urls = append(urls, service.Endpoints[0].URL)
		}
	}
	return urls
}

// setPassword changes the password of the user in Keystone, which revokes the user's tokens.
func (c *cloudConfig) setPassword(password string) error {
	l, err := c.logIn()
	if err != nil {
		return err
	}
	change := map[string]map[string]string{"user": {"password": password, "original_password": c.Auth.Password}}
	if _, err := post(c.Auth.URL+"/users/"+l.Token.User.ID+"/password", l.token, change, nil); err != nil {
		return err
	}
	c.Auth.Password = password
	return nil
}

// post sends a request to Keystone.
func post(url, token string, body, answer any) (http.Header, error) {
	text, _ := json.Marshal(body)
	request, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Auth-Token", token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s: %s", url, response.Status)
	}
	if answer != nil {
		err = json.NewDecoder(response.Body).Decode(answer)
	}
	return response.Header, err
}

// TestRealClouds makes the networks of two namespaces with one controller in two projects,
// each with the Secret of its namespace. A password changes meanwhile. The second project is in
// another OpenStack if there is one:
//
//	build/bin/openstack exec -- bash -c 'OPENSTACK_SECOND_CLIENT_CONFIG_FILE=$OS_CLIENT_CONFIG_FILE \
//		build/bin/openstack exec -- go test ./test/stories -run TestRealClouds'
func TestRealClouds(t *testing.T) {
	o := newRealOpenStack(t)
	file := os.Getenv("OS_CLIENT_CONFIG_FILE")
	red := readCloud(t, file, "ours")
	blue := readCloud(t, cmp.Or(os.Getenv("OPENSTACK_SECOND_CLIENT_CONFIG_FILE"), file), "other-tenant")
	tenants := map[string]*cloudConfig{"red": &red, "blue": &blue}
	defer func() {
		if t.Failed() {
			t.Log(o.mustKubectl("describe", "networks", "-A"))
		}
	}()
	c := o.start("", "-allowed-auth-urls="+strings.Join(append(red.urls(t), blue.urls(t)...), ","))
	clients := map[string]neutron.Client{}
	for namespace, cloud := range tenants {
		clients[namespace] = cloud.connect(t)
		o.mustKubectl("create", "namespace", namespace)
		o.mustKubectl("apply", "-n", namespace, "-f", "../../example/example-network.yaml")
		o.mustKubectl("wait", "-n", namespace, "network/example-network", "--timeout=60s",
			"--for=jsonpath={.status.conditions[0].reason}=NoCloud")
	}
	for namespace, cloud := range tenants {
		o.applyIn(namespace, cloud.secret(namespace))
	}
	o.wantInOwnProjects(clients, "192.168.0.1")

	before := blue.Auth.Password
	t.Cleanup(func() {
		if err := blue.setPassword(before); err != nil {
			t.Error(err)
		}
	})
	if err := blue.setPassword("another-" + before); err != nil {
		t.Fatal(err)
	}
	o.applyIn("blue", blue.secret("blue"))
	for namespace := range tenants {
		o.mustKubectl("patch", "-n", namespace, "network", "example-network", "--type=merge",
			"--patch", `{"spec":{"gateway":"192.168.0.9"}}`)
	}
	o.wantInOwnProjects(clients, "192.168.0.9")

	for namespace := range tenants {
		o.mustKubectl("delete", "-n", namespace, "network", "example-network", "--timeout=60s")
	}
	o.wantInOwnProjects(clients, "")
	if strings.Contains(c.log(), before) {
		t.Error("a password is in the log")
	}
}

// applyIn applies a manifest that is not in a file of the repository.
func (o *realOpenStack) applyIn(namespace, manifest string) {
	o.Helper()
	file := filepath.Join(o.TempDir(), "manifest.json")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		o.Fatal(err)
	}
	o.mustKubectl("apply", "-n", namespace, "-f", file)
}

// wantInOwnProjects checks that each project has the network of its namespace, with this
// gateway, and none of another namespace. Without a gateway, it must have none.
func (o *realOpenStack) wantInOwnProjects(clients map[string]neutron.Client, gateway string) {
	o.Helper()
	for namespace, client := range clients {
		if gateway != "" {
			o.mustKubectl("wait", "-n", namespace, "--for=condition=Ready", "network/example-network", "--timeout=90s")
		}
		for other := range clients {
			want := ""
			if other == namespace {
				want = gateway
			}
			if got := o.gateways(client, other+"/example-network"); got != want {
				o.Errorf("the project of %s has networks of %s with the gateways %q, want %q", namespace, other, got, want)
			}
		}
	}
}

// gateways returns those of the subnets of the networks with a name.
func (o *realOpenStack) gateways(client neutron.Client, name string) string {
	o.Helper()
	var all []string
	networks, err := client.Networks(o.Context(), neutron.NetworkFilter{Name: name})
	for _, network := range networks {
		subnets, failed := client.Subnets(o.Context(), neutron.SubnetFilter{NetworkID: network.ID})
		err = errors.Join(err, failed)
		for _, subnet := range subnets {
			all = append(all, subnet.Gateway.String())
		}
	}
	if err != nil {
		o.Fatal(err)
	}
	return strings.Join(all, " ")
}
