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

// wantWarnings checks the warnings of the policies, without their first words.
func wantWarnings(t *testing.T, stderr string, want ...string) {
	t.Helper()
	var got []string
	for line := range strings.Lines(stderr) {
		got = append(got, regexp.MustCompile(`^Warning: Validation failed for ValidatingAdmissionPolicy '[a-z-]+' with binding '[a-z-]+': `).ReplaceAllString(strings.TrimSuffix(line, "\n"), ""))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("kubectl prints\n%q, want\n%q", got, want)
	}
}

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
	const present, v6, fromPool = `{"cidr":"192.168.0.0/16"}`, `{"cidr":"fd00::/64"}`, `{"cidr":"10.64.0.0/24","subnetPool":{"id":"a-b","name":"campus"}}`
	const pool = `{subnetPool: {name: campus, prefixLength: 24}}`
	for name, test := range map[string]struct {
		spec, status, patch string
		want                string // the start of the warning
	}{
		"another range":             {`{cidr: 192.168.0.0/16}`, present, `{"cidr":"172.16.0.0/24"}`, "cidr 172.16.0.0/24 replaces the subnet 192.168.0.0/16 of the Network edited"},
		"another prefix length":     {`{cidr: 192.168.0.0/16}`, present, `{"cidr":"192.168.0.0/24"}`, "cidr 192.168.0.0/24 replaces the subnet 192.168.0.0/16 of the Network edited"},
		"the range with host bits":  {`{cidr: 192.168.0.0/16}`, present, `{"cidr":"192.168.1.0/16","gateway":"192.168.1.1"}`, ""},
		"another field":             {`{cidr: 192.168.0.0/16}`, present, `{"gateway":"192.168.9.9"}`, ""},
		"before there is a subnet":  {`{cidr: 192.168.0.0/16}`, `{}`, `{"cidr":"172.16.0.0/24"}`, ""},
		"back to the present range": {`{cidr: 172.16.0.0/24}`, present, `{"cidr":"192.168.0.0/16"}`, ""},
		"a subnet pool":             {`{cidr: 192.168.0.0/16}`, present, `{"cidr":null,"subnetPool":{"name":"campus"}}`, "subnetPool replaces the subnet 192.168.0.0/16 of the Network edited by another range"},
		"another subnet pool":       {pool, fromPool, `{"subnetPool":{"name":"other"}}`, "subnetPool replaces the subnet 10.64.0.0/24 of the Network edited by another range"},
		"another length":            {pool, fromPool, `{"subnetPool":{"prefixLength":26}}`, "subnetPool replaces the subnet 10.64.0.0/24 of the Network edited by another range"},
		"no length":                 {pool, fromPool, `{"subnetPool":{"prefixLength":null}}`, ""},
		"the subnet pool by ID":     {pool, fromPool, `{"subnetPool":{"name":null,"id":"a-b"}}`, ""},
		"another one by ID":         {pool, fromPool, `{"subnetPool":{"name":null,"id":"b-a"}}`, "subnetPool replaces the subnet 10.64.0.0/24 of the Network edited by another range"},
		"a range":                   {pool, fromPool, `{"subnetPool":null,"cidr":"10.9.0.0/24"}`, "cidr 10.9.0.0/24 replaces the subnet 10.64.0.0/24 of the Network edited"},
		"the range of the pool":     {pool, fromPool, `{"subnetPool":null,"cidr":"10.64.0.0/24"}`, ""},
		"an IPv6 mode":              {`{cidr: "fd00::/64"}`, v6, `{"ipv6":{"raMode":"slaac"}}`, "ipv6 with other modes replaces the subnet fd00::/64 of the Network edited"},
		"no IPv6 mode":              {`{cidr: "fd00::/64", ipv6: {addressMode: slaac}}`, v6, `{"ipv6":null}`, "ipv6 with other modes replaces the subnet fd00::/64 of the Network edited"},
	} {
		t.Run(name, func(t *testing.T) {
			kubectl(t, "create", "-f", write(t, networkYAML("edited", test.spec)))
			t.Cleanup(func() { kubectlAfter(t, "delete", "network", "edited") })
			setStatus(t, "edited", test.status)
			stderr := kubectl(t, "patch", "network", "edited", "--type=merge", "-p", `{"spec":`+test.patch+`}`)
			if test.want == "" {
				wantWarnings(t, stderr)
			} else {
				wantWarnings(t, stderr, test.want+consequence)
			}
			if name == "another range" { // the next edit does not change the spec
				stderr = kubectl(t, "annotate", "network", "edited", "a=b")
				wantWarnings(t, stderr)
			}
		})
	}
}

