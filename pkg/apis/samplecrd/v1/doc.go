// Package v1 contains version v1 of the API group samplecrd.k8s.io. Its only kind
// is Network.
//
// The CustomResourceDefinition in crd/, the deepcopy functions in this package,
// and the packages in pkg/client are generated from it: run make generate.
//
// +k8s:deepcopy-gen=package
// +groupName=samplecrd.k8s.io
package v1
