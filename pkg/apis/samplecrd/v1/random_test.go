package v1_test

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// TestRandomSpecs sends random specs to a real API server, for new Networks and as
// changes of a stored one. Both have one verdict, which is that of the rules before they
// are composed, and the controller rejects what the rules between fields reject.
func TestRandomSpecs(t *testing.T) {
	const specs = 300
	composed, separate := crdObjects("samplecrd.k8s.io"), installSeparateRules(t)
	stored := composed.create(t, map[string]any{"cidr": "192.168.0.0/16", "networkID": "abc"})
	random := rand.New(rand.NewPCG(1, 2))
	accepted, between := 0, 0
	for range specs {
		spec := randomSpec(random)
		spec["networkID"] = "abc" // cannot be set later
		created, updated := composed.try(t, spec), composed.tryChange(t, stored, spec)
		if !reflect.DeepEqual(causes(created), causes(updated)) {
			t.Errorf("%v: as a new Network: %v\nas a change: %v", spec, created, updated)
		}
		if one := separate.try(t, spec); !reflect.DeepEqual(causes(created), causes(one)) {
			t.Errorf("%v: with the composed rule: %v\nwith separate rules: %v", spec, created, one)
		}
		if created == nil {
			accepted++
			continue
		}
		if !strings.Contains(created.Error(), "spec: Invalid value: ") {
			continue
		}
		between++
		if strings.Contains(created.Error(), "do not fit together") || strings.Contains(created.Error(), "networkID cannot be set") {
			t.Errorf("%v: no sentence for the violation: %v", spec, created)
		}
		if invalid(t, spec) == "" {
			t.Errorf("%v: the API server returns %v, but the controller accepts it", spec, created)
		}
	}
	t.Logf("%d of %d specs are accepted, %d violate the rule between fields", accepted, specs, between)
	if accepted < specs/20 || between < specs/4 {
		t.Errorf("%d of %d specs are accepted, %d violate the rule between fields: the specs are not random enough", accepted, specs, between)
	}
}

// causes returns what an error of the API server is about. Of the rules between fields,
// the first one that is violated counts.
func causes(err error) map[string]bool {
	found, between := map[string]bool{}, false
	for _, cause := range allCauses(err) {
		if cause.Field == "spec" && between {
			continue
		}
		between = between || cause.Field == "spec"
		found[cause.Field+": "+cause.Message] = true
	}
	return found
}

// randomSpec returns a spec in JSON whose fields are valid or nearly so.
func randomSpec(random *rand.Rand) map[string]any {
	spec := map[string]any{}
	maybe := func(probability float64, field string, values ...any) {
		if random.Float64() < probability {
			spec[field] = values[random.IntN(len(values))]
		}
	}
	list := func(values ...any) []any { return values }
	maybe(0.9, "cidr", "10.0.0.0/24", "10.0.0.0/24", "10.0.0.9/16", "fd00::/64", "fd00::/64", "fd00::/80", "10.0.0.0/31", "0.0.0.0/0", "words", "224.0.0.0/4")
	maybe(0.15, "subnetPool", map[string]any{"name": "a"}, map[string]any{"id": "a"}, map[string]any{"name": "a", "id": "b"})
	maybe(0.4, "gateway", "10.0.0.1", "10.0.0.254", "10.0.0.0", "10.0.1.1", "fd00::1", "fd00::", "None", "None", "words", "127.0.0.1")
	maybe(0.2, "enableDHCP", true, false)
	maybe(0.15, "allocationPools", list(map[string]any{"start": "10.0.0.10", "end": "10.0.0.20"}), list(map[string]any{"start": "fd00::10", "end": "fd00::20"}),
		list(map[string]any{"start": "10.0.0.10", "end": "words"}))
	maybe(0.15, "dnsNameservers", list("9.9.9.9"), list("fd00::53"), list("9.9.9.9", "fd00::53"), list("9.9.9.9", "9.9.9.9"), list("words"))
	maybe(0.15, "hostRoutes", list(map[string]any{"destination": "10.9.0.0/16", "nextHop": "10.0.0.9"}), list(map[string]any{"destination": "fd01::/64", "nextHop": "fd00::9"}),
		list(map[string]any{"destination": "words", "nextHop": "fd00::9"}), list(map[string]any{"destination": "10.9.0.1/16", "nextHop": "10.0.0.9"}))
	maybe(0.15, "ipv6", map[string]any{"raMode": "slaac"}, map[string]any{"addressMode": "slaac", "raMode": "dhcpv6-stateful"}, map[string]any{})
	maybe(0.15, "mtu", 1400, 1279)
	maybe(0.1, "dnsDomain", "a.example.org", "a_b")
	maybe(0.1, "tags", list("a", "b"), list("a/b"))
	maybe(0.15, "router", map[string]any{"name": "r"}, map[string]any{})
	return spec
}
