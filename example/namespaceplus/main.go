// Command namespaceplus gives tenants a namespace with everything that a NamespacePlus
// requests: a quota, limits, permissions, policies and a network. This file connects the
// parts. To learn how it works, read controller.go.
package main

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	lesson "github.com/samplecrd/network-controller/docs/learn/code/start"
	clientset "github.com/samplecrd/network-controller/example/namespaceplus/client/clientset/versioned"
	"github.com/samplecrd/network-controller/example/namespaceplus/tenant"
	"github.com/samplecrd/network-controller/pkg/glass"
)

func main() { lesson.MainWithPage(run) }

// clients are the clients of the API server, and the page that shows what they do.
type clients struct {
	tenants  clientset.Interface
	objects  dynamic.Interface  // writes objects of any kind
	metadata metadata.Interface // reads the metadata of objects of any kind
	kube     kubernetes.Interface
	page     *glass.Page
}

// run connects the parts.
func run(ctx context.Context, config *rest.Config, page *glass.Page) error {
	config.QPS = -1 // the API server limits requests
	config.UserAgent = tenant.FieldManager
	c, errs := clients{page: page}, [4]error{}
	c.tenants, errs[0] = clientset.NewForConfig(config)
	c.objects, errs[1] = dynamic.NewForConfig(config)
	c.metadata, errs[2] = metadata.NewForConfig(config)
	c.kube, errs[3] = kubernetes.NewForConfig(config)
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	kinds := tenant.Kinds
	_, err := c.kube.Discovery().ServerResourcesForGroupVersion(tenant.Network.GroupVersion().String())
	if err == nil {
		kinds = append(kinds, tenant.Network)
	} else if !apierrors.IsNotFound(err) { // without the CRD, an informer would wait for it
		return fmt.Errorf("looking for the kind Network: %w", err)
	}
	controller, err := NewController(c, kinds)
	if err == nil {
		controller.Run(ctx)
	}
	return err
}
