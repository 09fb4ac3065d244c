package metrics

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSetCloud: the metrics contain the cloud in use, and no earlier one.
func TestSetCloud(t *testing.T) {
	SetCloud("embedded")
	SetCloud("RegionOne/1234")
	response := httptest.NewRecorder()
	Handler().ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	got := regexp.MustCompile(`(?m)^samplecrd_neutron_info.*$`).FindAllString(response.Body.String(), -1)
	if diff := cmp.Diff([]string{`samplecrd_neutron_info{cloud="RegionOne/1234"} 1`}, got); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}
