package status_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

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
	recordRouter, attachRouter := plan.RecordRouter{ID: "router-1"}, plan.AttachRouter{Interface: neutron.RouterInterface{RouterID: "router-1", Address: subnet.Gateway}}
	detachRouter := plan.DetachRouter{Interface: neutron.RouterInterface{RouterID: "router-0"}}
	for name, test := range map[string]struct {
		network *samplecrdv1.Network
		steps   []plan.Step
		want    string // the events, a line each
	}{
		"nothing":                          {good, nil, ""},
		"only look":                        {good, []plan.Step{plan.AddFinalizer{}, plan.FindNetwork{}, plan.RecordTags{}}, ""},
		"a duplicate of a drifted network": {good, []plan.Step{duplicate, resized}, "Normal DuplicateDeleted: Deleted the Neutron network net-2, a duplicate of net-1.\nWarning Drifted: Corrected a difference in Neutron: changed MTU from 1450 to 1400."},
		"created":                          {unknown, []plan.Step{plan.AddFinalizer{}, createNetwork, createSubnet, plan.AddTag{Tag: "a\nb"}}, `Normal NetworkCreated: Created the Neutron network net-1, created the subnet 10.0.0.0/24, gateway 10.0.0.1, added the tag "a\nb".`},
		"network created":                  {unknown, []plan.Step{createNetwork}, "Normal NetworkCreated: Created the Neutron network net-1."},
		"subnet created at last":           {failed, []plan.Step{createSubnet}, "Normal SubnetCreated: Created the subnet 10.0.0.0/24, gateway 10.0.0.1."},
		"edited":                           {edited, []plan.Step{changed}, "Normal SubnetUpdated: Changed gateway from 10.0.0.9 to 10.0.0.1 and DHCP from false to true."},
		"edited in several steps":          {edited, []plan.Step{resized, changed, plan.RemoveTag{Tag: "x"}}, `Normal NetworkUpdated: Changed MTU from 1450 to 1400, changed gateway from 10.0.0.9 to 10.0.0.1 and DHCP from false to true, removed the tag "x".`},
		"tag added":                        {edited, []plan.Step{plan.AddTag{Tag: "x"}}, `Normal NetworkUpdated: Added the tag "x".`},
		"tag removed":                      {good, []plan.Step{plan.RemoveTag{Tag: "x"}}, `Normal NetworkUpdated: Removed the tag "x".`},
		"replaced":                         {edited, []plan.Step{replace, createSubnet}, "Normal SubnetReplaced: Changed 10.0.9.0/24 to 10.0.0.0/24, created the subnet 10.0.0.0/24, gateway 10.0.0.1."},
		"replaced, from a pool":            {edited, []plan.Step{fromPool, createSubnet}, "Normal SubnetReplaced: Changed 10.0.9.0/24 to a /24 from subnet pool p, created the subnet 10.0.0.0/24, gateway 10.0.0.1."},
		"other IPv6 modes":                 {edited, []plan.Step{otherModes, createSubnet}, "Normal SubnetReplaced: Changed 10.0.0.0/24 to 10.0.0.0/24 with RA mode slaac, created the subnet 10.0.0.0/24, gateway 10.0.0.1."},
		"replaced, new one first":          {edited, []plan.Step{createSubnet, replace}, "Normal SubnetReplaced: Created the subnet 10.0.0.0/24, gateway 10.0.0.1, changed 10.0.9.0/24 to 10.0.0.0/24."},
		"half replaced":                    {edited, []plan.Step{replace}, "Normal SubnetDeleted: Changed 10.0.9.0/24 to 10.0.0.0/24."},
		"retained":                         {deleted, []plan.Step{plan.RetainNetwork{ID: "net-1"}}, "Normal NetworkRetained: Marked the Neutron network net-1 as retained."},
		"released":                         {deleted, []plan.Step{release, plan.RemoveFinalizer{}}, "Normal SubnetDeleted: Deleted the subnet 10.0.9.0/24."},
		"deleted":                          {deleted, []plan.Step{plan.DeleteNetwork{ID: "net-1"}, plan.RemoveFinalizer{}}, "Normal NetworkDeleted: Deleted the Neutron network net-1."},
		"orphan deleted":                   {unknown, []plan.Step{plan.DeleteNetwork{ID: "net-1"}}, "Normal NetworkDeleted: Deleted the Neutron network net-1."},
		"router attached":                  {edited, []plan.Step{recordRouter, attachRouter}, "Normal RouterAttached: Attached the subnet to router router-1 with the address 10.0.0.1."},
		"router detached":                  {edited, []plan.Step{detachRouter, plan.RecordRouter{}}, "Normal RouterDetached: Detached the subnet from router router-0."},
		"another router":                   {edited, []plan.Step{detachRouter, recordRouter, attachRouter}, "Normal RouterReplaced: Detached the subnet from router router-0, attached the subnet to router router-1 with the address 10.0.0.1."},
		"created with router":              {unknown, []plan.Step{createNetwork, createSubnet, recordRouter, attachRouter}, "Normal NetworkCreated: Created the Neutron network net-1, created the subnet 10.0.0.0/24, gateway 10.0.0.1, attached the subnet to router router-1 with the address 10.0.0.1."},
		"gateway of a router":              {edited, []plan.Step{detachRouter, changed, attachRouter}, "Normal SubnetUpdated: Detached the subnet from router router-0, changed gateway from 10.0.0.9 to 10.0.0.1 and DHCP from false to true, attached the subnet to router router-1 with the address 10.0.0.1."},
		"attachment missing":               {good, []plan.Step{attachRouter}, "Warning Drifted: Corrected a difference in Neutron: the subnet was not attached to its router; attached the subnet to router router-1 with the address 10.0.0.1."},
		"a duplicate":                      {good, []plan.Step{duplicate}, "Normal DuplicateDeleted: Deleted the Neutron network net-2, a duplicate of net-1."},
		"network missing":                  {good, []plan.Step{createNetwork, createSubnet}, "Warning Drifted: Corrected a difference in Neutron: network net-0 did not exist; created the Neutron network net-1, created the subnet 10.0.0.0/24, gateway 10.0.0.1."},
		"subnet missing":                   {good, []plan.Step{createSubnet}, "Warning Drifted: Corrected a difference in Neutron: the subnet did not exist; created the subnet 10.0.0.0/24, gateway 10.0.0.1."},
		"another range":                    {good, []plan.Step{replace, createSubnet}, "Warning Drifted: Corrected a difference in Neutron: changed 10.0.9.0/24 to 10.0.0.0/24, created the subnet 10.0.0.0/24, gateway 10.0.0.1."},
		"other settings":                   {good, []plan.Step{resized, changed}, "Warning Drifted: Corrected a difference in Neutron: changed MTU from 1450 to 1400, changed gateway from 10.0.0.9 to 10.0.0.1 and DHCP from false to true."},
	} {
		t.Run(name, func(t *testing.T) {
			got := status.EventsOf(test.network, test.steps, "net-1")
			var lines []string
			for _, event := range got {
				lines = append(lines, fmt.Sprintf("%s %s: %s", event.Type, event.Reason, event.Note))
			}
			if diff := cmp.Diff(test.want, strings.Join(lines, "\n")); diff != "" {
				t.Errorf("EventsOf() (-want +got):\n%s", diff)
			}
		})
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
	exact := strings.Repeat("x", 1024) // the most that an event's note can have
	if got := status.Clip(exact); got != exact {
		t.Errorf("Clip() shortens 1024 bytes to %d", len(got))
	}
	for _, long := range []string{exact + "x", strings.Repeat("网络", 1000)} {
		if got := status.Clip(long); len(got) > 1024 || len(got) < 1022 || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
			t.Errorf("Clip() makes %d bytes %d: %q", len(long), len(got), got[1000:])
		}
	}
}
