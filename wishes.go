package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
)

// What a Deployment asks for, and what is to be done about it: pure decisions,
// which deployments.go carries out.

// wish is what a Deployment asks for. At most one of spec and problem is set;
// neither where it asks for nothing.
type wish struct {
	spec *samplecrdv1.NetworkSpec
	// problem is what is wrong with its annotations, and the cure.
	problem string
	// byDefault is true where the Deployment says nothing of a network itself.
	byDefault bool
}

// specFor returns the spec that a Network is to have. Whether its network stays
// when it goes is for those to say who use it.
func (w wish) specFor(network *samplecrdv1.Network) samplecrdv1.NetworkSpec {
	spec := *w.spec
	spec.DeletionPolicy = network.Spec.DeletionPolicy
	return spec
}

// wishOf reads the annotations of a Deployment, which is not nil.
func (o DeploymentOptions) wishOf(deployment *metav1.PartialObjectMetadata) wish {
	says := ourAnnotations(deployment)
	switch {
	case len(says) == 0 && o.Which == AllDeployments:
		return asking(deployment, samplecrdv1.NetworkSpec{SubnetPool: subnetPool(o.DefaultSubnetPool)}, true)
	case len(says) == 0:
		return wish{byDefault: true}
	}
	spec, problem := readAnnotations(says)
	switch {
	case problem != "":
		return wish{problem: problem}
	case spec == nil:
		return wish{}
	}
	return asking(deployment, *spec, false)
}

// ourAnnotations returns what a Deployment says to us; nil for nothing.
func ourAnnotations(deployment *metav1.PartialObjectMetadata) map[string]string {
	var says map[string]string
	for name, value := range deployment.Annotations {
		if strings.HasPrefix(name, samplecrdv1.GroupName+"/") {
			if says == nil {
				says = map[string]string{}
			}
			says[name] = value
		}
	}
	return says
}

// asking is the wish for a Network, unless there can be none of that kind.
func asking(deployment *metav1.PartialObjectMetadata, spec samplecrdv1.NetworkSpec, byDefault bool) wish {
	if invalid := plan.DesiredFor(neutron.Owner{}, spec).Invalid; invalid != "" {
		return wish{problem: fmt.Sprintf("The annotations ask for a Network that there cannot be: %s.", strings.TrimSuffix(asAnnotations.Replace(invalid), "."))}
	}
	if len(deployment.Name) > samplecrdv1.MaxNameLength {
		return wish{problem: fmt.Sprintf("A Network has the name of its Deployment, and that can have at most %d characters: give the Deployment a shorter one.", samplecrdv1.MaxNameLength)}
	}
	return wish{spec: &spec, byDefault: byDefault}
}

// asAnnotations puts what is said of a spec into the words of those who wrote
// annotations.
var asAnnotations = strings.NewReplacer(
	"spec.cidr", samplecrdv1.AnnotationCIDR,
	"spec.gateway", samplecrdv1.AnnotationGateway,
	"spec.subnetPool.prefixLength", samplecrdv1.AnnotationPrefixLength,
	"spec.subnetPool must have either a name or an id", samplecrdv1.AnnotationSubnetPool+" must be the name or the ID of a subnet pool",
	"spec must have either cidr, such as 192.168.0.0/16, or subnetPool", samplecrdv1.AnnotationCIDR+" must be a range, such as 192.168.0.0/16",
	"with subnetPool", "with "+samplecrdv1.AnnotationSubnetPool,
)

