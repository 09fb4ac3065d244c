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
	owner         = neutron.Owner{Cluster: "c1", Namespace: "default", Name: "example"}
	subnet        = neutron.Subnet{ID: "sub-1", NetworkID: "net-1", Description: owner.Marker(), CIDR: netip.MustParsePrefix("10.0.0.0/24"), Gateway: netip.MustParseAddr("10.0.0.1")}
	present       = plan.DesiredFor(owner, samplecrdv1.NetworkSpec{CIDR: "10.0.0.0/24"})
	absent        = plan.DesiredAbsent(owner)
	network       = neutron.Network{ID: "net-1", Name: owner.String(), Description: owner.Marker(), SubnetIDs: []string{"sub-1"}}
	actual        = plan.Actual{Record: plan.Record{NetworkID: "net-1"}}.WithNetworks(neutron.NetworkFilter{}, []neutron.Network{network}).WithSubnets("net-1", []neutron.Subnet{subnet})
	createNetwork = plan.CreateNetwork{Network: neutron.NewNetwork{Name: "default/example"}}
	createSubnet  = plan.CreateSubnet{Subnet: neutron.NewSubnet{CIDR: subnet.CIDR, SubnetSettings: neutron.SubnetSettings{Gateway: &subnet.Gateway}}}

	past = metav1.NewTime(time.Unix(1000, 0))
	now  = metav1.NewTime(time.Unix(2000, 0))
)

func ready(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: "Ready", Status: status, Reason: reason, Message: message, ObservedGeneration: 7, LastTransitionTime: past}
}

