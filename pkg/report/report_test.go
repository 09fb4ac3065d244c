package report_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/report"
)

var (
	owner   = neutron.Owner{Cluster: "c1", Namespace: "default", Name: "example"}
	subnet  = neutron.Subnet{ID: "sub-1", NetworkID: "net-1", Description: owner.Marker(), CIDR: netip.MustParsePrefix("10.0.0.0/24"), Gateway: netip.MustParseAddr("10.0.0.1")}
	present = plan.DesiredFor(owner, samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24"})
	absent  = plan.DesiredAbsent(owner)
	network = neutron.Network{ID: "net-1", Name: owner.String(), Description: owner.Marker(), SubnetIDs: []string{"sub-1"}}
	actual  = plan.Actual{Record: plan.Record{NetworkID: "net-1"}}.WithNetworks(neutron.NetworkFilter{}, []neutron.Network{network}).WithSubnets("net-1", []neutron.Subnet{subnet})
	past    = metav1.NewTime(time.Unix(1000, 0))
	now     = metav1.NewTime(time.Unix(2000, 0))
)

func ready(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: "Ready", Status: status, Reason: reason, Message: message, ObservedGeneration: 7, LastTransitionTime: past}
}

func TestStatus(t *testing.T) {
	const all = "Neutron has the network and its subnet 10.0.0.0/24 with gateway 10.0.0.1."
	pending := ready(metav1.ConditionUnknown, "Pending", "No controller has looked at this Network yet.")
	failure := func(kind error) error {
		return fmt.Errorf("syncing: %w", &neutron.Error{Op: "create subnet", Class: kind, Status: 409, Type: "OverQuota", Message: "Quota exceeded."})
	}
	for name, test := range map[string]struct {
		desired     plan.Desired
		outcome     error
		before      metav1.Condition
		wantChanged bool
		wantReason  string
		wantStatus  metav1.ConditionStatus
		wantMessage string
		wantSince   metav1.Time
	}{
		"made": {
			desired: present, before: pending,
			wantChanged: true, wantStatus: "True", wantReason: report.Provisioned, wantMessage: all, wantSince: now,
		},
		"still as it was": {
			desired: present, before: ready(metav1.ConditionTrue, report.Provisioned, all),
			wantChanged: false,
		},
		"mended": {
			desired: present, before: ready(metav1.ConditionFalse, report.Refused, "Quota exceeded."),
			wantChanged: true, wantStatus: "True", wantReason: report.Provisioned, wantMessage: all, wantSince: now,
		},
		"gone": {
			desired: absent, before: ready(metav1.ConditionTrue, report.Provisioned, all),
			wantChanged: false,
		},
		"refused": {
			desired: present, outcome: failure(neutron.ErrRefused), before: pending,
			wantChanged: true, wantStatus: "False", wantReason: report.Refused,
			wantMessage: "create subnet: refused: 409 OverQuota: Quota exceeded. Free some of the project's quota in OpenStack, or have it raised. It is tried again within 8 minutes, and at once when the spec changes.", wantSince: now,
		},
		"another problem than before": {
			desired: present, outcome: failure(neutron.ErrUnavailable), before: ready(metav1.ConditionFalse, report.Refused, "no"),
			wantChanged: true, wantStatus: "False", wantReason: report.NeutronUnavailable,
			wantMessage: "create subnet: unavailable: 409 OverQuota: Quota exceeded. It is tried again until it succeeds, every two minutes at least.", wantSince: past,
		},
		"in use, being deleted": {
			desired: absent, outcome: failure(neutron.ErrInUse), before: ready(metav1.ConditionTrue, report.Provisioned, all),
			wantChanged: true, wantStatus: "False", wantReason: report.InUse,
			wantMessage: "create subnet: in use: 409 OverQuota: Quota exceeded. Nothing was deleted; it is tried again until the ports are gone.", wantSince: now,
		},
		"blocked": {
			desired: present, before: pending,
			outcome:     report.BlockedError{Blocked: plan.Blocked{Reason: plan.ReasonAmbiguous, Message: "two networks"}},
			wantChanged: true, wantStatus: "False", wantReason: "Ambiguous", wantMessage: "two networks", wantSince: now,
		},
		"somebody else was quicker": {
			desired: present, outcome: failure(neutron.ErrConflict), before: pending,
			wantChanged: false,
		},
		"it went meanwhile": {
			desired: present, outcome: failure(neutron.ErrNotFound), before: pending,
			wantChanged: false,
		},
		"Kubernetes did not answer": {
			desired: present, outcome: errors.New("updating finalizers: connection refused"), before: pending,
			wantChanged: false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			network := &samplecrdv1.Network{Status: samplecrdv1.NetworkStatus{
				ObservedGeneration: 7, NetworkID: "net-1", SubnetID: "sub-1", CIDR: "10.0.0.0/24", Gateway: "10.0.0.1",
				Conditions: []metav1.Condition{test.before, {Type: "Theirs", Status: "True"}},
			}}
			network.Generation = 7

			got, changed := report.Status(network, test.desired, actual, test.outcome, now)

			want := *network.Status.DeepCopy()
			if test.wantChanged {
				want.Conditions[0] = metav1.Condition{
					Type: "Ready", Status: test.wantStatus, Reason: test.wantReason, Message: test.wantMessage,
					ObservedGeneration: 7, LastTransitionTime: test.wantSince,
				}
			}
			if diff := cmp.Diff(want, got); diff != "" || changed != test.wantChanged {
				t.Errorf("Status() says changed = %v, want %v, and differs (-want +got):\n%s", changed, test.wantChanged, diff)
			}
		})
	}
}

