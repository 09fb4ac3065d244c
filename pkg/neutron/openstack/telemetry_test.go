package openstack_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/samplecrd/network-controller/pkg/instrument"
	"github.com/samplecrd/network-controller/pkg/metrics"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
)

// TestNoSecretsInTelemetry: whatever a server answers, metrics and traces contain
// neither the password nor the token.
func TestNoSecretsInTelemetry(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(provider)
	t.Cleanup(func() { otel.SetTracerProvider(before) })

	k, client := newCloud(t, openstack.WithTransport(instrument.Neutron), openstack.OnSkipped(instrument.Skipped()))
	wantList(t, client)
	const token = "token-" + secret + "-1"
	echo := `{"NeutronError": {"type": "` + token + `", "message": "` + token + ` ` + password + `"}}`
	for name, fault := range map[string]embedded.Fault{
		"a message":  {Status: 400, Body: echo},
		"a status":   {Status: 599, Body: echo},
		"a redirect": {Status: 302, Header: http.Header{"Location": {"/?token=" + token}}},
		"a link":     {Status: 200, Body: `{"networks": [], "networks_links": [{"rel": "next", "href": "?marker=` + token + `&x=` + token + `"}]}`},
		"an object":  {Status: 200, Body: `{"networks": [{"id": "` + token + `/", "description": "` + password + `"}]}`},
		"a cut":      {Status: 200, Body: echo, Truncate: true},
		"no answer":  {DropRequest: true},
	} {
		fault.Times = 1
		k.neutron.Inject(fault)
		t.Log(name, list(t, client))
	}
	k.revoke()
	k.fail(func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusUnauthorized, password, password)
	})
	if list(t, client) == nil {
		t.Error("the login succeeds")
	}

	exported := spans.GetSpans()
	if len(exported) < 9 {
		t.Errorf("%d spans were exported", len(exported))
	}
	for _, span := range exported {
		if text := fmt.Sprintf("%+v", span); strings.Contains(text, secret) {
			t.Errorf("a span has a secret in it: %s", text)
		}
	}
	scraped := httptest.NewRecorder()
	metrics.Handler().ServeHTTP(scraped, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	if text := scraped.Body.String(); !strings.Contains(text, `samplecrd_neutron_request_duration_seconds_count{code="400",operation="list networks"}`) ||
		!strings.Contains(text, `samplecrd_neutron_skipped_objects_total{kind="networks"} 1`) || strings.Contains(text, secret) {
		t.Errorf("the metrics are not these, or have a secret in them:\n%s", text)
	}
}
