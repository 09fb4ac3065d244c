package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/test/controlplane"
)

// kubernetesPhrases are what is said of Kubernetes, beside kubectl itself.
var kubernetesPhrases = map[string]phrase{
	"want":              {"NAME CIDR [GATEWAY] [FIELD=VALUE…]", (*story).want},
	"want-from-pool":    {"NAME POOL [LENGTH] [FIELD=VALUE…]", (*story).wantFromPool},
	"want-many":         {"PREFIX NUMBER", (*story).wantMany},
	"wait-all-ready":    {"", (*story).waitAllReady},
	"wait-ready":        {"NAME [NAME…]", (*story).waitReady},
	"wait-condition":    {"NAME REASON [TEXT]", (*story).waitCondition},
	"wait-event":        {"NAME REASON [TEXT]", (*story).waitEvent},
	"wait-gone":         {"NAME [NAME…]", (*story).waitGone},
	"note-ids":          {"NAME", (*story).noteIDs},
	"same-network":      {"NAME", (*story).sameNetwork},
	"same-subnet":       {"NAME", (*story).sameSubnet},
	"soon-same-network": {"NAME", soon((*story).sameNetwork)},
	"soon-same-subnet":  {"NAME", soon((*story).sameSubnet)},
	"api-server stop":   {"", func(s *story, _ io.Writer, _ []string) error { return s.cluster.StopAPIServer() }},
	"api-server start":  {"", func(s *story, _ io.Writer, _ []string) error { return s.cluster.StartAPIServer(s.Context()) }},
}

// kubectlInStory is kubectl itself, with the story's namespace as the default.
func kubectlInStory(ts *testscript.TestScript, not bool, args []string) {
	root, err := controlplane.ModuleRoot()
	ts.Check(err)
	err = ts.Exec(filepath.Join(root, "build", "bin", "kubernetes"), append([]string{"kubectl"}, args...)...)
	switch {
	case err != nil && !not:
		ts.Fatalf("kubectl: %v", err)
	case err == nil && not:
		ts.Fatalf("kubectl did it, and should not have")
	}
}

// want applies a Network, as kubectl apply --server-side does.
func (s *story) want(_ io.Writer, args []string) error {
	spec, fields := map[string]any{"cidr": args[1]}, args[2:]
	if len(fields) > 0 && !strings.Contains(fields[0], "=") {
		spec["gateway"], fields = fields[0], fields[1:]
	}
	return s.apply(args[0], spec, fields)
}

// wantFromPool does the same with a range from a subnet pool.
func (s *story) wantFromPool(_ io.Writer, args []string) error {
	pool, fields := map[string]any{"name": args[1]}, args[2:]
	if len(fields) > 0 && !strings.Contains(fields[0], "=") {
		length, err := strconv.Atoi(fields[0])
		if err != nil {
			return err
		}
		pool["prefixLength"], fields = length, fields[1:]
	}
	return s.apply(args[0], map[string]any{"subnetPool": pool}, fields)
}

func (s *story) apply(name string, spec map[string]any, fields []string) error {
	for _, field := range fields {
		key, value, _ := strings.Cut(field, "=")
		spec[key] = value
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": samplecrdv1.GroupVersion.String(), "kind": "Network",
		"metadata": map[string]any{"name": name}, "spec": spec,
	})
	if err != nil {
		return err
	}
	force := true
	_, err = s.client.SamplecrdV1().Networks(s.namespace).
		Patch(s.Context(), name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "story", Force: &force, FieldValidation: "Strict"})
	return err
}

// wantMany applies Networks called PREFIX-0, PREFIX-1 and so on.
func (s *story) wantMany(_ io.Writer, args []string) error {
	number, err := strconv.Atoi(args[1])
	for i := range number {
		err = errors.Join(err, s.want(nil, []string{args[0] + "-" + strconv.Itoa(i), fmt.Sprintf("10.%d.%d.0/24", i/256, i%256)}))
	}
	return err
}

func (s *story) waitAllReady(out io.Writer, _ []string) error {
	list, err := s.client.SamplecrdV1().Networks(s.namespace).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	var names []string
	for _, network := range list.Items {
		names = append(names, network.Name)
	}
	return s.waitReady(out, names)
}

func (s *story) get(name string) (*samplecrdv1.Network, error) {
	return s.client.SamplecrdV1().Networks(s.namespace).Get(s.Context(), name, metav1.GetOptions{})
}

// condition checks what a Network's condition says of its present spec.
func (s *story) condition(name string, status metav1.ConditionStatus, reason, text string) error {
	network, err := s.get(name)
	if err != nil {
		return err
	}
	return conditionOf(network, status, reason, text)
}

