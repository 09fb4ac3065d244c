package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// environmentName is the file in a run folder with the environment. It is there
// when all is ready.
const environmentName = "environment"

// environment is what a program needs to use a cloud, as NAME=value. No secret is
// in it.
type environment []string

// environment returns that of a cloud that is ready.
func (c *cloud) environment() environment {
	return environment{
		// A Neutron that asks nobody who they are.
		"NEUTRON_ENDPOINT=" + c.neutronNoAuth.URL(),
		"NEUTRON_SET_QUOTAS=1", // nobody else uses it
		// The clouds with Keystone, and the one to take.
		"OS_CLIENT_CONFIG_FILE=" + c.cloudsFile(),
		"OS_CLOUD=ours",
		"OPENSTACK_CLOUDS=" + cloudNames,
		// The Neutron that their catalog leads to, and the Keystone that it asks
		// about tokens; a process that is stopped or killed stays so.
		"NEUTRON_KEYSTONE_ENDPOINT=" + c.neutron.URL(),
		"OPENSTACK_NEUTRON_PID=" + strconv.Itoa(c.neutron.process.command.Process.Pid),
		"OPENSTACK_KEYSTONE_PID=" + strconv.Itoa(c.keystone.process.command.Process.Pid),
	}
}

// write writes the environment into a run folder, all of it at once.
func (e environment) write(folder string) error {
	path := filepath.Join(folder, environmentName)
	if err := os.WriteFile(path+".new", []byte(strings.Join(e, "\n")), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// readEnvironment reads what write wrote.
func readEnvironment(folder string) (environment, error) {
	content, err := os.ReadFile(filepath.Join(folder, environmentName))
	if err != nil {
		return nil, fmt.Errorf("reading the environment: %w", err)
	}
	return strings.Split(string(content), "\n"), nil
}

// addTo adds the environment to another one, in place of what that says about
// any OpenStack.
func (e environment) addTo(others []string) []string {
	others = slices.DeleteFunc(slices.Clone(others), func(line string) bool { return strings.HasPrefix(line, "OS_") })
	return append(others, e...)
}

// exports returns the environment as commands for a shell.
func (e environment) exports() string {
	var text strings.Builder
	for _, line := range e {
		name, value, _ := strings.Cut(line, "=")
		fmt.Fprintf(&text, "export %s=%s\n", name, quote(value))
	}
	return text.String()
}

// quote makes one word for a shell of a text.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
