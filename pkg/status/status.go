// Package status describes the outcome of a sync as values: the status of the
// Network with its conditions, and events. It is pure: package reconcile writes
// them.
package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
)

// The reasons of the condition Ready, in addition to those of package plan.
const (
	// Provisioned: Neutron has everything that the spec requests.
	Provisioned = "Provisioned"
	// InUse: ports use the network or subnet that the controller must delete or
	// replace.
	InUse = string(plan.ReasonInUse)
	// Refused: Neutron rejected the request. The message contains Neutron's error.
	Refused = "Refused"
	// Pending: no controller has reconciled the Network yet. The
	// CustomResourceDefinition sets this reason on a new Network.
	Pending = "Pending"
	// NeutronUnavailable: Neutron or Keystone returns no usable response, or an earlier
	// create request may still complete.
	NeutronUnavailable = "NeutronUnavailable"
	// LoginRejected: Keystone rejects the credentials of the controller.
	LoginRejected = "LoginRejected"
	// NoCloud: the controller has no cloud of its own, and the namespace has no usable Secret
	// that leads to one.
	NoCloud = "NoCloud"
)

// KnownReason returns the reason of a condition Ready, or "Other" if this package
// never writes it: everybody who can write a status can set any reason.
func KnownReason(reason string) string {
	switch plan.Reason(reason) {
	case Provisioned, Refused, NeutronUnavailable, LoginRejected, NoCloud, Pending,
		plan.ReasonInvalidSpec, plan.ReasonAmbiguous, plan.ReasonNotOurs, plan.ReasonNotFound, plan.ReasonAdoptionNotAllowed,
		plan.ReasonDrifted, plan.ReasonOtherCloud, plan.ReasonOtherCluster, plan.ReasonExtensionMissing,
		plan.ReasonSubnetPoolMismatch, plan.ReasonInUse, plan.ReasonNamespaceLimit, plan.ReasonDefinitionDeleted,
		plan.ReasonNotConverging:
		return reason
	case plan.ReasonPaused: // of another condition
	}
	return "Other"
}

// WaitError is the outcome of a sync that has to wait.
type WaitError struct {
	// Reason says for what, and Left for how long, if that is known.
	Reason string
	Left   time.Duration
}

// Error returns the reason.
func (e WaitError) Error() string { return "waiting: " + e.Reason }

// Found is what a sync found. The outcome is nil if the plan ended with [plan.Nothing].
type Found struct {
	Desired plan.Desired
	Actual  plan.Actual
	Outcome error
}

// For returns the status that a Network should have after a sync. A transient outcome that
// the next sync is likely to resolve, such as a concurrent change, is not relevant: it
// leaves the status as it is.
func For(
	network *samplecrdv1.Network, found Found, now metav1.Time,
) (after samplecrdv1.NetworkStatus, relevant bool) {
	var blocked plan.Blocked
	if errors.As(found.Outcome, &blocked) && blocked.Reason == plan.ReasonPaused {
		return paused(network, blocked.Message, now), true
	}
	ready, relevant := readyCondition(found.Desired, found.Outcome)
	if !relevant {
		return network.Status, false
	}
	record := found.Actual.Ours(found.Desired)
	if ready.Reason == Provisioned {
		ready.Message = provisionedMessage(found.Desired, record)
	}
	after = recordStatus(record)
	after.Conditions, after.MatchedGeneration = network.Status.Conditions, network.Status.MatchedGeneration
	if IsComplete(found.Outcome) {
		after.MatchedGeneration = network.Generation
	}
	return withConditions(after, ready, network.Generation, now), true
}

func provisionedMessage(desired plan.Desired, record plan.Record) string {
	message := fmt.Sprintf("Neutron has the network and its subnet %s without a gateway.", record.CIDR)
	if record.Gateway.IsValid() {
		message = fmt.Sprintf("Neutron has the network and its subnet %s with gateway %s.", record.CIDR, record.Gateway)
	}
	if desired.SharesRange {
		message += " An older Network of this namespace has the same range."
	}
	return message
}

