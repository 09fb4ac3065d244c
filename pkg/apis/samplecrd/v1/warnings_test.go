package v1_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/running"
)

// useWarnings installs all of deploy/warnings until the test ends. The API server starts to
// evaluate policies a moment later.
func useWarnings(t *testing.T) {
	t.Helper()
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(root, "deploy", "warnings")
	for _, folder := range []string{folder, filepath.Join(folder, "overlapping-range")} {
		kubectl(t, "apply", "-k", folder)
		t.Cleanup(func() { kubectlAfter(t, "delete", "-k", folder) })
	}
	probes := map[string][]string{ // one for each policy
		"overlaps":            {"create", "-f", write(t, networkYAML("probe-2", `{cidr: 10.255.0.0/25}`)), "--dry-run=server"},
		"replaces the subnet": {"patch", "network", "probe", "--type=merge", "--dry-run=server", "-p", `{"spec":{"cidr":"10.254.0.0/24"}}`},
		"must be a range":     {"create", "-f", write(t, deploymentYAML("probe", `{samplecrd.k8s.io/cidr: x}`)), "--dry-run=server"},
	}
	kubectl(t, "apply", "-f", write(t, networkYAML("probe", `{cidr: 10.255.0.0/24}`)))
	setStatus(t, "probe", `{"cidr":"10.255.0.0/24"}`)
	for want, args := range probes {
		running.Eventually(t, func() error {
			if warnings := kubectl(t, args...); !strings.Contains(warnings, want) {
				return fmt.Errorf("kubectl %s prints no warning with %q: %s", strings.Join(args, " "), want, warnings)
			}
			return nil
		})
	}
	kubectl(t, "delete", "network", "probe")
}

// kubectl returns the warnings that kubectl prints.
func kubectl(t *testing.T, args ...string) (warnings string) {
	t.Helper()
	_, stderr, err := cluster.KubectlWarnings(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return string(stderr)
}

// kubectlAfter runs kubectl when a test has ended.
func kubectlAfter(t *testing.T, args ...string) {
	t.Helper()
	if _, err := cluster.Kubectl(context.Background(), args...); err != nil {
		t.Error(err)
	}
}

// write writes a file for kubectl, and returns its path.
func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "object.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func networkYAML(name, spec string) string {
	return fmt.Sprintf("{apiVersion: samplecrd.k8s.io/v1, kind: Network, metadata: {name: %s}, spec: %s}", name, spec)
}

