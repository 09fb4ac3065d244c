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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"

	"github.com/samplecrd/network-controller/example/aggregated/v1alpha1"
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
	defer factory.Shutdown()
	wantInSync := func() {
		t.Helper()
		s.eventually(func() error {
			state, got, want := s.listed(), map[string]string{}, map[string]string{}
			for _, network := range state {
				want[network.ID] = network.Name
			}
			for _, object := range informer.GetStore().List() {
				item := object.(*unstructured.Unstructured)
				got[item.GetName()], _, _ = unstructured.NestedString(item.Object, "status", "name")
			}
			if !maps.Equal(got, want) {
				return fmt.Errorf("the informer differs (-Neutron +informer):\n%s", cmp.Diff(want, got))
			}
			return nil
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

func (s *site) listed() []neutronNetwork {
	s.Helper()
	var listed struct{ Networks []neutronNetwork }
	if err := s.api.Do(http.MethodGet, "networks", nil, &listed); err != nil {
		s.Fatal(err)
	}
	return listed.Networks
}

type neutronNetwork struct{ ID, Name string }

func (s *site) rename(id, name string) {
	s.Helper()
	body := map[string]any{"network": map[string]any{"name": name}}
	if err := s.api.Do(http.MethodPut, "networks/"+id, body, nil); err != nil {
		s.Fatal(err)
	}
}

func (s *site) remove(id string) {
	s.Helper()
	if err := s.api.Do(http.MethodDelete, "networks/"+id, nil, nil); err != nil {
		s.Fatal(err)
	}
}

// next returns the type and the name of the next event, and the version in it.
func next(t *testing.T, w watch.Interface) (text, version string) {
	t.Helper()
	select {
	case event, ok := <-w.ResultChan():
		if !ok {
			t.Fatal("the watch has ended")
		}
		object, isObject := event.Object.(*unstructured.Unstructured)
		if !isObject {
			return string(event.Type), apierrors.FromObject(event.Object).Error()
		}
		name, _, _ := unstructured.NestedString(object.Object, "status", "name")
		return string(event.Type) + " " + name, object.GetResourceVersion()
	case <-time.After(30 * time.Second):
		t.Fatal("no event")
	}
	return "", ""
}

// TestWatch: what a watch sends from a version, with a list, and with a selector.
func TestWatch(t *testing.T) {
	s := newSite(t)
	id := s.create("first", "", "")
	s.want(metav1.ListOptions{}, "neutron-api/first: Foreign")
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
	want := func(from watch.Interface, want string) (version string) {
		t.Helper()
		got, version := next(t, from)
		if got != want {
			t.Fatalf("the event is %q (%s), want %q", got, version, want)
		}
		return version
	}
	fromVersion := open(metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	yes := true
	withList := open(metav1.ListOptions{
		SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	selected := open(metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), FieldSelector: "status.name=second"})
	want(withList, "ADDED first")
	if version := want(withList, "BOOKMARK "); version != list.GetResourceVersion() {
		t.Errorf("the list of the watch ends at %s, and the list has %s", version, list.GetResourceVersion())
	}
	s.rename(id, "second")
	version := want(fromVersion, "MODIFIED second")
	if got := want(withList, "MODIFIED second"); got != version {
		t.Errorf("two watches have the versions %s and %s of one change", version, got)
	}
	want(selected, "ADDED second")
	s.rename(id, "third")
	want(selected, "DELETED second")
	s.rename(id, "fourth")
	want(selected, "BOOKMARK ")
	s.remove(id)
	for _, text := range []string{"MODIFIED third", "MODIFIED fourth", "DELETED fourth"} {
		want(fromVersion, text)
	}
	want(open(metav1.ListOptions{ResourceVersion: version}), "MODIFIED third") // from the history
	for _, wrong := range []string{"1", "9007199254740991"} {
		_, err := s.client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: wrong})
		if !apierrors.IsResourceExpired(err) {
			t.Errorf("watching from %s: %v, want 410", wrong, err)
		}
	}
}

// TestHistory: the history keeps the last changes, and no version of another process.
func TestHistory(t *testing.T) {
	now := time.UnixMicro(1_000_000)
	h := newHistory(func() time.Time { return now })
	object := func(name string) *network {
		return &network{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "n", UID: types.UID("n")},
			Status:     v1alpha1.NeutronNetworkStatus{Name: name},
		}
	}
	h.replace(nil)
	_, empty := h.list()
	h.replace([]*network{object("0")})
	_, first := h.list()
	h.replace([]*network{object("0")})
	if _, same := h.list(); same != first || first <= empty {
		t.Errorf("the versions are %d, %d and %d without a change", empty, first, same)
	}
	changes, _, err := h.since(empty)
	if err != nil || len(changes) != 1 || changes[0].before != nil {
		t.Errorf("since(%d) = %v, %v", empty, changes, err)
	}
	for i := range maxChanges {
		h.replace([]*network{object(strconv.Itoa(i + 1))})
	}
	if _, _, err := h.since(empty); !apierrors.IsResourceExpired(err) {
		t.Errorf("the change before the history: %v", err)
	}
	if changes, _, err := h.since(first); err != nil || len(changes) != maxChanges {
		t.Errorf("since(%d) has %d changes, %v", first, len(changes), err)
	}
	restarted := newHistory(func() time.Time { return now.Add(time.Minute) })
	restarted.replace([]*network{object("0")})
	if _, _, err := restarted.since(first); !apierrors.IsResourceExpired(err) {
		t.Errorf("a version of an earlier process: %v", err)
	}
}
