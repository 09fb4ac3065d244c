package main

import (
	"context"
	_ "embed" // for the script
	"time"

	"github.com/samplecrd/network-controller/test/internal/process"
)

//go:embed files/neutron-schema.py
var neutronSchema string

// createNeutronSchema creates Neutron's tables from its models. Its migrations do
// not work on SQLite.
func (c *cloud) createNeutronSchema(ctx context.Context, path string) error {
	return c.run(ctx, process.Program{Name: "neutron-schema", Args: []string{python, "-W", "ignore", "-c", neutronSchema, path}})
}

// neutronConfig has the values in the configuration of a Neutron.
type neutronConfig struct {
	server
	AuthStrategy string // noauth or keystone
	Database     string
	Keystone     string // its URL
	Password     string // of the user neutron
	DNS          bool   // it has dns-integration
}

// startNeutron starts a Neutron without agents and without a message broker. It is
// ready when it answers an unauthenticated list with a status. Only the one with
// Keystone has dns-integration, so that the tests see both cases.
func (c *cloud) startNeutron(ctx context.Context, s *server, authStrategy string, want int, began time.Time) error {
	err := c.writeFile(s.File+".conf", "neutron.conf", neutronConfig{
		server: *s, AuthStrategy: authStrategy, Database: s.database(), Keystone: c.keystone.URL(), Password: c.passwords.Neutron,
		DNS: authStrategy == "keystone",
	})
	if err != nil {
		return err
	}
	args := []string{python, "-W", "ignore", "/usr/bin/neutron-server", "--config-file", s.File + ".conf"}
	return c.serve(ctx, s, args, "/v2.0/networks", want, began)
}
