package status_test

import (
	"net/netip"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/status"
)

// TestEventsOf: a sync records one event, in the past tense. If Neutron matched the
// spec before, the event names the difference.
func TestEventsOf(t *testing.T) {
	network := func(isReady metav1.ConditionStatus, generation int64) *samplecrdv1.Network {
		network := &samplecrdv1.Network{Status: samplecrdv1.NetworkStatus{
			NetworkID: "net-0", CIDR: "10.0.0.0/24", Conditions: []metav1.Condition{ready(isReady, "", "")},
		}}
		network.Generation = generation
		if isReady == metav1.ConditionTrue {
			network.Status.MatchedGeneration = 7
		}
		return network
	}
	unknown, good, edited, failed := &samplecrdv1.Network{}, network(metav1.ConditionTrue, 7), network(metav1.ConditionTrue, 8), network(metav1.ConditionFalse, 7)
	deleted := network(metav1.ConditionTrue, 7)
	deleted.DeletionTimestamp = &now
	changed := plan.UpdateSubnet{Changes: []plan.Change{{What: "gateway", From: "10.0.0.9", To: "10.0.0.1"}, {What: "DHCP", From: "false", To: "true"}}}
	resized := plan.UpdateNetwork{Changes: []plan.Change{{What: "MTU", From: "1450", To: "1400"}}}
	release := plan.DeleteSubnet{From: netip.MustParsePrefix("10.0.9.0/24")}
	replace := plan.DeleteSubnet{From: netip.MustParsePrefix("10.0.9.0/24"), For: "10.0.0.0/24"}
	fromPool := plan.DeleteSubnet{From: netip.MustParsePrefix("10.0.9.0/24"), For: "a /24 from subnet pool p"}
	otherModes := plan.DeleteSubnet{From: subnet.CIDR, For: "10.0.0.0/24 with RA mode slaac"}
	duplicate := plan.DeleteNetwork{ID: "net-2", DuplicateOf: "net-1"}
	recordRouter, attachRouter := plan.RecordRouter{ID: "router-1"}, plan.AttachRouter{Interface: neutron.RouterInterface{RouterID: "router-1"}}
	detachRouter := plan.DetachRouter{Interface: neutron.RouterInterface{RouterID: "router-0"}}
	event := func(kind, reason, note string) status.Event {
		return status.Event{Type: kind, Reason: reason, Note: note}
	}
	for name, test := range map[string]struct {
		network *samplecrdv1.Network
		steps   []plan.Step
		want    []status.Event
	}{
		"nothing":   {good, nil, nil},
		"only look": {good, []plan.Step{plan.AddFinalizer{}, plan.FindNetwork{}, plan.RecordTags{}}, nil},
		"created": {unknown, []plan.Step{plan.AddFinalizer{}, createNetwork, createSubnet, plan.AddTag{Tag: "a\nb"}}, []status.Event{
			event("Normal", "NetworkCreated", `Created network net-1 with subnet 10.0.0.0/24, gateway 10.0.0.1, added tag "a\nb".`),
		}},
		"network created":         {unknown, []plan.Step{createNetwork}, []status.Event{event("Normal", "NetworkCreated", "Created network net-1.")}},
		"subnet created at last":  {failed, []plan.Step{createSubnet}, []status.Event{event("Normal", "SubnetCreated", "Created subnet 10.0.0.0/24, gateway 10.0.0.1.")}},
		"edited":                  {edited, []plan.Step{changed}, []status.Event{event("Normal", "SubnetUpdated", "Changed gateway 10.0.0.9 → 10.0.0.1 and DHCP false → true.")}},
		"edited in several steps": {edited, []plan.Step{resized, changed, plan.RemoveTag{Tag: "x"}}, []status.Event{event("Normal", "NetworkUpdated", `Changed MTU 1450 → 1400, changed gateway 10.0.0.9 → 10.0.0.1 and DHCP false → true, removed tag "x".`)}},
		"tag added":               {edited, []plan.Step{plan.AddTag{Tag: "x"}}, []status.Event{event("Normal", "NetworkUpdated", `Added tag "x".`)}},
		"tag removed":             {good, []plan.Step{plan.RemoveTag{Tag: "x"}}, []status.Event{event("Normal", "NetworkUpdated", `Removed tag "x".`)}},
		"replaced":                {edited, []plan.Step{replace, createSubnet}, []status.Event{event("Normal", "SubnetReplaced", "Replaced subnet 10.0.9.0/24 by 10.0.0.0/24, gateway 10.0.0.1.")}},
		"replaced, from a pool":   {edited, []plan.Step{fromPool, createSubnet}, []status.Event{event("Normal", "SubnetReplaced", "Replaced subnet 10.0.9.0/24 by 10.0.0.0/24, gateway 10.0.0.1 (a /24 from subnet pool p).")}},
		"other IPv6 modes":        {edited, []plan.Step{otherModes, createSubnet}, []status.Event{event("Normal", "SubnetReplaced", "Replaced subnet 10.0.0.0/24 by 10.0.0.0/24 with RA mode slaac, gateway 10.0.0.1.")}},
		"replaced, new one first": {edited, []plan.Step{createSubnet, replace}, []status.Event{event("Normal", "SubnetReplaced", "Replaced subnet 10.0.9.0/24 by 10.0.0.0/24, gateway 10.0.0.1.")}},
		"half replaced":           {edited, []plan.Step{replace}, []status.Event{event("Normal", "SubnetDeleted", "Deleted subnet 10.0.9.0/24.")}},
		"retained":                {deleted, []plan.Step{plan.RetainNetwork{ID: "net-1"}}, []status.Event{event("Normal", "NetworkRetained", "Kept network net-1 for the next Network of this name.")}},
		"released":                {deleted, []plan.Step{release, plan.RemoveFinalizer{}}, []status.Event{event("Normal", "SubnetDeleted", "Deleted subnet 10.0.9.0/24.")}},
		"deleted":                 {deleted, []plan.Step{plan.DeleteNetwork{ID: "net-1"}, plan.RemoveFinalizer{}}, []status.Event{event("Normal", "NetworkDeleted", "Deleted network net-1 with subnet 10.0.0.0/24.")}},
		"orphan deleted":          {unknown, []plan.Step{plan.DeleteNetwork{ID: "net-1"}}, []status.Event{event("Normal", "NetworkDeleted", "Deleted network net-1.")}},
		"router attached":         {edited, []plan.Step{recordRouter, attachRouter}, []status.Event{event("Normal", "RouterAttached", "Attached the subnet to router router-1.")}},
		"router detached":         {edited, []plan.Step{detachRouter, plan.RecordRouter{}}, []status.Event{event("Normal", "RouterDetached", "Detached the subnet from router router-0.")}},
		"another router":          {edited, []plan.Step{detachRouter, recordRouter, attachRouter}, []status.Event{event("Normal", "RouterReplaced", "Detached the subnet from router router-0, attached the subnet to router router-1.")}},
		"created with router":     {unknown, []plan.Step{createNetwork, createSubnet, recordRouter, attachRouter}, []status.Event{event("Normal", "NetworkCreated", "Created network net-1 with subnet 10.0.0.0/24, gateway 10.0.0.1, attached the subnet to router router-1.")}},
		"gateway of a router":     {edited, []plan.Step{detachRouter, changed, attachRouter}, []status.Event{event("Normal", "SubnetUpdated", "Detached the subnet from router router-0, changed gateway 10.0.0.9 → 10.0.0.1 and DHCP false → true, attached the subnet to router router-1.")}},
		"attachment missing": {good, []plan.Step{attachRouter}, []status.Event{
			event("Warning", "Drifted", "Corrected a difference in Neutron: the subnet was not attached to its router; attached the subnet to router router-1."),
		}},
		"a duplicate": {good, []plan.Step{duplicate}, []status.Event{
			{Type: "Normal", Reason: "DuplicateDeleted", Note: "Deleted network net-2: it was a duplicate of net-1, created by another request."},
		}},
		"network missing": {good, []plan.Step{createNetwork, createSubnet}, []status.Event{
			event("Warning", "Drifted", "Corrected a difference in Neutron: network net-0 did not exist; created network net-1 with subnet 10.0.0.0/24, gateway 10.0.0.1."),
		}},
		"subnet missing": {good, []plan.Step{createSubnet}, []status.Event{
			event("Warning", "Drifted", "Corrected a difference in Neutron: the subnet did not exist; created subnet 10.0.0.0/24, gateway 10.0.0.1."),
		}},
		"another range": {good, []plan.Step{replace, createSubnet}, []status.Event{
			event("Warning", "Drifted", "Corrected a difference in Neutron: replaced subnet 10.0.9.0/24 by 10.0.0.0/24, gateway 10.0.0.1."),
		}},
		"other settings": {good, []plan.Step{resized, changed}, []status.Event{
			event("Warning", "Drifted", "Corrected a difference in Neutron: changed MTU 1450 → 1400, changed gateway 10.0.0.9 → 10.0.0.1 and DHCP false → true."),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := status.EventsOf(test.network, test.steps, plan.Record{NetworkID: "net-1", CIDR: subnet.CIDR, Gateway: subnet.Gateway})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("EventsOf() (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEventWithoutGateway: a subnet without a gateway is described by its range.
func TestEventWithoutGateway(t *testing.T) {
	got := status.EventsOf(&samplecrdv1.Network{}, []plan.Step{createSubnet}, plan.Record{CIDR: subnet.CIDR})
	if len(got) != 1 || got[0].Note != "Created subnet 10.0.0.0/24." {
		t.Errorf("EventsOf() = %v", got)
	}
}

// TestPrintable: what is not printable is escaped, so that a text of a user or of
// Neutron cannot forge a line or move the cursor of a terminal.
func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "",
		"plain → 网络 \"quoted\"":  "plain → 网络 \"quoted\"",
		"a\nI1121 forged":        `a\nI1121 forged`,
		"\x1b[2J\x07\r\t\x00":    `\x1b[2J\a\r\t\x00`,
		"right \u202e to left":   `right \u202e to left`,
		"line separator \u2028.": `line separator \u2028.`,
		"broken \xff UTF-8":      `broken \ufffd UTF-8`,
	} {
		got := status.Clip(text)
		if got != want || status.Clip(got) != got {
			t.Errorf("Clip(%q) = %q, then %q, want %q", text, got, status.Clip(got), want)
		}
		for _, r := range got {
			if !unicode.IsPrint(r) {
				t.Errorf("Clip(%q) contains %q", text, r)
			}
		}
	}
}
