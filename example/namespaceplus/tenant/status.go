package tenant

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	myv1 "github.com/samplecrd/network-controller/example/namespaceplus/apis/mygroup/v1"
	applyv1 "github.com/samplecrd/network-controller/example/namespaceplus/client/applyconfiguration/mygroup/v1"
)

// Status are the fields of a status that one of its two writers has.
type Status = applyv1.NamespacePlusStatusApplyConfiguration

// Problem is an error that somebody else has to solve.
type Problem struct{ Reason, Message string }

func (p Problem) Error() string { return p.Message }

// CheckNamespace returns a Problem if a namespace may not be changed.
func CheckNamespace(tenant *myv1.NamespacePlus, namespace *metav1.PartialObjectMetadata) error {
	switch {
	case namespace.DeletionTimestamp != nil:
		return Problem{"NamespaceTerminating", "The namespace " + tenant.Name + " is being deleted. " +
			"It is created again when it is gone"}
	case !IsOurs(namespace) && !tenant.Spec.Adopt:
		return Problem{"NamespaceExists", "The namespace " + tenant.Name + " exists, and this controller has not made it. " +
			"To give it to the tenant as it is, set spec.adopt to true. Otherwise choose another name"}
	}
	return nil
}

// ReadyStatus returns the status to write after a sync, which may have failed, or nil if
// it does not change.
func ReadyStatus(tenant *myv1.NamespacePlus, failure error) *Status {
	ready := metav1.Condition{
		Type: myv1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Applied",
		Message: "The namespace has everything that the spec requests.",
	}
	if failure != nil {
		ready.Status = metav1.ConditionFalse
		ready.Reason, ready.Message = explain(failure)
	}
	if status, changed := withCondition(tenant, ready); changed {
		return status
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
		return "Invalid", message + "Correct the spec."
	case apierrors.IsNotFound(failure) && apierrors.HasStatusCause(failure, metav1.CauseTypeUnexpectedServerResponse):
		return "NotInstalled", message + "Install the CustomResourceDefinition of Networks, and restart the controller."
	}
	return "Failed", message + "The controller tries again."
}

// NotifiedStatus returns the status to write after an attempt to notify, or nil if it does
// not change.
func NotifiedStatus(tenant *myv1.NamespacePlus, failure error) *Status {
	key, notified := IdempotencyKey(tenant), metav1.Condition{
		Type: myv1.ConditionNotified, Status: metav1.ConditionTrue, Reason: "Accepted",
		Message: "The receiver has accepted the notification.",
	}
	if failure != nil {
		key = tenant.Status.Notified // of another URL, or none
		notified.Status, notified.Reason = metav1.ConditionFalse, "Failed"
		notified.Message = "The notification failed: " + clip(failure.Error()) + ". The controller tries again."
	}
	status, changed := withCondition(tenant, notified)
	if !changed && key == tenant.Status.Notified {
		return nil
	}
	if key != "" {
		status.WithNotified(key)
	}
	return status
}

// withCondition returns a status with one condition, and whether the object lacks it.
func withCondition(tenant *myv1.NamespacePlus, c metav1.Condition) (*Status, bool) {
	c.ObservedGeneration = tenant.Generation
	conditions := tenant.DeepCopy().Status.Conditions
	changed := apimeta.SetStatusCondition(&conditions, c)
	c = *apimeta.FindStatusCondition(conditions, c.Type) // with the time of its last transition
	return applyv1.NamespacePlusStatus().WithConditions(metav1ac.Condition().
		WithType(c.Type).WithStatus(c.Status).WithReason(c.Reason).WithMessage(c.Message).
		WithObservedGeneration(c.ObservedGeneration).WithLastTransitionTime(c.LastTransitionTime)), changed
}

// clip bounds what others contribute to a message.
func clip(text string) string {
	const most = 1000
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
