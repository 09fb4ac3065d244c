// Package preview shows what the controller would do, before it does it: for each
// Network the steps, the reason, and what blocks them; and the networks in Neutron
// that belong to no Network. It decides nothing: the steps are those of package
// reconcile.
package preview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/reconcile"
	"github.com/samplecrd/network-controller/pkg/status"
	"github.com/samplecrd/network-controller/pkg/store"
)

// Input is what a preview is made of.
type Input struct {
	// Cluster identifies the Kubernetes cluster in owner markers.
	Cluster string
	// Networks are all Networks of the watched namespaces.
	Networks *store.Networks
	// Selected are the Networks to preview. Invalid are the errors of others.
	Selected []*samplecrdv1.Network
	Invalid  []string
	// Neutron is Neutron's state, of which Reconciler has the same.
	Neutron *neutron.Cache
	// Reconciler decides the steps.
	Reconciler *reconcile.Reconciler
	// DeleteOrphans is true if the controller deletes orphans.
	DeleteOrphans bool
}

// Plan is what the controller would do.
type Plan struct {
	Cluster string `json:"cluster"`
	// Cloud is the identity of the cloud that was read, and CloudOf whose it is. Both are
	// empty if namespaces have no clouds of their own.
	Cloud    string    `json:"cloud,omitempty"`
	CloudOf  string    `json:"cloudOf,omitempty"`
	Networks []Network `json:"networks"`
	// NotInKubernetes are the networks in Neutron with an owner marker of this
	// cluster, or one of a retained network, whose Network does not exist.
	NotInKubernetes []Leftover `json:"notInKubernetes"`
	// Errors are those of manifests, which are not in the plan.
	Errors  []string `json:"errors,omitempty"`
	Summary Summary  `json:"summary"`
}

// Network is what the controller would do for one Network.
type Network struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Because is why there are steps.
	Because string   `json:"because,omitempty"`
	Steps   []Step   `json:"steps,omitempty"`
	Blocked *Blocked `json:"blocked,omitempty"`
	// Error is why the steps are unknown.
	Error string `json:"error,omitempty"`
}

// Step is one request that changes something.
type Step struct {
	Action plan.Action `json:"action"`
	// Text describes the step, as in logs and events.
	Text string `json:"text"`
}

// Blocked is why the controller cannot continue after the steps.
type Blocked struct {
	Reason plan.Reason `json:"reason"`
	// Message has the cause and the cure. It has only the cause if the controller, for the
	// same spec, has reported something else than a reason that depends on its flags.
	Message string `json:"message"`
	// Reported is true if the status has this reason already.
	Reported bool `json:"reported"`
}

// Leftover is a network in Neutron whose Network does not exist.
type Leftover struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Retained is true if the deletionPolicy kept the network, and false for an
	// orphan.
	Retained  bool   `json:"retained"`
	NetworkID string `json:"networkID"`
	// CIDRs are the ranges of the subnets.
	CIDRs []string `json:"cidrs"`
	// Created is when Neutron created the network, if that is known.
	Created *time.Time `json:"created,omitempty"`
	// Marker is the description of the network.
	Marker string `json:"marker"`
	// Command deletes the network.
	Command string `json:"command"`
}

// Summary has the number of steps by action, and the number of Networks.
type Summary struct {
	Create int `json:"create"`
	Update int `json:"update"`
	Delete int `json:"delete"`

	Unchanged int `json:"unchanged"`
	Blocked   int `json:"blocked"`
	// Unreported are the blocked ones whose status has another reason.
	Unreported int `json:"unreported"`
	Failed     int `json:"failed"`
	Retained   int `json:"retained"`
	Orphans    int `json:"orphans"`
}

