// Package start is what the programs of the lessons have in common before the lesson
// begins.
package start

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/samplecrd/network-controller/pkg/glass"
)

// Main parses the flags of the program and -kubeconfig, calls a function until Ctrl-C, and
// prints its error.
func Main(run func(ctx context.Context, config *rest.Config) error) {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "`path` of a kubeconfig file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err == nil {
		err = run(ctx, config)
	}
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(1)
	}
}

// MainWithPage is Main for a program with a debug page, which shows the requests that are
// sent with the config.
func MainWithPage(run func(ctx context.Context, config *rest.Config, page *glass.Page) error) {
	var options glass.Options
	options.AddFlags(flag.CommandLine)
	Main(func(ctx context.Context, config *rest.Config) error {
		page, err := options.Serve(ctx, glass.Process{Name: filepath.Base(os.Args[0])})
		if err != nil {
			return err
		}
		config.Wrap(page.Kubernetes)
		return run(ctx, config, page)
	})
}
