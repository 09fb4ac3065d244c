package bare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Event is a change of a Network: ADDED, MODIFIED or DELETED. A deleted Network may have
// only its namespace and name.
type Event struct {
	Type   string  `json:"type"`
	Object Network `json:"object"`
}

const (
	// maxFailures is how many watches in a row may end without an event.
	maxFailures = 50
	// retryDelay is the pause after such a watch.
	retryDelay = 100 * time.Millisecond
)

// Watch calls a function for all Networks of a group and a namespace that exist, and
// for each later change, until the context ends. An empty namespace stands for all.
//
// The API server ends the watch of a client that is slower than the changes, and all
// watches when it serves a new CRD. Then Watch continues after the last event. If the
// API server no longer has the events since then, Watch begins again.
func (c *Client) Watch(ctx context.Context, group, namespace string, handle func(Event)) error {
	w := &watch{client: c, path: Path(group, namespace, ""), handle: handle, known: map[string]bool{}}
	for failures := 0; ; failures++ {
		progress, err := w.once(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the caller ended the watch
		case progress:
			failures = 0
		case failures == maxFailures:
			return fmt.Errorf("watching: %w", err)
		default:
			<-time.After(retryDelay)
		}
	}
}

// watch is the state that lasts from one request to the next.
type watch struct {
	client *Client
	path   string
	handle func(Event)

	latest string          // resource version of the last event, or empty to begin again
	known  map[string]bool // by key; true if it was seen since the watch began again
}

// errExpired: the API server no longer has the events since a resource version.
var errExpired = errors.New("the resource version has expired")

// once sends one request, and reports whether that led to an event.
func (w *watch) once(ctx context.Context) (progress bool, err error) {
	query := url.Values{"watch": {"1"}, "timeoutSeconds": {"7200"}, "allowWatchBookmarks": {"true"}}
	lists := w.latest == ""
	if lists { // all that exist, then a bookmark, then the changes
		query.Set("sendInitialEvents", "true")
		query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan))
		for key := range w.known {
			w.known[key] = false
		}
	} else {
		query.Set("resourceVersion", w.latest)
	}
	response, err := w.client.send(ctx, http.MethodGet, w.path+"?"+query.Encode(), "", "")
	if err != nil {
		if status := (*StatusError)(nil); errors.As(err, &status) && status.Code == http.StatusGone {
			w.latest = ""
		}
		return false, err
	}
	defer func() { _ = response.Body.Close() }()
	for decoder := json.NewDecoder(response.Body); ; progress = true {
		var event Event
		err := decoder.Decode(&event)
		switch {
		case event.Type == "ERROR": // a Status, which is no Network
			w.latest = ""
			return progress, errExpired
		case err != nil:
			return progress, err
		}
		w.receive(event)
		if lists = lists && !event.endsList(); !lists {
			w.latest = event.Object.Metadata.ResourceVersion
		}
	}
}

// endsList reports whether an event follows the last Network that existed when the
// watch began.
func (e Event) endsList() bool {
	return e.Type == "BOOKMARK" && e.Object.Metadata.Annotations[metav1.InitialEventsAnnotationKey] == "true"
}

func (w *watch) receive(event Event) {
	switch key := event.Object.Key(); event.Type {
	case "ADDED", "MODIFIED":
		w.known[key] = true
		w.handle(event)
	case "DELETED":
		delete(w.known, key)
		w.handle(event)
	case "BOOKMARK":
		if event.endsList() {
			w.deleteUnseen()
		}
	}
}

// deleteUnseen reports what has disappeared before the watch began again.
func (w *watch) deleteUnseen() {
	for key, seen := range w.known {
		if seen {
			continue
		}
		delete(w.known, key)
		event := Event{Type: "DELETED"}
		event.Object.Metadata.Namespace, event.Object.Metadata.Name, _ = strings.Cut(key, "/")
		w.handle(event)
	}
}
