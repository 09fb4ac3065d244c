package status_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/equality"
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
	absent        = plan.Desired{Owner: owner, Absent: true}
	network       = neutron.Network{ID: "net-1", Name: owner.String(), Description: owner.Marker(), SubnetIDs: []string{"sub-1"}}
	actual        = plan.Actual{Record: plan.Record{NetworkID: "net-1"}}.After(plan.FindNetwork{}, []neutron.Network{network}).After(plan.FindSubnets{Filter: neutron.SubnetFilter{NetworkID: "net-1"}}, []neutron.Subnet{subnet})
	createNetwork = plan.CreateNetwork{Network: neutron.NewNetwork{Name: "default/example"}}
	createSubnet  = plan.CreateSubnet{Subnet: neutron.NewSubnet{CIDR: subnet.CIDR, SubnetSettings: neutron.SubnetSettings{Gateway: &subnet.Gateway}}}

	past = metav1.NewTime(time.Unix(1000, 0))
	now  = metav1.NewTime(time.Unix(2000, 0))
)

func with(desired plan.Desired, change func(*plan.Desired)) plan.Desired {
	change(&desired)
	return desired
}

func ready(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: "Ready", Status: status, Reason: reason, Message: message, ObservedGeneration: 7, LastTransitionTime: past}
}

