package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// available waits until the Deployment has this number of pods, and all of them are
// ready and have this image. An empty image matches every image.
func (c *cluster) available(t *testing.T, replicas int32, image string) {
	t.Helper()
	until(t, 2*time.Minute, "the controller is available", func(ctx context.Context) error {
		d, err := c.kube.AppsV1().Deployments(system).Get(ctx, controller, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if *d.Spec.Replicas != replicas {
			return fmt.Errorf("the Deployment has %d replicas, want %d", *d.Spec.Replicas, replicas)
		}
		if image != "" && d.Spec.Template.Spec.Containers[0].Image != image {
			return fmt.Errorf("the Deployment has the image %s, want %s", d.Spec.Template.Spec.Containers[0].Image, image)
		}
		if err := settled(d); err != nil {
			return err
		}
		pods, err := c.pods(ctx)
		if err == nil && len(pods) != int(replicas) {
			err = fmt.Errorf("there are %d pods, want %d", len(pods), replicas)
		}
		return err
	})
}

// settled returns an error if the rollout of a Deployment is not complete.
func settled(d *appsv1.Deployment) error {
	want := *d.Spec.Replicas
	if s := d.Status; s.ObservedGeneration != d.Generation || s.Replicas != want || s.UpdatedReplicas != want || s.AvailableReplicas != want {
		return fmt.Errorf("of %d replicas, there are %d, up to date %d, available %d", want, s.Replicas, s.UpdatedReplicas, s.AvailableReplicas)
	}
	return nil
}

// pods returns the controller's pods, including those that are terminating.
func (c *cluster) pods(ctx context.Context) ([]corev1.Pod, error) {
	selector := labels.Set{"app.kubernetes.io/name": controller}.String()
	list, err := c.kube.CoreV1().Pods(system).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (c *cluster) mustPods(t *testing.T) []corev1.Pod {
	t.Helper()
	pods, err := c.pods(t.Context())
	if err != nil {
		t.Fatalf("listing pods: %v", err)
	}
	return pods
}

// podsAreRestricted checks the rights of the processes if this test can see them, and
// the specs of the pods otherwise. It is not enough that the pods were admitted.
func (c *cluster) podsAreRestricted(t *testing.T) {
	namespace, err := c.kube.CoreV1().Namespaces().Get(t.Context(), system, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if level := namespace.Labels["pod-security.kubernetes.io/enforce"]; level != "restricted" {
		t.Errorf("Pod Security enforces %q in %s, want restricted", level, system)
	}
	for _, pod := range c.mustPods(t) {
		of := pod.Spec.Containers[0].SecurityContext
		if of == nil || of.ReadOnlyRootFilesystem == nil || !*of.ReadOnlyRootFilesystem {
			t.Errorf("the root filesystem of %s can be written", pod.Name)
		}
	}
	c.needsNode(t, "the users and capabilities of processes are checked")
	processes := c.node.controllers("")
	if len(processes) == 0 {
		t.Error("the controller has no process")
	}
	for _, p := range processes {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"Uid:\t65532\t65532\t65532\t65532", "Gid:\t65532\t65532\t65532\t65532", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"} {
			if !strings.Contains(string(status), want+"\n") {
				t.Errorf("the process of the controller has no %q:\n%s", want, status)
			}
		}
		mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mounts", p.pid))
		if err != nil {
			t.Fatal(err)
		}
		if root, _, _ := strings.Cut(string(mounts), "\n"); !strings.Contains(root, " / ") || !strings.Contains(root, " ro,") {
			t.Errorf("the root filesystem is not mounted read-only: %s", root)
		}
	}
}

// installWithSecret installs an overlay that needs a Secret, which is created later,
// as in docs/operate/install.md. It also installs the Role in each watched namespace.
func (c *cluster) installWithSecret(t *testing.T, overlay string, o *cloud, watched ...string) {
	t.Helper()
	begun := time.Now()
	c.kubectl(t, "apply", "-f", "crd/")
	c.kubectl(t, "apply", "-k", c.overlay(t, overlay, c.image))
	for _, namespace := range watched {
		c.kubectl(t, "apply", "-n", namespace, "-k", "deploy/watched-namespace")
	}
	path := filepath.Join(t.TempDir(), "clouds.yaml")
	if err := os.WriteFile(path, []byte(o.cloudsYAML()), 0o600); err != nil {
		t.Fatal(err)
	}
	c.kubectl(t, "create", "secret", "generic", "openstack-clouds", "-n", system, "--from-file=clouds.yaml="+path)
	c.available(t, 2, "")
	c.timed(t, "kubectl apply -f crd/ and -k deploy/overlays/"+overlay+", and the Secret, until both replicas are available", time.Since(begun))
}

// namespace creates a namespace, and deletes it when the test ends.
func (c *cluster) namespace(t *testing.T, name string) {
	t.Helper()
	c.kubectl(t, "create", "namespace", name)
	t.Cleanup(func() {
		if _, _, err := c.tryKubectl(context.Background(), "", "delete", "namespace", name, "--ignore-not-found", "--timeout=60s"); err != nil {
			t.Errorf("tidying up: %v", err)
		}
	})
}

// uninstall deletes everything as in docs/operate/maintain.md, and checks that nothing is
// left.
func (c *cluster) uninstall(t *testing.T, overlay string, o *cloud) {
	c.kubectl(t, "delete", "networks.samplecrd.k8s.io", "--all", "-A", "--timeout=90s")
	if o != nil {
		until(t, 10*time.Second, "nothing is left in Neutron", func(ctx context.Context) error {
			left, err := o.content(ctx)
			if err != nil {
				return err
			}
			if networks, subnets := len(left["networks"]), len(left["subnets"]); networks+subnets > 0 {
				return fmt.Errorf("there are %d networks and %d subnets: %v", networks, subnets, slices.Collect(maps.Values(left["networks"])))
			}
			return nil
		})
	}
	begun := time.Now()
	c.kubectl(t, "delete", "-k", c.overlay(t, overlay, c.image), "--timeout=90s")
	c.kubectl(t, "annotate", "crd", "networks.samplecrd.k8s.io", "samplecrd.k8s.io/allow-deletion=true")
	c.kubectl(t, "delete", "-f", "crd/", "--timeout=90s")
	until(t, time.Minute, "nothing is left in Kubernetes", c.nothingLeft)
	c.timed(t, "kubectl delete -k deploy/overlays/"+overlay+" and -f crd/", time.Since(begun))
}

// nothingLeft returns an error with the objects of an installation that exist.
func (c *cluster) nothingLeft(ctx context.Context) error {
	output, _, err := c.tryKubectl(ctx, "", "get", "--ignore-not-found", "-o", "name",
		"namespace/"+system, "customresourcedefinition/networks.samplecrd.k8s.io")
	if err != nil {
		return err
	}
	kinds, _, err := c.tryKubectl(ctx, "", "get", "clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings", "-o", "name")
	if err != nil {
		return err
	}
	roles, _, err := c.tryKubectl(ctx, "", "get", "roles,rolebindings,leases", "-n", "kube-system", "-o", "name")
	if err != nil {
		return err
	}
	left := strings.Fields(output)
	for _, name := range strings.Fields(kinds + roles) {
		if strings.Contains(name, "samplecrd") {
			left = append(left, name)
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("left over: %s", strings.Join(left, ", "))
	}
	return nil
}

// removedAndBack deletes only the controller, and installs it again. The networks
// stay, and then follow changes again.
func (c *cluster) removedAndBack(t *testing.T, o *cloud) {
	c.apply(t, home, "stays", "10.9.0.0/24", "10.9.0.1")
	network := c.ready(t, home, "stays", "10.9.0.1")
	before := o.mustContent(t)
	c.kubectl(t, "-n", system, "delete", "deployment", controller)
	until(t, time.Minute, "the pods are gone", func(ctx context.Context) error {
		if pods, err := c.pods(ctx); err != nil || len(pods) > 0 {
			return errors.Join(err, fmt.Errorf("there are %d", len(pods)))
		}
		return nil
	})
	o.wantUntouched(t, before)
	c.apply(t, home, "stays", "10.9.0.0/24", "10.9.0.2")
	c.kubectl(t, "apply", "-k", c.overlay(t, "openstack", c.image))
	c.available(t, 2, c.image)
	if got := c.ready(t, home, "stays", "10.9.0.2"); got.Status.NetworkID != network.Status.NetworkID || got.Status.SubnetID != network.Status.SubnetID {
		t.Errorf("the network is another one: %+v, want %+v", got.Status, network.Status)
	}
}

// namespaceDeleted deletes a watched namespace with a Network in it, against the
// advice of deploy/overlays/namespaces: the controller's Role may be deleted before
// the Network. The remedy is from there, too.
func (c *cluster) namespaceDeleted(t *testing.T, namespace string, o *cloud) {
	c.apply(t, namespace, "late", "10.2.0.0/24", "10.2.0.1")
	c.ready(t, namespace, "late", "10.2.0.1")
	c.kubectl(t, "delete", "namespace", namespace, "--wait=false")
	until(t, 30*time.Second, "the controller's Role is deleted with the namespace", func(ctx context.Context) error {
		_, err := c.kube.RbacV1().Roles(namespace).Get(ctx, controller, metav1.GetOptions{})
		return isGone(err)
	})
	c.kubectl(t, "apply", "-f", "deploy/base/rbac.yaml")
	until(t, 2*time.Minute, "the namespace is gone", func(ctx context.Context) error {
		_, err := c.kube.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		return isGone(err)
	})
	if found := o.mustContent(t).named(namespace + "/late"); found != nil {
		t.Errorf("it is still in Neutron: %v", found)
	}
	c.kubectl(t, "delete", "clusterrole", controller)
	c.kubectl(t, "delete", "clusterrolebinding", controller, controller+"-metrics")
}

// upgradeAndBack upgrades to another version, and downgrades again.
func (c *cluster) upgradeAndBack(t *testing.T, o *cloud) {
	if c.upgrade == "" {
		c.cannot(t, "an upgrade needs a second image: set UPGRADE_IMAGE")
	}
	versions := map[string]string{c.image: c.version(t)}
	for i, image := range []string{c.upgrade, c.image} {
		c.mustSurvive(t, o, fmt.Sprintf("upgrade-%d", i+1), func(another meanwhile) {
			begun := time.Now()
			c.kubectl(t, "apply", "-k", c.overlay(t, "openstack", image))
			another.apply(t)
			c.available(t, 2, image)
			c.timed(t, "rolling upgrade of two replicas to "+image, time.Since(begun))
			another.ready(t)
		})
		if known, ok := versions[image]; ok && c.version(t) != known {
			t.Errorf("the version is %s, want %s again", c.version(t), known)
		}
		versions[image] = c.version(t)
	}
	if versions[c.image] == versions[c.upgrade] {
		t.Errorf("both images have the version %s, want different ones", versions[c.image])
	}
	t.Logf("versions: %v", versions)
}

// version returns the output of -version in a pod. The image has no shell.
func (c *cluster) version(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(c.kubectl(t, "exec", "-n", system, c.mustPods(t)[0].Name, "--", "/"+controller, "-version"))
}

// isGone returns an error unless the error is that an object was not found.
func isGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Join(err, errors.New("it still exists"))
}
