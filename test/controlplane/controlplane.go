// Package controlplane starts a real Kubernetes control plane on this machine,
// for tests and for trying things out: etcd, kube-apiserver and, as an option,
// kube-controller-manager, without nodes. hack/kubernetes builds them as one
// program, or they are in a folder; nothing is installed or downloaded.
//
// A cluster keeps all its files in a run folder. Beside that, it uses one TCP port
// of 127.0.0.1. So any number of clusters can run at once.
//
// Nothing outlives the process that started a cluster: the kernel kills the components
// with it, even after kill -9. (On macOS, they outlive a kill -9.) The run folder is then
// left over; the next Start removes it.
//
// It works on Linux and macOS.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/samplecrd/network-controller/test/internal/kubernetes"
	"github.com/samplecrd/network-controller/test/internal/pki"
	"github.com/samplecrd/network-controller/test/internal/process"
	"github.com/samplecrd/network-controller/test/internal/runfolder"
)

// Options describe the cluster that Start starts. The zero value is a cluster of
// etcd and kube-apiserver.
type Options struct {
	// Dir is the folder in which the run folder is made. Defaults to build/run in
	// the module's root.
	Dir string
	// Program is the path of the program that hack/kubernetes builds. Defaults to
	// build/bin/kubernetes in the module's root.
	Program string
	// Assets is a folder with etcd, kube-apiserver and kubectl, and
	// kube-controller-manager if that is to be started. It takes the place of
	// Program. Defaults to the folder in KUBEBUILDER_ASSETS, if that has what is needed.
	Assets string
	// Apply are files and folders that kubectl applies in this order when the API
	// server is ready. After each, Start waits until the API server serves the
	// CRDs in it. Relative paths are relative to the module's root.
	Apply []string
	// ControllerManager starts kube-controller-manager as well, which collects
	// garbage and runs Deployments, for example. It starts after Apply, so that
	// it finds the CRDs at its start: otherwise the objects of a CRD are
	// garbage-collected only after up to 41 seconds.
	ControllerManager bool
	// APIServerArgs are added to the arguments of kube-apiserver.
	APIServerArgs []string
}

// Cluster is a running control plane.
type Cluster struct {
	options   Options
	folder    *runfolder.Folder
	authority *pki.Authority
	port      int // of the API server
	config    *rest.Config
	api       kubernetes.API

	mu                           sync.Mutex
	etcd, apiServer, controllers *process.Process
	stopped                      bool
}

const (
	// startTimeout limits the start of a cluster. It takes about three seconds on
	// an idle machine.
	startTimeout = 3 * time.Minute
	// stopTimeout is the time that a component gets to end before it is killed.
	stopTimeout = 20 * time.Second
	// folderPattern are the names of run folders.
	folderPattern = "cluster-*"
)

// AssetsVariable is the environment variable that names a folder with prebuilt programs of
// Kubernetes.
const AssetsVariable = "KUBEBUILDER_ASSETS"

var errNotReady = fmt.Errorf("not ready after %v", startTimeout)

// ModuleRoot returns the folder of this module's go.mod, which is the working
// directory or one above it.
func ModuleRoot() (string, error) { return runfolder.ModuleRoot() }

// Start starts a cluster and returns when it is ready. The context limits only the
// start; the cluster runs until Stop, or until this process ends.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errNotReady)
	defer cancel()
	if err := options.complete(); err != nil {
		return nil, err
	}
	folder, err := runfolder.New(ctx, options.Dir, folderPattern, os.RemoveAll)
	if err != nil {
		return nil, fmt.Errorf("making a run folder for the local cluster in %s: %w", options.Dir, err)
	}
	c := &Cluster{options: options, folder: folder}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the local cluster: %w", err), c.Stop())
	}
	return c, nil
}

// RunTests runs the tests of a package with a cluster, and returns their exit
// code. TestMain calls it: m is a *testing.M, and use receives the cluster.
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

// StartForTest starts a cluster for one test, a *testing.T, which ends with it.
func StartForTest(t interface {
	Helper()
	Context() context.Context
	Cleanup(end func())
	Fatal(args ...any)
}, options Options) *Cluster {
	t.Helper()
	cluster, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Stop() })
	return cluster
}

// complete sets the defaults, and makes paths absolute.
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
	if o.Assets == "" && !o.ControllerManager { // such folders seldom have that
		o.Assets = os.Getenv(AssetsVariable)
	}
	if o.Assets != "" {
		return o.completeAssets()
	}
	if _, err := os.Stat(o.Program); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the program of the local cluster, %s, does not exist: run `make control-plane` (the first build "+
			"takes about ten minutes) or `make test`", o.Program)
	} else if err != nil {
		return fmt.Errorf("finding the program of the local cluster: %w", err)
	}
	return nil
}

// completeAssets makes the folder's path absolute, and returns an error if the
// folder does not have all programs.
func (o *Options) completeAssets() (err error) {
	if o.Assets, err = filepath.Abs(o.Assets); err != nil {
		return fmt.Errorf("finding the working directory: %w", err)
	}
	programs := []string{"etcd", "kube-apiserver", "kubectl"}
	if o.ControllerManager {
		programs = append(programs, "kube-controller-manager")
	}
	for _, program := range programs {
		if _, err := exec.LookPath(filepath.Join(o.Assets, program)); err != nil {
			return fmt.Errorf("finding the programs of the local cluster: %w", err)
		}
	}
	return nil
}

// command returns the command line of a component or of kubectl.
func (o *Options) command(name string, args ...string) []string {
	if o.Assets != "" {
		return append([]string{filepath.Join(o.Assets, name)}, args...)
	}
	return append([]string{o.Program, name}, args...)
}

