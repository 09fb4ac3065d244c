package deployments

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
)

// request is what a Deployment requests. At most one of spec and problem is set. If
// neither is, the Deployment requests no Network.
type request struct {
	spec *samplecrdv1.NetworkSpec
	// problem says what is wrong with the annotations, and the cure.
	problem string
	// byDefault is true if the Deployment has no annotation for the controller.
	byDefault bool
}

// specFor returns the spec that a Network should have. Its deletionPolicy belongs
// to its users.
func (r request) specFor(network *samplecrdv1.Network) samplecrdv1.NetworkSpec {
	spec := *r.spec
	spec.DeletionPolicy = network.Spec.DeletionPolicy
	return spec
}

// requestOf reads the annotations of a Deployment, which must not be nil.
func (o Options) requestOf(deployment *metav1.PartialObjectMetadata) request {
	annotations := ourAnnotations(deployment.Annotations)
	spec, problem, byDefault := (*samplecrdv1.NetworkSpec)(nil), "", len(annotations) == 0
	switch {
	case !byDefault:
		spec, problem = readAnnotations(annotations)
	case o.Which == All:
		spec = &samplecrdv1.NetworkSpec{SubnetPool: subnetPool(o.DefaultSubnetPool)}
	}
	switch {
	case problem != "":
		return request{problem: problem}
	case spec == nil:
		return request{byDefault: byDefault}
	case len(deployment.Name) > samplecrdv1.MaxNameLength:
		return request{problem: fmt.Sprintf("A Network has the name of its Deployment and at most %d characters: "+
			"give the Deployment a shorter name.", samplecrdv1.MaxNameLength)}
	}
	if invalid := plan.DesiredFor(neutron.Owner{}, *spec).Invalid; invalid != "" {
		// An annotation has the name of the field that it sets.
		invalid = strings.ReplaceAll(invalid, "spec.", samplecrdv1.GroupName+"/")
		return request{problem: "The annotations request an invalid Network: " + invalid + "."}
	}
	return request{spec: spec, byDefault: byDefault}
}

// readAnnotations returns the spec that annotations request, or nil if they request
// no Network, or what is wrong with them.
func readAnnotations(annotations map[string]string) (spec *samplecrdv1.NetworkSpec, problem string) {
	for name := range annotations {
		if !slices.Contains(knownAnnotations, name) {
			return nil, fmt.Sprintf("The annotation %s is unknown: use one of %s, or remove it.",
				name, strings.Join(knownAnnotations, ", "))
		}
	}
	cidr, pool := annotations[samplecrdv1.AnnotationCIDR], annotations[samplecrdv1.AnnotationSubnetPool]
	length, hasLength := annotations[samplecrdv1.AnnotationPrefixLength]
	none, declines := annotations[samplecrdv1.AnnotationNetwork]
	switch {
	case declines && none != samplecrdv1.NetworkNone:
		return nil, fmt.Sprintf("The annotation %s is %q: the only valid value is %q, which requests no Network.",
			samplecrdv1.AnnotationNetwork, none, samplecrdv1.NetworkNone)
	case declines && len(annotations) > 1:
		return nil, fmt.Sprintf("The annotation %s requests no Network, but other annotations describe one: "+
			"remove one or the other.", samplecrdv1.AnnotationNetwork)
	case declines:
		return nil, ""
	case (cidr == "") == (pool == ""):
		return nil, fmt.Sprintf("The annotations must contain either %s, such as 192.168.0.0/16, or %s, "+
			"the name or ID of a subnet pool.", samplecrdv1.AnnotationCIDR, samplecrdv1.AnnotationSubnetPool)
	case hasLength && cidr != "":
		return nil, fmt.Sprintf("The annotation %s applies only to %s: the range in %s contains its own prefix length.",
			samplecrdv1.AnnotationPrefixLength, samplecrdv1.AnnotationSubnetPool, samplecrdv1.AnnotationCIDR)
	case cidr != "":
		return &samplecrdv1.NetworkSpec{CIDR: cidr, Gateway: annotations[samplecrdv1.AnnotationGateway]}, ""
	}
	spec = &samplecrdv1.NetworkSpec{Gateway: annotations[samplecrdv1.AnnotationGateway], SubnetPool: subnetPool(pool)}
	if bits, err := strconv.ParseInt(length, 10, 32); err == nil && bits >= 1 && bits <= 126 {
		spec.SubnetPool.PrefixLength = int32(bits)
	} else if hasLength {
		return nil, fmt.Sprintf("The annotation %s is %q: it must be a number from 1 to 126, such as 24.",
			samplecrdv1.AnnotationPrefixLength, length)
	}
	return spec, ""
}

// subnetPool returns the reference to a subnet pool by its name or ID. A UUID is an
// ID.
func subnetPool(nameOrID string) *samplecrdv1.SubnetPoolReference {
	if isUUID(nameOrID) {
		return &samplecrdv1.SubnetPoolReference{ID: nameOrID}
	}
	return &samplecrdv1.SubnetPoolReference{Name: nameOrID}
}

var isUUID = regexp.MustCompile("^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$").MatchString

// relation is how a Network relates to the Deployment of the same name.
type relation string

const (
	missing relation = "missing" // there is no Network
	owned   relation = "owned"   // created for this Deployment
	orphan  relation = "orphan"  // created for a Deployment of this name, which was deleted without it
	earlier relation = "earlier" // belongs to an earlier Deployment of this name, and is deleted with it
	foreign relation = "foreign" // not created for a Deployment of this name
)