// TestFor has the status after each outcome of a sync.
func TestFor(t *testing.T) {
	const (
		all       = "Neutron has the network and its subnet 10.0.0.0/24 with gateway 10.0.0.1."
		refused   = "Stalled Refused: Cannot create the Neutron network: Neutron rejected the request "
		inUse     = "Stalled InUse: Cannot "
		waiting   = "Reconciling NeutronUnavailable: Cannot "
		onChange  = " The controller retries within 8 minutes, and at once when the spec or the annotation samplecrd.k8s.io/retry changes."
		whileUsed = " The controller retries every 20 to 30 seconds."
		untilDone = " The controller retries until it succeeds, at least every two minutes."
		wayOut    = " To end the deletion and leave what exists in Neutron, remove the finalizer samplecrd.k8s.io/neutron."
	)
	pending := ready(metav1.ConditionUnknown, "Pending", "No controller has looked at this Network yet.")
	good, bad := ready(metav1.ConditionTrue, status.Provisioned, all), ready(metav1.ConditionFalse, status.Refused, "no")
	failed := func(step plan.Step, err neutron.Error) error {
		return fmt.Errorf("syncing: %w", &status.StepError{Step: step, Err: &err})
	}
	failure := func(class error) error {
		return failed(createSubnet, neutron.Error{Class: class, Status: 409, Type: "OverQuota", Message: "Quota exceeded."})
	}
	login := func(code int, kind, message string) error {
		return failed(createNetwork, neutron.Error{
			Op: "login", Class: neutron.ErrUnavailable, Status: code, Type: kind, Message: message,
			Keystone: "https://keystone.example/v3",
		})
	}
	withoutCloud := func(keystone, message string) error {
		return failed(createNetwork, neutron.Error{
			Op: "login", Class: neutron.ErrUnavailable, Cause: neutron.ErrNoCloud, Keystone: keystone, Message: message,
		})
	}
	used := func(step plan.Step, message string, ports ...string) error {
		return failed(step, neutron.Error{Class: neutron.ErrInUse, Message: message, Ports: ports})
	}
	oldRange := netip.MustParsePrefix("192.168.0.0/16")
	router := neutron.RouterInterface{RouterID: "router-1", Address: subnet.Gateway}
	for name, test := range map[string]struct {
		desired plan.Desired
		outcome error
		before  metav1.Condition
		want    string // the condition beside Ready, the reason and the message; empty if nothing changes
	}{
		"provisioned":                        {present, nil, pending, "Provisioned: " + all},
		"unchanged":                          {present, nil, good, ""},
		"not alone in its range":             {with(present, func(d *plan.Desired) { d.SharesRange = true }), nil, pending, "Provisioned: " + all + " An older Network of this namespace has the same range."},
		"drift is reported, but unavailable": {with(present, func(d *plan.Desired) { d.ReportDrift = true }), failure(neutron.ErrUnavailable), good, ""},
		"drift is reported, but waiting":     {with(present, func(d *plan.Desired) { d.ReportDrift = true }), status.WaitError{}, good, ""},
		"recovered":                          {present, nil, bad, "Provisioned: " + all},
		"deleted":                            {absent, nil, good, ""},
		"changed concurrently":               {present, failure(neutron.ErrConflict), pending, ""},
		"deleted concurrently":               {present, failure(neutron.ErrNotFound), pending, ""},
		"Kubernetes unavailable":             {present, errors.New("updating finalizers: connection refused"), pending, ""},
		"blocked with a long message":        {present, plan.Blocked{Reason: plan.ReasonAmbiguous, Message: strings.Repeat("x", 1025)}, pending, "Stalled Ambiguous: " + strings.Repeat("x", 1021) + "…"},
		"blocked":                            {present, plan.Blocked{Reason: plan.ReasonAmbiguous, Message: "two networks"}, pending, "Stalled Ambiguous: two networks"},

		"rejected by Neutron": {present, failure(neutron.ErrRefused), pending, "Stalled Refused: Cannot create the subnet 10.0.0.0/24, gateway 10.0.0.1: Neutron rejected the request (409 OverQuota): Quota exceeded. Free quota of the OpenStack project, or raise the quota." + onChange},
		"forbidden by the policy": {present, failed(createNetwork, neutron.Error{Class: neutron.ErrRefused, Status: 403, Message: "rule:create_network is disallowed."}), pending,
			refused + "(403): rule:create_network is disallowed. The OpenStack policy does not permit this request with the controller's credentials: an administrator must change the policy or the credentials." + onChange},
		"forbidden by access rules": {present, failed(createNetwork, neutron.Error{Class: neutron.ErrRefused, Status: 401, Type: "Unauthorized", Message: "Neutron accepts the token for other requests"}), pending,
			refused + "(401 Unauthorized): Neutron accepts the token for other requests. The access rules of the application credential do not permit this request: an administrator must create another application credential, and write it to clouds.yaml or its Secret." + onChange},
		"rejected otherwise": {present, &neutron.Error{Op: "create network", Class: neutron.ErrRefused, Status: 400, Type: "InvalidInput", Message: "Bad MTU"}, pending, "Stalled Refused: Cannot create network: Neutron rejected the request (400 InvalidInput): Bad MTU." + onChange},
		"login rejected": {present, login(401, "Unauthorized", "The password is wrong."), pending,
			"Stalled LoginRejected: Cannot create the Neutron network: Keystone at https://keystone.example/v3 rejected the login (401 Unauthorized): The password is wrong. Check auth_url and the credentials in clouds.yaml, or in the Secret that contains it. The controller retries at least every two minutes, and needs no restart."},

		"no Secret":                    {present, withoutCloud("", "there is no Secret"), pending, "Stalled NoCloud: Cannot create the Neutron network: the namespace default has no cloud: there is no Secret."},
		"no Secret, and being deleted": {absent, withoutCloud("", "there is no Secret"), good, "Stalled NoCloud: Cannot create the Neutron network: the namespace default has no cloud: there is no Secret." + wayOut},
		"login rejected, and being deleted": {absent, login(404, "", "There is no such project."), good,
			"Stalled LoginRejected: Cannot create the Neutron network: Keystone at https://keystone.example/v3 rejected the login (404): There is no such project. Check auth_url and the credentials in clouds.yaml, or in the Secret that contains it. The controller retries at least every two minutes, and needs no restart." + wayOut},
		"no Secret, and drift is reported":                      {plan.Desired{Owner: owner, ReportDrift: true}, withoutCloud("", "there is no Secret"), good, "Stalled NoCloud: Cannot create the Neutron network: the namespace default has no cloud: there is no Secret."},
		"the first login with a Secret":                         {present, withoutCloud("https://keystone.example/v3", "it takes long"), pending, waiting + "create the Neutron network: Keystone at https://keystone.example/v3 is unavailable: it takes long." + untilDone},
		"Keystone unavailable":                                  {present, login(503, "", "Service Unavailable"), pending, waiting + "create the Neutron network: Keystone at https://keystone.example/v3 is unavailable (503): Service Unavailable." + untilDone},
		"another problem than before":                           {present, failure(neutron.ErrUnavailable), bad, waiting + "create the subnet 10.0.0.0/24, gateway 10.0.0.1: Neutron is unavailable (409 OverQuota): Quota exceeded." + untilDone},
		"unavailable, and retried at a time that Neutron gives": {present, failed(createNetwork, neutron.Error{Class: neutron.ErrUnavailable, Status: 503, RetryAfter: time.Minute, Message: "busy."}), pending, waiting + "create the Neutron network: Neutron is unavailable (503): busy."},
		"waiting for an earlier request":                        {present, &status.StepError{Step: plan.RemoveFinalizer{}, Err: status.WaitError{Reason: "no response arrived", Left: time.Minute}}, pending, waiting + "finish the deletion yet: no response arrived."},

		"in use, being deleted":            {absent, used(plan.DeleteNetwork{ID: "net-1"}, "Ports.", "p-1", "p-2"), good, inUse + "delete the Neutron network net-1 while ports use it: p-1, p-2. Nothing was deleted. Delete the ports, or set spec.deletionPolicy to Retain." + whileUsed},
		"in use, and the range was edited": {present, used(plan.DeleteSubnet{From: oldRange, For: "172.16.0.0/24"}, "", "d43c"), good, inUse + "change 192.168.0.0/16 to 172.16.0.0/24 while port d43c uses it. Delete the ports, or restore the previous spec." + whileUsed},
		"in use by unknown ports":          {absent, used(plan.DeleteSubnet{From: oldRange}, "One or more ports"), good, inUse + "delete the subnet 192.168.0.0/16 while ports use it: One or more ports. Nothing was deleted. Delete the ports, or set spec.deletionPolicy to Retain." + whileUsed},
		"a duplicate is in use":            {present, used(plan.DeleteNetwork{ID: "net-2", DuplicateOf: "net-1"}, "", "p-1"), good, inUse + "delete the Neutron network net-2, a duplicate of net-1, while port p-1 uses it. Delete the ports, or move them to the other network." + whileUsed},
		"a port has the gateway address":   {present, used(plan.AttachRouter{Interface: router}, "", "p-1"), good, inUse + "attach the subnet to router router-1 with the address 10.0.0.1 while port p-1 uses it. Delete the port, or set spec.gateway to another address." + whileUsed},
		"routes require the router":        {present, used(plan.DetachRouter{Interface: router}, "Required by routes."), good, inUse + "detach the subnet from router router-1 while ports use it: Required by routes. Remove the routes or floating IP addresses that require the router, or restore the previous spec." + whileUsed},
	} {
		t.Run(name, func(t *testing.T) {
			network := &samplecrdv1.Network{Status: samplecrdv1.NetworkStatus{
				ObservedGeneration: 7, MatchedGeneration: 5, NetworkID: "net-1", SubnetID: "sub-1", CIDR: "10.0.0.0/24", Gateway: "10.0.0.1",
				Conditions: []metav1.Condition{test.before, {Type: "Theirs", Status: "True"}},
			}}
			if network.Generation = 7; test.before.Status == metav1.ConditionTrue {
				network.Status.MatchedGeneration = 7
			}
			got, relevant := status.For(network, status.Found{Desired: test.desired, Actual: actual, Outcome: test.outcome}, now)

			want := *network.Status.DeepCopy()
			if text, message, changes := strings.Cut(test.want, ": "); changes {
				kind, reason, isAbnormal := strings.Cut(text, " ")
				if !isAbnormal {
					kind, reason = "", text
				}
				want.Conditions = wantConditions(want.Conditions, kind, reason, message)
				if kind == "" {
					want.MatchedGeneration = 7
				}
			}
			changed := relevant && !equality.Semantic.DeepEqual(got, network.Status)
			if diff := cmp.Diff(want, got); diff != "" || changed != (test.want != "") {
				t.Errorf("For() says changed = %v, and differs (-want +got):\n%s", changed, diff)
			}
		})
	}
}

