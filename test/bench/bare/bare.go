// Package bare sends requests to the API server with as little work as Go allows:
// net/http and encoding/json, no client-go caches and no typed objects. The
// benchmark itself uses it, and so does the roofline.
package bare

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Client is a client of an API server.
type Client struct {
	http *http.Client
	host string
}

// New returns a client for a configuration.
func New(config *rest.Config) (*Client, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("creating an HTTP client: %w", err)
	}
	return &Client{client, config.Host}, nil
}

// FromKubeconfig returns a client for a kubeconfig file.
func FromKubeconfig(path string) (*Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return New(config)
}

// The content types of bodies.
const (
	JSON       = "application/json"
	MergePatch = "application/merge-patch+json"
)

// StatusError is a response of the API server that is an error.
type StatusError struct {
	Code int
	Text string
}

func (e *StatusError) Error() string { return fmt.Sprintf("status %d: %s", e.Code, e.Text) }

// IsNotFound reports whether the API server has no such object.
func IsNotFound(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Code == http.StatusNotFound
}

// Do sends a request, and decodes the response into a value that may be nil.
func (c *Client) Do(ctx context.Context, method, path, contentType, body string, into any) error {
	response, err := c.send(ctx, method, path, contentType, body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer func() { _ = response.Body.Close() }()
	if into != nil {
		if err := json.NewDecoder(response.Body).Decode(into); err != nil {
			return fmt.Errorf("%s %s: decoding the response: %w", method, path, err)
		}
	}
	_, err = io.Copy(io.Discard, response.Body) // so that the connection is used again
	return err
}

// Text returns the response to a GET as text.
func (c *Client) Text(ctx context.Context, path string) ([]byte, error) {
	response, err := c.send(ctx, http.MethodGet, path, "", "")
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", path, err)
	}
	defer func() { _ = response.Body.Close() }()
	return io.ReadAll(response.Body)
}

func (c *Client) send(ctx context.Context, method, path, contentType, body string) (*http.Response, error) {
	var reader io.Reader
	if body != "" {
		reader = bytes.NewReader([]byte(body))
	}
	request, err := http.NewRequestWithContext(ctx, method, c.host+path, reader)
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusBadRequest {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		_ = response.Body.Close()
		return nil, &StatusError{response.StatusCode, string(text)}
	}
	return response, nil
}

// Network is the part of a Network that the benchmark reads.
type Network struct {
	Metadata struct {
		Namespace         string            `json:"namespace"`
		Name              string            `json:"name"`
		Generation        int64             `json:"generation"`
		ResourceVersion   string            `json:"resourceVersion"`
		DeletionTimestamp string            `json:"deletionTimestamp"`
		Annotations       map[string]string `json:"annotations"`
		Finalizers        []string          `json:"finalizers"`
	} `json:"metadata"`
	Spec struct {
		CIDR    string `json:"cidr"`
		Gateway string `json:"gateway"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64  `json:"observedGeneration"`
		NetworkID          string `json:"networkID"`
		SubnetID           string `json:"subnetID"`
		Conditions         []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

// Key returns the namespace and name.
func (n *Network) Key() string { return n.Metadata.Namespace + "/" + n.Metadata.Name }

// IsReady reports whether the Network is ready with its current spec.
func (n *Network) IsReady() bool {
	for _, condition := range n.Status.Conditions {
		if condition.Type == "Ready" {
			return condition.Status == "True" && n.Status.ObservedGeneration == n.Metadata.Generation
		}
	}
	return false
}

// Path returns the path of a Network, or of all in a namespace, or, without a
// namespace, of all.
func Path(group, namespace, name string) string {
	path := "/apis/" + group + "/v1/"
	if namespace != "" {
		path += "namespaces/" + namespace + "/"
	}
	path += "networks"
	if name != "" {
		path += "/" + name
	}
	return path
}
