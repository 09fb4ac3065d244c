package stories

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
)

// names are short names for the IDs of objects in Neutron, such as net1. An
// object that replaces another one gets a new name.
type names map[string]string

// add names an ID, if it has no name yet.
func (n names) add(prefix, id string) string {
	if n[id] == "" {
		used := 0
		for _, name := range n {
			if strings.TrimRight(name, "0123456789") == prefix {
				used++
			}
		}
		n[id] = prefix + strconv.Itoa(used+1)
	}
	return n[id]
}

// commitNames keeps the names of the last printed state, as variables of the script.
// (While until waits, it prints states that do not count.)
func (s *story) commitNames() {
	maps.Copy(s.names, s.nextNames)
	for id, name := range s.names {
		s.script.Setenv(name, id)
	}
	s.nextNames = nil
}

// readable replaces values that differ between runs: IDs, the requests in owner markers,
// and the cluster's name.
func (s *story) readable(text string) string {
	all := s.names
	if s.nextNames != nil {
		all = s.nextNames
	}
	text = uuid.ReplaceAllStringFunc(text, func(id string) string { return cmp.Or(all[id], id) })
	text = request.ReplaceAllString(text, " request: …")
	return strings.ReplaceAll(text, s.clusterName, "$CLUSTER")
}

var request = regexp.MustCompile(` request: [a-z2-7]{8}`)

var uuid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// state [NAME…] prints the Networks of the story and the objects in Neutron, or
// only those of these names.
func (s *story) state(only []string) (string, error) {
	list, err := s.client.SamplecrdV1().Networks(s.namespace).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	objects, err := s.objects()
	if err != nil {
		return "", err
	}
	shown := func(name string) bool { return len(only) == 0 || slices.Contains(only, name) }
	s.nextNames = maps.Clone(s.names)
	var text strings.Builder
	row := func(cells ...string) { text.WriteString(strings.Join(cells, "\t") + "\n") }
	row("KUBERNETES", "SPEC", "READY", "USES", "METADATA")
	for _, network := range list.Items {
		if !shown(network.Name) {
			continue
		}
		row(network.Name, specCell(network.Spec), readyCell(&network), usesCell(network.Status), metadataCell(&network))
	}
	row()
	row("NEUTRON", "IS", "DESCRIPTION")
	for _, network := range objects {
		if !shown(strings.TrimPrefix(network.Name, s.namespace+"/")) {
			continue
		}
		row(s.nextNames.add("net", network.ID), network.Name, network.Description, network.others())
		for _, subnet := range network.subnets {
			row("  "+s.nextNames.add("subnet", subnet.ID), subnetCell(subnet), subnet.Description)
		}
		for _, port := range network.ports {
			if port.IsOfRouter() {
				row("  attached", "to "+port.Device)
				continue
			}
			row("  "+s.nextNames.add("port", port.ID), port.Name)
		}
	}
	markers := regexp.MustCompile(`samplecrd\.k8s\.io (?:network )?owner: \$CLUSTER/` + s.namespace + `/(\S+)(?: request: …)?`)
	return aligned(markers.ReplaceAllString(s.readable(text.String()), "owner: $1")), nil
}

// aligned makes columns of what tabs separate.
func aligned(text string) string {
	var columns strings.Builder
	w := tabwriter.NewWriter(&columns, 0, 0, 3, ' ', 0)
	_, _ = io.WriteString(w, text)
	_ = w.Flush()
	return regexp.MustCompile(`(?m) +$`).ReplaceAllString(columns.String(), "")
}

func specCell(spec samplecrdv1.NetworkSpec) string {
	cells := []string{spec.CIDR}
	if pool := spec.SubnetPool; pool != nil {
		cells[0] = fmt.Sprintf("pool %s%s/%d", pool.Name, pool.ID, pool.PrefixLength)
		cells[0] = strings.TrimSuffix(cells[0], "/0")
	}
	if spec.Gateway != "" {
		cells = append(cells, "gateway "+spec.Gateway)
	}
	if spec.DeletionPolicy != "" {
		cells = append(cells, string(spec.DeletionPolicy))
	}
	if spec.NetworkID != "" {
		cells = append(cells, "adopts "+spec.NetworkID)
	}
	return strings.Join(cells, ", ")
}

