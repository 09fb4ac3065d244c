package status

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/plan"
)

// paused returns the status of a Network that is paused. Ready stays as it is, so that a
// pause is no alarm; tools that wait for a change see that it is not done.
func paused(network *samplecrdv1.Network, message string, now metav1.Time) samplecrdv1.NetworkStatus {
	status := network.Status
	status.ObservedGeneration, status.Conditions = network.Generation, slices.Clone(status.Conditions)
	meta.RemoveStatusCondition(&status.Conditions, samplecrdv1.ConditionStalled)
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: samplecrdv1.ConditionReconciling, Status: metav1.ConditionTrue, Reason: string(plan.ReasonPaused),
		Message: message, ObservedGeneration: network.Generation, LastTransitionTime: now,
	})
	return status
}

// withConditions returns a status with the condition Ready and, as kstatus defines
// them, Reconciling or Stalled: generic tools, such as kubectl wait, Flux and Argo CD,
// derive from them whether to wait or to give up.
func withConditions(status samplecrdv1.NetworkStatus, ready metav1.Condition, generation int64,
	now metav1.Time) samplecrdv1.NetworkStatus {
	ready.ObservedGeneration, ready.LastTransitionTime = generation, now
	status.ObservedGeneration, status.Conditions = generation, slices.Clone(status.Conditions)
	meta.SetStatusCondition(&status.Conditions, ready)
	present := abnormalType(ready)
	for _, kind := range []string{samplecrdv1.ConditionReconciling, samplecrdv1.ConditionStalled} {
		if kind != present {
			meta.RemoveStatusCondition(&status.Conditions, kind)
			continue
		}
		abnormal := ready
		abnormal.Type, abnormal.Status = kind, metav1.ConditionTrue
		meta.SetStatusCondition(&status.Conditions, abnormal)
	}
	return status
}

// abnormalType returns the type of the condition that accompanies Ready, or an empty
// string: Reconciling if the controller continues by itself, Stalled if somebody has
// to act first.
func abnormalType(ready metav1.Condition) string {
	switch {
	case ready.Status == metav1.ConditionTrue:
		return ""
	case ready.Reason == NeutronUnavailable:
		return samplecrdv1.ConditionReconciling
	}
	return samplecrdv1.ConditionStalled
}

// ownConditions returns the conditions of a status that report on the Network itself.
func ownConditions(status samplecrdv1.NetworkStatus) (own []metav1.Condition) {
	for _, condition := range status.Conditions {
		if isOwn(condition) {
			own = append(own, condition)
		}
	}
	slices.SortFunc(own, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	return own
}

func isOwn(condition metav1.Condition) bool {
	switch condition.Type {
	case samplecrdv1.ConditionReady, samplecrdv1.ConditionReconciling, samplecrdv1.ConditionStalled:
		return true
	}
	return false
}
