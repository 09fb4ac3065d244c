// Command measure shows what the cache of Deployments costs in memory: with the
// whole objects, with their metadata, and with what the controller keeps of it.
//
//	go run ./hack/measure -deployments=10000 -template=20000
//
// It starts a control plane of its own (make control-plane builds it) and fills
// it with Deployments whose pod templates have about so many bytes. It is a
// program and no test: the figures depend on the machine, and the ratio counts.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/samplecrd/network-controller/hack/localcluster"
)

func main() {
	number := flag.Int("deployments", 10_000, "how many Deployments")
	size := flag.Int("template", 20_000, "how many bytes of environment variables each pod template has")
	flag.Parse()
	if err := measure(context.Background(), *number, *size); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, number, size int) error {
	cluster, err := localcluster.Start(ctx, localcluster.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = cluster.Stop() }()
	config := cluster.RESTConfig()
	config.QPS = -1
	if err := fill(ctx, kubernetes.NewForConfigOrDie(config), number, size); err != nil {
		return err
	}
	fmt.Printf("%d Deployments, each with a pod template of %d bytes:\n", number, size)
	var whole uint64
	for _, way := range []struct {
		name string
		make func(*rest.Config) cache.SharedIndexInformer
	}{
		{"the whole object", wholeObjects},
		{"its metadata", onlyMetadata},
		{"what asks for a Network", whatAsks},
	} {
		used, took, err := cost(ctx, way.make(config))
		if err != nil {
			return err
		}
		if whole == 0 {
			whole = used
		}
		fmt.Printf("  %-24s %8.1f MiB in the cache (1/%.0f), listed in %v\n", way.name, float64(used)/(1<<20), float64(whole)/float64(used), took.Round(10*time.Millisecond))
	}
	return nil
}

// fill makes the Deployments, eight at a time.
func fill(ctx context.Context, client kubernetes.Interface, number, size int) error {
	var env []corev1.EnvVar
	for i := range max(size/1000, 1) {
		env = append(env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", i), Value: strings.Repeat("x", 1000)})
	}
	names := make(chan int)
	failures := make(chan error, 8)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range names {
				labels := map[string]string{"app": fmt.Sprintf("web-%d", i)}
				_, err := client.AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{
					ObjectMeta: metav1.ObjectMeta{Name: labels["app"], Labels: labels},
					Spec: appsv1.DeploymentSpec{
						Selector: &metav1.LabelSelector{MatchLabels: labels},
						Template: corev1.PodTemplateSpec{
							ObjectMeta: metav1.ObjectMeta{Labels: labels},
							Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web", Env: env}}},
						},
					},
				}, metav1.CreateOptions{})
				if err != nil {
					select {
					case failures <- err:
					default:
					}
				}
			}
		})
	}
	for i := range number {
		names <- i
	}
	close(names)
	all.Wait()
	select {
	case err := <-failures:
		return err
	default:
		return nil
	}
}

func wholeObjects(config *rest.Config) cache.SharedIndexInformer {
	return kubeinformers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(config), 0).Apps().V1().Deployments().Informer()
}

func onlyMetadata(config *rest.Config) cache.SharedIndexInformer {
	return metadatainformer.NewSharedInformerFactory(metadata.NewForConfigOrDie(config), 0).
		ForResource(appsv1.SchemeGroupVersion.WithResource("deployments")).Informer()
}

// whatAsks keeps what onlyWhatAsks in deployments.go does, of Deployments that
// ask for nothing.
func whatAsks(config *rest.Config) cache.SharedIndexInformer {
	informer := onlyMetadata(config)
	err := informer.SetTransform(func(object any) (any, error) {
		o := object.(*metav1.PartialObjectMetadata)
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, DeletionTimestamp: o.DeletionTimestamp,
		}}, nil
	})
	if err != nil {
		panic(err) // it is not started yet
	}
	return informer
}

// cost fills an informer's cache, and returns what that has added to the heap.
func cost(ctx context.Context, informer cache.SharedIndexInformer) (used uint64, took time.Duration, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	before, begun := heap(), time.Now()
	ended := make(chan struct{})
	go func() { defer close(ended); informer.RunWithContext(ctx) }()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return 0, 0, fmt.Errorf("the cache was not filled: %w", ctx.Err())
	}
	took = time.Since(begun)
	used = heap() - before
	runtime.KeepAlive(informer)
	stop()
	<-ended
	return used, took, nil
}

// heap returns what is in use after what nobody needs was collected.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what the first one has finalized
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
