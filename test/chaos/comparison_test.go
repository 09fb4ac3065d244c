package chaos

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/test/neutronapi"
)

// world is Kubernetes and Neutron at one moment.
type world struct {
	networks map[string]samplecrdv1.Network
	byID     map[string]neutronapi.Network
	byOwner  map[string][]neutronapi.Network // those with an owner marker of this cluster
	subnets  []neutronapi.Subnet
	routers  map[string][]string // IDs of the attached routers, by the network's ID
}

func (c *round) look() (w world, err error) {
	ctx := context.WithoutCancel(c.Context()) // it also cleans up
	list, err := c.networks().List(ctx, metav1.ListOptions{})
	if err != nil {
		return w, err
	}
	w.networks = map[string]samplecrdv1.Network{}
	for _, network := range list.Items {
		w.networks[network.Name] = network
	}
	all, err := c.neutron.State()
	if err != nil {
		return w, err
	}
	w.byID, w.byOwner = map[string]neutronapi.Network{}, map[string][]neutronapi.Network{}
	w.routers, w.subnets = map[string][]string{}, all.Subnets
	for _, network := range all.Networks {
		w.byID[network.ID] = network
		if owner, ok := ownerIn(network.Description); ok && owner.Cluster == c.namespace {
			w.byOwner[owner.Name] = append(w.byOwner[owner.Name], network)
		}
	}
	for _, port := range all.Ports {
		if port.IsOfRouter() {
			w.routers[port.NetworkID] = append(w.routers[port.NetworkID], port.Device)
		}
	}
	return w, nil
}

// differences compares Kubernetes with Neutron, and both with what users and the
// operator know. It returns problems by the name of the Network.
func (c *round) differences() (map[string]string, error) {
	w, err := c.look()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	problems := map[string]string{}
	report := func(name, format string, args ...any) {
		if problems[name] == "" {
			problems[name] = fmt.Sprintf(format, args...)
		}
	}
	for name, network := range w.networks {
		if problem := c.problemOf(w, &network); problem != "" {
			report(name, "%s", problem)
		}
	}
	for name, owned := range w.byOwner {
		_, exists := w.networks[name]
		switch {
		case !exists && slices.ContainsFunc(owned, func(n neutronapi.Network) bool { return !isRetained(n.Description) }):
			report(name, "it does not exist, and Neutron has %+v", owned)
		case !exists && !c.mayBeRetained[name]:
			report(name, "no user has retained it, and Neutron has %+v", owned)
		case len(owned) > 1:
			report(name, "Neutron has it more than once: %+v", owned)
		}
	}
	for name, id := range c.retained {
		network, found := w.byID[id]
		owner, _ := ownerIn(network.Description)
		if !c.deleted[id] && (!found || owner.Name != name) {
			report(name, "its network %s was retained, and Neutron has %+v", id, network)
		}
	}
	for _, subnet := range w.subnets {
		owner, ok := ownerIn(subnet.Description)
		_, exists := w.networks[owner.Name]
		if ok && owner.Cluster == c.namespace && !exists && !isRetained(w.byID[subnet.NetworkID].Description) {
			report(owner.Name, "it does not exist, and Neutron has the subnet %+v", subnet)
		}
	}
	for id, want := range c.foreign {
		got := w.byID[id]
		if fmt.Sprint(got) != fmt.Sprint(want) {
			report("", "a network of somebody else is %+v, and was %+v", got, want)
		}
	}
	for id, tags := range c.tags {
		network, found := w.byID[id]
		owner, _ := ownerIn(network.Description)
		for _, tag := range tags {
			if found && !slices.Contains(network.Tags, tag) {
				report(owner.Name, "the tag %s of the operator is not on %+v", tag, network)
			}
		}
	}
	for name := range c.disowned {
		owned := w.byOwner[name]
		if len(owned) > 1 && slices.ContainsFunc(owned, func(n neutronapi.Network) bool { return isRetained(n.Description) }) {
			delete(problems, name) // a person has to choose
		}
	}
	return problems, c.compareDeployments(w, report)
}

