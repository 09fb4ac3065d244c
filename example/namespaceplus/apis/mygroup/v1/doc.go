// Package v1 contains version v1 of the API group mygroup.my.domain. Its only kind is
// NamespacePlus.
//
// +k8s:deepcopy-gen=package
// +groupName=mygroup.my.domain
package v1
