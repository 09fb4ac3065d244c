package status_test

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
	"github.com/samplecrd/network-controller/pkg/status"
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

func TestFor(t *testing.T) {
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
		"provisioned": {
			desired: present, before: pending,
			wantChanged: true, wantStatus: "True", wantReason: status.Provisioned, wantMessage: all, wantSince: now,
		},
		"unchanged": {
			desired: present, before: ready(metav1.ConditionTrue, status.Provisioned, all),
			wantChanged: false,
		},
		"recovered": {
			desired: present, before: ready(metav1.ConditionFalse, status.Refused, "Quota exceeded."),
			wantChanged: true, wantStatus: "True", wantReason: status.Provisioned, wantMessage: all, wantSince: now,
		},
		"deleted": {
			desired: absent, before: ready(metav1.ConditionTrue, status.Provisioned, all),
			wantChanged: false,
		},
		"rejected by Neutron": {
			desired: present, outcome: failure(neutron.ErrRefused), before: pending,
			wantChanged: true, wantStatus: "False", wantReason: status.Refused,
			wantMessage: "create subnet: rejected: 409 OverQuota: Quota exceeded. Free quota of the OpenStack project, or raise the quota. The controller retries within 8 minutes, and immediately when the spec changes.", wantSince: now,
		},
		"forbidden by the policy": {
			desired: present, before: pending, outcome: &neutron.Error{Op: "create network", Class: neutron.ErrRefused, Status: 403, Message: "rule:create_network is disallowed."},
			wantChanged: true, wantStatus: "False", wantReason: status.Refused,
			wantMessage: "create network: rejected: 403: rule:create_network is disallowed. The OpenStack policy does not permit this request with the controller's credentials: an administrator must change the policy or the credentials. The controller retries within 8 minutes, and immediately when the spec changes.", wantSince: now,
		},
		"rejected otherwise": {
			desired: present, before: pending, outcome: &neutron.Error{Op: "create network", Class: neutron.ErrRefused, Status: 400, Type: "InvalidInput", Message: "Bad MTU"},
			wantChanged: true, wantStatus: "False", wantReason: status.Refused,
			wantMessage: "create network: rejected: 400 InvalidInput: Bad MTU. The controller retries within 8 minutes, and immediately when the spec changes.", wantSince: now,
		},
		"unavailable, and retried at a time that Neutron gives": {
			desired: present, before: pending, outcome: &neutron.Error{Op: "create network", Class: neutron.ErrUnavailable, Status: 503, RetryAfter: time.Minute, Message: "busy."},
			wantChanged: true, wantStatus: "False", wantReason: status.NeutronUnavailable,
			wantMessage: "create network: unavailable: 503: busy.", wantSince: now,
		},
		"another problem than before": {
			desired: present, outcome: failure(neutron.ErrUnavailable), before: ready(metav1.ConditionFalse, status.Refused, "no"),
			wantChanged: true, wantStatus: "False", wantReason: status.NeutronUnavailable,
			wantMessage: "create subnet: unavailable: 409 OverQuota: Quota exceeded. The controller retries until it succeeds, at least every two minutes.", wantSince: past,
		},
		"in use, being deleted": {
			desired: absent, outcome: failure(neutron.ErrInUse), before: ready(metav1.ConditionTrue, status.Provisioned, all),
			wantChanged: true, wantStatus: "False", wantReason: status.InUse,
			wantMessage: "create subnet: in use: 409 OverQuota: Quota exceeded. Nothing was deleted. The controller retries until the ports are deleted.", wantSince: now,
		},
		"blocked": {
			desired: present, before: pending,
			outcome:     status.BlockedError{Blocked: plan.Blocked{Reason: plan.ReasonAmbiguous, Message: "two networks"}},
			wantChanged: true, wantStatus: "False", wantReason: "Ambiguous", wantMessage: "two networks", wantSince: now,
		},
		"changed concurrently": {
			desired: present, outcome: failure(neutron.ErrConflict), before: pending,
			wantChanged: false,
		},
		"deleted concurrently": {
			desired: present, outcome: failure(neutron.ErrNotFound), before: pending,
			wantChanged: false,
		},
		"Kubernetes unavailable": {
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

			got, changed := status.For(network, test.desired, actual, test.outcome, now)

			want := *network.Status.DeepCopy()
			if test.wantChanged {
				want.Conditions[0] = metav1.Condition{
					Type: "Ready", Status: test.wantStatus, Reason: test.wantReason, Message: test.wantMessage,
					ObservedGeneration: 7, LastTransitionTime: test.wantSince,
				}
			}
			if diff := cmp.Diff(want, got); diff != "" || changed != test.wantChanged {
				t.Errorf("For() says changed = %v, want %v, and differs (-want +got):\n%s", changed, test.wantChanged, diff)
			}
		})
	}
}

