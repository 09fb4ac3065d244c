// Package e2e contains the end-to-end test: it installs the controller from deploy/ on
// a node that `make e2e` starts, as root on Debian 12, and follows docs/operate.
//
// It is one test. Its parts are the steps of an operator in their order: install, use,
// lose the leader, upgrade, lose the node, uninstall. What can be tested without a node
// is in test/install and test/stories.
package e2e
