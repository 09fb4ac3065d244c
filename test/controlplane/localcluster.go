// Package controlplane starts a real Kubernetes control plane on this machine,
// for tests and for trying things out: etcd, kube-apiserver and, if asked for,
// kube-controller-manager, without nodes. They are the program that
// hack/kubernetes builds; nothing is installed and nothing is downloaded.
//
// Everything that a cluster keeps lies in a run folder of its own, and the only
// thing that it takes of the machine besides is one TCP port of 127.0.0.1.
// So any number of clusters can run at once.
//
// Nothing outlives the process that started it. The daemons end when their
// standard input does, and it is a pipe whose other end only this process has:
// the kernel closes it even after a kill -9. What is left then is the run
// folder; the next Start removes it.
//
// It works on Linux and macOS.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Options say what kind of cluster Start starts. The zero value is a cluster of
// etcd and kube-apiserver.
type Options struct {
	// Dir is the folder in which the run folder is made. By default, it is
	// build/run in the module's root.
	Dir string
	// Program is the path of the program that hack/kubernetes builds. By
	// default, it is build/bin/kubernetes in the module's root.
	Program string
	// Apply are files and folders that are applied with kubectl once the API
	// server is ready, one after the other. After each of them Start waits
	// until the API server serves the CRDs in it. A path that is not absolute
	// begins in the module's root.
	Apply []string
	// ControllerManager asks for kube-controller-manager as well, which collects
	// garbage and runs Deployments, for example. It starts after Apply, so that
	// it knows the CRDs from the beginning: otherwise the objects of a CRD are
	// garbage-collected only after up to 41 seconds.
	ControllerManager bool
	// APIServerArgs are added to the arguments of kube-apiserver.
	APIServerArgs []string
}

// Cluster is a running control plane.
type Cluster struct {
	kubeconfig string
	program    string
	options    Options
	config     *rest.Config
	folder     *runFolder
	port       *port

	mu                           sync.Mutex
	etcd, apiServer, controllers *process
	stopped                      bool
}

const (
	// startTimeout is how long a cluster may take to start. It takes about
	// three seconds on a machine that has nothing else to do.
	startTimeout = 3 * time.Minute
	// stopTimeout is how long a component may take to end before it is killed.
	stopTimeout = 20 * time.Second
	// portTries is how many ports are tried before Start gives up.
	portTries = 5
)

// Start starts a cluster and returns when it is ready to be used. The context
// is for starting it alone; the cluster runs until Stop, or until this process
// ends.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout,
		fmt.Errorf("it was not ready after %v", startTimeout))
	defer cancel()
	if err := options.complete(); err != nil {
		return nil, err
	}
	folder, err := newRunFolder(options.Dir)
	if err != nil {
		return nil, fmt.Errorf("making a run folder for the local cluster in %s: %w", options.Dir, err)
	}
	c := &Cluster{
		kubeconfig: filepath.Join(folder.path, "admin.kubeconfig"),
		program:    options.Program,
		options:    options,
		folder:     folder,
	}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the local cluster: %w", err), c.Stop())
	}
	return c, nil
}

// RunTests runs the tests of a package with a cluster, and returns their exit
// code. It is for TestMain: m is a *testing.M, and use keeps the cluster for the
// tests.
func RunTests(m interface{ Run() int }, options Options, use func(*Cluster)) (exitCode int) {
	cluster, err := Start(context.Background(), options)
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting the control plane for the tests:", err)
		return 1
	}
	defer func() { _ = cluster.Stop() }()
	use(cluster)
	return m.Run()
}

// complete fills in what is not given, and makes paths absolute.
func (o *Options) complete() error {
	root, err := ModuleRoot()
	if err != nil && (o.Dir == "" || o.Program == "") {
		return err
	}
	if o.Dir == "" {
		o.Dir = filepath.Join(root, "build", "run")
	}
	if o.Program == "" {
		o.Program = filepath.Join(root, "build", "bin", "kubernetes")
	}
	apply := make([]string, len(o.Apply))
	for i, path := range o.Apply {
		if !filepath.IsAbs(path) {
			path = filepath.Join(root, path)
		}
		apply[i] = path
	}
	o.Apply = apply
	for _, path := range []*string{&o.Dir, &o.Program} {
		if *path, err = filepath.Abs(*path); err != nil {
			return fmt.Errorf("finding the working directory: %w", err)
		}
	}
	if _, err := os.Stat(o.Program); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the program of the local cluster, %s, is not there: run `make control-plane` (the first build takes about ten minutes) or `make test`", o.Program)
	} else if err != nil {
		return fmt.Errorf("finding the program of the local cluster: %w", err)
	}
	return nil
}

