package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/samplecrd/network-controller/test/internal/programs"
)

// api asks the API server whether things are there yet.
type api struct {
	client *http.Client
}

// newAPI returns one that asks as an administrator.
func newAPI(dir string) (api, error) {
	config, err := os.ReadFile(filepath.Join(dir, adminName+".kubeconfig"))
	if err != nil {
		return api{}, fmt.Errorf("reading a kubeconfig file: %w", err)
	}
	var admin struct {
		Clusters []struct {
			Cluster struct {
				Authority []byte `json:"certificate-authority-data"`
			}
		}
		Users []struct {
			User struct {
				Certificate []byte `json:"client-certificate-data"`
				Key         []byte `json:"client-key-data"`
			}
		}
	}
	if err := json.Unmarshal(config, &admin); err != nil {
		return api{}, fmt.Errorf("reading a kubeconfig file: %w", err)
	}
	pair, err := tls.X509KeyPair(admin.Users[0].User.Certificate, admin.Users[0].User.Key)
	if err != nil {
		return api{}, fmt.Errorf("reading a kubeconfig file: %w", err)
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(admin.Clusters[0].Cluster.Authority)
	return api{client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: authorities, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13},
	}}}, nil
}

// condition is something that can be waited for: that a path is there, with
// an object for which is returns true.
type condition struct {
	path string
	is   func(body []byte) bool
}

var (
	ready             = condition{path: "/readyz"}
	hasServiceAccount = condition{path: "/api/v1/namespaces/default/serviceaccounts/default"}
	nodeIsReady       = condition{path: "/api/v1/nodes/" + nodeName, is: isReady}
)

// isReady says whether a node is ready, and has nothing that keeps pods away.
func isReady(body []byte) bool {
	var node struct {
		Spec   struct{ Taints []any }
		Status struct {
			Conditions []struct{ Type, Status string }
		}
	}
	return json.Unmarshal(body, &node) == nil && len(node.Spec.Taints) == 0 &&
		slices.Contains(node.Status.Conditions, struct{ Type, Status string }{"Ready", "True"})
}

// waitFor waits for a condition, which a program is to bring about.
func (a api) waitFor(ctx context.Context, name string, condition condition) error {
	answer := errors.New("no answer")
	err := programs.Poll(ctx, pollPeriod, func(ctx context.Context) (bool, error) {
		var body []byte
		if body, answer = a.get(ctx, condition.path); answer != nil {
			return false, nil //nolint:nilerr // it is told when there is no more time
		}
		if condition.is != nil && !condition.is(body) {
			answer = fmt.Errorf("it is not ready: %s", body)
			return false, nil
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w (GET %s: %w)", name, err, condition.path, answer)
	}
	return nil
}

func (a api) get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+nodeAddress+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := a.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(response.Status)
	}
	return io.ReadAll(response.Body)
}