// readyCell adds a note to a condition with an earlier observedGeneration.
func readyCell(network *samplecrdv1.Network) string {
	ready := meta.FindStatusCondition(network.Status.Conditions, samplecrdv1.ConditionReady)
	switch {
	case ready == nil:
		return "-"
	case ready.ObservedGeneration != network.Generation:
		return fmt.Sprintf("%s %s (earlier spec)", ready.Status, ready.Reason)
	}
	return fmt.Sprintf("%s %s", ready.Status, ready.Reason)
}

func usesCell(status samplecrdv1.NetworkStatus) string {
	return cmp.Or(strings.TrimSpace(status.NetworkID+" "+status.SubnetID), "-")
}

func metadataCell(network *samplecrdv1.Network) string {
	var cells []string
	if network.DeletionTimestamp != nil {
		cells = append(cells, "deleting")
	}
	if len(network.Finalizers) > 0 {
		cells = append(cells, "finalizer")
	}
	return strings.Join(cells, ", ")
}

// apply NAME FIELD=VALUE… applies a Network with this spec, as kubectl apply
// --server-side does. Fields that an earlier apply set are removed.
func (s *story) apply(args []string) (string, error) {
	if len(args) < 2 {
		return "", errors.New("usage: apply NAME FIELD=VALUE…")
	}
	spec, err := parseFields(args[1:])
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": samplecrdv1.GroupVersion.String(), "kind": "Network",
		"metadata": map[string]any{"name": args[0]}, "spec": spec,
	})
	if err != nil {
		return "", err
	}
	force := true
	options := metav1.PatchOptions{FieldManager: "story", Force: &force, FieldValidation: "Strict"}
	_, err = s.client.SamplecrdV1().Networks(s.namespace).Patch(s.Context(), args[0], types.ApplyPatchType, body, options)
	return "", err
}

// parseFields reads FIELD=VALUE. A value that is valid JSON is read as JSON, any
// other as a string; a dot in the field leads into an object.
func parseFields(args []string) (map[string]any, error) {
	all := map[string]any{}
	for _, arg := range args {
		path, text, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not FIELD=VALUE", arg)
		}
		var value any
		if json.Unmarshal([]byte(text), &value) != nil {
			value = text
		}
		object := all
		keys := strings.Split(path, ".")
		for _, key := range keys[:len(keys)-1] {
			if object[key] == nil {
				object[key] = map[string]any{}
			}
			object = object[key].(map[string]any)
		}
		object[keys[len(keys)-1]] = value
	}
	return all, nil
}

// condition NAME prints the conditions of a Network, with their messages.
func (s *story) condition(args []string) (string, error) {
	if len(args) != 1 {
		return "", errors.New("usage: condition NAME")
	}
	network, err := s.client.SamplecrdV1().Networks(s.namespace).Get(s.Context(), args[0], metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, condition := range network.Status.Conditions {
		if condition.ObservedGeneration != network.Generation {
			fmt.Fprintf(&text, "%s is about an earlier spec\n", condition.Type)
			continue
		}
		fmt.Fprintf(&text, "%s=%s %s: %s\n", condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	return s.readable(text.String()), nil
}

// events NAME [reasons] prints the events about an object, oldest first.
func (s *story) events(args []string) (string, error) {
	if len(args) == 0 || len(args) == 2 && args[1] != "reasons" || len(args) > 2 {
		return "", errors.New("usage: events NAME [reasons]")
	}
	options := metav1.ListOptions{FieldSelector: "regarding.name=" + args[0]}
	list, err := s.kube.EventsV1().Events(s.namespace).List(s.Context(), options)
	if err != nil {
		return "", err
	}
	slices.SortFunc(list.Items, func(a, b eventsv1.Event) int { return strings.Compare(a.Name, b.Name) }) // they contain the time
	var text strings.Builder
	for _, event := range list.Items {
		line := event.Reason
		if len(args) == 1 {
			line += ": " + event.Note
		}
		fmt.Fprintln(&text, line)
	}
	return s.readable(text.String()), nil
}

// owner returns the owner in the markers of a Network.
func (s *story) owner(name string) neutron.Owner {
	return neutron.Owner{Cluster: s.clusterName, Namespace: s.namespace, Name: name}
}