// TestRecord: what is known goes into the status whole, and comes out of it
// again; and what the status says is what is written.
func TestRecord(t *testing.T) {
	all := plan.Record{
		NetworkID: "net-1", SubnetID: "sub-1", CIDR: netip.MustParsePrefix("10.0.0.0/24"), Gateway: netip.MustParseAddr("10.0.0.1"),
		SubnetPoolID: "pool-1", SubnetPoolName: "campus", MTU: 1400, DefaultMTU: 1450, Tags: []string{"a", "b"},
	}
	bare := all
	bare.Gateway, bare.SubnetPoolName, bare.Tags = netip.Addr{}, "", nil
	for name, record := range map[string]plan.Record{"all": all, "no gateway, no name": bare, "nothing": {}} {
		t.Run(name, func(t *testing.T) {
			network := &samplecrdv1.Network{}
			status, _ := report.Status(network, plan.DesiredFor(owner, samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24"}), plan.Actual{Record: record}, &neutron.Error{Class: neutron.ErrUnavailable}, now)
			if diff := cmp.Diff(record, report.RecordOf(status), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
				t.Errorf("the record after a way through the status (-want +got):\n%s", diff)
			}
			text, err := json.Marshal(report.Apply(network, status))
			if err != nil {
				t.Fatal(err)
			}
			var applied samplecrdv1.Network
			if err := json.Unmarshal(text, &applied); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(status, applied.Status, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
				t.Errorf("what is applied (-status +applied):\n%s", diff)
			}
		})
	}
}

// TestStatusFollowsWhatWasFound: the IDs in a status are those that the last
// look found, also where the rest failed.
func TestStatusFollowsWhatWasFound(t *testing.T) {
	network := &samplecrdv1.Network{Status: samplecrdv1.NetworkStatus{NetworkID: "gone-net", SubnetID: "gone-sub"}}
	network.Generation = 2
	known := plan.Actual{}.WithNetwork(neutron.Network{ID: "net-2", Description: owner.Marker()})

	got, changed := report.Status(network, present, known, &neutron.Error{Class: neutron.ErrUnavailable}, now)

	if !changed || got.NetworkID != "net-2" || got.SubnetID != "" || got.ObservedGeneration != 2 {
		t.Errorf("Status() = %+v, changed = %v; want networkID net-2, no subnetID, observedGeneration 2", got, changed)
	}
}

func TestNewProblem(t *testing.T) {
	status := func(conditions ...metav1.Condition) samplecrdv1.NetworkStatus {
		return samplecrdv1.NetworkStatus{Conditions: conditions}
	}
	good := ready(metav1.ConditionTrue, report.Provisioned, "good")
	refused := ready(metav1.ConditionFalse, report.Refused, "quota")
	refusedElse := ready(metav1.ConditionFalse, report.Refused, "policy")
	inUse := ready(metav1.ConditionFalse, report.InUse, "ports")
	for name, test := range map[string]struct {
		before, after samplecrdv1.NetworkStatus
		want          string
	}{
		"good before and after":   {status(good), status(good), ""},
		"good after":              {status(refused), status(good), ""},
		"new":                     {status(good), status(refused), "Refused: quota"},
		"the first thing to tell": {status(), status(refused), "Refused: quota"},
		"the same in other words": {status(refused), status(refusedElse), ""},
		"another one":             {status(refused), status(inUse), "InUse: ports"},
		"no condition":            {status(), status(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			reason, message := report.NewProblem(test.before, test.after)
			if got := strings.Trim(reason+": "+message, ": "); got != test.want {
				t.Errorf("NewProblem() = %q, want %q", got, test.want)
			}
		})
	}
}

// TestMessagesFit: an event takes a note of 1 KiB at most, in whole characters.
func TestMessagesFit(t *testing.T) {
	network := &samplecrdv1.Network{}
	long := &neutron.Error{Class: neutron.ErrRefused, Message: strings.Repeat("网络", 1000)}

	status, _ := report.Status(network, present, actual, long, now)

	message := meta.FindStatusCondition(status.Conditions, samplecrdv1.ConditionReady).Message
	if len(message) > 1024 || !utf8.ValidString(message) || !strings.HasSuffix(message, "…") {
		t.Errorf("message of %d bytes, valid %v: %q", len(message), utf8.ValidString(message), message)
	}
}

// TestEventOf: an ordinary event tells what was done. Where Neutron had what the
// spec asks for, and no longer has, it tells what was found as well.
func TestEventOf(t *testing.T) {
	network := func(status metav1.ConditionStatus, generation int64) *samplecrdv1.Network {
		network := &samplecrdv1.Network{Status: samplecrdv1.NetworkStatus{Conditions: []metav1.Condition{ready(status, "", "")}}}
		network.Generation = generation
		return network
	}
	good, edited, failed := network(metav1.ConditionTrue, 7), network(metav1.ConditionTrue, 8), network(metav1.ConditionFalse, 7)
	deleted := network(metav1.ConditionTrue, 7)
	deleted.DeletionTimestamp = &now
	create := plan.CreateNetwork{Network: neutron.NewNetwork{Name: "default/example"}}
	for name, test := range map[string]struct {
		network *samplecrdv1.Network
		step    plan.Step
		want    report.Event
	}{
		"looking":         {good, plan.FindSubnets{}, report.Event{}},
		"finalizer":       {good, plan.AddFinalizer{}, report.Event{}},
		"created":         {&samplecrdv1.Network{}, create, report.Event{Type: "Normal", Reason: "NetworkCreated", Action: "CreateNetwork", Note: "create network default/example"}},
		"created at last": {failed, create, report.Event{Type: "Normal", Reason: "NetworkCreated", Action: "CreateNetwork", Note: "create network default/example"}},
		"edited": {
			edited, plan.UpdateSubnet{Changes: []plan.Change{{What: "gateway", From: "10.0.0.1", To: "10.0.0.2"}}},
			report.Event{Type: "Normal", Reason: "SubnetUpdated", Action: "UpdateSubnet", Note: "update subnet: gateway 10.0.0.1 → 10.0.0.2"},
		},
		"drifted": {good, create, report.Event{
			Type: "Warning", Reason: "Drifted", Action: "CreateNetwork",
			Note: "Somebody else changed what was made for this Network: the network is gone. Put right: create network default/example",
		}},
		"retained": {deleted, plan.RetainNetwork{ID: "net-1"}, report.Event{Type: "Normal", Reason: "NetworkRetained", Action: "RetainNetwork", Note: `retain network net-1: description → ""`}},
		"deleted":  {deleted, plan.DeleteNetwork{ID: "net-1"}, report.Event{Type: "Normal", Reason: "NetworkDeleted", Action: "DeleteNetwork", Note: "delete network net-1"}},
		"twin": {good, plan.DeleteNetwork{ID: "net-2", DuplicateOf: "net-1"}, report.Event{
			Type: "Normal", Reason: "TwinDeleted", Action: "DeleteTwin",
			Note: "delete network net-2: a second one that we made, beside net-1, when an answer was lost",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := report.EventOf(test.network, test.step)
			if diff := cmp.Diff(test.want, got); diff != "" || ok != (test.want != report.Event{}) {
				t.Errorf("EventOf() is %v, (-want +got):\n%s", ok, diff)
			}
		})
	}
}