// start starts the components in their order.
func (c *Cluster) start(ctx context.Context) error {
	credentials, err := writeCredentials(c.folder.path)
	if err != nil {
		return err
	}
	if c.etcd, err = c.startProcess("etcd", etcdArgs()); err != nil {
		return err
	}
	for try := 1; ; try++ {
		if err = c.choosePort(credentials); err != nil {
			return err
		}
		err = c.StartAPIServer(ctx)
		if err == nil {
			break
		}
		// The port is held for the API server, so this should not happen. In
		// case it does: another port may be free.
		if !errors.Is(err, errPortTaken) || try == portTries {
			return err
		}
		c.port.release()
	}
	for _, path := range c.options.Apply {
		if err := c.apply(ctx, path); err != nil {
			return err
		}
	}
	if c.options.ControllerManager {
		return c.startControllerManager(ctx)
	}
	return nil
}

// choosePort takes a free port for the API server, and writes the kubeconfig
// files, which have it in them.
func (c *Cluster) choosePort(credentials credentials) (err error) {
	if c.port, err = holdPort(); err != nil {
		return fmt.Errorf("finding a free port of 127.0.0.1: %w", err)
	}
	server := "https://127.0.0.1:" + strconv.Itoa(c.port.number)
	if err := credentials.writeKubeconfig(filepath.Join(c.folder.path, "controllers.kubeconfig"), server, "controllers"); err != nil {
		return err
	}
	if err := credentials.writeKubeconfig(c.kubeconfig, server, "admin"); err != nil {
		return err
	}
	c.config, err = restConfig(c.kubeconfig)
	return err
}

// apply applies a file or folder, and waits until its CRDs are served.
func (c *Cluster) apply(ctx context.Context, path string) error {
	names, err := c.Kubectl(ctx, "apply", "--server-side", "-f", path, "-o", "name")
	if err != nil {
		return fmt.Errorf("applying %s: %w", path, err)
	}
	for object := range strings.FieldsSeq(string(names)) {
		crd, ok := strings.CutPrefix(object, "customresourcedefinition.apiextensions.k8s.io/")
		if !ok {
			continue
		}
		_, err := c.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=2m", object)
		if err == nil {
			// Established is said a moment before others can discover the group.
			_, group, _ := strings.Cut(crd, ".")
			err = c.waitFor(ctx, "/apis/"+group, c.apiServer, c.etcd)
		}
		if err != nil {
			return fmt.Errorf("waiting for the API server to serve %s: %w", crd, err)
		}
	}
	return nil
}

// Kubeconfig returns the path of a kubeconfig file for an administrator, a
// member of the group system:masters.
func (c *Cluster) Kubeconfig() string {
	return c.kubeconfig
}

// Dir returns the run folder. It has a log file of each component, such as
// kube-apiserver.log.
func (c *Cluster) Dir() string {
	return c.folder.path
}

// RESTConfig returns how a client reaches the cluster as an administrator. The
// client does not throttle itself. The caller may change what it gets.
func (c *Cluster) RESTConfig() *rest.Config {
	return rest.CopyConfig(c.config)
}

// StopAPIServer takes the API server away as a crash would: it is killed, open
// connections break, and new ones are refused until StartAPIServer.
func (c *Cluster) StopAPIServer() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.apiServer.kill(); err != nil {
		return err
	}
	c.apiServer = nil
	return nil
}

// StartAPIServer brings the API server back after StopAPIServer, at the same
// address and with all its data, and returns when it is ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout,
		fmt.Errorf("it was not ready after %v", startTimeout))
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return errors.New("starting kube-apiserver: the cluster was stopped")
	}
	if c.apiServer != nil {
		return nil
	}
	apiServer, err := c.startProcess("kube-apiserver", apiServerArgs(c.port.number, c.options.APIServerArgs))
	if err != nil {
		return err
	}
	if err := c.waitForAPIServer(ctx, apiServer); err != nil {
		return errors.Join(err, apiServer.kill())
	}
	c.apiServer = apiServer
	return nil
}

// Stop stops the cluster and removes its run folder. It returns when no process
// and no file is left. To call it again does nothing.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil
	}
	c.stopped = true
	// Clients before the servers that they talk to: none waits for one that
	// is gone.
	err := c.controllers.stop(stopTimeout)
	if c.etcd != nil && c.etcd.died() != nil {
		err = errors.Join(err, c.apiServer.kill())
	}
	err = errors.Join(err, c.apiServer.stop(stopTimeout), c.etcd.stop(stopTimeout))
	if c.port != nil {
		c.port.release()
	}
	if removing := c.folder.remove(); removing != nil {
		err = errors.Join(err, fmt.Errorf("removing the run folder of the local cluster: %w", removing))
	}
	return err
}
