package chaos

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/test/neutronapi"
)

// truth is what users and the operator know from what they did themselves.
type truth struct {
	mu sync.Mutex
	// retained are the Neutron networks that must exist, by the name of the Network
	// that was deleted. Only Networks with Retain had that name since.
	retained map[string]string
	// mayBeRetained are the names of Networks that ever had Retain.
	mayBeRetained map[string]bool
	// disowned are the names of Networks whose network had another description for a while.
	// One that was deleted then has left it, and it may have come back as a retained one.
	disowned  map[string]bool
	deleted   map[string]bool               // IDs of networks that the operator deleted
	tags      map[string][]string           // of the operator, by the ID of the network
	lateTags  map[string][]string           // set by requests that Neutron executed late, by the ID of the network
	foreign   map[string]neutronapi.Network // by ID: networks of others, as they were
	adoptable map[string]string             // IDs of networks to adopt, by the name of the Network
}

func newTruth() *truth {
	return &truth{
		retained: map[string]string{}, mayBeRetained: map[string]bool{}, disowned: map[string]bool{}, deleted: map[string]bool{},
		tags: map[string][]string{}, lateTags: map[string][]string{}, foreign: map[string]neutronapi.Network{}, adoptable: map[string]string{},
	}
}

// specOf returns the spec that a pick means for a Network of a name.
func (c *round) specOf(name string, pick uint64) samplecrdv1.NetworkSpec {
	choose := func(n uint64) uint64 { chosen := pick % n; pick /= n; return chosen }
	var number int
	_, _ = fmt.Sscanf(name[1:], "%d", &number)
	prefix := fmt.Sprintf("10.%d.%d.", number, choose(3))
	spec := samplecrdv1.NetworkSpec{CIDR: prefix + "0/24"}
	switch choose(3) {
	case 0:
		spec.Gateway = fmt.Sprint(prefix, 2+choose(250))
	case 1:
		if name[0] != 'w' { // a router needs a gateway
			spec.Gateway = samplecrdv1.GatewayNone
		}
	}
	for _, tag := range []string{"blue", "green"} {
		if choose(3) == 0 {
			spec.Tags = append(spec.Tags, tag)
		}
	}
	for _, server := range []string{"9.9.9.9", "1.1.1.1"} {
		if choose(3) == 0 {
			spec.DNSNameservers = append(spec.DNSNameservers, server)
		}
	}
	switch name[0] {
	case 'a':
		spec.NetworkID, spec.Tags = c.adoptable[name], nil
	case 'r':
		if choose(3) > 0 && c.has("retain") {
			spec.DeletionPolicy = samplecrdv1.DeletionPolicyRetain
		}
	case 'w':
		if choose(3) > 0 {
			spec.Router = &samplecrdv1.RouterReference{Name: c.routerName()}
		}
	}
	return spec
}

// use does what a user does. A request that is rejected because of what happens at
// the same time is no failure.
func (c *round) use(a act) {
	if a.name[0] == 'd' {
		c.useDeployment(a)
		return
	}
	switch a.verb {
	case "apply":
		c.apply(a)
	case "delete":
		c.delete(a.name)
	case "recreate":
		c.createAnew(a)
	case "flash":
		if c.createAnew(a) {
			c.pause(time.Duration(a.pick%60) * time.Millisecond)
			c.delete(a.name)
		}
	case "ambush":
		c.deleteWithFinalizer(a)
	}
}

// createAnew deletes a Network, and creates it as soon as it is gone.
func (c *round) createAnew(a act) (created bool) {
	c.delete(a.name)
	for end := time.Now().Add(3 * time.Second); !created && time.Now().Before(end) && c.calm.Err() == nil; {
		if created = c.create(a); !created {
			c.pause(time.Duration(1+a.pick%40) * time.Millisecond)
		}
	}
	return created
}

// deleteWithFinalizer creates a Network and lays the ambush.
func (c *round) deleteWithFinalizer(a act) {
	c.ambushes.Store(a.name, true)
	defer c.ambushes.Delete(a.name)
	isLaid := c.createAnew(a)
	for end := time.Now().Add(3 * time.Second); isLaid && time.Now().Before(end); {
		c.pause(5 * time.Millisecond)
		_, isLaid = c.ambushes.Load(a.name)
	}
}

// wrote records what follows from a spec that a user has written.
func (c *round) wrote(name string, spec samplecrdv1.NetworkSpec) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if spec.DeletionPolicy == samplecrdv1.DeletionPolicyRetain {
		c.mayBeRetained[name] = true
	} else {
		delete(c.retained, name)
	}
}