// wantConditions returns conditions with Ready, which is false if another kind of condition
// is beside it. Its time changes with its status.
func wantConditions(before []metav1.Condition, kind, reason, message string) []metav1.Condition {
	is := metav1.Condition{
		Type: "Ready", Status: "True", Reason: reason, Message: message, ObservedGeneration: 7, LastTransitionTime: now,
	}
	if kind == "" {
		return append([]metav1.Condition{is}, before[1:]...)
	}
	beside := is
	beside.Type, is.Status = kind, "False"
	if before[0].Status == is.Status {
		is.LastTransitionTime = before[0].LastTransitionTime
	}
	return append(append([]metav1.Condition{is}, before[1:]...), beside)
}

// TestRecord: a record survives the way through a status, of which it replaces the fields,
// and the patch contains all of it.
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
			network := &samplecrdv1.Network{Status: samplecrdv1.NetworkStatus{NetworkID: "gone-net", SubnetID: "gone-sub"}}
			written, _ := status.For(network, status.Found{Desired: present, Actual: plan.Actual{Record: record}, Outcome: &neutron.Error{Class: neutron.ErrUnavailable}}, now)
			if diff := cmp.Diff(record, status.RecordOf(written), cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
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

// TestNewProblem: a condition that became false, or has another reason, is a new problem.
func TestNewProblem(t *testing.T) {
	for name, test := range map[string]struct{ before, after, want string }{
		"good before and after": {"Provisioned: good", "Provisioned: good", ""},
		"good after":            {"Refused: quota", "Provisioned: good", ""},
		"new":                   {"Provisioned: good", "Refused: quota", "Refused: quota"},
		"the first condition":   {"", "Refused: quota", "Refused: quota"},
		"another message":       {"Refused: quota", "Refused: policy", ""},
		"another reason":        {"Refused: quota", "InUse: ports", "InUse: ports"},
		"no condition":          {"", "", ""},
	} {
		having := func(text string) (s samplecrdv1.NetworkStatus) {
			reason, message, ok := strings.Cut(text, ": ")
			is := ready(metav1.ConditionFalse, reason, message)
			if reason == status.Provisioned {
				is.Status = metav1.ConditionTrue
			}
			if ok {
				s.Conditions = []metav1.Condition{is}
			}
			return s
		}
		reason, message := status.NewProblem(having(test.before), having(test.after))
		if got := strings.Trim(reason+": "+message, ": "); got != test.want {
			t.Errorf("%s: NewProblem() = %q, want %q", name, got, test.want)
		}
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
		"new":                                   {`{}`, samplecrdv1.NetworkStatus{NetworkID: "net-1", Router: router("r-1", "")}, `,"status":{"networkID":"net-1","router":{"id":"r-1"}}`},
		"equal":                                 {`{"networkID":"net-1","tags":["a"]}`, samplecrdv1.NetworkStatus{NetworkID: "net-1", Tags: []string{"a"}}, ``},
		"equal, and a field of a newer release": {`{"networkID":"net-1","floatingIP":{"id":"f-1"}}`, samplecrdv1.NetworkStatus{NetworkID: "net-1"}, ``},
		"changed beside fields of a newer release": {`{"networkID":"net-1","floatingIP":{"id":"f-1"},"router":{"id":"r-1","name":"a","port":"p-1"}}`, samplecrdv1.NetworkStatus{NetworkID: "net-2", Router: router("r-1", "b")}, `,"status":{"networkID":"net-2","router":{"name":"b"}}`},
		"removed":                            {`{"networkID":"net-1","subnetID":"sub-1","mtu":1400,"tags":["a"],"subnetPool":{"id":"p"},"router":{"id":"r-1","name":"a"}}`, samplecrdv1.NetworkStatus{NetworkID: "net-1", Router: router("r-1", "")}, `,"status":{"mtu":null,"router":{"name":null},"subnetID":null,"subnetPool":null,"tags":null}`},
		"tags as a whole":                    {`{"tags":["a","b"]}`, samplecrdv1.NetworkStatus{Tags: []string{"a", "c"}}, `,"status":{"tags":["a","c"]}`},
		"conditions of others":               {`{"conditions":[` + condition("Stalled") + `,` + condition("Theirs") + `]}`, samplecrdv1.NetworkStatus{Conditions: having("Ready")}, `,"status":{"conditions":[` + condition("Ready") + `,` + condition("Theirs") + `]}`},
		"equal, and conditions of others":    {`{"conditions":[` + condition("Ready") + `,` + condition("Theirs") + `]}`, samplecrdv1.NetworkStatus{Conditions: having("Ready", "Theirs")}, ``},
		"only conditions of others are left": {`{"conditions":[` + condition("Ready") + `,` + condition("Theirs") + `]}`, samplecrdv1.NetworkStatus{}, `,"status":{"conditions":[` + condition("Theirs") + `]}`},
		"no conditions are left":             {`{"conditions":[` + condition("Ready") + `]}`, samplecrdv1.NetworkStatus{}, `,"status":{"conditions":null}`},
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
