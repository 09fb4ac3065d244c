package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// commandFlag is a flag of the controller.
type commandFlag struct{ Name, Value, Default, Text string }

// flagGroup are the flags below one heading of -help.
type flagGroup struct {
	Title string
	Flags []commandFlag
}

var (
	flagTitle   = regexp.MustCompile(`(?m)^(\S.*):\n`)
	flagLine    = regexp.MustCompile(`(?m)^  -(\S+)(?: (\S+))?(?:\n    )?\t(.*)$`)
	flagDefault = regexp.MustCompile(` \(default (.*)\)$`)
)

// readFlags builds the controller and reads the output of -help.
func readFlags() (groups []flagGroup, err error) {
	command := exec.CommandContext(context.Background(), "go", "run", "-trimpath", ".", "-help")
	command.Stderr = os.Stderr
	help, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("running the controller with -help: %w", err)
	}
	titles := flagTitle.FindAllSubmatchIndex(help, -1)
	for i, title := range titles {
		end := len(help)
		if i+1 < len(titles) {
			end = titles[i+1][0]
		}
		group := flagGroup{Title: string(help[title[2]:title[3]])}
		for _, match := range flagLine.FindAllStringSubmatch(string(help[title[1]:end]), -1) {
			f := commandFlag{Name: match[1], Value: match[2], Text: match[3]}
			if value := flagDefault.FindStringSubmatch(f.Text); value != nil {
				f.Default, f.Text = strings.Trim(value[1], `"`), strings.TrimSuffix(f.Text, value[0])
			}
			group.Flags = append(group.Flags, f)
		}
		if len(group.Flags) > 0 { // the examples have none
			groups = append(groups, group)
		}
	}
	if len(groups) < 2 {
		return nil, errors.New("the output of -help has no groups of flags")
	}
	return groups, nil
}
