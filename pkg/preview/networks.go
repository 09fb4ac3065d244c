package preview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	clientset "github.com/samplecrd/network-controller/pkg/client/clientset/versioned"
	"github.com/samplecrd/network-controller/pkg/store"
)

// networkLists are lists of Networks. The list of all namespaces has the key NamespaceAll.
type networkLists = store.ByNamespace[[]*samplecrdv1.Network]

// list lists the Networks of the watched namespaces.
func (c Command) list(ctx context.Context, client clientset.Interface) (networkLists, error) {
	listed := networkLists{}
	for _, namespace := range c.Kube.Namespaces() {
		listed[namespace] = nil
		pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.SamplecrdV1().Networks(namespace).List(ctx, options)
		})
		err := pages.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
			listed[namespace] = append(listed[namespace], object.(*samplecrdv1.Network))
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("listing Networks: %w", c.Explain(err))
		}
	}
	return listed, nil
}

// selectFrom returns the Networks to plan. With -f, these are the Networks in the files, as
// they are after they were applied to the list.
func (c Command) selectFrom(listed networkLists, stdin io.Reader) (selected manifests, err error) {
	live := map[cache.ObjectName]*samplecrdv1.Network{}
	for _, networks := range listed {
		for _, network := range networks {
			live[cache.MetaObjectToName(network)] = network
		}
		selected.networks = append(selected.networks, networks...)
	}
	if len(c.files) == 0 {
		return selected, nil
	}
	read, err := readManifests(c.files, stdin, c.Kube.DefaultNamespace())
	if err != nil {
		return selected, err
	}
	selected = manifests{errors: read.errors}
	for _, manifest := range read.networks {
		source := metav1.NamespaceAll
		if c.Kube.AreNamespacesLimited() {
			source = manifest.Namespace
		}
		key := cache.MetaObjectToName(manifest)
		if _, watched := listed[source]; !watched {
			selected.reject("the Network %s is not in a namespace of -namespaces: the controller would ignore it", key)
			continue
		}
		network := live[key]
		if network == nil {
			network = created(key, manifest.Spec)
			listed[source] = append(listed[source], network)
		}
		for name, value := range manifest.Annotations { // such as paused
			metav1.SetMetaDataAnnotation(&network.ObjectMeta, name, value)
		}
		if !reflect.DeepEqual(network.Spec, manifest.Spec) {
			network.Spec = manifest.Spec
			network.Generation++
		}
		selected.networks = append(selected.networks, network)
	}
	return selected, nil
}

// created returns a Network as it is when it has just been created.
func created(key cache.ObjectName, spec samplecrdv1.NetworkSpec) *samplecrdv1.Network {
	return &samplecrdv1.Network{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name, Generation: 1, CreationTimestamp: metav1.Now(),
			UID: types.UID("of " + key.String()), // objects are compared by it
		},
		Spec: spec,
	}
}

// manifests are the Networks in files, and the errors of others.
type manifests struct {
	networks []*samplecrdv1.Network
	errors   []string
}

func (m *manifests) reject(format string, values ...any) {
	m.errors = append(m.errors, fmt.Sprintf(format, values...))
}

// readManifests returns the Networks in files and folders, and in the standard input
// for "-". Objects of other kinds are ignored. A Network without a namespace gets the
// default one. An invalid object does not keep the others from being read.
func readManifests(paths []string, stdin io.Reader, defaultNamespace string) (manifests, error) {
	var all manifests
	for _, path := range paths {
		files, err := filesIn(path)
		if err != nil {
			return all, err
		}
		for _, file := range files {
			all.readFile(file, stdin)
		}
	}
	if len(all.networks)+len(all.errors) == 0 {
		return all, fmt.Errorf("-f names no Network of %s", samplecrdv1.GroupVersion)
	}
	seen := map[cache.ObjectName]bool{}
	all.networks = slices.DeleteFunc(all.networks, func(network *samplecrdv1.Network) bool {
		network.Namespace = cmp.Or(network.Namespace, defaultNamespace)
		name := cache.MetaObjectToName(network)
		isDuplicate := seen[name]
		if seen[name] = true; isDuplicate {
			all.reject("-f names the Network %s twice: only the first is planned", name)
		}
		return isDuplicate
	})
	return all, nil
}

// filesIn returns a file, or the manifests in a folder, as kubectl does.
func filesIn(path string) (files []string, err error) {
	if info, err := os.Stat(path); path == "-" || err == nil && !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("-f: %w", err)
	}
	for _, entry := range entries {
		if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) && !entry.IsDir() {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	return files, nil
}

// readFile adds the Networks among the objects in a file, and in its lists.
func (m *manifests) readFile(file string, stdin io.Reader) {
	if file != "-" {
		opened, err := os.Open(file) //nolint:gosec // the user names the file
		if err != nil {
			m.reject("reading %s: %v", file, err)
			return
		}
		defer func() { _ = opened.Close() }()
		stdin = opened
	}
	add := func(object runtime.Object) error {
		network, err := networkOf(object.(*unstructured.Unstructured))
		switch {
		case err != nil:
			m.reject("%s: %v", file, err)
		case network != nil:
			m.networks = append(m.networks, network)
		}
		return nil
	}
	for decoder := yaml.NewYAMLOrJSONDecoder(stdin, 4096); ; {
		var object unstructured.Unstructured
		err := decoder.Decode(&object.Object)
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			m.reject("reading %s: object %d: %v; the rest of it is not read", file, len(m.networks)+len(m.errors)+1, err)
			return
		case object.IsList():
			if err := object.EachListItem(add); err != nil {
				m.reject("reading %s: %v; the rest of the list is not read", file, err)
			}
		default:
			_ = add(&object)
		}
	}
}

// networkOf returns an object that is a Network, and nil for another one. It rejects fields
// that a Network does not have, as kubectl does.
func networkOf(object *unstructured.Unstructured) (*samplecrdv1.Network, error) {
	if object.GetAPIVersion() != samplecrdv1.GroupVersion.String() || object.GetKind() != "Network" {
		return nil, nil
	}
	network := &samplecrdv1.Network{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, network, true)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the Network %s is invalid: %w", cache.MetaObjectToName(object), err)
	case network.Name == "":
		return nil, errors.New("a Network has no metadata.name")
	}
	return network, nil
}
