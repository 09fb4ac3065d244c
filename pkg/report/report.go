// Package report puts the end of a sync into words: the status of the object,
// its Ready condition, and events. It is pure; the controller writes.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	applyv1 "github.com/samplecrd/network-controller/pkg/client/applyconfiguration/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
)

// The reasons of the Ready condition, beside those of package plan.
const (
	// Provisioned: Neutron has what the spec asks for.
	Provisioned = "Provisioned"
	// InUse: ports hold what should be deleted or replaced.
	InUse = string(plan.ReasonInUse)
	// Refused: Neutron will not do it as things stand; its words follow.
	Refused = "Refused"
	// Pending: no controller has looked yet. The CustomResourceDefinition says so
	// of a new Network.
	Pending = "Pending"
	// NeutronUnavailable: Neutron gives no usable answer.
	NeutronUnavailable = "NeutronUnavailable"
)

// KnownReason returns a reason of the condition Ready as it is, and "Other" for
// one that this package does not write: whoever may write statuses can put
// anything there.
func KnownReason(reason string) string {
	switch plan.Reason(reason) {
	case Provisioned, Refused, NeutronUnavailable, Pending,
		plan.ReasonInvalidSpec, plan.ReasonAmbiguous, plan.ReasonNotOurs, plan.ReasonNotFound, plan.ReasonAdoptionNotAllowed,
		plan.ReasonExtensionMissing, plan.ReasonSubnetPoolMismatch, plan.ReasonInUse, plan.ReasonNotConverging:
		return reason
	}
	return "Other"
}

// BlockedError is the outcome of a sync whose plan is blocked.
type BlockedError struct{ plan.Blocked }

// Error returns what has to be changed, and where.
func (e BlockedError) Error() string { return e.String() }

// Status returns the status that a Network should have after a sync with this
// outcome (nil where the plan came to its end), and whether that differs from
// the one it has. An outcome that the next try may well mend, such as a change
// by somebody else in between, changes nothing.
func Status(network *samplecrdv1.Network, desired plan.Desired, actual plan.Actual, outcome error, now metav1.Time) (samplecrdv1.NetworkStatus, bool) {
	ready, worthTelling := readyCondition(desired, outcome)
	if !worthTelling {
		return network.Status, false
	}
	ready.ObservedGeneration = network.Generation
	ready.LastTransitionTime = now

	record := actual.Ours(desired)
	ready.Message += provisioned(ready, record)
	status := statusOf(record)
	status.ObservedGeneration, status.Conditions = network.Generation, slices.Clone(network.Status.Conditions)
	meta.SetStatusCondition(&status.Conditions, ready)
	return status, !equality.Semantic.DeepEqual(status, network.Status)
}

// whenAgain says when something is tried again of which Neutron, or the failure
// itself, says nothing. Nobody has to do anything about the Network for it.
func whenAgain(failure *neutron.Error) string {
	if failure.RetryAfter > 0 {
		return ""
	}
	return " It is tried again until it succeeds, every two minutes at least."
}

