package preview

import (
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

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
)

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
	names, networks := map[types.NamespacedName]bool{}, all.networks
	all.networks = nil
	for _, network := range networks {
		if network.Namespace == "" {
			network.Namespace = defaultNamespace
		}
		name := types.NamespacedName{Namespace: network.Namespace, Name: network.Name}
		if names[name] {
			all.reject("-f names the Network %s twice: only the first is planned", name)
			continue
		}
		names[name] = true
		all.networks = append(all.networks, network)
	}
	return all, nil
}

// filesIn returns a file, or the manifests in a folder, as kubectl does.
func filesIn(path string) (files []string, err error) {
	if path == "-" {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("-f: %w", err)
	}
	if !info.IsDir() {
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
			_ = object.EachListItem(add) // add does not fail
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

// apply returns a Network as it would be after its manifest was applied to the object
// in the cluster, which is nil if it does not exist.
func apply(live, manifest *samplecrdv1.Network) *samplecrdv1.Network {
	if live == nil {
		return &samplecrdv1.Network{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: manifest.Namespace, Name: manifest.Name, Generation: 1, CreationTimestamp: metav1.Now(),
				UID: types.UID("of " + manifest.Namespace + "/" + manifest.Name), // objects are compared by it
			},
			Spec: manifest.Spec,
		}
	}
	applied := live.DeepCopy()
	if !reflect.DeepEqual(live.Spec, manifest.Spec) {
		applied.Spec = manifest.Spec
		applied.Generation++
	}
	return applied
}