// New returns the plan for the selected Networks.
func New(ctx context.Context, in Input) Plan {
	p := Plan{Cluster: in.Cluster, Networks: []Network{}, NotInKubernetes: []Leftover{}, Errors: in.Invalid}
	selected := slices.SortedFunc(slices.Values(in.Selected), func(a, b *samplecrdv1.Network) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, network := range selected {
		p.Networks = append(p.Networks, in.networkPlan(ctx, cache.MetaObjectToName(network), network))
	}
	usage, _ := in.Neutron.Usage(in.Cluster, metav1.NamespaceAll)
	for _, owner := range usage.Owners() {
		key := cache.NewObjectName(owner.Namespace, owner.Name)
		network, err := in.Networks.Get(key)
		if err != nil || network != nil || !in.Networks.IsComplete(key.Namespace) {
			continue
		}
		p.NotInKubernetes = append(p.NotInKubernetes, in.leftoversOf(owner)...)
		if in.DeleteOrphans && usage.Owned[owner] != nil {
			p.Networks = append(p.Networks, in.networkPlan(ctx, key, nil))
		}
	}
	p.Summary = p.summarize()
	return p
}

// networkPlan returns the plan for one Network, or for an orphan if it is nil.
func (in Input) networkPlan(ctx context.Context, key cache.ObjectName, network *samplecrdv1.Network) Network {
	desired := in.Reconciler.Desired(key, network)
	steps, outcome := in.Reconciler.Preview(ctx, key, network, desired)
	result := Network{Namespace: key.Namespace, Name: key.Name}
	for _, step := range steps {
		result.Steps = append(result.Steps, Step{Action: plan.ActionOf(step), Text: step.String()})
	}
	var blocked plan.Blocked
	switch {
	case errors.As(outcome, &blocked):
		reported := isReported(network, blocked.Reason)
		result.Blocked = &Blocked{Reason: blocked.Reason, Message: blocked.Message, Reported: reported}
		if !reported && slices.Contains(ofFlags, blocked.Reason) && isObserved(network) {
			cause, _, _ := strings.Cut(blocked.Message, ". ")
			result.Blocked.Message = fmt.Sprintf(
				"%s. But its status is %s, so the plan has other flags than the controller: set the same",
				cause, status.ReadyOf(network.Status).Reason)
		}
	case outcome != nil:
		result.Error = outcome.Error()
	}
	if len(steps) > 0 {
		result.Because = because(network, desired, steps)
	}
	return result
}

// isReported reports whether the status of a Network has a reason, which is that of Ready, or
// of Reconciling if it is paused.
func isReported(network *samplecrdv1.Network, reason plan.Reason) bool {
	return network != nil && slices.ContainsFunc(network.Status.Conditions, func(c metav1.Condition) bool {
		isBad := c.Type == samplecrdv1.ConditionReady && c.Status == metav1.ConditionFalse ||
			c.Type == samplecrdv1.ConditionReconciling && c.Status == metav1.ConditionTrue
		return isBad && c.Reason == string(reason)
	})
}

// ofFlags are the reasons that depend on the flags of the controller. What would help then
// is dangerous if only the plan has other flags.
var ofFlags = []plan.Reason{
	plan.ReasonOtherCloud, plan.ReasonOtherCluster, plan.ReasonAdoptionNotAllowed, plan.ReasonNamespaceLimit,
}

// isObserved reports whether the controller has reported an outcome for the spec.
func isObserved(network *samplecrdv1.Network) bool {
	return network != nil && network.Status.ObservedGeneration == network.Generation &&
		status.ReadyOf(network.Status).Reason != ""
}

// because returns why a Network has steps.
func because(network *samplecrdv1.Network, desired plan.Desired, steps []plan.Step) string {
	_, startsWithFinalizer := steps[0].(plan.AddFinalizer)
	switch {
	case network == nil:
		return "an orphan, which -delete-orphans deletes after -orphan-grace-period, within -max-orphan-deletions"
	case desired.Absent && desired.Leave == plan.LeaveAll:
		return "being deleted; its network stays in Neutron"
	case desired.Absent && desired.Leave == plan.LeaveNetwork:
		return "being deleted; the adopted network stays in Neutron"
	case desired.Absent:
		return "being deleted"
	case network.ResourceVersion == "":
		return "not in the cluster yet"
	case network.Status.ObservedGeneration == 0:
		return "new"
	case network.Status.ObservedGeneration != network.Generation:
		return "the spec was edited"
	case status.IsReadyForSpec(network) && startsWithFinalizer:
		return "the finalizer, or the record of its cloud, is missing"
	case status.IsReadyForSpec(network):
		return "Neutron differs from the spec, although the Network was Ready"
	case status.ReadyOf(network.Status).Reason != "":
		return "not Ready: " + status.ReadyOf(network.Status).Reason
	}
	return "not Ready"
}

// leftoversOf returns the networks of an owner, by ID.
func (in Input) leftoversOf(owner neutron.Owner) (leftovers []Leftover) {
	view, _ := in.Neutron.Lookup(owner, "")
	for _, network := range view.Marked {
		leftover := Leftover{
			Namespace: owner.Namespace, Name: owner.Name, Retained: owner.HasRetainedMarker(network.Description),
			NetworkID: network.ID, CIDRs: []string{}, Marker: network.Description,
			Command: "openstack network delete " + network.ID,
		}
		for _, subnet := range view.Subnets[network.ID] {
			leftover.CIDRs = append(leftover.CIDRs, subnet.CIDR.String())
		}
		if !network.CreatedAt.IsZero() {
			leftover.Created = new(network.CreatedAt.UTC())
		}
		leftovers = append(leftovers, leftover)
	}
	slices.SortFunc(leftovers, func(a, b Leftover) int { return cmp.Compare(a.NetworkID, b.NetworkID) })
	return leftovers
}

func (p Plan) summarize() (s Summary) {
	for _, network := range p.Networks {
		for _, step := range network.Steps {
			switch step.Action {
			case plan.Create:
				s.Create++
			case plan.Delete:
				s.Delete++
			default:
				s.Update++
			}
		}
		switch {
		case network.Error != "":
			s.Failed++
		case network.Blocked != nil:
			s.Blocked++
			if !network.Blocked.Reported {
				s.Unreported++
			}
		case network.Steps == nil:
			s.Unchanged++
		}
	}
	for _, leftover := range p.NotInKubernetes {
		if leftover.Retained {
			s.Retained++
		} else {
			s.Orphans++
		}
	}
	return s
}

// ExitCode returns 1 if the steps of a Network are unknown, or a manifest is invalid.
// Otherwise it returns 2 if there are steps, and 3 if there are none, but a Network is
// blocked for a reason that its status does not report. Else it returns 0.
func (p Plan) ExitCode() int {
	switch s := p.Summary; {
	case s.Failed > 0 || len(p.Errors) > 0:
		return 1
	case s.Create+s.Update+s.Delete > 0:
		return 2
	case s.Unreported > 0:
		return 3
	}
	return 0
}
