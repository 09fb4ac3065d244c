// Package v1 contains version v1 of the API group firewalld.fedoraproject.org. Its only
// kind is PortRule.
//
// +k8s:deepcopy-gen=package
// +groupName=firewalld.fedoraproject.org
package v1
