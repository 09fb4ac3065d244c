// Package v1 is the API that users write: the Network object of the group
// samplecrd.k8s.io.
//
// The custom resource definition in crd/, the deepcopy functions beside this
// file and everything in pkg/client are generated from it by
// hack/update-codegen.sh.
//
// +k8s:deepcopy-gen=package
// +groupName=samplecrd.k8s.io
package v1
