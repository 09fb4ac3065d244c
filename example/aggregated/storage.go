package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/table"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/tools/cache"

	"github.com/samplecrd/network-controller/example/aggregated/v1alpha1"
)

// networks serves the resource. What it implements is what can be discovered: get, list
// and watch. So no garbage collector and no ResourceQuota looks at it, and the deletion
// of a namespace does not try to delete its objects.
type networks struct{ present *atomic.Pointer[state] }

func (networks) New() runtime.Object     { return &network{} }
func (networks) NewList() runtime.Object { return &v1alpha1.NeutronNetworkList{} }
func (networks) Destroy()                {}
func (networks) GetSingularName() string { return "neutronnetwork" }
func (networks) ShortNames() []string    { return []string{"nn"} }

// NamespaceScoped is the permission model: a Role in a namespace permits to see what the
// Networks of that namespace have in Neutron. A resource of the cluster would be seen as a
// whole, or not at all.
func (networks) NamespaceScoped() bool { return true }

// ready returns the present state, or an error if there is none yet. If it is old, the client
// gets a warning beside the response, which kubectl prints: an old state is better than none,
// if one knows.
func (n networks) ready(ctx context.Context) (*state, error) {
	now := n.present.Load()
	switch {
	case now.listed.IsZero():
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("Neutron's state is unknown: %v", now.failure))
	case now.failure != nil:
		warning.AddWarning(ctx, "", fmt.Sprintf("This is Neutron's state of %s ago: it cannot be listed now: %v",
			time.Since(now.listed).Round(time.Second), now.failure))
	}
	return now, nil
}

func (n networks) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	now, err := n.ready(ctx)
	if err != nil {
		return nil, err
	}
	object := now.objects[cache.NewObjectName(request.NamespaceValue(ctx), name)]
	if object == nil {
		return nil, apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource(v1alpha1.Resource).GroupResource(), name)
	}
	return object.DeepCopy(), nil
}

// requested returns the present state, and the version that a request names, or 0.
func (n networks) requested(ctx context.Context, options *internalversion.ListOptions) (*state, uint64, error) {
	now, err := n.ready(ctx)
	if err != nil {
		return nil, 0, err
	}
	version, err := storage.APIObjectVersioner{}.ParseResourceVersion(options.ResourceVersion)
	switch {
	case err != nil:
		err = apierrors.NewBadRequest(fmt.Sprintf("use a resourceVersion that this server returned: %v", err))
	case version > now.version:
		err = storage.NewTooLargeResourceVersionError(version, now.version, 1)
	}
	return now, version, err
}

// expired makes the client list again.
func expired(version uint64) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d is not the present one", version))
}

// List returns all objects at once. A server may ignore the limit that a client requests.
func (n networks) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	now, version, err := n.requested(ctx, options)
	if err != nil {
		return nil, err
	}
	if options.ResourceVersionMatch == metav1.ResourceVersionMatchExact && version != now.version {
		return nil, expired(version)
	}
	list := &v1alpha1.NeutronNetworkList{Items: []network{}}
	list.ResourceVersion = strconv.FormatUint(now.version, 10)
	for _, object := range (selection{request.NamespaceValue(ctx), options}).of(now.objects) {
		list.Items = append(list.Items, *object)
	}
	slices.SortFunc(list.Items, func(a, b network) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return list, nil
}

// Watch sends what changes after the present state. Without a version, or if the client
// requests it, the objects come first: they are the changes after a state without objects.
func (n networks) Watch(ctx context.Context, options *internalversion.ListOptions) (watch.Interface, error) {
	from, version, err := n.requested(ctx, options)
	isList := options.SendInitialEvents != nil && *options.SendInitialEvents
	switch {
	case err != nil:
		return nil, err
	case isList || version == 0:
		from = &state{}
	case version != from.version:
		return nil, expired(version)
	}
	events := make(chan watch.Event)
	w := watch.NewProxyWatcher(events)
	go func() {
		defer close(events)
		n.follow(from, selection{request.NamespaceValue(ctx), options}, events, w.StopChan())
	}()
	return w, nil
}

// follow sends what changes after a state until it is stopped. A bookmark, with the version of
// a state, says where the client can continue.
func (n networks) follow(from *state, selected selection, events chan<- watch.Event, stop <-chan struct{}) {
	for {
		to := n.present.Load()
		changes := selected.difference(from, to)
		if selected.options.AllowWatchBookmarks {
			bookmark := &network{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.FormatUint(to.version, 10)}}
			if from.version == 0 { // the end of the objects, for a client that requested them
				bookmark.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
			}
			changes = append(changes, watch.Event{Type: watch.Bookmark, Object: bookmark})
		}
		for _, change := range changes {
			select {
			case events <- change:
			case <-stop:
				return
			}
		}
		from = to
		select {
		case <-to.replaced:
		case <-stop:
			return
		}
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
func (networks) ConvertToTable(_ context.Context, object, _ runtime.Object) (*metav1.Table, error) {
	result := &metav1.Table{ColumnDefinitions: columns}
	if m, err := meta.CommonAccessor(object); err == nil {
		result.ResourceVersion = m.GetResourceVersion()
	}
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
	var err error
	result.Rows, err = table.MetaToTableRow(object, row)
	return result, err
}
