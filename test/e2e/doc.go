// Package e2e has the end-to-end test: it installs the controller from deploy/
// into a cluster with a real node, and checks what docs/operate promises.
//
//	make e2e                      # on a node of its own, as root on Debian 12
//	make e2e-openstack            # its part with an OpenStack, on a real one
//	make e2e KUBECONFIG=path      # on a cluster that is there, such as kind
//
// It is one test with parts that follow each other, as an operator would go:
// install, use, lose the leader, upgrade, lose the node, uninstall. What cannot be
// tried on a cluster is listed at the end of the log, with the reason.
package e2e
