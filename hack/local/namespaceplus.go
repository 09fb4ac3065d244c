package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/launch"
)

const tenantQuota = "resourcequota/namespaceplus"

// tenantActs are the parts of the demo: kubectl commands.
var tenantActs = []struct {
	title    string
	commands [][]string
}{
	{"1. Create", [][]string{
		{"apply", "-f", "example/namespaceplus/tenant.yaml"},
		{"wait", "--for=condition=Ready", "namespaceplus/team-a", "--timeout=1m"},
		{"get", "resourcequota,limitrange,networkpolicy,poddisruptionbudget,rolebinding", "-n", "team-a"},
	}},
	{"2. Somebody raises the quota: the event repairs it", [][]string{
		{"patch", tenantQuota, "-n", "team-a", "--type=merge", "-p", `{"spec":{"hard":{"pods":"500"}}}`},
		{"wait", "-n", "team-a", "--for=jsonpath={.spec.hard.pods}=20", tenantQuota, "--timeout=1m"},
	}},
	{"3. A namespace of somebody else is not taken over", [][]string{
		{"patch", "namespaceplus", "team-a", "--type=merge", "-p", `{"spec":{"deletionPolicy":"Delete"}}`},
		{"create", "namespace", "team-b"},
		{"create", "-f", "example/namespaceplus/taken.yaml"},
		{"wait", "--for=condition=Ready=false", "namespaceplus/team-b", "--timeout=1m"},
		{"get", "namespaceplus", "-o", "wide"},
	}},
	{"4. Delete: the garbage collector deletes the namespace", [][]string{
		{"wait", "--for=jsonpath={.metadata.ownerReferences[0].name}=team-a", "namespace/team-a", "--timeout=1m"},
		{"delete", "namespaceplus", "team-a", "team-b"},
		{"wait", "--for=delete", "namespace/team-a", "--timeout=2m"},
		{"get", "namespace", "team-b"},
	}},
}

// demoNamespacePlus gives a tenant a namespace, breaks what is in it, and deletes it.
func demoNamespacePlus(ctx context.Context, _ <-chan os.Signal, _ []string) (exitCode int, err error) {
	begun := time.Now()
	title("A tenant gets a namespace")
	c, err := launch.StartCluster(ctx, controlplane.Options{
		Apply: []string{"crd", "example/namespaceplus/deploy"}, ControllerManager: true,
	})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	kubeconfig, err := c.KubeconfigFor(ctx, "namespaceplus-system", "namespaceplus")
	if err != nil {
		return 1, err
	}
	fmt.Println("$ build/bin/namespaceplus, with the permissions of example/namespaceplus/deploy")
	controller, err := launch.StartProgram(c.Dir(), "namespaceplus", "build/bin/namespaceplus", "-kubeconfig="+kubeconfig)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, controller.Stop()) }()
	k := of(c)
	for _, act := range tenantActs {
		title(act.title)
		for _, command := range act.commands {
			if err := k.show(ctx, command...); err != nil {
				return 1, err
			}
		}
	}
	title(fmt.Sprintf("All as expected in %.0f s. Next: docs/learn/17-namespace-per-tenant.md",
		time.Since(begun).Seconds()))
	return 0, nil
}