func conditionOf(network *samplecrdv1.Network, status metav1.ConditionStatus, reason, text string) error {
	name := network.Name
	ready := meta.FindStatusCondition(network.Status.Conditions, samplecrdv1.ConditionReady)
	switch {
	case ready == nil:
		return fmt.Errorf("%s has no condition Ready", name)
	case ready.ObservedGeneration != network.Generation:
		return fmt.Errorf("the condition of %s is about generation %d, and not yet about %d: %s %s: %s", name, ready.ObservedGeneration, network.Generation, ready.Status, ready.Reason, ready.Message)
	case ready.Status != status || ready.Reason != reason || !strings.Contains(ready.Message, text):
		return fmt.Errorf("%s has Ready=%s, %s: %s", name, ready.Status, ready.Reason, ready.Message)
	}
	return nil
}

func (s *story) waitReady(_ io.Writer, names []string) error {
	return s.eventually(func() error {
		for _, name := range names {
			if err := s.condition(name, metav1.ConditionTrue, "Provisioned", ""); err != nil {
				return err
			}
		}
		return nil
	})
}

// textOf returns the last word of a phrase, where it is said.
func textOf(args []string) string {
	if len(args) == 3 {
		return args[2]
	}
	return ""
}

func (s *story) waitCondition(_ io.Writer, args []string) error {
	return s.eventually(func() error { return s.condition(args[0], metav1.ConditionFalse, args[1], textOf(args)) })
}

func (s *story) waitEvent(_ io.Writer, args []string) error {
	return s.eventually(func() error {
		list, err := s.kube.EventsV1().Events(s.namespace).List(s.Context(), metav1.ListOptions{FieldSelector: "regarding.name=" + args[0]})
		if err != nil {
			return err
		}
		var said []string
		for _, event := range list.Items {
			if event.Reason == args[1] && strings.Contains(event.Note, textOf(args)) {
				return nil
			}
			said = append(said, event.Reason+": "+event.Note)
		}
		return fmt.Errorf("the events of %s are:\n%s", args[0], strings.Join(said, "\n"))
	})
}

func (s *story) waitGone(_ io.Writer, names []string) error {
	return s.eventually(func() error {
		for _, name := range names {
			network, err := s.get(name)
			if err == nil {
				err = fmt.Errorf("%s is still there: %+v", name, network.Status)
			}
			if !apierrors.IsNotFound(err) {
				return err
			}
		}
		return nil
	})
}

// storyIDs are those of a Network's network and subnet in Neutron.
type storyIDs struct{ network, subnet string }

func (s *story) idsOf(name string) (storyIDs, error) {
	network, err := s.get(name)
	if err == nil && (network.Status.NetworkID == "" || network.Status.SubnetID == "") {
		err = errors.New("its status names no network and subnet")
	}
	if err != nil {
		return storyIDs{}, fmt.Errorf("%s: %w", name, err)
	}
	return storyIDs{network.Status.NetworkID, network.Status.SubnetID}, nil
}

// noteIDs keeps the IDs for same-network and same-subnet.
func (s *story) noteIDs(_ io.Writer, args []string) (err error) {
	s.noted[args[0]], err = s.idsOf(args[0])
	return err
}

func (s *story) sameNetwork(_ io.Writer, args []string) error {
	now, err := s.idsOf(args[0])
	if err == nil && now.network != s.noted[args[0]].network {
		err = fmt.Errorf("the network of %s was %s and is %s", args[0], s.noted[args[0]].network, now.network)
	}
	return err
}

func (s *story) sameSubnet(_ io.Writer, args []string) error {
	now, err := s.idsOf(args[0])
	if err == nil && now.subnet != s.noted[args[0]].subnet {
		err = fmt.Errorf("the subnet of %s was %s and is %s", args[0], s.noted[args[0]].subnet, now.subnet)
	}
	return err
}

// asAsked checks that Neutron has what the story's Networks ask for, each once,
// and nothing else of the controllers'.
func (s *story) asAsked(ctx context.Context) error {
	list, err := s.client.SamplecrdV1().Networks(s.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	all, err := s.neutron.all()
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(all), func(n storyNetwork) bool { return !strings.HasPrefix(n.Description, s.markOf("")) })
	for _, network := range list.Items {
		if network.DeletionTimestamp != nil {
			return fmt.Errorf("%s is still being deleted: %+v", network.Name, network.Status)
		}
		if err := errors.Join(conditionOf(&network, metav1.ConditionTrue, "Provisioned", ""), s.asSpec(all, &network)); err != nil {
			return err
		}
		left = slices.DeleteFunc(left, func(n storyNetwork) bool { return n.Description == s.markOf(network.Name) })
	}
	if len(left) > 0 {
		return fmt.Errorf("neutron has networks of Networks that do not exist:\n%s", told(left))
	}
	return nil
}