// sentence ends a text with a full stop.
func sentence(text string) string {
	if strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// cure says what may help against a refusal of Neutron.
func cure(failure *neutron.Error) string {
	again := "It is tried again within 8 minutes, and at once when the spec changes."
	switch {
	case failure.Type == "OverQuota":
		return "Free some of the project's quota in OpenStack, or have it raised. " + again
	case failure.Status == http.StatusForbidden:
		return "OpenStack's policy does not allow the controller's credentials to do this: somebody who runs it has to change one of them. " + again
	}
	return again
}

// provisioned says what there is, where all is as asked for.
func provisioned(ready metav1.Condition, record plan.Record) string {
	switch {
	case ready.Reason != Provisioned:
		return ""
	case record.Gateway.IsValid():
		return fmt.Sprintf("Neutron has the network and its subnet %s with gateway %s.", record.CIDR, record.Gateway)
	}
	return fmt.Sprintf("Neutron has the network and its subnet %s without a gateway.", record.CIDR)
}

// statusOf puts what is known of a network and its subnet into a status.
func statusOf(record plan.Record) samplecrdv1.NetworkStatus {
	status := samplecrdv1.NetworkStatus{
		NetworkID:  record.NetworkID,
		SubnetID:   record.SubnetID,
		MTU:        int32(min(record.MTU, math.MaxInt32)),        //nolint:gosec // it is bounded
		DefaultMTU: int32(min(record.DefaultMTU, math.MaxInt32)), //nolint:gosec // it is bounded
		Tags:       record.Tags,
	}
	if record.CIDR.IsValid() {
		status.CIDR, status.Gateway = record.CIDR.String(), samplecrdv1.GatewayNone
	}
	if record.Gateway.IsValid() {
		status.Gateway = record.Gateway.String()
	}
	if record.SubnetPoolID != "" {
		status.SubnetPool = &samplecrdv1.SubnetPoolStatus{ID: record.SubnetPoolID, Name: record.SubnetPoolName}
	}
	return status
}

// RecordOf reads what a status tells. What is no range or address, since people
// can write there, tells nothing.
func RecordOf(status samplecrdv1.NetworkStatus) plan.Record {
	record := plan.Record{
		NetworkID: status.NetworkID, SubnetID: status.SubnetID,
		MTU: int(status.MTU), DefaultMTU: int(status.DefaultMTU), Tags: status.Tags,
	}
	if cidr, err := netip.ParsePrefix(status.CIDR); err == nil {
		record.CIDR = cidr
	}
	if gateway, err := netip.ParseAddr(status.Gateway); err == nil {
		record.Gateway = gateway
	}
	if pool := status.SubnetPool; pool != nil {
		record.SubnetPoolID, record.SubnetPoolName = pool.ID, pool.Name
	}
	return record
}

func readyCondition(desired plan.Desired, outcome error) (condition metav1.Condition, worthTelling bool) {
	no := func(reason, message string) (metav1.Condition, bool) {
		return metav1.Condition{Type: samplecrdv1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: Clip(message)}, true
	}
	var blocked BlockedError
	var failure *neutron.Error
	switch {
	case outcome == nil && desired.Absent:
		return metav1.Condition{}, false // the object is on its way out
	case outcome == nil:
		return metav1.Condition{
			Type: samplecrdv1.ConditionReady, Status: metav1.ConditionTrue, Reason: Provisioned,
		}, true
	case errors.As(outcome, &blocked):
		return no(string(blocked.Reason), blocked.Message)
	case !errors.As(outcome, &failure):
		return metav1.Condition{}, false
	case errors.Is(failure, neutron.ErrInUse):
		return no(InUse, failure.Error()+" Nothing was deleted; it is tried again until the ports are gone.")
	case errors.Is(failure, neutron.ErrRefused):
		return no(Refused, sentence(failure.Error())+" "+cure(failure))
	case errors.Is(failure, neutron.ErrUnavailable):
		return no(NeutronUnavailable, sentence(failure.Error())+whenAgain(failure))
	}
	return metav1.Condition{}, false
}

// Apply returns the server-side apply request that writes a status. It is
// refused where the object has changed since: it may be another one of the same
// name by now, and a UID alone is not compared in requests for a status.
func Apply(network *samplecrdv1.Network, status samplecrdv1.NetworkStatus) *applyv1.NetworkApplyConfiguration {
	applied := applyv1.NetworkStatus().WithObservedGeneration(status.ObservedGeneration)
	if status.NetworkID != "" {
		applied = applied.WithNetworkID(status.NetworkID)
	}
	if status.SubnetID != "" {
		applied = applied.WithSubnetID(status.SubnetID)
	}
	if status.CIDR != "" {
		applied = applied.WithCIDR(status.CIDR).WithGateway(status.Gateway)
	}
	if pool := status.SubnetPool; pool != nil {
		appliedPool := applyv1.SubnetPoolStatus().WithID(pool.ID)
		if pool.Name != "" {
			appliedPool = appliedPool.WithName(pool.Name)
		}
		applied = applied.WithSubnetPool(appliedPool)
	}
	if status.MTU != 0 {
		applied = applied.WithMTU(status.MTU)
	}
	if status.DefaultMTU != 0 {
		applied = applied.WithDefaultMTU(status.DefaultMTU)
	}
	applied = applied.WithTags(status.Tags...)
	if ready := meta.FindStatusCondition(status.Conditions, samplecrdv1.ConditionReady); ready != nil {
		applied = applied.WithConditions(applymetav1.Condition().
			WithType(ready.Type).
			WithStatus(ready.Status).
			WithReason(ready.Reason).
			WithMessage(ready.Message).
			WithObservedGeneration(ready.ObservedGeneration).
			WithLastTransitionTime(ready.LastTransitionTime))
	}
	return applyv1.Network(network.Name, network.Namespace).
		WithUID(network.UID).
		WithResourceVersion(network.ResourceVersion).
		WithStatus(applied)
}

// SameRecord reports whether two statuses say the same of what Neutron has.
func SameRecord(a, b samplecrdv1.NetworkStatus) bool {
	a.Conditions, b.Conditions = nil, nil
	return equality.Semantic.DeepEqual(a, b)
}

// Overwrite returns the merge patch that makes what a status says of Neutron
// this, also where another manager owns a field: server-side apply takes away
// only what is ours.
func Overwrite(network *samplecrdv1.Network, status samplecrdv1.NetworkStatus) []byte {
	fields := map[string]any{
		"observedGeneration": status.ObservedGeneration, "networkID": nil, "subnetID": nil, "cidr": nil, "gateway": nil,
		"subnetPool": nil, "mtu": nil, "defaultMTU": nil, "tags": nil,
	}
	status.Conditions = nil
	text, _ := json.Marshal(status)   // it is plain data
	_ = json.Unmarshal(text, &fields) // into a map of the same
	if pool := status.SubnetPool; pool != nil && pool.Name == "" {
		fields["subnetPool"] = map[string]any{"id": pool.ID, "name": nil}
	}
	text, _ = json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": network.UID, "resourceVersion": network.ResourceVersion},
		"status":   fields,
	})
	return text
}

