package deployments

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
)

// onlyAnnotations is the transform of the informers: it keeps what decide needs.
func onlyAnnotations(object any) (any, error) {
	if deployment, ok := object.(*metav1.PartialObjectMetadata); ok {
		return thinned(deployment), nil
	}
	return object, nil
}

func thinned(deployment *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace:         deployment.Namespace,
		Name:              deployment.Name,
		UID:               deployment.UID,
		ResourceVersion:   deployment.ResourceVersion,
		DeletionTimestamp: deployment.DeletionTimestamp,
		Annotations:       ourAnnotations(deployment.Annotations),
	}}
}

// knownAnnotations are those that readAnnotations reads.
var knownAnnotations = []string{
	samplecrdv1.AnnotationCIDR, samplecrdv1.AnnotationGateway, samplecrdv1.AnnotationSubnetPool,
	samplecrdv1.AnnotationPrefixLength, samplecrdv1.AnnotationNetwork,
}

// maxValueLength bounds an annotation in the cache. No valid value is longer.
const maxValueLength = 1024

// ourAnnotations returns the annotations for the controller, or nil: the known ones, and
// the first unknown one, which is reported.
func ourAnnotations(all map[string]string) (ours map[string]string) {
	hasUnknown := false
	for _, name := range slices.Sorted(maps.Keys(all)) {
		isUnknown := !slices.Contains(knownAnnotations, name)
		if !strings.HasPrefix(name, samplecrdv1.GroupName+"/") || isUnknown && hasUnknown {
			continue
		}
		hasUnknown = hasUnknown || isUnknown
		if ours == nil {
			ours = map[string]string{}
		}
		ours[name] = strings.Clone(all[name][:min(len(all[name]), maxValueLength)])
	}
	return ours
}
