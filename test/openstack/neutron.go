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
	return c.run(ctx, process.Program{Name: "neutron-schema",
		Args: []string{python, "-W", "ignore", "-c", neutronSchema, path}})
}

// neutronConfig has the values in the configuration of a Neutron.
type neutronConfig struct {
	server
	wsgi
	AuthStrategy string // noauth or keystone
	Database     string
	Keystone     string // its URL
	Password     string // of the user neutron
	DNS          bool   // it has dns-integration
}

// startNeutron starts a Neutron without agents and without a message broker. It is
// ready when it answers an unauthenticated list with a status. Only the one with
// Keystone has dns-integration, so that the tests see both cases. Neutron 21 is a
// server of its own, later ones are an application for uWSGI.
func (c *cloud) startNeutron(ctx context.Context, s *server, authStrategy string, want int, began time.Time) error {
	config := neutronConfig{
		server: *s, AuthStrategy: authStrategy, Database: s.database(), Keystone: c.keystone.URL(),
		Password: c.passwords.Neutron,
		DNS:      authStrategy == "keystone",
	}
	args := []string{python, "-W", "ignore", "/usr/bin/neutron-server", "--config-file", s.File + ".conf"}
	if c.root != "" {
		// With more threads, SQLite fails with "database is locked".
		config.wsgi = wsgi{Application: "neutron.wsgi.api:application", Variable: "OS_NEUTRON_CONFIG_FILES", Threads: 1}
		args = s.uwsgi()
		if err := c.writeFile(s.File+"-uwsgi.ini", "uwsgi.ini", config); err != nil {
			return err
		}
	}
	if err := c.writeFile(s.File+".conf", "neutron.conf", config); err != nil {
		return err
	}
	return c.serve(ctx, s, args, "/v2.0/networks", want, began)
}