func recordStatus(record plan.Record) samplecrdv1.NetworkStatus {
	status := samplecrdv1.NetworkStatus{
		NetworkID:  record.NetworkID,
		Cloud:      record.NetworkCloud,
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
	if record.RouterID != "" {
		status.Router = &samplecrdv1.RouterStatus{ID: record.RouterID, Name: record.RouterName}
	}
	return status
}

// RecordOf reads the status fields of a network and its subnet. It ignores a
// value that is no range or address, because people can edit the status.
func RecordOf(status samplecrdv1.NetworkStatus) plan.Record {
	record := plan.Record{
		NetworkID: status.NetworkID, NetworkCloud: status.Cloud, SubnetID: status.SubnetID,
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
	if router := status.Router; router != nil {
		record.RouterID, record.RouterName = router.ID, router.Name
	}
	return record
}

func readyCondition(desired plan.Desired, outcome error) (condition metav1.Condition, relevant bool) {
	no := func(reason, message string) (metav1.Condition, bool) {
		return metav1.Condition{
			Type: samplecrdv1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: Clip(message)}, true
	}
	var blocked plan.Blocked
	var failure *neutron.Error
	var waiting WaitError
	isWaiting, isFailure := errors.As(outcome, &waiting), errors.As(outcome, &failure)
	switch {
	case outcome == nil && desired.Absent:
		return metav1.Condition{}, false // the object is about to disappear
	case isFailure && failure.IsWithoutCloud():
		return no(NoCloud, noCloudMessage(desired.Owner.Namespace, stepOf(outcome), failure)+wayOut(desired))
	case desired.ReportDrift && (isWaiting || errors.Is(outcome, neutron.ErrUnavailable)):
		return metav1.Condition{}, false // the condition still says that Neutron matched the spec
	case outcome == nil:
		return metav1.Condition{
			Type: samplecrdv1.ConditionReady, Status: metav1.ConditionTrue, Reason: Provisioned,
		}, true
	case errors.As(outcome, &blocked):
		return no(string(blocked.Reason), blocked.Message)
	case isWaiting:
		return no(NeutronUnavailable, cannot(stepOf(outcome), &neutron.Error{Op: "continue"})+" yet: "+
			sentence(waiting.Reason))
	case !isFailure:
		return metav1.Condition{}, false
	case errors.Is(failure, neutron.ErrInUse):
		return no(InUse, inUseMessage(stepOf(outcome), failure))
	case errors.Is(failure, neutron.ErrRefused):
		return no(Refused, refusedMessage(stepOf(outcome), failure))
	case failure.IsLoginRejected():
		return no(LoginRejected, loginRejectedMessage(stepOf(outcome), failure)+wayOut(desired))
	case errors.Is(failure, neutron.ErrUnavailable):
		return no(NeutronUnavailable, unavailableMessage(stepOf(outcome), failure))
	}
	return metav1.Condition{}, false
}

// IsSame reports whether two statuses are equal except for the conditions of other
// controllers.
func IsSame(a, b samplecrdv1.NetworkStatus) bool {
	a.Conditions, b.Conditions = ownConditions(a), ownConditions(b)
	return equality.Semantic.DeepEqual(a, b)
}

// Hash identifies a status in little memory: two statuses for which IsSame is true have
// the same Hash, and others have different ones. It is valid in this process only. The
// Hash of an empty status is 0.
func Hash(status samplecrdv1.NetworkStatus) uint64 {
	status.Conditions = ownConditions(status)
	text, _ := json.Marshal(status) // it is plain data
	return maphash.Bytes(hashSeed, text) ^ emptyHash
}

var (
	hashSeed  = maphash.MakeSeed()
	emptyHash = maphash.String(hashSeed, "{}")
)

// Patch returns the merge patch that changes the status of a Network, except for the
// conditions of other controllers. It contains only what differs, so that it keeps the
// fields that this version does not have: a newer release may have recorded in them what
// it is about to do in Neutron. The API server rejects the patch if the object has changed
// since it was read: it may be another object of the same name by now, and another
// controller may have written its conditions.
func Patch(network *samplecrdv1.Network, status samplecrdv1.NetworkStatus) []byte {
	others := slices.DeleteFunc(slices.Clone(network.Status.Conditions), isOwn)
	status.Conditions = slices.Concat(ownConditions(status), others)
	patch, _ := MergePatch(map[string]any{"status": network.Status}, map[string]any{ // it is plain data
		"metadata": map[string]string{"resourceVersion": network.ResourceVersion}, "status": status,
	})
	return patch
}

// MergePatch returns the JSON merge patch that changes what differs between two objects.
func MergePatch(before, after any) ([]byte, error) {
	from, fromErr := json.Marshal(before)
	to, toErr := json.Marshal(after)
	if err := errors.Join(fromErr, toErr); err != nil {
		return nil, fmt.Errorf("encoding an object before or after its change: %w", err)
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(from, to, from)
	if err != nil {
		return nil, fmt.Errorf("comparing an object with its change: %w", err)
	}
	return patch, nil
}

// IsReadyForSpec reports whether the status says that Neutron has everything that
// the current spec requests.
func IsReadyForSpec(network *samplecrdv1.Network) bool {
	ready := ReadyOf(network.Status)
	return ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == network.Generation
}

// ReadyOf returns the condition Ready, or an empty one.
func ReadyOf(status samplecrdv1.NetworkStatus) metav1.Condition {
	if ready := meta.FindStatusCondition(status.Conditions, samplecrdv1.ConditionReady); ready != nil {
		return *ready
	}
	return metav1.Condition{}
}

// IsSettled reports whether the status says that the last sync of the current spec
// left nothing to do.
func IsSettled(network *samplecrdv1.Network) bool {
	ready := ReadyOf(network.Status)
	isDrifted := ready.Reason == string(plan.ReasonDrifted) && ready.ObservedGeneration == network.Generation
	return isDrifted || IsReadyForSpec(network)
}

// HasMatched reports whether the status says that Neutron matched the current spec,
// although it may have changed since.
func HasMatched(network *samplecrdv1.Network) bool {
	return network.Status.MatchedGeneration != 0 && network.Status.MatchedGeneration == network.Generation
}

// IsBlockedBy reports whether the outcome of a sync is that its plan is blocked for one of
// these reasons.
func IsBlockedBy(outcome error, reasons ...plan.Reason) bool {
	var blocked plan.Blocked
	return errors.As(outcome, &blocked) && slices.Contains(reasons, blocked.Reason)
}

// IsComplete reports whether everything possible is as desired after a sync with this
// outcome: at most, the cloud lacks an extension.
func IsComplete(outcome error) bool {
	return outcome == nil || IsBlockedBy(outcome, plan.ReasonExtensionMissing)
}

// IsReady reports whether the condition Ready is true.
func IsReady(status samplecrdv1.NetworkStatus) bool {
	return meta.IsStatusConditionTrue(status.Conditions, samplecrdv1.ConditionReady)
}

// NewProblem returns the reason and message of the condition Ready if it became
// false, or false for another reason; otherwise it returns empty strings.
func NewProblem(before, after samplecrdv1.NetworkStatus) (reason, message string) {
	was, is := ReadyOf(before), ReadyOf(after)
	isKnown := was.Status == is.Status && was.Reason == is.Reason
	if is.Status != metav1.ConditionFalse || isKnown {
		return "", ""
	}
	return is.Reason, is.Message
}
