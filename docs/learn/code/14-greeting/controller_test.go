package main

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/samplecrd/network-controller/docs/learn/code/14-greeting/api"
)

func TestDesiredConfigMap(t *testing.T) {
	greeting := &api.Greeting{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ada", UID: "1"}, Spec: api.GreetingSpec{Person: "Ada"}}
	got := desiredConfigMap(greeting)
	if want := "Hello, Ada!"; got.Data["text"] != want {
		t.Errorf("the text is %q, want %q", got.Data["text"], want)
	}
	if !metav1.IsControlledBy(got, greeting) {
		t.Errorf("the owner references %v do not lead to the Greeting: the ConfigMap would outlive it", got.OwnerReferences)
	}
}
