package preview

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
)

// chooseNeutron returns a client for the one cloud that the plan is for, and whose that is: if
// only one namespace is planned, the cloud that it has of its own, and otherwise that of the
// controller. Networks of other clouds are rejected.
func (c Command) chooseNeutron(
	ctx context.Context, client kubernetes.Interface, selected *manifests,
) (chosen neutron.Client, whose string, err error) {
	if !c.NamespacesHaveClouds {
		chosen, err = c.Neutron()
		return chosen, "", err
	}
	if namespaces := c.Kube.Namespaces(); c.Kube.AreNamespacesLimited() && len(namespaces) == 1 {
		chosen, err = c.OfNamespace(ctx, client, namespaces[0])
		if chosen != nil || err != nil {
			return chosen, "of the namespace " + namespaces[0], err
		}
	} else {
		c.rejectOtherClouds(ctx, client, selected)
	}
	chosen, err = c.Neutron()
	return chosen, "of the controller", err
}

// rejectOtherClouds rejects the Networks of namespaces that have, or may have, a cloud of
// their own.
func (c Command) rejectOtherClouds(ctx context.Context, client kubernetes.Interface, selected *manifests) {
	isOther, all := map[string]bool{}, selected.networks
	selected.networks = []*samplecrdv1.Network{}
	for _, network := range all {
		namespace := network.Namespace
		if _, known := isOther[namespace]; !known {
			own, err := c.OfNamespace(ctx, client, namespace)
			if isOther[namespace] = own != nil || err != nil; err != nil {
				selected.reject("%v", err)
			} else if own != nil {
				selected.reject("the namespace %s has a cloud of its own: plan it with -namespaces=%[1]s", namespace)
			}
		}
		if !isOther[namespace] {
			selected.networks = append(selected.networks, network)
		}
	}
}

// cloudText returns which cloud the plan is for, if there can be several.
func (p Plan) cloudText() string {
	if p.CloudOf == "" {
		return ""
	}
	return fmt.Sprintf("This is the cloud %s, %s.", p.Cloud, p.CloudOf)
}