func TestFor(t *testing.T) {
	const all = "Neutron has the network and its subnet 10.0.0.0/24 with gateway 10.0.0.1."
	pending := ready(metav1.ConditionUnknown, "Pending", "No controller has looked at this Network yet.")
	failed := func(step plan.Step, err *neutron.Error) error {
		return fmt.Errorf("syncing: %w", &status.StepError{Step: step, Err: err})
	}
	failure := func(kind error) error {
		return failed(createSubnet, &neutron.Error{Op: "create subnet", Class: kind, Status: 409, Type: "OverQuota", Message: "Quota exceeded."})
	}
	login := func(code int, kind, message string) *neutron.Error {
		return &neutron.Error{
			Op: "login", Class: neutron.ErrUnavailable, Status: code, Type: kind, Message: message,
			Keystone: "https://keystone.example/v3",
		}
	}
	for name, test := range map[string]struct {
		desired     plan.Desired
		outcome     error
		before      metav1.Condition
		wantChanged bool
		wantReason  string
		wantKind    string // the condition beside Ready
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
			wantKind:    "Stalled",
			wantMessage: "Cannot create the subnet 10.0.0.0/24, gateway 10.0.0.1: Neutron rejected the request (409 OverQuota): Quota exceeded. Free quota of the OpenStack project, or raise the quota. The controller retries within 8 minutes, and at once when the spec or the annotation samplecrd.k8s.io/retry changes.", wantSince: now,
		},
		"forbidden by the policy": {
			desired: present, before: pending, outcome: failed(createNetwork, &neutron.Error{Op: "create network", Class: neutron.ErrRefused, Status: 403, Message: "rule:create_network is disallowed."}),
			wantChanged: true, wantStatus: "False", wantReason: status.Refused,
			wantKind:    "Stalled",
			wantMessage: "Cannot create the Neutron network: Neutron rejected the request (403): rule:create_network is disallowed. The OpenStack policy does not permit this request with the controller's credentials: an administrator must change the policy or the credentials. The controller retries within 8 minutes, and at once when the spec or the annotation samplecrd.k8s.io/retry changes.", wantSince: now,
		},
		"forbidden by access rules": {
			desired: present, before: pending,
			outcome: failed(createNetwork, &neutron.Error{
				Class: neutron.ErrRefused, Status: 401, Type: "Unauthorized", Message: "Neutron accepts the token for other requests",
			}),
			wantChanged: true, wantStatus: "False", wantReason: status.Refused, wantKind: "Stalled", wantSince: now,
			wantMessage: "Cannot create the Neutron network: Neutron rejected the request (401 Unauthorized):" +
				" Neutron accepts the token for other requests." +
				" The access rules of the application credential do not permit this request:" +
				" an administrator must create another application credential, and write it to clouds.yaml or its Secret." +
				" The controller retries within 8 minutes, and at once when the spec or the annotation samplecrd.k8s.io/retry changes.",
		},
		"login rejected": {
			desired: present, before: pending, outcome: failed(createNetwork, login(401, "Unauthorized", "The password is wrong.")),
			wantChanged: true, wantStatus: "False", wantReason: status.LoginRejected, wantKind: "Stalled", wantSince: now,
			wantMessage: "Cannot create the Neutron network:" +
				" Keystone at https://keystone.example/v3 rejected the login (401 Unauthorized):" +
				" The password is wrong. Check auth_url and the credentials in clouds.yaml, or in the Secret that contains it." +
				" The controller retries at least every two minutes, and needs no restart.",
		},
		"Keystone unavailable": {
			desired: present, before: pending, outcome: failed(createNetwork, login(503, "", "Service Unavailable")),
			wantChanged: true, wantStatus: "False", wantReason: status.NeutronUnavailable, wantKind: "Reconciling", wantSince: now,
			wantMessage: "Cannot create the Neutron network:" +
				" Keystone at https://keystone.example/v3 is unavailable (503): Service Unavailable." +
				" The controller retries until it succeeds, at least every two minutes.",
		},
		"rejected otherwise": {
			desired: present, before: pending, outcome: &neutron.Error{Op: "create network", Class: neutron.ErrRefused, Status: 400, Type: "InvalidInput", Message: "Bad MTU"},
			wantChanged: true, wantStatus: "False", wantReason: status.Refused,
			wantKind:    "Stalled",
			wantMessage: "Cannot create network: Neutron rejected the request (400 InvalidInput): Bad MTU. The controller retries within 8 minutes, and at once when the spec or the annotation samplecrd.k8s.io/retry changes.", wantSince: now,
		},
		"unavailable, and retried at a time that Neutron gives": {
			desired: present, before: pending, outcome: failed(createNetwork, &neutron.Error{Class: neutron.ErrUnavailable, Status: 503, RetryAfter: time.Minute, Message: "busy."}),
			wantChanged: true, wantStatus: "False", wantReason: status.NeutronUnavailable,
			wantKind:    "Reconciling",
			wantMessage: "Cannot create the Neutron network: Neutron is unavailable (503): busy.", wantSince: now,
		},
		"waiting for an earlier request": {
			desired: present, before: pending, outcome: failed(plan.RemoveFinalizer{}, &neutron.Error{Class: waiting{}, RetryAfter: time.Minute, Message: "no response arrived"}),
			wantChanged: true, wantStatus: "False", wantReason: status.NeutronUnavailable, wantKind: "Reconciling",
			wantMessage: "Cannot finish the deletion yet: no response arrived.", wantSince: now,
		},
		"another problem than before": {
			desired: present, outcome: failure(neutron.ErrUnavailable), before: ready(metav1.ConditionFalse, status.Refused, "no"),
			wantChanged: true, wantStatus: "False", wantReason: status.NeutronUnavailable,
			wantKind:    "Reconciling",
			wantMessage: "Cannot create the subnet 10.0.0.0/24, gateway 10.0.0.1: Neutron is unavailable (409 OverQuota): Quota exceeded. The controller retries until it succeeds, at least every two minutes.", wantSince: past,
		},
		"in use, being deleted": {
			desired: absent, outcome: failed(plan.DeleteNetwork{ID: "net-1"}, &neutron.Error{Class: neutron.ErrInUse, Message: "Ports.", Ports: []string{"p-1", "p-2"}}),
			before:      ready(metav1.ConditionTrue, status.Provisioned, all),
			wantChanged: true, wantStatus: "False", wantReason: status.InUse, wantKind: "Stalled",
			wantMessage: "Cannot delete the Neutron network net-1 while ports use it: p-1, p-2. Nothing was deleted. Delete the ports, or set spec.deletionPolicy to Retain. The controller retries every 20 to 30 seconds.", wantSince: now,
		},
		"in use, and the range was edited": {
			desired: present, outcome: failed(plan.DeleteSubnet{From: netip.MustParsePrefix("192.168.0.0/16"), For: "172.16.0.0/24"}, &neutron.Error{Class: neutron.ErrInUse, Ports: []string{"d43c"}}),
			before:      ready(metav1.ConditionTrue, status.Provisioned, all),
			wantChanged: true, wantStatus: "False", wantReason: status.InUse, wantKind: "Stalled",
			wantMessage: "Cannot change 192.168.0.0/16 to 172.16.0.0/24 while port d43c uses it. Delete the ports, or restore the previous spec. The controller retries every 20 to 30 seconds.", wantSince: now,
		},
		"in use by unknown ports": {
			desired: absent, outcome: failed(plan.DeleteSubnet{From: netip.MustParsePrefix("192.168.0.0/16")}, &neutron.Error{Class: neutron.ErrInUse, Message: "One or more ports"}),
			before:      ready(metav1.ConditionTrue, status.Provisioned, all),
			wantChanged: true, wantStatus: "False", wantReason: status.InUse, wantKind: "Stalled",
			wantMessage: "Cannot delete the subnet 192.168.0.0/16 while ports use it: One or more ports. Nothing was deleted. Delete the ports, or set spec.deletionPolicy to Retain. The controller retries every 20 to 30 seconds.", wantSince: now,
		},
		"a duplicate is in use": {
			desired: present, outcome: failed(plan.DeleteNetwork{ID: "net-2", DuplicateOf: "net-1"}, &neutron.Error{Class: neutron.ErrInUse, Ports: []string{"p-1"}}),
			before:      ready(metav1.ConditionTrue, status.Provisioned, all),
			wantChanged: true, wantStatus: "False", wantReason: status.InUse, wantKind: "Stalled",
			wantMessage: "Cannot delete the Neutron network net-2, a duplicate of net-1, while port p-1 uses it. Delete the ports, or move them to the other network. The controller retries every 20 to 30 seconds.", wantSince: now,
		},
		"blocked": {
			desired: present, before: pending,
			outcome:     status.BlockedError{Blocked: plan.Blocked{Reason: plan.ReasonAmbiguous, Message: "two networks"}},
			wantChanged: true, wantStatus: "False", wantReason: "Ambiguous", wantKind: "Stalled", wantMessage: "two networks", wantSince: now,
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
			matched := int64(5)
			if test.before.Status == metav1.ConditionTrue {
				matched = 7
			}
			network := &samplecrdv1.Network{Status: samplecrdv1.NetworkStatus{
				ObservedGeneration: 7, MatchedGeneration: matched, NetworkID: "net-1", SubnetID: "sub-1", CIDR: "10.0.0.0/24", Gateway: "10.0.0.1",
				Conditions: []metav1.Condition{test.before, {Type: "Theirs", Status: "True"}},
			}}
			network.Generation = 7

			got, changed := status.For(network, test.desired, actual, test.outcome, now)

			want := *network.Status.DeepCopy()
			if test.wantStatus == metav1.ConditionTrue {
				want.MatchedGeneration = 7
			}
			if test.wantChanged {
				want.Conditions[0] = metav1.Condition{
					Type: "Ready", Status: test.wantStatus, Reason: test.wantReason, Message: test.wantMessage,
					ObservedGeneration: 7, LastTransitionTime: test.wantSince,
				}
			}
			if test.wantKind != "" {
				want.Conditions = append(want.Conditions, metav1.Condition{
					Type: test.wantKind, Status: "True", Reason: test.wantReason, Message: test.wantMessage,
					ObservedGeneration: 7, LastTransitionTime: now,
				})
			}
			if diff := cmp.Diff(want, got); diff != "" || changed != test.wantChanged {
				t.Errorf("For() says changed = %v, want %v, and differs (-want +got):\n%s", changed, test.wantChanged, diff)
			}
		})
	}
}

