package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/table"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/tools/cache"

	"github.com/samplecrd/network-controller/example/aggregated/v1alpha1"
)

// networks serves the resource. What it implements is what can be discovered: get, list
// and watch. So no garbage collector and no ResourceQuota looks at it, and the deletion
// of a namespace does not try to delete its objects.
type networks struct {
	*history
	// state returns when Neutron was listed, and why it could not be listed since.
	state func() (listed time.Time, failure error)
}

var _ interface {
	rest.Storage
	rest.Scoper
	rest.SingularNameProvider
	rest.ShortNamesProvider
	rest.Getter
	rest.Lister
	rest.Watcher
} = networks{}

func (networks) New() runtime.Object     { return &network{} }
func (networks) NewList() runtime.Object { return &v1alpha1.NeutronNetworkList{} }
func (networks) Destroy()                {}
func (networks) GetSingularName() string { return "neutronnetwork" }
func (networks) ShortNames() []string    { return []string{"nn"} }

// NamespaceScoped is the permission model: a Role in a namespace permits to see what the
// Networks of that namespace have in Neutron. A resource of the cluster would be seen as a
// whole, or not at all.
func (networks) NamespaceScoped() bool { return true }

// maxAge is how old the state can be without a warning.
const maxAge = 2 * time.Minute

// ready returns an error if there is no state. If it is old, the client gets a warning
// beside the response, which kubectl prints: an old state is better than none, if one knows.
func (n networks) ready(ctx context.Context) error {
	listed, failure := n.state()
	switch {
	case listed.IsZero():
		unavailable := apierrors.NewServiceUnavailable(fmt.Sprintf("Neutron's state is unknown: it has not been listed "+
			"since this server started: %v", failure))
		unavailable.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 5}
		return unavailable
	case failure != nil || time.Since(listed) > maxAge:
		warning.AddWarning(ctx, "", fmt.Sprintf("This is Neutron's state of %s ago: it cannot be listed now: %s",
			time.Since(listed).Round(time.Second), strings.ToValidUTF8(fmt.Sprint(failure), "?")))
	}
	return nil
}

func (n networks) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if err := n.ready(ctx); err != nil {
		return nil, err
	}
	object := n.get(cache.NewObjectName(request.NamespaceValue(ctx), name))
	if object == nil {
		return nil, apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource(v1alpha1.Resource).GroupResource(), name)
	}
	return copyOf(object), nil
}

// copyOf returns a copy for one response, in which the encoder sets the kind.
func copyOf(object *network) *network {
	copied := *object
	return &copied
}

// List returns all objects at once. A server may ignore the limit that a client requests.
func (n networks) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	if err := n.ready(ctx); err != nil {
		return nil, err
	}
	requested, err := parseVersion(options.ResourceVersion)
	objects, version := n.list()
	switch {
	case err != nil:
		return nil, err
	case options.Continue != "":
		return nil, apierrors.NewBadRequest("this server returns whole lists: it has not issued the continue token")
	case options.ResourceVersionMatch == metav1.ResourceVersionMatchExact && requested != version:
		return nil, apierrors.NewResourceExpired(fmt.Sprintf("only the present state, %d, can be listed", version))
	case requested > version:
		return nil, storage.NewTooLargeResourceVersionError(requested, version, 1)
	}
	list := &v1alpha1.NeutronNetworkList{Items: []network{}}
	list.ResourceVersion = strconv.FormatUint(version, 10)
	selected := newSelection(ctx, options)
	for _, object := range objects {
		if selected.has(object) {
			list.Items = append(list.Items, *object)
		}
	}
	return list, nil
}

func parseVersion(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resourceVersion %q: use one that this server returned", text))
	}
	return version, nil
}

// selection is what a request selects.
type selection struct {
	namespace string // or all
	options   *internalversion.ListOptions
}

func newSelection(ctx context.Context, options *internalversion.ListOptions) selection {
	return selection{request.NamespaceValue(ctx), options}
}

func (s selection) has(object *network) bool {
	return object != nil &&
		(s.namespace == metav1.NamespaceAll || s.namespace == object.Namespace) &&
		(s.options.LabelSelector == nil || s.options.LabelSelector.Matches(labels.Set(object.Labels))) &&
		(s.options.FieldSelector == nil || s.options.FieldSelector.Matches(object.Fields()))
}

// event returns what a change is to a client that sees only the selection: an object that
// leaves it is deleted.
func (s selection) event(c change) (event watch.Event, ok bool) {
	switch was, is := s.has(c.before), s.has(c.after); {
	case is && !was:
		return watch.Event{Type: watch.Added, Object: copyOf(c.after)}, true
	case is:
		return watch.Event{Type: watch.Modified, Object: copyOf(c.after)}, true
	case was:
		last := copyOf(c.before)
		last.ResourceVersion = strconv.FormatUint(c.version, 10)
		return watch.Event{Type: watch.Deleted, Object: last}, true
	}
	return event, false
}