// problemOf returns what is wrong with a Network that exists, or nothing.
func (c *round) problemOf(w world, network *samplecrdv1.Network) string {
	if network.DeletionTimestamp != nil {
		return "it is not deleted yet: " + readyProblem(network)
	}
	if problem := readyProblem(network); problem != "" {
		return problem
	}
	spec, id := network.Spec, network.Status.NetworkID
	actual, found := w.byID[id]
	owned := w.byOwner[network.Name]
	if spec.NetworkID == "" {
		if len(owned) != 1 || owned[0].ID != id || isRetained(actual.Description) ||
			actual.Name != c.namespace+"/"+network.Name {
			return fmt.Sprintf("its status names %s, and Neutron has %+v", id, owned)
		}
		want := slices.Concat(spec.Tags, c.tags[id])
		isWrong := func(tag string) bool {
			return !slices.Contains(want, tag) && !slices.Contains(c.lateTags[id], tag) && !c.mayBeRetained[network.Name]
		}
		if missing := without(want, actual.Tags); len(missing) > 0 || slices.ContainsFunc(actual.Tags, isWrong) {
			return fmt.Sprintf("its tags are %v, want %v", actual.Tags, want) // a retained network keeps those of its last spec
		}
		if retained := c.retained[network.Name]; retained != "" && retained != id && !c.deleted[retained] {
			return fmt.Sprintf("it has the network %s, and not the retained one %s", id, retained)
		}
	} else if !found || id != spec.NetworkID || len(owned) > 0 {
		return fmt.Sprintf("it adopts %s, its status names %q, and Neutron has %+v and %+v",
			spec.NetworkID, id, actual, owned)
	}
	subnets := slices.DeleteFunc(slices.Clone(w.subnets), func(s neutronapi.Subnet) bool {
		owner, _ := ownerIn(s.Description)
		return s.NetworkID != id && owner.Name != network.Name
	})
	if len(subnets) != 1 || subnets[0].ID != network.Status.SubnetID || subnets[0].NetworkID != id ||
		subnets[0].CIDR != spec.CIDR || subnets[0].Gateway != gatewayOf(spec) ||
		!slices.Equal(subnets[0].DNS, spec.DNSNameservers) {
		return fmt.Sprintf("it has %s, and Neutron has the subnets %+v", describeSpec(spec), subnets)
	}
	if attached := w.routers[id]; len(attached) > 1 || (len(attached) == 1) != (spec.Router != nil) {
		return fmt.Sprintf("it is attached to the routers %v, want %v", attached, spec.Router)
	}
	return ""
}

// without returns the strings that are not among others.
func without(all, others []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(others, s) })
}

func gatewayOf(spec samplecrdv1.NetworkSpec) string {
	if spec.Gateway == samplecrdv1.GatewayNone {
		return ""
	}
	return cmp.Or(spec.Gateway, strings.TrimSuffix(spec.CIDR, "0/24")+"1")
}

// compareDeployments reports Deployments whose Networks differ from their
// annotations.
func (c *round) compareDeployments(w world, report func(name, format string, args ...any)) error {
	list, err := c.kube.AppsV1().Deployments(c.namespace).List(c.Context(), metav1.ListOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	want := map[string]string{}
	for _, deployment := range list.Items {
		if cidr := deployment.Annotations[samplecrdv1.AnnotationCIDR]; cidr != "" {
			want[deployment.Name] = cidr + " " + deployment.Annotations[samplecrdv1.AnnotationGateway]
		}
	}
	got := map[string]string{}
	for name, network := range w.networks {
		if name[0] == 'd' {
			got[name] = network.Spec.CIDR + " " + network.Spec.Gateway
		}
	}
	for name := range maps.Keys(want) {
		if got[name] != want[name] {
			report(name, "its Deployment requests %q, and the Network has %q", want[name], got[name])
		}
	}
	for name := range got {
		if want[name] == "" {
			report(name, "no Deployment requests it, and the Network exists")
		}
	}
	return nil
}
