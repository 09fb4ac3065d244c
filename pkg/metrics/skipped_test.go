package metrics_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/samplecrd/network-controller/pkg/metrics"
)

// TestSkippedLog: objects that each list skips are logged once, until their number or
// the reason changes. Each list counts them.
func TestSkippedLog(t *testing.T) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	ctx := klog.NewContext(t.Context(), logger)
	log := logger.GetSink().(ktesting.Underlier).GetBuffer() //nolint:forcetypeassert // it is one
	skipped := metrics.Skipped()
	total := 0
	for _, step := range []struct {
		kind   string
		count  int
		reason string
		lines  int // in the log so far
	}{
		{"networks", 1, "mtu is -1", 1},
		{"networks", 1, "mtu is -1", 1},
		{"ports", 1, "mtu is -1", 2}, // of another kind
		{"networks", 1, "mtu is -1", 2},
		{"networks", 2, "mtu is -1", 3},
		{"networks", 2, "mtu is -2", 4},
		{"networks", 1, "mtu is -1", 5}, // as once before
		{"networks", 1, "mtu is -1", 5},
	} {
		skipped(ctx, step.kind, step.count, step.reason)
		if lines := strings.Count(log.String(), "Skipped unusable objects"); lines != step.lines {
			t.Errorf("after %+v, the log has %d lines:\n%s", step, lines, log.String())
		}
		if step.kind == "networks" {
			total += step.count
		}
	}
	scrape := httptest.NewRecorder()
	metrics.Handler().ServeHTTP(scrape, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	if want := fmt.Sprintf(`samplecrd_neutron_skipped_objects_total{kind="networks"} %d`, total); !strings.Contains(scrape.Body.String(), want+"\n") {
		t.Errorf("the metrics do not have the line %s", want)
	}
}