// start starts the components in their order.
func (c *Cluster) start(ctx context.Context) error {
	var err error
	if c.authority, err = kubernetes.WriteCredentials(c.folder.Path, "127.0.0.1"); err != nil {
		return err
	}
	if c.etcd, err = c.startProcess("etcd", kubernetes.EtcdArgs()); err != nil {
		return err
	}
	if err := c.choosePort(ctx); err != nil {
		return err
	}
	if err := c.StartAPIServer(ctx); err != nil {
		return err
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

// startProcess starts a component.
func (c *Cluster) startProcess(name string, args []string) (*process.Process, error) {
	return process.Start(c.folder.Path, process.Program{Name: name, Args: c.options.command(name, args...)})
}

// choosePort chooses a free port for the API server, and writes the kubeconfig
// files, which contain it.
func (c *Cluster) choosePort(ctx context.Context) error {
	ports, err := process.FreePorts(ctx, 1)
	if err != nil {
		return err
	}
	c.port = ports[0]
	server := "https://127.0.0.1:" + strconv.Itoa(c.port)
	if c.config, err = kubernetes.WriteKubeconfigs(c.authority, server); err != nil {
		return err
	}
	c.api, err = kubernetes.NewAPI(c.config)
	return err
}

// startControllerManager starts kube-controller-manager and waits until its
// controllers run: one of them makes the service account default.
func (c *Cluster) startControllerManager(ctx context.Context) error {
	var err error
	if c.controllers, err = c.startProcess("kube-controller-manager", kubernetes.ControllerManagerArgs()); err != nil {
		return err
	}
	if err := c.api.WaitFor(ctx, "/api/v1/namespaces/default/serviceaccounts/default", c.controllers, c.apiServer,
		c.etcd); err != nil {
		return fmt.Errorf("waiting for kube-controller-manager: %w", err)
	}
	return nil
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
			// A CRD is Established a moment before its group can be discovered.
			_, group, _ := strings.Cut(crd, ".")
			err = c.api.WaitFor(ctx, "/apis/"+group, c.apiServer, c.etcd)
		}
		if err != nil {
			return fmt.Errorf("waiting for the API server to serve %s: %w", crd, err)
		}
	}
	return nil
}

// Kubeconfig returns the path of the kubeconfig file of an administrator, a
// member of the group system:masters.
func (c *Cluster) Kubeconfig() string {
	return filepath.Join(c.folder.Path, kubernetes.Admin+".kubeconfig")
}

// Dir returns the run folder. It contains the log file of each component, such as
// kube-apiserver.log.
func (c *Cluster) Dir() string {
	return c.folder.Path
}

// PIDs returns the process IDs of the components by their names, such as
// kube-apiserver.
func (c *Cluster) PIDs() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	pids := map[string]int{}
	programs := map[string]*process.Process{
		"etcd": c.etcd, "kube-apiserver": c.apiServer, "kube-controller-manager": c.controllers}
	for name, p := range programs {
		if p != nil {
			pids[name] = p.PID()
		}
	}
	return pids
}

// RESTConfig returns a configuration for clients of the cluster, as an
// administrator and without client-side rate limits. The caller may change it.
func (c *Cluster) RESTConfig() *rest.Config {
	return rest.CopyConfig(c.config)
}

// Proxy returns a handler that passes requests on to the API server, as an
// administrator. If the API server does not respond, it closes the connection.
func (c *Cluster) Proxy() (*httputil.ReverseProxy, error) {
	transport, err := rest.TransportFor(c.config)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(c.config.Host)
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{
		Transport:     transport,
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1, // at once, for watches
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}, nil
}

// StopAPIServer stops the API server as a crash would: it is killed, open
// connections break, and new ones are refused until StartAPIServer.
func (c *Cluster) StopAPIServer() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.apiServer.Kill()
	c.apiServer = nil
	return nil
}

// StartAPIServer starts the API server after StopAPIServer, at the same address
// and with all its data, and returns when it is ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errNotReady)
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return errors.New("starting kube-apiserver: the cluster was stopped")
	}
	if c.apiServer != nil {
		return nil
	}
	args := kubernetes.APIServerArgs(c.port, append([]string{
		"--bind-address=127.0.0.1",
		"--authorization-mode=RBAC",
		// Pods would not reach a loopback address. Without endpoints for the Service
		// kubernetes, the API server does not look for them at every start.
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
	}, c.options.APIServerArgs...)...)
	apiServer, err := c.startProcess("kube-apiserver", args)
	if err != nil {
		return err
	}
	if err := c.waitForAPIServer(ctx, apiServer); err != nil {
		apiServer.Kill()
		return err
	}
	c.apiServer = apiServer
	return nil
}

// waitForAPIServer waits until the API server is ready and has the namespaces
// that every cluster has. It makes them after it reports that it is ready.
func (c *Cluster) waitForAPIServer(ctx context.Context, apiServer *process.Process) error {
	for _, path := range []string{"/readyz", "/api/v1/namespaces/kube-system", "/api/v1/namespaces/default"} {
		if err := c.api.WaitFor(ctx, path, apiServer, c.etcd); err != nil {
			return fmt.Errorf("waiting for kube-apiserver: %w", err)
		}
	}
	return nil
}

// Stop stops the cluster and removes its run folder. It returns when no process
// and no file is left. Further calls do nothing.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil
	}
	c.stopped = true
	// Clients stop before their servers, so that none waits for a server that has
	// ended.
	c.controllers.Stop(stopTimeout)
	if c.etcd != nil && c.etcd.Ended() {
		c.apiServer.Kill()
	}
	c.apiServer.Stop(stopTimeout)
	c.etcd.Stop(stopTimeout)
	if err := c.folder.Remove(); err != nil {
		return fmt.Errorf("removing the run folder of the local cluster: %w", err)
	}
	return nil
}
