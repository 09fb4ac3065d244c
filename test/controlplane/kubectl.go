package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/samplecrd/network-controller/test/internal/process"
)

// Kubectl runs kubectl as an administrator and returns its standard output. An
// error contains its standard error.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) ([]byte, error) {
	output, _, err := c.KubectlWarnings(ctx, args...)
	return output, err
}

// KubectlWarnings also returns the standard error of kubectl: the warnings of the
// API server.
func (c *Cluster) KubectlWarnings(ctx context.Context, args ...string) (output, warnings []byte, err error) {
	var stderr bytes.Buffer
	command := c.options.command("kubectl", args...)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(process.Environment(c.folder.Path), "KUBECONFIG="+c.Kubeconfig())
	cmd.Stderr = &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	output, err = cmd.Output()
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		err = fmt.Errorf("running kubectl %s: %w", strings.Join(args, " "), err)
		if complaint := strings.TrimSpace(stderr.String()); complaint != "" {
			err = fmt.Errorf("%w: %s", err, complaint)
		}
	}
	return output, stderr.Bytes(), err
}

// KubeconfigFor writes a kubeconfig file with the rights of a ServiceAccount, and no
// others, and returns its path.
func (c *Cluster) KubeconfigFor(ctx context.Context, namespace, serviceAccount string) (path string, err error) {
	token, err := c.Kubectl(ctx, "create", "token", "--namespace="+namespace, serviceAccount)
	if err != nil {
		return "", fmt.Errorf("creating a token: %w", err)
	}
	config, err := clientcmd.LoadFromFile(c.Kubeconfig())
	if err != nil {
		return "", fmt.Errorf("reading the kubeconfig file of the administrator: %w", err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: strings.TrimSpace(string(token))}
	}
	path = filepath.Join(c.Dir(), serviceAccount+".kubeconfig")
	return path, clientcmd.WriteToFile(*config, path)
}
