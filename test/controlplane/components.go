package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// All components run in the run folder, so that the paths below, which are
// those of files in it, are short: the path of a socket can have only about
// 100 characters.

// etcdArgs are the arguments of etcd. It listens on sockets in the run folder
// alone, so that it needs neither ports nor certificates. The advertised
// addresses have to have the form of an address, but nobody uses them.
func etcdArgs() []string {
	return []string{
		"--data-dir=etcd",
		"--listen-client-urls=unix://etcd.sock",
		"--listen-peer-urls=unix://etcd-peer.sock",
		"--advertise-client-urls=http://127.0.0.1:2379",
		"--initial-advertise-peer-urls=http://127.0.0.1:2380",
		"--initial-cluster=default=http://127.0.0.1:2380",
		"--unsafe-no-fsync", // after a power failure nobody wants the data
	}
}

// apiServerArgs are the arguments of kube-apiserver. What is not here is as the
// defaults are, in particular admission, and priority and fairness.
func apiServerArgs(port int, more []string) []string {
	return append([]string{
		"--etcd-servers=unix://etcd.sock",
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		"--permit-port-sharing", // with holdPort, which never listens
		"--tls-cert-file=apiserver.crt",
		"--tls-private-key-file=apiserver.key",
		"--client-ca-file=ca.crt",
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-signing-key-file=service-account.key",
		"--service-account-key-file=service-account.key",
		"--service-cluster-ip-range=10.96.0.0/16",
		// Nothing reaches a loopback address from a pod: the Service kubernetes
		// has no endpoint, and nobody looks for one in vain at every start.
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		// When it stops, watches end too. By default it waits a minute for them.
		"--shutdown-watch-termination-grace-period=200ms",
	}, more...)
}

// controllerManagerArgs are the arguments of kube-controller-manager.
func controllerManagerArgs() []string {
	return []string{
		"--kubeconfig=controllers.kubeconfig",
		"--root-ca-file=ca.crt",
		"--service-account-private-key-file=service-account.key",
		"--use-service-account-credentials=true", // RBAC knows the controllers by their accounts
		"--leader-elect=false",                   // there is one, and it is to survive StopAPIServer
		"--secure-port=0",                        // nobody asks for its metrics
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}
}

// errPortTaken says that another process listens at the API server's port.
var errPortTaken = errors.New("the port is taken")

// waitForAPIServer waits until the API server is ready and has the namespaces
// that every cluster has. It makes them after it says that it is ready.
func (c *Cluster) waitForAPIServer(ctx context.Context, apiServer *process) error {
	for _, path := range []string{"/readyz", "/api/v1/namespaces/kube-system", "/api/v1/namespaces/default"} {
		err := c.waitFor(ctx, path, apiServer, c.etcd)
		if errors.Is(err, errDied) && strings.Contains(apiServer.logTail(), "address already in use") {
			return fmt.Errorf("%w: %w", errPortTaken, err)
		}
		if err != nil {
			return fmt.Errorf("waiting for kube-apiserver to be ready: %w", err)
		}
	}
	return nil
}

// startControllerManager starts kube-controller-manager and waits until its
// controllers are at work: one of them makes the service account default.
func (c *Cluster) startControllerManager(ctx context.Context) error {
	var err error
	if c.controllers, err = c.startProcess("kube-controller-manager", controllerManagerArgs()); err != nil {
		return err
	}
	if err := c.waitFor(ctx, "/api/v1/namespaces/default/serviceaccounts/default", c.controllers, c.apiServer, c.etcd); err != nil {
		return fmt.Errorf("waiting for kube-controller-manager to be at work: %w", err)
	}
	return nil
}

// waitFor waits until the API server answers a GET with 200 OK. It gives up
// when one of the processes dies.
func (c *Cluster) waitFor(ctx context.Context, path string, processes ...*process) error {
	client, err := rest.HTTPClientFor(c.config)
	if err != nil {
		return fmt.Errorf("making an HTTP client: %w", err)
	}
	defer client.CloseIdleConnections()
	answer := "no answer yet"
	for {
		for _, process := range processes {
			if err := process.died(); err != nil {
				return err
			}
		}
		status, err := get(ctx, client, c.config.Host+path)
		switch {
		case err == nil && status == http.StatusOK:
			return nil
		case err == nil:
			answer = "it answers with " + strconv.Itoa(status) + " " + http.StatusText(status)
		case ctx.Err() == nil:
			answer = err.Error()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("GET %s: %s: %w%s", path, answer, context.Cause(ctx), processes[0].lastWords())
		case <-processes[0].done:
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// get sends a GET request and returns the status code of the answer.
func get(ctx context.Context, client *http.Client, url string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// Kubectl runs kubectl as an administrator and returns its standard output.
// What it writes to its standard error is in the error.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) ([]byte, error) {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, c.program, append([]string{"kubectl"}, args...)...)
	cmd.Env = append(environment(c.folder.path), "KUBECONFIG="+c.kubeconfig)
	cmd.Stderr = &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	output, err := cmd.Output()
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		said := strings.TrimSpace(stderr.String())
		if said != "" {
			said = ": " + said
		}
		return output, fmt.Errorf("running kubectl %s: %w%s", strings.Join(args, " "), err, said)
	}
	return output, nil
}