func (c *round) create(a act) (created bool) {
	network := &samplecrdv1.Network{Spec: c.specOf(a.name, a.pick)}
	network.Name = a.name
	_, err := c.networks().Create(c.Context(), network, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return false
	}
	if err == nil {
		c.wrote(a.name, network.Spec)
	}
	c.note(a.name, err, "create %s", describeSpec(network.Spec))
	return err == nil
}

func (c *round) apply(a act) {
	if c.create(a) {
		return
	}
	spec := c.specOf(a.name, a.pick)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		network, err := c.networks().Get(c.Context(), a.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		network.Spec = spec
		_, err = c.networks().Update(c.Context(), network, metav1.UpdateOptions{})
		return err
	})
	if err == nil {
		c.wrote(a.name, spec)
	}
	c.note(a.name, err, "edit %s", describeSpec(spec))
}

// delete deletes a Network. If it was ready, with the policy Retain, its network
// must be there in the end.
func (c *round) delete(name string) {
	network, err := c.networks().Get(c.Context(), name, metav1.GetOptions{})
	if err != nil || network.DeletionTimestamp != nil {
		return
	}
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &network.UID}}
	id := network.Status.NetworkID
	isRetained := network.Spec.DeletionPolicy == samplecrdv1.DeletionPolicyRetain && readyProblem(network) == ""
	if isRetained {
		options.Preconditions.ResourceVersion = &network.ResourceVersion
	}
	err = c.networks().Delete(c.Context(), name, options)
	if err != nil || !isRetained || id == "" {
		c.note(name, err, "delete")
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retained[name] = id
	c.journal.add(name, "user: delete; its network %s must be retained", id)
}

// note writes an act of a user into the journal.
func (c *round) note(name string, err error, format string, args ...any) {
	result := ""
	if err != nil {
		result = fmt.Sprintf(": %v", err)
	}
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		c.Errorf("%s: %v", name, err)
	}
	c.journal.add(name, "user: %s%s", fmt.Sprintf(format, args...), result)
}

func describeSpec(s samplecrdv1.NetworkSpec) string {
	text := fmt.Sprintf("%s gateway=%s tags=%v dns=%v %s", s.CIDR, s.Gateway, s.Tags, s.DNSNameservers, s.DeletionPolicy)
	if s.Router != nil {
		text += " router"
	}
	return text
}

// useDeployment creates, annotates and deletes a Deployment.
func (c *round) useDeployment(a act) {
	client := c.kube.AppsV1().Deployments(c.namespace)
	annotations := map[string]string{}
	if a.pick%4 > 0 {
		spec := c.specOf(a.name, a.pick/4)
		annotations[samplecrdv1.AnnotationCIDR] = spec.CIDR
		if spec.Gateway != "" {
			annotations[samplecrdv1.AnnotationGateway] = spec.Gateway
		}
	}
	if a.verb == "delete" || a.verb == "recreate" {
		c.note(a.name, client.Delete(c.Context(), a.name, metav1.DeleteOptions{}), "delete the Deployment")
		if a.verb == "delete" {
			return
		}
	}
	deployment, err := client.Get(c.Context(), a.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		deployment = newDeployment(a.name, annotations)
		_, err = client.Create(c.Context(), deployment, metav1.CreateOptions{})
	case err == nil:
		deployment.Annotations = annotations
		_, err = client.Update(c.Context(), deployment, metav1.UpdateOptions{})
	}
	c.note(a.name, err, "Deployment with %v", slices.Collect(maps.Values(annotations)))
	if a.verb == "flash" || a.verb == "ambush" {
		c.pause(time.Duration(a.pick%60) * time.Millisecond)
		c.note(a.name, client.Delete(c.Context(), a.name, metav1.DeleteOptions{}), "delete the Deployment")
	}
}

// newDeployment returns a Deployment without replicas.
func newDeployment(name string, annotations map[string]string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
			},
		},
	}
}

