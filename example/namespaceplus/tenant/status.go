package tenant

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	myv1 "github.com/samplecrd/network-controller/example/namespaceplus/apis/mygroup/v1"
	applyv1 "github.com/samplecrd/network-controller/example/namespaceplus/client/applyconfiguration/mygroup/v1"
)

// cures say what to do about a failure, whose message names the object: the verb and the
// resource, or the other field manager. The controller tries again in any case.
var cures = map[metav1.StatusReason]string{
	"NamespaceExists":            "To give it to the tenant as it is, set spec.adopt to true. Or choose another name.",
	"NamespaceTerminating":       "It is created again when it is gone.",
	"NotInstalled":               "Install the CustomResourceDefinition of Networks, and restart the controller.",
	metav1.StatusReasonForbidden: "Grant it to the controller, as deploy/rbac.yaml does.",
	metav1.StatusReasonConflict:  "Delete the object, or set spec.adopt to true to overwrite it.",
	metav1.StatusReasonInvalid:   "Correct the spec, or delete the object that is in the way.",
}

// successes are the conditions if nothing has failed.
var successes = map[string]metav1.Condition{
	myv1.ConditionReady:    {Reason: "Applied", Message: "The namespace has everything that the spec requests."},
	myv1.ConditionNotified: {Reason: "Accepted", Message: "The receiver has accepted the notification."},
}

// CheckNamespace returns an error if a namespace may not be changed.
func CheckNamespace(tenant *myv1.NamespacePlus, namespace metav1.Object) error {
	if tenant.Spec.Adopt || IsOurs(namespace) {
		return nil
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Reason: "NamespaceExists", Message: "The namespace " + tenant.Name + " exists, and this controller has not made it",
	}}
}

// Report returns what to apply to the status after a sync or a notification, which may have
// failed, or nil if the status does not change. The UID keeps it from writing to another
// object of the same name.
func Report(tenant *myv1.NamespacePlus, condition string, failure error) *applyv1.NamespacePlusApplyConfiguration {
	c := successes[condition]
	c.Type, c.Status, c.ObservedGeneration = condition, metav1.ConditionTrue, tenant.Generation
	if failure != nil {
		c.Status = metav1.ConditionFalse
		c.Reason, c.Message = explain(failure)
	}
	conditions := slices.Clone(tenant.Status.Conditions)
	status, changed := applyv1.NamespacePlusStatus(), apimeta.SetStatusCondition(&conditions, c)
	if condition == myv1.ConditionNotified && failure == nil {
		status.WithNotified(IdempotencyKey(tenant))
	} else if !changed {
		return nil
	}
	c = *apimeta.FindStatusCondition(conditions, condition) // with the time of its last transition
	return applyv1.NamespacePlus(tenant.Name).WithUID(tenant.UID).WithStatus(status.WithConditions(
		metav1ac.Condition().WithType(c.Type).WithStatus(c.Status).WithReason(c.Reason).WithMessage(c.Message).
			WithObservedGeneration(c.ObservedGeneration).WithLastTransitionTime(c.LastTransitionTime)))
}

// explain returns the reason of a failure, and what to do.
func explain(failure error) (reason, message string) {
	kind := apierrors.ReasonForError(failure)
	switch {
	case apierrors.HasStatusCause(failure, corev1.NamespaceTerminatingCause):
		kind = "NamespaceTerminating"
	case kind == metav1.StatusReasonBadRequest:
		kind = metav1.StatusReasonInvalid
	case apimeta.IsNoMatchError(failure), // of controller-runtime
		apierrors.IsNotFound(failure) && apierrors.HasStatusCause(failure, metav1.CauseTypeUnexpectedServerResponse):
		kind = "NotInstalled"
	case cures[kind] == "":
		kind = "Failed"
	}
	return string(kind), clip(failure.Error()) + ". " + cmp.Or(cures[kind], "The controller tries again.")
}

// clip bounds what others contribute to a message.
func clip(text string) string { return strings.ToValidUTF8(text[:min(len(text), 1000)], "") }
