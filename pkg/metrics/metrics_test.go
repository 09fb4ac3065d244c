package metrics

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// TestClouds: the metrics contain the clouds in use, and no earlier one. They add up what
// the clouds have, and show the worst time.
func TestClouds(t *testing.T) {
	a, b, ended := &Cloud{}, &Cloud{}, &Cloud{}
	a.ObserveListing(neutron.Listing{Cloud: "embedded"}, time.Second, nil)
	a.ObserveListing(neutron.Listing{Cloud: "RegionOne/1234", Networks: 2, Took: 3 * time.Second}, time.Second, nil)
	b.ObserveListing(neutron.Listing{Cloud: "RegionOne/5678", Networks: 5, Took: time.Second}, 2*time.Second, nil)
	a.SetOrphans(1, 2)
	b.SetOrphans(3, 0)
	full := map[string]neutron.Quota{"network": {Limit: 9, Used: 9}}
	ended.ObserveListing(neutron.Listing{Cloud: "RegionOne/9", Networks: 9, Took: time.Hour, Quotas: full}, time.Hour, nil)
	(&Cloud{}).SetNone(time.Hour) // of a namespace without one
	ended.Close()
	ended.ObserveListing(neutron.Listing{Cloud: "RegionOne/9", Took: time.Hour}, time.Hour, nil) // that was under way
	CountSkipped(t.Context(), "networks", 1, "mtu is -1")
	CountSkipped(t.Context(), "networks", 2, "mtu is -1")
	response := httptest.NewRecorder()
	Handler().ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	got := regexp.MustCompile(`(?m)^samplecrd_(?:neutron_info|orphans|retained|neutron_quota|neutron_skipped_objects_total.kind="networks|neutron_cache_(?:objects|refresh_d|period)).*$`).FindAllString(response.Body.String(), -1)
	if diff := cmp.Diff([]string{
		`samplecrd_neutron_cache_objects{kind="network"} 7`,
		`samplecrd_neutron_cache_objects{kind="subnet"} 0`,
		`samplecrd_neutron_cache_period_seconds 2`,
		`samplecrd_neutron_cache_refresh_duration_seconds 3`,
		`samplecrd_neutron_info{cloud="RegionOne/1234"} 1`,
		`samplecrd_neutron_info{cloud="RegionOne/5678"} 1`,
		`samplecrd_neutron_skipped_objects_total{kind="networks"} 3`,
		`samplecrd_orphans 4`,
		`samplecrd_retained_networks 2`,
	}, got); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}

// TestInventedCodes: a server that invents status codes adds few series.
func TestInventedCodes(t *testing.T) {
	for code := range 1000 {
		observeNeutron("login", code, 0)
	}
	response := httptest.NewRecorder()
	Handler().ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	all := regexp.MustCompile(`(?m)^samplecrd_neutron_request_duration_seconds_count{code="(.*?)"`)
	codes := map[string]bool{}
	for _, found := range all.FindAllStringSubmatch(response.Body.String(), -1) {
		codes[found[1]] = true
	}
	if len(codes) > 80 || !codes["none"] || !codes["404"] || !codes["5xx"] {
		t.Errorf("there are %d codes: %v", len(codes), codes)
	}
}
