package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"

	"github.com/samplecrd/network-controller/test/internal/kubernetes"
)

// All programs run in the run folder: relative paths below are of files in it.
// What they keep in /run, /var/lib and /var/log is only in their mount namespace.

// writeCredentials writes the certificates and kubeconfig files of all programs,
// and returns how an administrator reaches the API server.
func writeCredentials(dir string) (*rest.Config, error) {
	const server = "https://" + nodeAddress
	authority, err := kubernetes.WriteCredentials(dir, "127.0.0.1", nodeAddress)
	if err != nil {
		return nil, err
	}
	_, scheduler := authority.Kubeconfig("scheduler", server, "system:kube-scheduler")
	_, kubelet := authority.Kubeconfig("kubelet", server, "system:node:"+nodeName, "system:nodes")
	err = errors.Join(scheduler, kubelet,
		authority.Server("kubelet", nodeAddress),
		// With this, the API server reads logs from kubelet, for example.
		authority.Client("apiserver-kubelet", "kube-apiserver", "system:masters"),
	)
	if err != nil {
		return nil, err
	}
	return kubernetes.WriteKubeconfigs(authority, server)
}

// auditLogName is the file in the run folder with the audit log.
const auditLogName = "audit.log"

var apiServerArgs = kubernetes.APIServerArgs(443,
	"--bind-address=0.0.0.0", // of the network namespace
	"--advertise-address="+nodeAddress,
	"--authorization-mode=Node,RBAC",
	"--enable-admission-plugins=NodeRestriction",
	"--allow-privileged=true",
	"--kubelet-preferred-address-types=InternalIP", // no DNS has the node's name
	"--kubelet-certificate-authority=ca.crt",
	"--kubelet-client-certificate=apiserver-kubelet.crt",
	"--kubelet-client-key=apiserver-kubelet.key",
	"--audit-policy-file=audit.json",
	"--audit-log-path="+auditLogName,
)

var schedulerArgs = []string{
	"--kubeconfig=scheduler.kubeconfig",
	"--leader-elect=false",
	"--secure-port=0",
}

var kubeletArgs = []string{
	"--config=kubelet.json",
	"--kubeconfig=kubelet.kubeconfig",
	"--hostname-override=" + nodeName,
	"--node-ip=" + nodeAddress,
}

// object is a JSON object, which is YAML, too.
type object = map[string]any

// auditPolicy puts the requests of the service accounts of pods into the audit log,
// without bodies.
var auditPolicy = object{
	"apiVersion": "audit.k8s.io/v1",
	"kind":       "Policy",
	"omitStages": []string{"RequestReceived"},
	"rules": []object{
		{"level": "None", "userGroups": []string{"system:serviceaccounts:kube-system"}},
		{"level": "Metadata", "userGroups": []string{"system:serviceaccounts"}},
		{"level": "None"},
	},
}

// kubeletConfig returns the configuration of kubelet in a run folder.
func kubeletConfig(dir string) object {
	return object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1",
		"kind":       "KubeletConfiguration",
		"address":    nodeAddress,
		"authentication": object{
			"anonymous": object{"enabled": false},
			"webhook":   object{"enabled": true},
			"x509":      object{"clientCAFile": filepath.Join(dir, "ca.crt")},
		},
		"authorization":            object{"mode": "Webhook"},
		"tlsCertFile":              filepath.Join(dir, "kubelet.crt"),
		"tlsPrivateKeyFile":        filepath.Join(dir, "kubelet.key"),
		"containerRuntimeEndpoint": "unix://" + containerdSocket,
		"resolvConf":               "", // there is no DNS
		"cgroupDriver":             "cgroupfs",
		"cgroupRoot":               "/" + cgroupRoot(dir),
		"enforceNodeAllocatable":   []string{},
		"failCgroupV1":             false,
		"failSwapOn":               false,
		"makeIPTablesUtilChains":   false,
		// The disk belongs to the machine: kubelet must not free space on it.
		"localStorageCapacityIsolation": false,
		"evictionHard":                  object{"memory.available": "50Mi"},
		"imageGCHighThresholdPercent":   100,
	}
}

// networkConfig returns the CNI configuration: a bridge connects the pods and is
// their default gateway.
func networkConfig(dir string) object {
	return object{
		"cniVersion": "0.4.0",
		"name":       "pods",
		"plugins": []object{{
			"type":        "bridge",
			"bridge":      "cni0",
			"isGateway":   true,
			"ipMasq":      false,
			"hairpinMode": true,
			"ipam": object{
				"type":    "host-local",
				"dataDir": filepath.Join(dir, "addresses"),
				"ranges":  [][]object{{{"subnet": podNetwork}}},
				"routes":  []object{{"dst": "0.0.0.0/0"}},
			},
		}},
	}
}

// containerdSocket is the default of containerd and ctr.
const containerdSocket = "/run/containerd/containerd.sock"

// containerdConfig is the configuration of containerd in a run folder. The disabled
// plugin would make folders in /opt.
const containerdConfig = `version = 2
root = %[1]q
disabled_plugins = ["io.containerd.internal.v1.opt"]

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %[3]q
  disable_apparmor = true # a profile would be loaded for the whole machine
  restrict_oom_score_adj = true # a container may not lower it
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = %[2]q
`

// writeConfiguration writes the files that the programs read.
func writeConfiguration(dir string) error {
	network := filepath.Join(dir, "network")
	if err := os.Mkdir(network, 0o700); err != nil {
		return err
	}
	files := map[string][]byte{
		"containerd.toml": fmt.Appendf(nil, containerdConfig, filepath.Join(dir, "containerd.data"), network, pauseImage),
	}
	for name, content := range map[string]object{
		"audit.json":                 auditPolicy,
		"kubelet.json":               kubeletConfig(dir),
		"network/10-bridge.conflist": networkConfig(dir),
	} {
		encoded, err := json.Marshal(content)
		if err != nil {
			return err
		}
		files[name] = encoded
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}