// Watch sends the changes after a version. Without one, it sends the objects first.
func (n networks) Watch(ctx context.Context, options *internalversion.ListOptions) (watch.Interface, error) {
	if err := n.ready(ctx); err != nil {
		return nil, err
	}
	version, err := parseVersion(options.ResourceVersion)
	if err != nil {
		return nil, err
	}
	w := &watcher{history: n.history, selected: newSelection(ctx, options), version: version}
	isList := options.SendInitialEvents != nil && *options.SendInitialEvents
	if isList || options.SendInitialEvents == nil && version == 0 {
		w.initial, w.version = n.list()
	}
	if version > w.version {
		return nil, storage.NewTooLargeResourceVersionError(version, w.version, 1)
	}
	if _, _, err := n.since(w.version); err != nil {
		return nil, err
	}
	ctx, w.stop = context.WithCancel(ctx)
	w.events = make(chan watch.Event)
	go w.run(ctx, isList)
	return w, nil
}

// watcher is one watch. It has a position in the history, and no buffer: a slow client
// falls behind, and in the end has to list again.
type watcher struct {
	history  *history
	selected selection
	initial  []*network
	version  uint64
	events   chan watch.Event
	stop     context.CancelFunc
}

func (w *watcher) Stop()                          { w.stop() }
func (w *watcher) ResultChan() <-chan watch.Event { return w.events }

func (w *watcher) run(ctx context.Context, isList bool) {
	defer close(w.events)
	for _, object := range w.initial {
		if w.selected.has(object) && !w.send(ctx, watch.Event{Type: watch.Added, Object: copyOf(object)}) {
			return
		}
	}
	if isList && !w.send(ctx, w.bookmark(map[string]string{metav1.InitialEventsAnnotationKey: "true"})) {
		return
	}
	for {
		changes, next, err := w.history.since(w.version)
		if err != nil {
			status := err.(apierrors.APIStatus).Status()
			w.send(ctx, watch.Event{Type: watch.Error, Object: &status})
			return
		}
		isSilent := false
		for _, c := range changes {
			event, ok := w.selected.event(c)
			if ok && !w.send(ctx, event) {
				return
			}
			w.version, isSilent = c.version, !ok
		}
		// The client learns the version of changes that it does not see, so that it can
		// continue from there.
		if isSilent && w.selected.options.AllowWatchBookmarks && !w.send(ctx, w.bookmark(nil)) {
			return
		}
		select {
		case <-next:
		case <-ctx.Done():
			return
		}
	}
}

func (w *watcher) bookmark(annotations map[string]string) watch.Event {
	return watch.Event{Type: watch.Bookmark, Object: &network{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: strconv.FormatUint(w.version, 10), Annotations: annotations,
	}}}
}

func (w *watcher) send(ctx context.Context, event watch.Event) bool {
	select {
	case w.events <- event:
		return true
	case <-ctx.Done():
		return false
	}
}

var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "The ID of the network in Neutron"},
	{Name: "State", Type: "string", Description: "Owned, Orphaned, Retained or Foreign"},
	{Name: "Network", Type: "string", Description: "The Network of this namespace that owns it"},
	{Name: "CIDRs", Type: "string", Description: "The ranges of its subnets"},
	{Name: "Drift", Type: "string", Description: "What the controller would do"},
	{Name: "Orphaned", Type: "string", Description: "How long its Network has not existed"},
	{Name: "Age", Type: "string", Description: "How long it has been in Neutron"},
	{Name: "Owner", Type: "string", Priority: 1, Description: "The cluster, namespace and name in the owner marker"},
	{Name: "Name in Neutron", Type: "string", Priority: 1, Description: "Its name in Neutron"},
}

// ConvertToTable is what kubectl get prints: the server chooses the columns.
func (networks) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	row := func(object runtime.Object, _ metav1.Object, name, age string) ([]any, error) {
		s, orphaned := object.(*network).Status, ""
		if s.OrphanedSince != nil {
			orphaned = table.ConvertToHumanReadableDateType(*s.OrphanedSince)
		}
		return []any{
			name, string(s.State), s.Network, strings.Join(s.CIDRs, ","), strings.Join(s.Drift, "; "), orphaned, age,
			s.Owner, s.Name,
		}, nil
	}
	rows, err := table.MetaToTableRow(object, row)
	result := &metav1.Table{Rows: rows}
	if m, err := meta.ListAccessor(object); err == nil {
		result.ResourceVersion = m.GetResourceVersion()
	} else if m, err := meta.Accessor(object); err == nil {
		result.ResourceVersion = m.GetResourceVersion()
	}
	if options, ok := options.(*metav1.TableOptions); !ok || !options.NoHeaders {
		result.ColumnDefinitions = columns
	}
	return result, err
}
