package tenant

import (
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	myv1 "github.com/samplecrd/network-controller/example/namespaceplus/apis/mygroup/v1"
	applyv1 "github.com/samplecrd/network-controller/example/namespaceplus/client/applyconfiguration/mygroup/v1"
)

// Problem is an error that somebody else has to solve.
type Problem struct{ Reason, Message string }

func (p Problem) Error() string { return p.Message }

// CheckNamespace returns a Problem if a namespace may not be changed.
func CheckNamespace(tenant *myv1.NamespacePlus, namespace metav1.Object) error {
	switch {
	case namespace.GetDeletionTimestamp() != nil:
		return Problem{"NamespaceTerminating", "The namespace " + tenant.Name + " is being deleted. " +
			"It is created again when it is gone"}
	case !IsOurs(namespace) && !tenant.Spec.Adopt:
		return Problem{"NamespaceExists", "The namespace " + tenant.Name + " exists, and this controller has not made it. " +
			"To give it to the tenant as it is, set spec.adopt to true. Otherwise choose another name"}
	}
	return nil
}

// Ready returns what to apply after a sync, which may have failed, or nil if the status
// does not change.
func Ready(tenant *myv1.NamespacePlus, failure error) *applyv1.NamespacePlusApplyConfiguration {
	ready := metav1.Condition{
		Type: myv1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Applied",
		Message: "The namespace has everything that the spec requests.",
	}
	if failure != nil {
		ready.Status = metav1.ConditionFalse
		ready.Reason, ready.Message = explain(failure)
	}
	if object, changed := withCondition(tenant, ready); changed {
		return object
	}
	return nil
}

// explain returns the reason of an error, and what to do.
func explain(failure error) (reason, message string) {
	message = clip(failure.Error()) + ". "
	problem, isProblem := errors.AsType[Problem](failure)
	switch {
	case isProblem:
		return problem.Reason, message
	case apierrors.HasStatusCause(failure, corev1.NamespaceTerminatingCause):
		return "NamespaceTerminating", message
	case apierrors.IsForbidden(failure): // the message of the API server names the verb and the resource
		return "Forbidden", message + "Grant it to the controller, as deploy/rbac.yaml does."
	case apierrors.IsConflict(failure): // the message names the other field manager
		return "Conflict", message + "Delete the object, or set spec.adopt to true to overwrite it."
	case apierrors.IsInvalid(failure), apierrors.IsBadRequest(failure):
		return "Invalid", message + "Correct the spec, or delete the object that is in the way."
	case apimeta.IsNoMatchError(failure), // of controller-runtime
		apierrors.IsNotFound(failure) && apierrors.HasStatusCause(failure, metav1.CauseTypeUnexpectedServerResponse):
		return "NotInstalled", message + "Install the CustomResourceDefinition of Networks, and restart the controller."
	}
	return "Failed", message + "The controller tries again."
}

// Notified returns what to apply after an attempt to notify, or nil if the status does not
// change.
func Notified(tenant *myv1.NamespacePlus, failure error) *applyv1.NamespacePlusApplyConfiguration {
	notified := metav1.Condition{
		Type: myv1.ConditionNotified, Status: metav1.ConditionTrue, Reason: "Accepted",
		Message: "The receiver has accepted the notification.",
	}
	if failure != nil {
		notified.Status, notified.Reason = metav1.ConditionFalse, "Failed"
		notified.Message = "The notification failed: " + clip(failure.Error()) + ". The controller tries again."
	}
	object, changed := withCondition(tenant, notified)
	if failure == nil {
		object.Status.WithNotified(IdempotencyKey(tenant))
	} else if !changed {
		return nil
	}
	return object
}

// withCondition returns what to apply so that the status has a condition, and whether it
// lacks it. The UID keeps it from writing to another object of the same name.
func withCondition(tenant *myv1.NamespacePlus, c metav1.Condition) (*applyv1.NamespacePlusApplyConfiguration, bool) {
	c.ObservedGeneration = tenant.Generation
	conditions := tenant.DeepCopy().Status.Conditions
	changed := apimeta.SetStatusCondition(&conditions, c)
	c = *apimeta.FindStatusCondition(conditions, c.Type) // with the time of its last transition
	return applyv1.NamespacePlus(tenant.Name).WithUID(tenant.UID).WithStatus(applyv1.NamespacePlusStatus().
		WithConditions(metav1ac.Condition().WithType(c.Type).WithStatus(c.Status).WithReason(c.Reason).WithMessage(c.Message).
			WithObservedGeneration(c.ObservedGeneration).WithLastTransitionTime(c.LastTransitionTime))), changed
}

// clip bounds what others contribute to a message.
func clip(text string) string { return strings.ToValidUTF8(text[:min(len(text), 1000)], "") }