func relationOf(network *samplecrdv1.Network, deployment *metav1.PartialObjectMetadata) relation {
	if network == nil {
		return missing
	}
	owner := metav1.GetControllerOf(network)
	switch {
	case owner != nil && owner.UID == deployment.UID:
		return owned
	case owner != nil && owner.Kind == "Deployment" && owner.Name == deployment.Name &&
		strings.HasPrefix(owner.APIVersion, appsv1.GroupName+"/"):
		return earlier
	case owner == nil && network.Labels[samplecrdv1.LabelManagedBy] == manager &&
		network.Labels[samplecrdv1.LabelDeployment] == deployment.Name:
		return orphan
	}
	return foreign
}

// requestChanged reports whether an update of a Deployment may change what it requests.
func requestChanged(before, after *metav1.PartialObjectMetadata) bool {
	return before.UID != after.UID || !before.DeletionTimestamp.Equal(after.DeletionTimestamp) ||
		!maps.Equal(before.Annotations, after.Annotations)
}

// networkChanged reports whether an update of a Network may need a correction.
func networkChanged(before, after *samplecrdv1.Network) bool {
	return before.UID != after.UID || before.Generation != after.Generation || ownershipChanged(before, after)
}

// ownershipChanged reports whether an update of a Network changed which Deployment
// it belongs to.
func ownershipChanged(before, after *samplecrdv1.Network) bool {
	return !equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) ||
		slices.ContainsFunc(ourLabels, func(name string) bool { return before.Labels[name] != after.Labels[name] })
}

// action is what to do about the Network of a Deployment.
type action string

const (
	keep       action = "keep"
	create     action = "create"
	update     action = "update" // the spec, the owner and the labels
	remove     action = "remove"
	reportOnly action = "report" // the problem, to the Deployment
)

// decide returns what to do about the Network of a Deployment, which must not be
// nil, and the problem to report.
//
//	Deployment       Network                                   action
//	---------------  ----------------------------------------  ------
//	being deleted    any                                       keep: it is garbage-collected
//	any              being deleted                             keep: its end is an event
//	invalid request  any                                       report
//	requests one     missing                                   create
//	requests one     owned, as requested                       keep
//	requests one     owned, different; orphan                  update
//	by default       exists, and was not requested before      keep: perhaps the flags changed
//	requests one     earlier                                   keep: it is garbage-collected
//	requests one     foreign                                   report
//	requests none    owned                                     remove
//	requests none,   owned, and created by default             keep: the flags changed
//	by default
//	requests none    any other, or missing                     keep
func decide(deployment *metav1.PartialObjectMetadata, requested request,
	network *samplecrdv1.Network) (action, string) {
	is := relationOf(network, deployment)
	requestedBefore := is == owned && network.Labels[samplecrdv1.LabelSource] == samplecrdv1.SourceAnnotation
	switch {
	case deployment.DeletionTimestamp != nil, network != nil && network.DeletionTimestamp != nil:
		return keep, ""
	case requested.problem != "":
		return reportOnly, requested.problem
	case requested.byDefault && is != missing && !requestedBefore:
		return keep, ""
	case requested.spec == nil && is == owned:
		return remove, ""
	case requested.spec == nil, is == earlier:
		return keep, ""
	case is == missing:
		return create, ""
	case is == foreign:
		return reportOnly, fmt.Sprintf("The Network %s/%s was not created for this Deployment and is left unchanged: "+
			"delete the Network, rename the Deployment, or opt out with the annotation %s: %s.",
			network.Namespace, network.Name, samplecrdv1.AnnotationNetwork, samplecrdv1.NetworkNone)
	case is == owned && equality.Semantic.DeepEqual(network.Spec, requested.specFor(network)) &&
		labels.SelectorFromSet(labelsFor(deployment, requested)).Matches(labels.Set(network.Labels)):
		return keep, ""
	}
	return update, ""
}

// manager is the field manager and the label of what this controller writes.
const manager = "samplecrd-controller"

// ourLabels are those that labelsFor sets.
var ourLabels = []string{samplecrdv1.LabelManagedBy, samplecrdv1.LabelDeployment, samplecrdv1.LabelSource}

func labelsFor(deployment *metav1.PartialObjectMetadata, requested request) map[string]string {
	source := samplecrdv1.SourceAnnotation
	if requested.byDefault {
		source = samplecrdv1.SourceDefault
	}
	return map[string]string{
		samplecrdv1.LabelManagedBy:  manager,
		samplecrdv1.LabelDeployment: deployment.Name,
		samplecrdv1.LabelSource:     source,
	}
}

func specText(spec samplecrdv1.NetworkSpec) string {
	text := spec.CIDR
	if pool := spec.SubnetPool; pool != nil {
		wanted := plan.SubnetPool{ID: pool.ID, Name: pool.Name, PrefixLength: int(pool.PrefixLength)}
		text = plan.Desired{SubnetPool: &wanted}.RangeText()
	}
	if spec.Gateway != "" {
		text += ", gateway " + spec.Gateway
	}
	return text
}

// changeText describes the change of a spec: the range and gateway, which annotations
// set, and the names of other fields.
func changeText(before, after samplecrdv1.NetworkSpec) string {
	var parts []string
	if from, to := specText(before), specText(after); from != to {
		parts = append(parts, from+" → "+to)
		after.CIDR, after.SubnetPool, after.Gateway = before.CIDR, before.SubnetPool, before.Gateway
	}
	was, is := reflect.ValueOf(before), reflect.ValueOf(after)
	for field, value := range was.Fields() {
		now, verb := is.FieldByIndex(field.Index), "changed "
		if now.IsZero() {
			verb = "removed "
		}
		if !equality.Semantic.DeepEqual(value.Interface(), now.Interface()) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			parts = append(parts, verb+name)
		}
	}
	return strings.Join(parts, ", ")
}
