package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"k8s.io/klog/v2"
)

// commandFlag is a flag of the controller.
type commandFlag struct{ Name, Value, Default, Text string }

// flagPages are the flags of the controller, and those of klog.
type flagPages struct{ Own, Klog []commandFlag }

var (
	flagLine    = regexp.MustCompile(`(?m)^  -(\S+)(?: (\S+))?(?:\n    )?\t(.*)$`)
	flagDefault = regexp.MustCompile(` \(default (.*)\)$`)
)

// readFlags builds the controller and reads the output of -help.
func readFlags() (pages flagPages, err error) {
	command := exec.CommandContext(context.Background(), "go", "run", "-trimpath", ".", "-help")
	command.Stderr = os.Stderr
	help, err := command.Output()
	if err != nil {
		return pages, fmt.Errorf("running the controller with -help: %w", err)
	}
	ofKlog := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(ofKlog)
	for _, match := range flagLine.FindAllStringSubmatch(string(help), -1) {
		f := commandFlag{Name: match[1], Value: match[2], Text: match[3]}
		if value := flagDefault.FindStringSubmatch(f.Text); value != nil {
			f.Default, f.Text = strings.Trim(value[1], `"`), strings.TrimSuffix(f.Text, value[0])
		}
		if ofKlog.Lookup(f.Name) != nil {
			pages.Klog = append(pages.Klog, f)
		} else {
			pages.Own = append(pages.Own, f)
		}
	}
	if len(pages.Own) == 0 || len(pages.Klog) == 0 {
		return pages, errors.New("the output of -help lists no flags")
	}
	return pages, nil
}