// waiting is the class of an error that only counts as an unavailable Neutron.
type waiting struct{}

func (waiting) Error() string        { return "waiting" }
func (waiting) Is(target error) bool { return target == neutron.ErrUnavailable }

// TestRecord: a record survives the way through a status, and the patch of an empty status
// contains all of it.
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
			var patch samplecrdv1.Network
			if err := json.Unmarshal(status.Patch(network, written), &patch); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(written, patch.Status, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
				t.Errorf("what is written (-status +patch):\n%s", diff)
			}
		})
	}
}

// TestStatusNamesObservedNetwork: the IDs in a status are those of the last
// observation, also if the sync failed later.
func TestStatusNamesObservedNetwork(t *testing.T) {
	network := &samplecrdv1.Network{Status: samplecrdv1.NetworkStatus{NetworkID: "gone-net", SubnetID: "gone-sub"}}
	network.Generation = 2
	known := plan.Actual{Finalizer: true}.WithNetwork(neutron.Network{ID: "net-2", Description: owner.Marker()})

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
	working := ready(metav1.ConditionFalse, status.Reconciling, "work")
	deleting := ready(metav1.ConditionFalse, status.Deleting, "work")
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
		"work in progress":      {having(good), having(working), ""},
		"deletion in progress":  {having(good), having(deleting), ""},
		"new, after work":       {having(working), having(inUse), "InUse: ports"},
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

// TestPatch: the patch contains what differs and nothing else, under the resourceVersion
// that was read, and keeps the conditions of others.
func TestPatch(t *testing.T) {
	condition := func(kind string) string {
		return `{"lastTransitionTime":"1970-01-01T00:16:40Z","message":"","reason":"","status":"","type":"` + kind + `"}`
	}
	having := func(kinds ...string) (conditions []metav1.Condition) {
		for _, kind := range kinds {
			conditions = append(conditions, metav1.Condition{Type: kind, LastTransitionTime: past})
		}
		return conditions
	}
	router := func(id, name string) *samplecrdv1.RouterStatus { return &samplecrdv1.RouterStatus{ID: id, Name: name} }
	for name, test := range map[string]struct {
		before string // as the API server has it
		after  samplecrdv1.NetworkStatus
		want   string
	}{
		"new": {
			`{}`, samplecrdv1.NetworkStatus{NetworkID: "net-1", Router: router("r-1", "")},
			`,"status":{"networkID":"net-1","router":{"id":"r-1"}}`,
		},
		"equal": {`{"networkID":"net-1","tags":["a"]}`, samplecrdv1.NetworkStatus{NetworkID: "net-1", Tags: []string{"a"}}, ``},
		"equal, and a field of a newer release": {
			`{"networkID":"net-1","floatingIP":{"id":"f-1"}}`, samplecrdv1.NetworkStatus{NetworkID: "net-1"}, ``,
		},
		"changed beside fields of a newer release": {
			`{"networkID":"net-1","floatingIP":{"id":"f-1"},"router":{"id":"r-1","name":"a","port":"p-1"}}`,
			samplecrdv1.NetworkStatus{NetworkID: "net-2", Router: router("r-1", "b")},
			`,"status":{"networkID":"net-2","router":{"name":"b"}}`,
		},
		"removed": {
			`{"networkID":"net-1","subnetID":"sub-1","mtu":1400,"tags":["a"],"subnetPool":{"id":"p"},"router":{"id":"r-1","name":"a"}}`,
			samplecrdv1.NetworkStatus{NetworkID: "net-1", Router: router("r-1", "")},
			`,"status":{"mtu":null,"router":{"name":null},"subnetID":null,"subnetPool":null,"tags":null}`,
		},
		"tags as a whole": {
			`{"tags":["a","b"]}`, samplecrdv1.NetworkStatus{Tags: []string{"a", "c"}}, `,"status":{"tags":["a","c"]}`,
		},
		"conditions of others": {
			`{"conditions":[` + condition("Stalled") + `,` + condition("Theirs") + `]}`,
			samplecrdv1.NetworkStatus{Conditions: having("Ready")},
			`,"status":{"conditions":[` + condition("Ready") + `,` + condition("Theirs") + `]}`,
		},
		"equal, and conditions of others": {
			`{"conditions":[` + condition("Ready") + `,` + condition("Theirs") + `]}`,
			samplecrdv1.NetworkStatus{Conditions: having("Ready", "Theirs")}, ``,
		},
		"only conditions of others are left": {
			`{"conditions":[` + condition("Ready") + `,` + condition("Theirs") + `]}`,
			samplecrdv1.NetworkStatus{}, `,"status":{"conditions":[` + condition("Theirs") + `]}`,
		},
		"no conditions are left": {
			`{"conditions":[` + condition("Ready") + `]}`, samplecrdv1.NetworkStatus{}, `,"status":{"conditions":null}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var network samplecrdv1.Network
			live := `{"metadata":{"uid":"uid-1","resourceVersion":"7"},"status":` + test.before + `}`
			if err := json.Unmarshal([]byte(live), &network); err != nil {
				t.Fatal(err)
			}
			want := `{"metadata":{"resourceVersion":"7"}` + test.want + `}`
			if diff := cmp.Diff(want, string(status.Patch(&network, test.after))); diff != "" {
				t.Errorf("the patch (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMergePatchOfBrokenObject: what cannot be encoded is an error.
func TestMergePatchOfBrokenObject(t *testing.T) {
	good, broken := map[string]any{"a": "b"}, map[string]any{"a": func() {}}
	for name, objects := range map[string][2]any{"before": {broken, good}, "after": {good, broken}, "no object": {good, "text"}} {
		if patch, err := status.MergePatch(objects[0], objects[1]); err == nil {
			t.Errorf("%s: MergePatch() = %s, want an error", name, patch)
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
