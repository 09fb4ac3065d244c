package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// All programs run in the run folder, so that the paths below are of files in it.
// What they keep in /run, /var/lib and /var/log is in their mount namespace alone.

var etcdArgs = []string{
	"--data-dir=etcd.data",
	"--listen-client-urls=unix://etcd.sock",
	"--listen-peer-urls=unix://etcd-peer.sock",
	// They need the form of an address, but nobody uses them.
	"--advertise-client-urls=http://127.0.0.1:2379",
	"--initial-advertise-peer-urls=http://127.0.0.1:2380",
	"--initial-cluster=default=http://127.0.0.1:2380",
	"--unsafe-no-fsync", // after a power failure nobody wants the data
}

func apiServerArgs(auditLog string) []string {
	return []string{
		"--etcd-servers=unix://etcd.sock",
		"--bind-address=0.0.0.0", // of the network namespace
		"--secure-port=443",
		"--advertise-address=" + nodeAddress,
		"--service-cluster-ip-range=" + serviceNetwork,
		"--tls-cert-file=apiserver.crt",
		"--tls-private-key-file=apiserver.key",
		"--client-ca-file=ca.crt",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-signing-key-file=service-account.key",
		"--service-account-key-file=service-account.key",
		"--kubelet-preferred-address-types=InternalIP", // the node's name can be looked up nowhere
		"--kubelet-certificate-authority=ca.crt",
		"--kubelet-client-certificate=apiserver-kubelet.crt",
		"--kubelet-client-key=apiserver-kubelet.key",
		"--audit-policy-file=audit.json",
		"--audit-log-path=" + auditLog,
		"--shutdown-watch-termination-grace-period=200ms",
	}
}

var controllerManagerArgs = []string{
	"--kubeconfig=controllers.kubeconfig",
	"--root-ca-file=ca.crt",
	"--service-account-private-key-file=service-account.key",
	"--use-service-account-credentials=true", // RBAC knows the controllers by their accounts
	"--leader-elect=false",
	"--secure-port=0", // nobody asks for its metrics
	"--kube-api-qps=500",
	"--kube-api-burst=1000",
}

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

// auditPolicy says what is in the audit log: what the service accounts of pods
// asked for, without bodies.
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

// kubeletConfig is the configuration of kubelet in a run folder.
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
		// The disk is the machine's. That it is full is not for kubelet to mend.
		"localStorageCapacityIsolation": false,
		"evictionHard":                  object{"memory.available": "50Mi"},
		"imageGCHighThresholdPercent":   100,
	}
}

// networkConfig connects pods by a bridge that is their default gateway.
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

// containerdSocket is where containerd, and ctr, have it by default.
const containerdSocket = "/run/containerd/containerd.sock"

// containerdConfig is the configuration of containerd in a run folder. The plugin
// that is disabled makes folders in /opt.
const containerdConfig = `version = 2
root = %[1]q
disabled_plugins = ["io.containerd.internal.v1.opt"]

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %[3]q
  disable_apparmor = true # a profile would be loaded for the whole machine
  restrict_oom_score_adj = true # in a container, nobody may lower it
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
	return writeFiles(dir, files)
}
