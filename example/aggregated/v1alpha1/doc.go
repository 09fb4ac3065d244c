// Package v1alpha1 has the type that the API server serves. There is one version, so
// the type is also the internal one, and nothing is converted.
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.k8s.samplecrd.neutron.v1alpha1
// +groupName=neutron.samplecrd.k8s.io
package v1alpha1
