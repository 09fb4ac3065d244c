package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// environmentName is the file in a run folder with the environment. It exists when
// the servers are ready.
const environmentName = "environment"

// environment has the variables of a program that uses a cloud, as NAME=value. It
// contains no secret.
type environment []string

// environment returns the environment of a cloud that is ready.
func (c *cloud) environment() environment {
	return environment{
		// A Neutron without authentication.
		"NEUTRON_ENDPOINT=" + c.neutronNoAuth.URL(),
		"NEUTRON_SET_QUOTAS=1", // the command is its only user
		// The clouds with Keystone, and the default.
		"OS_CLIENT_CONFIG_FILE=" + c.cloudsFile(),
		"OS_CLOUD=ours",
		"OPENSTACK_CLOUDS=" + cloudNames,
		// The Neutron in their catalog, and the Keystone with which it checks tokens.
		// Neither is started again when it is stopped or killed.
		"NEUTRON_KEYSTONE_ENDPOINT=" + c.neutron.URL(),
		"OPENSTACK_NEUTRON_PID=" + strconv.Itoa(c.neutron.process.PID()),
		"OPENSTACK_KEYSTONE_PID=" + strconv.Itoa(c.keystone.process.PID()),
	}
}

// write writes the environment into a run folder, atomically.
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

// addTo adds the environment to another one, in which it replaces the variables of
// every OpenStack.
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

// quote returns a text as one word for a shell.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
