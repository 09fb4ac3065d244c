package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// cgroupRoot returns the name of the cgroup that contains all pods of a node.
func cgroupRoot(runFolder string) string {
	return filepath.Base(runFolder)
}

// cgroupHierarchies returns the mount points of cgroups: one for version 2, and one
// for each controller of version 1. A machine may have both.
func cgroupHierarchies() ([]string, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	var paths []string
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if len(fields) > 2 && (fields[2] == "cgroup" || fields[2] == "cgroup2") && !slices.Contains(paths, fields[1]) {
			paths = append(paths, fields[1])
		}
	}
	return paths, nil
}

// makeCgroups makes the cgroup of a node in all hierarchies.
func makeCgroups(runFolder string) error {
	hierarchies, err := cgroupHierarchies()
	if err != nil {
		return fmt.Errorf("finding cgroups: %w", err)
	}
	for _, hierarchy := range hierarchies {
		group := filepath.Join(hierarchy, cgroupRoot(runFolder))
		// Version 2: a group can use only the controllers that its parent enables.
		if controllers, err := os.ReadFile(filepath.Join(hierarchy, "cgroup.controllers")); err == nil {
			for controller := range strings.FieldsSeq(string(controllers)) {
				// Some cannot be enabled, such as cpu if a process has a real-time priority.
				_ = os.WriteFile(filepath.Join(hierarchy, "cgroup.subtree_control"), []byte("+"+controller), 0)
			}
		}
		if err := os.Mkdir(group, 0o755); err != nil {
			return fmt.Errorf("making a cgroup: %w", err)
		}
		// Version 1: a new cpuset is empty, so that no process can run in it.
		for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
			value, err := os.ReadFile(filepath.Join(hierarchy, name))
			if isMissing(err) {
				continue
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(group, name), value, 0)
			}
			if err != nil {
				return fmt.Errorf("setting up a cgroup: %w", err)
			}
		}
	}
	return nil
}

// removeCgroups removes the cgroups of a node, the innermost first. It fails
// while a process is in one.
func removeCgroups(runFolder string) error {
	hierarchies, err := cgroupHierarchies()
	if err != nil {
		return fmt.Errorf("finding cgroups: %w", err)
	}
	for _, hierarchy := range hierarchies {
		var groups []string
		err := filepath.WalkDir(filepath.Join(hierarchy, cgroupRoot(runFolder)),
			func(path string, entry fs.DirEntry, err error) error {
				if err == nil && entry.IsDir() {
					groups = append(groups, path)
				}
				return err
			})
		if err != nil && !isMissing(err) {
			return fmt.Errorf("finding cgroups: %w", err)
		}
		for _, group := range slices.Backward(groups) {
			if err := syscall.Rmdir(group); err != nil && !isMissing(err) {
				return fmt.Errorf("removing the cgroup %s: %w", group, err)
			}
		}
	}
	return nil
}