// IsReady reports whether a status says that all is as asked for.
func IsReady(status samplecrdv1.NetworkStatus) bool {
	return meta.IsStatusConditionTrue(status.Conditions, samplecrdv1.ConditionReady)
}

// NewProblem returns the reason and message of what stands in the way after a
// status was written and did not before; empty where that is nothing.
func NewProblem(before, after samplecrdv1.NetworkStatus) (reason, message string) {
	was := meta.FindStatusCondition(before.Conditions, samplecrdv1.ConditionReady)
	is := meta.FindStatusCondition(after.Conditions, samplecrdv1.ConditionReady)
	if is == nil || is.Status != metav1.ConditionFalse || was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return "", ""
	}
	return is.Reason, is.Message
}

// Drifted is the reason of an event that tells that somebody else had changed
// something in Neutron, and what was done about it.
const Drifted = "Drifted"

// Event is an event that tells of a step.
type Event struct {
	Type, Reason, Action, Note string
}

// EventOf returns the event that tells of a step that was taken for a Network;
// ok is false where a step changes nothing that users see.
func EventOf(network *samplecrdv1.Network, step plan.Step) (event Event, ok bool) {
	event = Event{Type: corev1.EventTypeNormal, Note: Clip(step.String())}
	found := "" // what must have happened, where the object was ready
	switch step := step.(type) {
	case plan.CreateNetwork:
		event.Action, event.Reason, found = "CreateNetwork", "NetworkCreated", "the network is gone"
	case plan.UpdateNetwork:
		event.Action, event.Reason, found = "UpdateNetwork", "NetworkUpdated", "the network has other values"
	case plan.AddTag:
		event.Action, event.Reason, found = "AddTag", "NetworkUpdated", "a tag is gone"
	case plan.RemoveTag:
		event.Action, event.Reason = "RemoveTag", "NetworkUpdated"
	case plan.RetainNetwork:
		event.Action, event.Reason = "RetainNetwork", "NetworkRetained"
	case plan.DeleteNetwork:
		event.Action, event.Reason = "DeleteNetwork", "NetworkDeleted"
		if step.DuplicateOf != "" {
			event.Action, event.Reason = "DeleteTwin", "TwinDeleted"
		}
	case plan.CreateSubnet:
		event.Action, event.Reason, found = "CreateSubnet", "SubnetCreated", "the subnet is gone"
	case plan.UpdateSubnet:
		event.Action, event.Reason, found = "UpdateSubnet", "SubnetUpdated", "the subnet has other values"
	case plan.DeleteSubnet:
		event.Action, event.Reason, found = "DeleteSubnet", "SubnetDeleted", "the subnet has another range"
	default:
		return Event{}, false
	}
	if found != "" && wasReady(network) {
		event.Type, event.Reason = corev1.EventTypeWarning, Drifted
		event.Note = Clip("Somebody else changed what was made for this Network: " + found + ". Put right: " + event.Note)
	}
	return event, true
}

// wasReady reports whether Neutron had what the present spec asks for, when that
// was last told.
func wasReady(network *samplecrdv1.Network) bool {
	ready := meta.FindStatusCondition(network.Status.Conditions, samplecrdv1.ConditionReady)
	return network.DeletionTimestamp == nil && ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == network.Generation
}

// Clip shortens a text to the 1 KiB that an event's note can hold.
func Clip(text string) string {
	const most = 1024
	if len(text) <= most {
		return text
	}
	cut := most - len("…")
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