// operate does what the operator of the cloud does, who uses Neutron directly.
func (c *round) operate(a act) {
	if a.verb == "foreign" {
		c.createForeign(c.namespace+"/"+a.name, "of somebody else")
		return
	}
	network, err := c.networks().Get(c.Context(), a.name, metav1.GetOptions{})
	if err != nil || network.Status.NetworkID == "" {
		return
	}
	id, isForeign := network.Status.NetworkID, network.Spec.NetworkID != ""
	duration := time.Duration(a.pick%3000) * time.Millisecond
	switch {
	case a.verb == "delete-subnet":
		err = c.neutron.Do(http.MethodDelete, "subnets/"+network.Status.SubnetID, nil, nil)
	case a.verb == "port":
		err = c.lendPort(id, duration)
	case isForeign:
		return // its values are compared in the end
	case a.verb == "rename":
		err = c.set(id, "name", "renamed")
	case a.verb == "describe":
		err = c.describe(id, duration/2)
	case a.verb == "delete-network":
		if err = c.neutron.Do(http.MethodDelete, "networks/"+id, nil, nil); err == nil {
			c.mu.Lock()
			c.deleted[id] = true
			c.mu.Unlock()
		}
	case a.verb == "tag":
		tag := fmt.Sprint("operator-", a.pick%3)
		if err = c.neutron.Do(http.MethodPut, "networks/"+id+"/tags/"+tag, nil, nil); err == nil {
			c.mu.Lock()
			c.tags[id] = append(c.tags[id], tag)
			c.mu.Unlock()
		}
	}
	c.journal.add(a.name, "operator: %s %s: %v", a.verb, id, err)
}

// set changes a field of a network.
func (c *round) set(id, field, value string) error {
	body := map[string]any{"network": map[string]any{field: value}}
	return c.neutron.Do(http.MethodPut, "networks/"+id, body, nil)
}

// noteLateTag notes a tag that a request has set long after it was sent. If the spec had
// dropped the tag by then, it stays: see Tags in docs/operate/fields.md.
func (t *truth) noteLateTag(path string) {
	network, tag, ok := strings.Cut(strings.TrimPrefix(path, "networks/"), "/tags/")
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lateTags[network] = append(t.lateTags[network], tag)
}

// describe changes a description, and then restores it if no user has.
func (c *round) describe(id string, duration time.Duration) error {
	const other = "somebody wrote something else"
	get := func() (description string, err error) {
		var response struct{ Network neutronapi.Network }
		err = c.neutron.Do(http.MethodGet, "networks/"+id, nil, &response)
		return response.Network.Description, err
	}
	before, err := get()
	if err != nil || before == other {
		return err
	}
	owner, owned := ownerIn(before)
	if owned {
		c.mu.Lock()
		c.disowned[owner.Name] = true
		c.mu.Unlock()
	}
	if err := c.set(id, "description", other); err != nil {
		return err
	}
	c.pause(duration)
	if now, err := get(); err != nil || now != other {
		return err
	}
	c.mu.Lock()
	if owned && c.retained[owner.Name] == id { // deleted meanwhile: what comes back may be an orphan
		delete(c.retained, owner.Name)
	}
	c.mu.Unlock()
	return c.set(id, "description", before)
}

// lendPort puts a port on a network for a while.
func (c *round) lendPort(networkID string, duration time.Duration) error {
	var created struct{ Port struct{ ID string } }
	body := map[string]any{"port": map[string]any{"network_id": networkID}}
	if err := c.neutron.Do(http.MethodPost, "ports", body, &created); err != nil {
		return err
	}
	c.guests.Go(func() {
		c.pause(duration)
		if err := c.neutron.Do(http.MethodDelete, "ports/"+created.Port.ID, nil, nil); err != nil {
			c.Errorf("deleting a port: %v", err)
		}
	})
	return nil
}

// createForeign creates a network that must stay as it is.
func (c *round) createForeign(name, description string) (id string) {
	var created struct{ Network neutronapi.Network }
	body := map[string]any{"network": map[string]any{"name": name, "description": description}}
	if err := c.neutron.Do(http.MethodPost, "networks", body, &created); err != nil {
		c.Errorf("creating a network: %v", err)
		return ""
	}
	id = created.Network.ID
	if err := c.neutron.Do(http.MethodPut, "networks/"+id+"/tags/theirs", nil, nil); err != nil {
		c.Errorf("adding a tag: %v", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	created.Network.Tags = []string{"theirs"}
	c.foreign[id] = created.Network
	return id
}

// readyProblem returns why a Network is not ready, or nothing.
func readyProblem(network *samplecrdv1.Network) string {
	ready := meta.FindStatusCondition(network.Status.Conditions, samplecrdv1.ConditionReady)
	switch {
	case ready == nil:
		return "it has no condition Ready"
	case ready.Status != metav1.ConditionTrue:
		return "it is not ready: " + ready.Reason + ": " + ready.Message
	case ready.ObservedGeneration != network.Generation:
		return "its condition is about an earlier spec"
	}
	return ""
}

// pause ends early if the faults do.
func (c *round) pause(duration time.Duration) {
	select {
	case <-time.After(duration):
	case <-c.calm.Done():
	}
}