func overlappingRange(t *testing.T) {
	const consequence = ": no router can connect both networks"
	kubectl(t, "create", "namespace", "ranges") // without the Networks of other tests
	kubectl(t, "create", "namespace", "other")
	for name, spec := range map[string]string{"first": `{cidr: 10.1.0.0/16}`, "second": `{cidr: "fd00::/64"}`, "third": `{subnetPool: {name: campus}}`} {
		kubectl(t, "create", "-n", "ranges", "-f", write(t, networkYAML(name, spec)))
	}
	kubectl(t, "patch", "network", "third", "-n", "ranges", "--subresource=status", "--type=merge", "-p", `{"status":{"cidr":"10.64.0.0/24"}}`)
	for cidr, want := range map[string][]string{
		"10.1.0.0/16":  {"cidr 10.1.0.0/16 overlaps 10.1.0.0/16 of the Network first" + consequence},
		"10.1.9.0/24":  {"cidr 10.1.9.0/24 overlaps 10.1.0.0/16 of the Network first" + consequence},
		"10.1.9.9/8":   {"cidr 10.1.9.9/8 overlaps 10.1.0.0/16 of the Network first" + consequence, "cidr 10.1.9.9/8 overlaps 10.64.0.0/24 of the Network third" + consequence},
		"10.2.0.0/16":  {},
		"fd00::/48":    {"cidr fd00::/48 overlaps fd00::/64 of the Network second" + consequence},
		"fd00:1::/64":  {},
		"10.64.0.0/24": {"cidr 10.64.0.0/24 overlaps 10.64.0.0/24 of the Network third" + consequence},
	} {
		path := write(t, networkYAML("fourth", `{cidr: "`+cidr+`"}`))
		stderr := kubectl(t, "create", "--dry-run=server", "-n", "ranges", "-f", path)
		wantWarnings(t, stderr, want...)
		stderr = kubectl(t, "create", "--dry-run=server", "-n", "other", "-f", path)
		wantWarnings(t, stderr)
	}
}

func annotations(t *testing.T) {
	const cidr, gateway, prefix = "the annotation samplecrd.k8s.io/cidr is ", "the annotation samplecrd.k8s.io/gateway is ", "the annotation samplecrd.k8s.io/prefix-length is "
	const noRange, noAddress, noLength = ", but it must be a range in CIDR notation, such as 192.168.0.0/16", ", but it must be an address, such as 192.168.0.1, or None", ", but it must be a number from 1 to 126, such as 24, and requires samplecrd.k8s.io/subnet-pool"
	for name, test := range map[string]struct {
		annotations string
		want        []string
	}{
		"a range":               {`{samplecrd.k8s.io/cidr: 10.0.0.0/24, samplecrd.k8s.io/gateway: 10.0.0.1}`, nil},
		"no gateway":            {`{samplecrd.k8s.io/cidr: 10.0.0.0/24, samplecrd.k8s.io/gateway: None}`, nil},
		"a subnet pool":         {`{samplecrd.k8s.io/subnet-pool: campus, samplecrd.k8s.io/prefix-length: "24"}`, nil},
		"none of ours":          {`{example.org/cidr: x}`, nil},
		"no range":              {`{samplecrd.k8s.io/cidr: 10.0.0.0/33}`, []string{cidr + `"10.0.0.0/33"` + noRange}},
		"a long value":          {`{samplecrd.k8s.io/cidr: ` + strings.Repeat("1", 1000) + `}`, []string{cidr + "not valid" + noRange}},
		"control characters":    {`{samplecrd.k8s.io/cidr: "\e[31m\n"}`, []string{cidr + "not valid" + noRange}},
		"no address":            {`{samplecrd.k8s.io/cidr: 10.0.0.0/24, samplecrd.k8s.io/gateway: router}`, []string{gateway + `"router"` + noAddress}},
		"outside":               {`{samplecrd.k8s.io/cidr: 10.0.0.0/24, samplecrd.k8s.io/gateway: 10.0.1.1}`, []string{gateway + "10.0.1.1, which is outside of samplecrd.k8s.io/cidr 10.0.0.0/24"}},
		"range and pool":        {`{samplecrd.k8s.io/cidr: 10.0.0.0/24, samplecrd.k8s.io/subnet-pool: campus}`, []string{"exactly one of the annotations samplecrd.k8s.io/cidr and samplecrd.k8s.io/subnet-pool must be set, but both are: the Deployment gets no Network"}},
		"a gateway only":        {`{samplecrd.k8s.io/gateway: 10.0.0.1}`, []string{"exactly one of the annotations samplecrd.k8s.io/cidr and samplecrd.k8s.io/subnet-pool must be set, but neither is: the Deployment gets no Network"}},
		"pool with a gateway":   {`{samplecrd.k8s.io/subnet-pool: campus, samplecrd.k8s.io/gateway: 10.0.0.1}`, []string{"the annotation samplecrd.k8s.io/gateway must be None or omitted with samplecrd.k8s.io/subnet-pool"}},
		"a long prefix length":  {`{samplecrd.k8s.io/subnet-pool: campus, samplecrd.k8s.io/prefix-length: "127"}`, []string{prefix + `"127"` + noLength}},
		"range with its length": {`{samplecrd.k8s.io/cidr: 10.0.0.0/24, samplecrd.k8s.io/prefix-length: "24"}`, []string{prefix + `"24"` + noLength}},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, deploymentYAML("web", test.annotations))
			stderr := kubectl(t, "apply", "-f", path)
			t.Cleanup(func() { kubectlAfter(t, "delete", "-f", path) })
			wantWarnings(t, stderr, test.want...)
			if name != "no range" {
				return
			}
			stderr = kubectl(t, "scale", "deployment", "web", "--replicas=1") // the request did not change
			wantWarnings(t, stderr)
			stderr = kubectl(t, "annotate", "deployment", "web", "samplecrd.k8s.io/cidr=x", "--overwrite")
			wantWarnings(t, stderr, cidr+`"x"`+noRange)
		})
	}
}
