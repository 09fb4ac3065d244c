// Package e2e contains the end-to-end test: it installs the controller from deploy/
// into a cluster with a real node, and follows docs/operate.
//
//	make e2e                      # on a node that it starts, as root on Debian 12
//	make e2e-openstack            # only the part with an OpenStack, on a real one
//	make e2e KUBECONFIG=path      # on an existing cluster, such as kind
//
// It is one test. Its parts are the steps of an operator in their order: install,
// use, lose the leader, upgrade, lose the node, uninstall. The end of the log lists
// the parts that cannot run on a cluster, with the reason.
package e2e