// readAnnotations returns the spec that annotations ask for; nil where they ask
// for none; or what is wrong with them.
func readAnnotations(says map[string]string) (spec *samplecrdv1.NetworkSpec, problem string) {
	known := []string{samplecrdv1.AnnotationCIDR, samplecrdv1.AnnotationGateway, samplecrdv1.AnnotationSubnetPool, samplecrdv1.AnnotationPrefixLength, samplecrdv1.AnnotationNetwork}
	for _, name := range slices.Sorted(maps.Keys(says)) {
		if !slices.Contains(known, name) {
			return nil, fmt.Sprintf("There is no annotation %s: take one of %s, or remove it.", name, strings.Join(known, ", "))
		}
	}
	has := func(name string) bool { _, ok := says[name]; return ok }
	switch {
	case has(samplecrdv1.AnnotationNetwork) && says[samplecrdv1.AnnotationNetwork] != samplecrdv1.NetworkNone:
		return nil, fmt.Sprintf("The annotation %s is %q: the only value it can have is %q, for no network.", samplecrdv1.AnnotationNetwork, says[samplecrdv1.AnnotationNetwork], samplecrdv1.NetworkNone)
	case has(samplecrdv1.AnnotationNetwork) && len(says) > 1:
		return nil, fmt.Sprintf("The annotation %s says that there is to be no network, and others say which one: remove it, or them.", samplecrdv1.AnnotationNetwork)
	case has(samplecrdv1.AnnotationNetwork):
		return nil, ""
	case has(samplecrdv1.AnnotationCIDR) == has(samplecrdv1.AnnotationSubnetPool):
		return nil, fmt.Sprintf("The annotations must have either %s, such as 192.168.0.0/16, or %s, with the name or ID of a subnet pool.", samplecrdv1.AnnotationCIDR, samplecrdv1.AnnotationSubnetPool)
	case has(samplecrdv1.AnnotationPrefixLength) && has(samplecrdv1.AnnotationCIDR):
		return nil, fmt.Sprintf("The annotation %s is for %s: %s says it itself.", samplecrdv1.AnnotationPrefixLength, samplecrdv1.AnnotationSubnetPool, samplecrdv1.AnnotationCIDR)
	}
	spec = &samplecrdv1.NetworkSpec{CIDR: says[samplecrdv1.AnnotationCIDR], Gateway: says[samplecrdv1.AnnotationGateway]}
	if has(samplecrdv1.AnnotationSubnetPool) {
		spec.SubnetPool = subnetPool(says[samplecrdv1.AnnotationSubnetPool])
	}
	if has(samplecrdv1.AnnotationPrefixLength) {
		length, err := strconv.ParseInt(says[samplecrdv1.AnnotationPrefixLength], 10, 32)
		if err != nil || length < 1 || length > 126 {
			return nil, fmt.Sprintf("The annotation %s is %q: it must be a number from 1 to 126, such as 24.", samplecrdv1.AnnotationPrefixLength, says[samplecrdv1.AnnotationPrefixLength])
		}
		spec.SubnetPool.PrefixLength = int32(length)
	}
	return spec, ""
}

// subnetPool returns the reference to a subnet pool by its name or ID. What is
// written as an ID is one.
func subnetPool(nameOrID string) *samplecrdv1.SubnetPoolReference {
	parts := strings.Split(nameOrID, "-")
	lengths := make([]int, len(parts))
	for i, part := range parts {
		lengths[i] = len(part)
	}
	if slices.Equal(lengths, []int{8, 4, 4, 4, 12}) && strings.Trim(strings.ToLower(nameOrID), "0123456789abcdef-") == "" {
		return &samplecrdv1.SubnetPoolReference{ID: nameOrID}
	}
	return &samplecrdv1.SubnetPoolReference{Name: nameOrID}
}

// relation is what a Network is to the Deployment of its name.
type relation string

const (
	none    relation = "none"    // there is no Network
	owned   relation = "owned"   // it was made for this Deployment
	orphan  relation = "orphan"  // it was made for a Deployment of this name, which has left it behind
	earlier relation = "earlier" // it belongs to an earlier Deployment of this name, and goes as that did
	foreign relation = "foreign" // it is somebody else's
)

func relationOf(network *samplecrdv1.Network, deployment *metav1.PartialObjectMetadata) relation {
	if network == nil {
		return none
	}
	owner := metav1.GetControllerOf(network)
	switch {
	case owner != nil && owner.UID == deployment.UID:
		return owned
	case owner != nil && owner.Kind == "Deployment" && owner.Name == deployment.Name && strings.HasPrefix(owner.APIVersion, appsv1.GroupName+"/"):
		return earlier
	case owner == nil && network.Labels[labelManagedBy] == controllerName && network.Labels[samplecrdv1.LabelDeployment] == deployment.Name:
		return orphan
	}
	return foreign
}

