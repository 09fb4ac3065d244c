package e2e

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// logs are the logs of all containers of the controller, including those that have
// ended.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
	seen map[string]bool // by ID of the container
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// all returns the logs so far.
func (l *logs) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// keepLogs follows the log of each container of the controller until the test ends.
func (c *cluster) keepLogs(t *testing.T) {
	t.Helper()
	c.logs = &logs{seen: map[string]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		_ = wait.PollUntilContextCancel(ctx, 250*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			pods, _ := c.pods(ctx) // none while the API server is being killed
			for _, pod := range pods {
				for _, status := range pod.Status.ContainerStatuses {
					if status.State.Running != nil && !c.logs.seen[status.ContainerID] {
						c.logs.seen[status.ContainerID] = true
						running.Go(func() { c.follow(ctx, pod.Name, status.ContainerID) })
					}
				}
			}
			return false, nil
		})
	})
	t.Cleanup(func() { cancel(); running.Wait() })
}

// follow copies the log of a container until the container ends. If the stream
// breaks, it begins again, so that lines may appear twice.
func (c *cluster) follow(ctx context.Context, pod, id string) {
	_ = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		stream, err := c.streams.CoreV1().Pods(system).GetLogs(pod, &corev1.PodLogOptions{Follow: true}).Stream(ctx)
		if err != nil {
			return c.isOver(ctx, pod, id), nil
		}
		defer func() { _ = stream.Close() }()
		_, _ = io.Copy(c.logs, stream)
		return c.isOver(ctx, pod, id), nil
	})
}

// isOver reports whether a container of a pod has ended: the pod has another one, or
// none.
func (c *cluster) isOver(ctx context.Context, name, id string) bool {
	pod, err := c.kube.CoreV1().Pods(system).Get(ctx, name, metav1.GetOptions{})
	return err != nil || len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].ContainerID != id
}

// showOnFailure logs pods, objects and the controller's log if the test fails.
func (c *cluster) showOnFailure(t *testing.T) {
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, args := range [][]string{
			{"describe", "pods", "-n", system},
			{"get", "networks,deployments,leases,events", "-A"},
		} {
			output, _, err := c.tryKubectl(context.Background(), "", args...)
			t.Logf("kubectl %v: %v\n%s", args, err, output)
		}
		const last = 20000
		text := c.logs.all()
		t.Logf("The end of the controller's log:\n%s", text[max(0, len(text)-last):])
	})
}

// wantNoSecrets fails if a secret is in a log, an event, a Network or a pod.
func (c *cluster) wantNoSecrets(t *testing.T, secrets []string) {
	t.Helper()
	places := map[string]string{
		"logs":     c.logs.all(),
		"events":   c.kubectl(t, "get", "events", "-A", "-o", "json"),
		"Networks": c.kubectl(t, "get", "networks", "-A", "-o", "json"),
		"pods":     c.kubectl(t, "get", "pods", "-n", system, "-o", "json"),
	}
	for where, text := range places {
		if len(text) < 100 {
			t.Errorf("%s are empty: %q", where, text)
		}
		for i, secret := range secrets {
			if len(secret) < 8 {
				t.Errorf("secret %d is too short to be looked for", i)
			}
			if strings.Contains(text, secret) {
				t.Errorf("secret %d of %d is in %s", i, len(secrets), where)
			}
		}
	}
}
