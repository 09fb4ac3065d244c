// Package kubernetes has what every control plane of the tests consists of: the
// arguments of its components, their credentials, and a client that waits for
// them.
//
// The components run in a run folder, so that the paths in their arguments are
// short: the path of a socket has at most about 100 characters.
package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/samplecrd/network-controller/test/internal/pki"
	"github.com/samplecrd/network-controller/test/internal/process"
)

// ServiceNetwork has the addresses of Services. ServiceAddress is that of the
// Service kubernetes.
const (
	ServiceNetwork = "10.96.0.0/16"
	ServiceAddress = "10.96.0.1"
)

// frontProxy is the folder with the credentials with which the API server passes requests
// on to aggregated API servers. They have an authority of their own: who has a
// certificate of it can act as any user there.
const frontProxy = "front-proxy"

// Admin is the name of the kubeconfig file of a member of system:masters.
const Admin = "admin"

// WriteCredentials writes into a folder the files that the arguments below name,
// for an API server at these addresses. The kubeconfig files need a URL and are
// written by WriteKubeconfigs.
func WriteCredentials(dir string, addresses ...string) (*pki.Authority, error) {
	authority, err := pki.New(dir)
	if err != nil {
		return nil, err
	}
	frontProxy := filepath.Join(dir, frontProxy)
	if err := os.Mkdir(frontProxy, 0o700); err != nil {
		return nil, fmt.Errorf("writing certificates: %w", err)
	}
	aggregation, err := pki.New(frontProxy)
	if err != nil {
		return nil, err
	}
	return authority, errors.Join(
		authority.Server("apiserver", append(addresses, ServiceAddress)...),
		authority.Key("service-account"),
		aggregation.Client("client", "front-proxy-client"),
	)
}

// WriteKubeconfigs writes the kubeconfig files of the administrator and of
// kube-controller-manager, and returns how an administrator reaches the API
// server, without client-side rate limits.
func WriteKubeconfigs(authority *pki.Authority, server string) (*rest.Config, error) {
	if _, err := authority.Kubeconfig("controllers", server, "system:kube-controller-manager"); err != nil {
		return nil, err
	}
	path, err := authority.Kubeconfig(Admin, server, "admin", "system:masters")
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	config.QPS = -1
	return config, nil
}

// EtcdArgs returns the arguments of etcd. It listens only on sockets in the run
// folder, so that it needs neither ports nor certificates. The advertised
// addresses must be URLs with a host, but no client uses them.
func EtcdArgs() []string {
	return []string{
		"--data-dir=etcd",
		"--listen-client-urls=unix://etcd.sock",
		"--listen-peer-urls=unix://etcd-peer.sock",
		"--advertise-client-urls=http://127.0.0.1:2379",
		"--initial-advertise-peer-urls=http://127.0.0.1:2380",
		"--initial-cluster=default=http://127.0.0.1:2380",
		"--unsafe-no-fsync", // the data is not needed after a power failure
	}
}

// APIServerArgs returns the arguments of kube-apiserver, and more of them. What is
// not here has its default, in particular admission, priority and fairness.
func APIServerArgs(port int, more ...string) []string {
	return append([]string{
		"--etcd-servers=unix://etcd.sock",
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=apiserver.crt",
		"--tls-private-key-file=apiserver.key",
		"--client-ca-file=ca.crt",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-signing-key-file=service-account.key",
		"--service-account-key-file=service-account.key",
		"--service-cluster-ip-range=" + ServiceNetwork,
		"--proxy-client-cert-file=" + frontProxy + "/client.crt",
		"--proxy-client-key-file=" + frontProxy + "/client.key",
		"--requestheader-client-ca-file=" + frontProxy + "/ca.crt",
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		// When it stops, it ends watches. By default, it waits a minute for them.
		"--shutdown-watch-termination-grace-period=200ms",
	}, more...)
}

// ControllerManagerArgs returns the arguments of kube-controller-manager.
func ControllerManagerArgs() []string {
	return []string{
		"--kubeconfig=controllers.kubeconfig",
		"--root-ca-file=ca.crt",
		"--service-account-private-key-file=service-account.key",
		"--use-service-account-credentials=true", // the RBAC rules are for the controllers' accounts
		"--leader-elect=false",                   // it is the only one, and survives a restart of the API server
		"--secure-port=0",                        // its metrics are not read
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}
}

// API reads from an API server.
type API struct{ client *discovery.DiscoveryClient }

// NewAPI returns a reader.
func NewAPI(config *rest.Config) (API, error) {
	config = rest.CopyConfig(config)
	config.Timeout = 10 * time.Second
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return API{}, fmt.Errorf("making a client: %w", err)
	}
	return API{client}, nil
}

// Get returns what the API server serves at a path.
func (a API) Get(ctx context.Context, path string) ([]byte, error) {
	body, err := a.client.RESTClient().Get().AbsPath(path).MaxRetries(0).Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", path, err)
	}
	return body, nil
}

// WaitFor waits until the API server serves something at a path. It gives up when
// one of the processes ends.
func (a API) WaitFor(ctx context.Context, path string, needed ...*process.Process) error {
	return process.WaitUntil(ctx, func(ctx context.Context) error {
		_, err := a.Get(ctx, path)
		return err
	}, needed...)
}
