package openstack_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/samplecrd/network-controller/pkg/metrics"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
	"github.com/samplecrd/network-controller/pkg/observe"
	"github.com/samplecrd/network-controller/pkg/tracing"
	"github.com/samplecrd/network-controller/test/keystone"
)

// TestNoSecretsInTelemetry: whatever a server responds with, metrics and traces contain
// neither the password nor the token.
func TestNoSecretsInTelemetry(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(provider)
	t.Cleanup(func() { otel.SetTracerProvider(before) })

	observed := observe.Transport(observe.All{tracing.NewObserver(), metrics.Observer{}}, metrics.Neutron, openstack.Operation)
	c := newCloud(t)
	c.connect(openstack.Options{Transport: observed, Skipped: metrics.CountSkipped})
	c.wantList()
	const token = "token-" + secret + "-1"
	echo := `{"NeutronError": {"type": "` + token + `", "message": "` + token + ` ` + password + `"}}`
	for name, fault := range map[string]embedded.Fault{
		"a message":   {Status: 400, Body: echo},
		"a status":    {Status: 599, Body: echo},
		"a redirect":  {Status: 302, Header: http.Header{"Location": {"/?token=" + token}}},
		"a link":      {Status: 200, Body: `{"networks": [], "networks_links": [{"rel": "next", "href": "?marker=` + token + `&x=` + token + `"}]}`},
		"an object":   {Status: 200, Body: `{"networks": [{"id": "` + token + `/", "description": "` + password + `"}]}`},
		"a cut":       {Status: 200, Body: echo, Truncate: true},
		"no response": {DropRequest: true},
	} {
		fault.Times = 1
		c.Neutron.Inject(fault)
		t.Log(name, c.list())
	}
	c.Revoke()
	c.fail(func(w http.ResponseWriter, _ *http.Request) { keystone.Refuse(w, http.StatusUnauthorized, password) })
	if c.list() == nil {
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
	text := scraped.Body.String()
	for _, want := range []string{
		`samplecrd_neutron_request_duration_seconds_count{code="400",operation="list networks"}`,
		`samplecrd_neutron_request_duration_seconds_count{code="401",operation="login"}`,
		`samplecrd_neutron_skipped_objects_total{kind="networks"}`,
	} {
		if !regexp.MustCompile(regexp.QuoteMeta(want) + " [1-9]").MatchString(text) {
			t.Errorf("the metrics lack %s:\n%s", want, text)
		}
	}
	if strings.Contains(text, secret) || strings.Contains(text, `operation="other"`) {
		t.Errorf("the metrics have a secret in them, or an unknown operation:\n%s", text)
	}
}
