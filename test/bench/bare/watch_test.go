package bare

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

func object(name string, version int, annotations string) string {
	return fmt.Sprintf(`{"metadata":{"namespace":"shop","name":%q,"resourceVersion":"%d","annotations":{%s}}}`, name, version, annotations)
}

func event(kind, name string, version int) string {
	return fmt.Sprintf(`{"type":%q,"object":%s}`, kind, object(name, version, ""))
}

func listEnd(version int) string {
	return fmt.Sprintf(`{"type":"BOOKMARK","object":%s}`, object("", version, `"k8s.io/initial-events-end":"true"`))
}

const expired = `{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":410}}`

// TestWatch: a watch that ends continues after its last event. If that is too old,
// everything is listed again, and what has disappeared is reported as deleted.
func TestWatch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	responses := []struct {
		from   string // expected resource version; empty for a list
		status int
		events []string
	}{
		{"", http.StatusOK, []string{event("ADDED", "a", 7), event("ADDED", "b", 3)}},                                 // ends within the list
		{"", http.StatusOK, []string{event("ADDED", "a", 7), event("ADDED", "b", 3), listEnd(8)}},                     // ends after it
		{"8", http.StatusOK, []string{event("MODIFIED", "a", 9), event("ADDED", "c", 10), event("DELETED", "c", 11)}}, // ends
		{"11", http.StatusOK, nil}, // ends without an event
		{"11", http.StatusOK, []string{event("BOOKMARK", "", 12)}},
		{"12", http.StatusOK, []string{expired}},
		{"", http.StatusOK, []string{event("ADDED", "a", 9), event("ADDED", "d", 20), listEnd(21)}},
		{"21", http.StatusGone, nil},
		{"", http.StatusOK, []string{event("ADDED", "d", 20), listEnd(30), event("ADDED", "last", 31)}},
	}
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests == len(responses) {
			return // until the context ends
		}
		response := responses[requests]
		requests++
		query := r.URL.Query()
		if lists := query.Get("sendInitialEvents") == "true"; query.Get("resourceVersion") != response.from || lists != (response.from == "") || r.URL.Path != "/apis/example.com/v1/namespaces/shop/networks" {
			t.Errorf("request %d is %s", requests, r.URL)
		}
		w.WriteHeader(response.status)
		for _, event := range response.events {
			_, _ = w.Write([]byte(event + "\n"))
		}
	}))
	t.Cleanup(server.Close)
	client, err := New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := client.Watch(ctx, "example.com", "shop", func(e Event) {
		got = append(got, e.Type+" "+e.Object.Key()+" "+e.Object.Metadata.ResourceVersion)
		if e.Object.Metadata.Name == "last" {
			cancel()
		}
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"ADDED shop/a 7", "ADDED shop/b 3",
		"ADDED shop/a 7", "ADDED shop/b 3",
		"MODIFIED shop/a 9", "ADDED shop/c 10", "DELETED shop/c 11",
		"ADDED shop/a 9", "ADDED shop/d 20", "DELETED shop/b ",
		"ADDED shop/d 20", "DELETED shop/a ", "ADDED shop/last 31",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestWatchFails: an API server that never sends an event is an error in the end.
func TestWatchFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		client, err := New(&rest.Config{Host: "http://api.invalid", Transport: roundTripper(func(*http.Request) (*http.Response, error) {
			requests++
			return nil, errors.New("refused")
		})})
		if err != nil {
			t.Fatal(err)
		}
		err = client.Watch(t.Context(), "example.com", "", func(Event) {})
		if want := maxFailures + 1; err == nil || requests != want {
			t.Errorf("Watch returned %v after %d requests, want an error after %d", err, requests, want)
		}
	})
}
