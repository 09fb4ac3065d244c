package main

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"

	"github.com/samplecrd/network-controller/example/aggregated/v1alpha1"
	"github.com/samplecrd/network-controller/test/running"
)

// TestInformer: an informer of client-go has what Neutron has, also after a restart of the
// server, whose versions it then does not know.
func TestInformer(t *testing.T) {
	s := newSite(t)
	client, err := dynamic.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	informer := factory.ForResource(v1alpha1.GroupVersion.WithResource(v1alpha1.Resource)).Informer()
	factory.Start(t.Context().Done())
	t.Cleanup(factory.Shutdown) // after the end of the context
	wantInSync := func() {
		t.Helper()
		s.eventually(func() error {
			got, want := map[string]string{}, map[string]string{}
			state, err := s.api.State()
			for _, network := range state.Networks {
				want[network.ID] = network.Name
			}
			for _, object := range informer.GetStore().List() {
				item := object.(*unstructured.Unstructured)
				got[item.GetName()], _, _ = unstructured.NestedString(item.Object, "status", "name")
			}
			if !maps.Equal(got, want) {
				return fmt.Errorf("the informer differs (-Neutron +informer):\n%s", cmp.Diff(want, got))
			}
			return err
		})
	}
	var ids []string
	for i := range 20 {
		ids = append(ids, s.create("network-"+strconv.Itoa(i), "", ""))
	}
	wantInSync()
	s.rename(ids[0], "renamed")
	s.remove(ids[1])
	wantInSync()

	s.program.Signal(syscall.SIGTERM)
	s.program.WantExit(0)
	s.rename(ids[0], "renamed while down")
	s.remove(ids[2])
	ids = append(ids, s.create("created while down", "", ""))
	s.start()
	wantInSync()
	s.remove(ids[len(ids)-1])
	wantInSync()
}

func (s *site) rename(id, name string) {
	s.Helper()
	s.ask(http.MethodPut, "networks/"+id, object{"network": object{"name": name}}, nil)
}

func (s *site) remove(id string) {
	s.Helper()
	s.ask(http.MethodDelete, "networks/"+id, nil, nil)
}

// wantNext checks the type and the name of the next event, and returns the version in it.
func (s *site) wantNext(from watch.Interface, want string) (version string) {
	s.Helper()
	select {
	case event := <-from.ResultChan(): // without an object, the watch has ended
		object, _ := event.Object.(*unstructured.Unstructured)
		if object == nil {
			s.Fatalf("the watch sends %v, want %q", event, want)
		}
		name, _, _ := unstructured.NestedString(object.Object, "status", "name")
		if got := string(event.Type) + " " + name; got != want {
			s.Fatalf("the event is %q (%s), want %q", got, object.GetResourceVersion(), want)
		}
		return object.GetResourceVersion()
	case <-time.After(running.Patience):
		s.Fatalf("no event, want %q", want)
	}
	return ""
}

// TestWatch: what a watch sends from a version, with a list, and with a selector.
func TestWatch(t *testing.T) {
	s := newSite(t)
	id := s.create("first", "", "")
	s.wantObjects(metav1.ListOptions{}, "neutron-api/first: Foreign")
	list, err := s.client.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	open := func(options metav1.ListOptions) watch.Interface {
		t.Helper()
		options.AllowWatchBookmarks = true
		opened, err := s.client.Watch(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(opened.Stop)
		return opened
	}
	want := s.wantNext
	fromVersion := open(metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	yes := true
	withList := open(metav1.ListOptions{
		SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	selected := open(metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), FieldSelector: "status.name=second"})
	want(withList, "ADDED first")
	for _, opened := range []watch.Interface{fromVersion, withList, selected} {
		if version := want(opened, "BOOKMARK "); version != list.GetResourceVersion() {
			t.Errorf("the list of the watch ends at %s, and the list has %s", version, list.GetResourceVersion())
		}
	}
	s.rename(id, "second")
	within := want(fromVersion, "MODIFIED second")
	whole := want(fromVersion, "BOOKMARK ")
	want(selected, "ADDED second")
	want(open(metav1.ListOptions{ResourceVersion: whole}), "BOOKMARK ")
	// A client that may have missed other changes of this state must list again.
	for _, version := range []string{within, list.GetResourceVersion(), "1"} {
		_, err := s.client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
		if !apierrors.IsResourceExpired(err) {
			t.Errorf("watching from %s: %v, want 410", version, err)
		}
	}
	want(selected, "BOOKMARK ")
	s.rename(id, "third")
	want(selected, "DELETED second")
	want(fromVersion, "MODIFIED third")
	want(fromVersion, "BOOKMARK ")
	s.remove(id)
	want(fromVersion, "DELETED third")
}