// TestRecord: a record survives the way through a status, and the apply request
// contains the whole status.
func TestRecord(t *testing.T) {
	all := plan.Record{
		NetworkID: "net-1", SubnetID: "sub-1", CIDR: netip.MustParsePrefix("10.0.0.0/24"), Gateway: netip.MustParseAddr("10.0.0.1"),
		SubnetPoolID: "pool-1", SubnetPoolName: "campus", MTU: 1400, DefaultMTU: 1450, Tags: []string{"a", "b"},
		RouterID: "router-1", RouterName: "edge",
	}
	bare := all
	bare.Gateway, bare.SubnetPoolName, bare.Tags, bare.RouterName = netip.Addr{}, "", nil, ""
	for name, record := range map[string]plan.Record{"all": all, "no gateway, no name": bare, "nothing": {}} {
		t.Run(name, func(t *testing.T) {
			network := &samplecrdv1.Network{}
			written, _ := status.For(network, plan.DesiredFor(owner, samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24"}), plan.Actual{Record: record}, &neutron.Error{Class: neutron.ErrUnavailable}, now)
			if diff := cmp.Diff(record, status.RecordOf(written), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
				t.Errorf("the record after a way through the status (-want +got):\n%s", diff)
			}
			text, err := json.Marshal(status.ApplyConfiguration(network, written))
			if err != nil {
				t.Fatal(err)
			}
			var applied samplecrdv1.Network
			if err := json.Unmarshal(text, &applied); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(written, applied.Status, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
				t.Errorf("what is applied (-status +applied):\n%s", diff)
			}
		})
	}
}

// TestStatusNamesObservedNetwork: the IDs in a status are those of the last
// observation, also if the sync failed later.
func TestStatusNamesObservedNetwork(t *testing.T) {
	network := &samplecrdv1.Network{Status: samplecrdv1.NetworkStatus{NetworkID: "gone-net", SubnetID: "gone-sub"}}
	network.Generation = 2
	known := plan.Actual{}.WithNetwork(neutron.Network{ID: "net-2", Description: owner.Marker()})

	got, changed := status.For(network, present, known, &neutron.Error{Class: neutron.ErrUnavailable}, now)

	if !changed || got.NetworkID != "net-2" || got.SubnetID != "" || got.ObservedGeneration != 2 {
		t.Errorf("For() = %+v, changed = %v; want networkID net-2, no subnetID, observedGeneration 2", got, changed)
	}
}

func TestNewProblem(t *testing.T) {
	having := func(conditions ...metav1.Condition) samplecrdv1.NetworkStatus {
		return samplecrdv1.NetworkStatus{Conditions: conditions}
	}
	good := ready(metav1.ConditionTrue, status.Provisioned, "good")
	refused := ready(metav1.ConditionFalse, status.Refused, "quota")
	refusedElse := ready(metav1.ConditionFalse, status.Refused, "policy")
	inUse := ready(metav1.ConditionFalse, status.InUse, "ports")
	for name, test := range map[string]struct {
		before, after samplecrdv1.NetworkStatus
		want          string
	}{
		"good before and after": {having(good), having(good), ""},
		"good after":            {having(refused), having(good), ""},
		"new":                   {having(good), having(refused), "Refused: quota"},
		"the first condition":   {having(), having(refused), "Refused: quota"},
		"another message":       {having(refused), having(refusedElse), ""},
		"another reason":        {having(refused), having(inUse), "InUse: ports"},
		"no condition":          {having(), having(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			reason, message := status.NewProblem(test.before, test.after)
			if got := strings.Trim(reason+": "+message, ": "); got != test.want {
				t.Errorf("NewProblem() = %q, want %q", got, test.want)
			}
		})
	}
}

// TestMessagesFit: the note of an event holds at most 1 KiB, in whole characters.
func TestMessagesFit(t *testing.T) {
	network := &samplecrdv1.Network{}
	long := &neutron.Error{Class: neutron.ErrRefused, Message: strings.Repeat("网络", 1000)}

	written, _ := status.For(network, present, actual, long, now)

	message := meta.FindStatusCondition(written.Conditions, samplecrdv1.ConditionReady).Message
	if len(message) > 1024 || !utf8.ValidString(message) || !strings.HasSuffix(message, "…") {
		t.Errorf("message of %d bytes, valid %v: %q", len(message), utf8.ValidString(message), message)
	}
}

// TestEventOf: an event describes the step. If the Network was ready before, it
// also describes the drift.
func TestEventOf(t *testing.T) {
	network := func(isReady metav1.ConditionStatus, generation int64) *samplecrdv1.Network {
		network := &samplecrdv1.Network{Status: samplecrdv1.NetworkStatus{Conditions: []metav1.Condition{ready(isReady, "", "")}}}
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
		want    status.Event
	}{
		"looking":         {good, plan.FindSubnets{}, status.Event{}},
		"finalizer":       {good, plan.AddFinalizer{}, status.Event{}},
		"created":         {&samplecrdv1.Network{}, create, status.Event{Type: "Normal", Reason: "NetworkCreated", Action: "CreateNetwork", Note: "create network default/example"}},
		"created at last": {failed, create, status.Event{Type: "Normal", Reason: "NetworkCreated", Action: "CreateNetwork", Note: "create network default/example"}},
		"edited": {
			edited, plan.UpdateSubnet{Changes: []plan.Change{{What: "gateway", From: "10.0.0.1", To: "10.0.0.2"}}},
			status.Event{Type: "Normal", Reason: "SubnetUpdated", Action: "UpdateSubnet", Note: "update subnet: gateway 10.0.0.1 → 10.0.0.2"},
		},
		"drifted": {good, create, status.Event{
			Type: "Warning", Reason: "Drifted", Action: "CreateNetwork",
			Note: "Drift in Neutron: the Neutron network was deleted. The controller reverted it: create network default/example",
		}},
		"attached": {deleted, plan.AttachRouter{Interface: neutron.RouterInterface{RouterID: "router-1", Address: netip.MustParseAddr("10.0.0.1")}}, status.Event{
			Type: "Normal", Reason: "RouterAttached", Action: "AttachRouter", Note: "attach subnet to router router-1 with the address 10.0.0.1",
		}},
		"attached again": {good, plan.AttachRouter{Interface: neutron.RouterInterface{RouterID: "router-1", Address: netip.MustParseAddr("10.0.0.1")}}, status.Event{
			Type: "Warning", Reason: "Drifted", Action: "AttachRouter",
			Note: "Drift in Neutron: the subnet was detached from its router. The controller reverted it: attach subnet to router router-1 with the address 10.0.0.1",
		}},
		"detached": {deleted, plan.DetachRouter{Interface: neutron.RouterInterface{RouterID: "router-1"}, For: "delete the network"}, status.Event{
			Type: "Normal", Reason: "RouterDetached", Action: "DetachRouter", Note: "detach subnet from router router-1 to delete the network",
		}},
		"retained": {deleted, plan.RetainNetwork{ID: "net-1"}, status.Event{Type: "Normal", Reason: "NetworkRetained", Action: "RetainNetwork", Note: `retain network net-1: description → ""`}},
		"deleted":  {deleted, plan.DeleteNetwork{ID: "net-1"}, status.Event{Type: "Normal", Reason: "NetworkDeleted", Action: "DeleteNetwork", Note: "delete network net-1"}},
		"duplicate": {good, plan.DeleteNetwork{ID: "net-2", DuplicateOf: "net-1"}, status.Event{
			Type: "Normal", Reason: "DuplicateDeleted", Action: "DeleteDuplicate",
			Note: "delete network net-2: duplicate of net-1, created when a response was lost",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := status.EventOf(test.network, test.step)
			if diff := cmp.Diff(test.want, got); diff != "" || ok != (test.want != status.Event{}) {
				t.Errorf("EventOf() is %v, (-want +got):\n%s", ok, diff)
			}
		})
	}
}

// TestOverwritePatch: the patch sets every field that the status has, and removes
// the others, also the name of a subnet pool that another manager wrote.
func TestOverwritePatch(t *testing.T) {
	network := &samplecrdv1.Network{}
	network.UID, network.ResourceVersion = "uid-1", "7"
	for name, test := range map[string]struct {
		pool     *samplecrdv1.SubnetPoolStatus
		want     string
		attached *samplecrdv1.RouterStatus
		router   string
	}{
		"no subnet pool":        {nil, `null`, nil, `null`},
		"one without a name":    {&samplecrdv1.SubnetPoolStatus{ID: "pool-1"}, `{"id":"pool-1","name":null}`, nil, `null`},
		"one with a name":       {&samplecrdv1.SubnetPoolStatus{ID: "pool-1", Name: "campus"}, `{"id":"pool-1","name":"campus"}`, nil, `null`},
		"router without a name": {nil, `null`, &samplecrdv1.RouterStatus{ID: "router-1"}, `{"id":"router-1","name":null}`},
		"router with a name":    {nil, `null`, &samplecrdv1.RouterStatus{ID: "router-1", Name: "edge"}, `{"id":"router-1","name":"edge"}`},
	} {
		want := `{"metadata":{"resourceVersion":"7","uid":"uid-1"},"status":{"cidr":null,"defaultMTU":null,"gateway":null,"mtu":null,"networkID":"net-1","observedGeneration":3,"router":` + test.router + `,"subnetID":null,"subnetPool":` + test.want + `,"tags":null}}`
		got := status.OverwritePatch(network, samplecrdv1.NetworkStatus{
			ObservedGeneration: 3, NetworkID: "net-1", SubnetPool: test.pool, Router: test.attached, Conditions: []metav1.Condition{{Type: "Ready"}},
		})
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s: the patch (-want +got):\n%s", name, diff)
		}
	}
}

// TestClip: a text of exactly 1 KiB stays as it is.
func TestClip(t *testing.T) {
	exact := strings.Repeat("x", 1024)
	if got := status.Clip(exact); got != exact {
		t.Errorf("Clip() shortens 1024 bytes to %d", len(got))
	}
	if got := status.Clip(exact + "x"); len(got) != 1024 || !strings.HasSuffix(got, "…") {
		t.Errorf("Clip() makes 1025 bytes %d: %q", len(got), got[1000:])
	}
}