// belongsOtherwise reports whether something has changed that says to which
// Deployment a Network belongs.
func belongsOtherwise(before, after *samplecrdv1.Network) bool {
	return !equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) ||
		slices.ContainsFunc(ourLabels, func(name string) bool { return before.Labels[name] != after.Labels[name] })
}

// verdict is what to do about the Network of a Deployment.
type verdict string

const (
	leave  verdict = "leave"
	create verdict = "create"
	change verdict = "change" // to what is asked for, its owner and labels included
	remove verdict = "remove"
	tell   verdict = "tell" // the Deployment of a problem
)

// decide returns what to do about the Network of a Deployment, which is not nil.
//
//	Deployment       Network                                      verdict
//	---------------  -------------------------------------------  -------
//	is being deleted any                                          leave: it is garbage-collected
//	any              is being deleted                             leave: its end brings the key again
//	has a problem    any                                          tell
//	asks for one     none                                         create
//	asks for one     owned, as asked for                          leave
//	asks for one     owned, otherwise; orphan                     change
//	gets one unasked any that is there, but one that it had asked
//	                 for before                                   leave: the flags may have changed, not the Deployment
//	asks for one     earlier                                      leave: it is garbage-collected
//	asks for one     foreign                                      tell
//	asks for none    owned                                        remove
//	asks for none    owned, made while all were to have one, and
//	                 the Deployment says nothing of it            leave: the flags have changed, not the Deployment
//	asks for none    any other, or none                           leave
func decide(deployment *metav1.PartialObjectMetadata, asked wish, network *samplecrdv1.Network) (verdict, string) {
	is := relationOf(network, deployment)
	hadAskedBefore := is == owned && network.Labels[samplecrdv1.LabelSource] == samplecrdv1.SourceAnnotation
	switch {
	case deployment.DeletionTimestamp != nil, network != nil && network.DeletionTimestamp != nil:
		return leave, ""
	case asked.problem != "":
		return tell, asked.problem
	case asked.byDefault && is != none && !hadAskedBefore:
		return leave, ""
	case asked.spec == nil && is == owned:
		return remove, ""
	case asked.spec == nil, is == earlier:
		return leave, ""
	case is == none:
		return create, ""
	case is == foreign:
		return tell, fmt.Sprintf("The Network %s/%s was not made for this Deployment, and is not touched: delete or rename one of them, or say that the Deployment is to have none (%s: %s).",
			network.Namespace, network.Name, samplecrdv1.AnnotationNetwork, samplecrdv1.NetworkNone)
	case is == owned && equality.Semantic.DeepEqual(network.Spec, asked.specFor(network)) && hasLabels(network, labelsOf(deployment, asked)):
		return leave, ""
	}
	return change, ""
}

// ourLabels are those that labelsOf gives a value.
var ourLabels = []string{labelManagedBy, samplecrdv1.LabelDeployment, samplecrdv1.LabelSource}

const labelManagedBy = "app.kubernetes.io/managed-by"

func labelsOf(deployment *metav1.PartialObjectMetadata, asked wish) map[string]string {
	source := samplecrdv1.SourceAnnotation
	if asked.byDefault {
		source = samplecrdv1.SourceDefault
	}
	return map[string]string{
		labelManagedBy:              controllerName,
		samplecrdv1.LabelDeployment: deployment.Name,
		samplecrdv1.LabelSource:     source,
	}
}

func hasLabels(network *samplecrdv1.Network, labels map[string]string) bool {
	for name, value := range labels {
		if network.Labels[name] != value {
			return false
		}
	}
	return true
}

// specText says in a few words what a spec asks for.
func specText(spec samplecrdv1.NetworkSpec) string {
	text := spec.CIDR
	if pool := spec.SubnetPool; pool != nil {
		text = "a range from subnet pool " + pool.Name + pool.ID
		if pool.PrefixLength > 0 {
			text = fmt.Sprintf("a /%d from subnet pool %s", pool.PrefixLength, pool.Name+pool.ID)
		}
	}
	if spec.Gateway != "" {
		text += ", gateway " + spec.Gateway
	}
	return text
}