func deploymentYAML(name, annotations string) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, annotations: %s}, spec: {replicas: 0,
  selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}}}`, name, annotations)
}

// setStatus changes a status, as the controller does.
func setStatus(t *testing.T, name, status string) {
	t.Helper()
	kubectl(t, "patch", "network", name, "--subresource=status", "--type=merge", "-p", `{"status":`+status+`}`)
}

// wantWarnings checks the warnings that kubectl prints, without their first words.
func wantWarnings(t *testing.T, want string, args ...string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(first.ReplaceAllString(kubectl(t, args...), "")), "\n")
	slices.Sort(lines)
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("kubectl %s prints\n%q, want\n%q", strings.Join(args, " "), got, want)
	}
}

var first = regexp.MustCompile(`(?m)^Warning: Validation failed for ValidatingAdmissionPolicy '[a-z-]+' with binding '[a-z-]+': `)

// TestWarnings edits Networks and Deployments with kubectl: an edit with
// consequences is permitted, and kubectl prints a warning.
func TestWarnings(t *testing.T) {
	useWarnings(t)
	t.Run("replaced subnet", replacedSubnet)
	t.Run("overlapping range", overlappingRange)
	t.Run("annotations", annotations)
}

func replacedSubnet(t *testing.T) {
	const consequence = ": Neutron rejects that while ports use the subnet, and then the Network reports InUse"
	const pool = `{subnetPool: {name: campus, prefixLength: 24}}`
	for name, network := range map[string]struct{ spec, status string }{
		"range":  {`{cidr: 192.168.0.0/16}`, `{"cidr":"192.168.0.0/16"}`},
		"bare":   {`{cidr: 192.168.0.0/16}`, `{}`},
		"edited": {`{cidr: 172.16.0.0/24}`, `{"cidr":"192.168.0.0/16"}`},
		"pool":   {pool, `{"cidr":"10.64.0.0/24","subnetPool":{"id":"a-b","name":"campus"}}`},
		"v6":     {`{cidr: "fd00::/64"}`, `{"cidr":"fd00::/64"}`},
		"slaac":  {`{cidr: "fd00::/64", ipv6: {addressMode: slaac}}`, `{"cidr":"fd00::/64"}`},
	} {
		kubectl(t, "create", "-f", write(t, networkYAML(name, network.spec)))
		t.Cleanup(func() { kubectlAfter(t, "delete", "network", name) })
		setStatus(t, name, network.status)
	}
	for _, test := range []struct{ network, patch, want string }{
		{"range", `{"cidr":"172.16.0.0/24"}`, "cidr 172.16.0.0/24 replaces the subnet 192.168.0.0/16 of the Network range" + consequence},
		{"range", `{"cidr":"192.168.0.0/24"}`, "cidr 192.168.0.0/24 replaces the subnet 192.168.0.0/16 of the Network range" + consequence},
		{"range", `{"cidr":"192.168.1.0/16","gateway":"192.168.1.1"}`, ""}, // with host bits
		{"range", `{"gateway":"192.168.9.9"}`, ""},
		{"range", `{"cidr":null,"subnetPool":{"name":"campus"}}`, "subnetPool replaces the subnet 192.168.0.0/16 of the Network range by another range" + consequence},
		{"bare", `{"cidr":"172.16.0.0/24"}`, ""},
		{"edited", `{"cidr":"192.168.0.0/16"}`, ""},
		{"pool", `{"subnetPool":{"name":"other"}}`, "subnetPool replaces the subnet 10.64.0.0/24 of the Network pool by another range" + consequence},
		{"pool", `{"subnetPool":{"prefixLength":26}}`, "subnetPool replaces the subnet 10.64.0.0/24 of the Network pool by another range" + consequence},
		{"pool", `{"subnetPool":{"prefixLength":null}}`, ""},
		{"pool", `{"subnetPool":{"name":null,"id":"a-b"}}`, ""},
		{"pool", `{"subnetPool":{"name":null,"id":"b-a"}}`, "subnetPool replaces the subnet 10.64.0.0/24 of the Network pool by another range" + consequence},
		{"pool", `{"subnetPool":null,"cidr":"10.9.0.0/24"}`, "cidr 10.9.0.0/24 replaces the subnet 10.64.0.0/24 of the Network pool" + consequence},
		{"pool", `{"subnetPool":null,"cidr":"10.64.0.0/24"}`, ""},
		{"v6", `{"ipv6":{"raMode":"slaac"}}`, "ipv6 with other modes replaces the subnet fd00::/64 of the Network v6" + consequence},
		{"slaac", `{"ipv6":null}`, "ipv6 with other modes replaces the subnet fd00::/64 of the Network slaac" + consequence},
	} {
		patch := `{"spec":` + test.patch + `}`
		wantWarnings(t, test.want, "patch", "network", test.network, "--type=merge", "--dry-run=server", "-p", patch)
	}
	wantWarnings(t, "", "annotate", "network", "edited", "a=b") // does not change the spec
}

func overlappingRange(t *testing.T) {
	const consequence = ": no router can connect both networks"
	kubectl(t, "create", "namespace", "ranges") // without the Networks of other tests
	kubectl(t, "create", "namespace", "other")
	for name, spec := range map[string]string{"first": `{cidr: 10.1.0.0/16}`, "second": `{cidr: "fd00::/64"}`, "third": `{subnetPool: {name: campus}}`} {
		kubectl(t, "create", "-n", "ranges", "-f", write(t, networkYAML(name, spec)))
	}
	kubectl(t, "patch", "network", "third", "-n", "ranges", "--subresource=status", "--type=merge", "-p", `{"status":{"cidr":"10.64.0.0/24"}}`)
	const first, second, third = " overlaps 10.1.0.0/16 of the Network first" + consequence,
		" overlaps fd00::/64 of the Network second" + consequence, " overlaps 10.64.0.0/24 of the Network third" + consequence
	for cidr, want := range map[string]string{
		"10.1.0.0/16": "cidr 10.1.0.0/16" + first, "10.1.9.0/24": "cidr 10.1.9.0/24" + first,
		"10.1.9.9/8":  "cidr 10.1.9.9/8" + first + "\ncidr 10.1.9.9/8" + third,
		"10.2.0.0/16": "", "fd00::/48": "cidr fd00::/48" + second, "fd00:1::/64": "", "10.64.0.0/24": "cidr 10.64.0.0/24" + third,
	} {
		path := write(t, networkYAML("fourth", `{cidr: "`+cidr+`"}`))
		wantWarnings(t, want, "create", "--dry-run=server", "-n", "ranges", "-f", path)
		wantWarnings(t, "", "create", "--dry-run=server", "-n", "other", "-f", path)
	}
}

func annotations(t *testing.T) {
	const noRange, noAddress, noLength = ", but it must be a range in CIDR notation, such as 192.168.0.0/16", ", but it must be an address, such as 192.168.0.1, or None", ", but it must be a number from 1 to 126, such as 24, and requires samplecrd.k8s.io/subnet-pool"
	const one = "exactly one of the annotations samplecrd.k8s.io/cidr and samplecrd.k8s.io/subnet-pool must be set, but "
	the := func(name string) string { return "the annotation samplecrd.k8s.io/" + name + " " }
	for _, test := range []struct{ annotations, want string }{ // without the prefix of the names
		{`{/cidr: 10.0.0.0/24, /gateway: 10.0.0.1}`, ""},
		{`{/cidr: 10.0.0.0/24, /gateway: None}`, ""},
		{`{/subnet-pool: campus, /prefix-length: "24"}`, ""},
		{`{example.org/cidr: x}`, ""},
		{`{/cidr: 10.0.0.0/33}`, the("cidr") + `is "10.0.0.0/33"` + noRange},
		{`{/cidr: ` + strings.Repeat("1", 1000) + `}`, the("cidr") + "is not valid" + noRange},
		{`{/cidr: "\e[31m\n"}`, the("cidr") + "is not valid" + noRange},
		{`{/cidr: 10.0.0.0/24, /gateway: router}`, the("gateway") + `is "router"` + noAddress},
		{`{/cidr: 10.0.0.0/24, /gateway: 10.0.1.1}`, the("gateway") + "is 10.0.1.1, which is outside of samplecrd.k8s.io/cidr 10.0.0.0/24"},
		{`{/cidr: 10.0.0.0/24, /subnet-pool: campus}`, one + "both are: the Deployment gets no Network"},
		{`{/gateway: 10.0.0.1}`, one + "neither is: the Deployment gets no Network"},
		{`{/subnet-pool: campus, /gateway: 10.0.0.1}`, the("gateway") + "must be None or omitted with samplecrd.k8s.io/subnet-pool"},
		{`{/subnet-pool: campus, /prefix-length: "127"}`, the("prefix-length") + `is "127"` + noLength},
		{`{/cidr: 10.0.0.0/24, /prefix-length: "24"}`, the("prefix-length") + `is "24"` + noLength},
	} {
		named := strings.NewReplacer("{/", "{samplecrd.k8s.io/", " /", " samplecrd.k8s.io/").Replace(test.annotations)
		wantWarnings(t, test.want, "create", "--dry-run=server", "-f", write(t, deploymentYAML("web", named)))
	}
	path := write(t, deploymentYAML("web", `{samplecrd.k8s.io/cidr: 10.0.0.0/33}`))
	kubectl(t, "apply", "-f", path)
	t.Cleanup(func() { kubectlAfter(t, "delete", "-f", path) })
	wantWarnings(t, "", "scale", "deployment", "web", "--replicas=1") // the request did not change
	wantWarnings(t, the("cidr")+`is "x"`+noRange, "annotate", "deployment", "web", "samplecrd.k8s.io/cidr=x", "--overwrite")
}
