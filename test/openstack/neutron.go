package main

import (
	"context"
	_ "embed" // for the script
	"net/http"

	"github.com/samplecrd/network-controller/test/internal/process"
)

//go:embed files/neutron-schema.py
var neutronSchema string

// startNeutrons starts a Neutron without authentication, and one with Keystone. Neutron's
// migrations do not work on SQLite, so its tables are created from its models.
func (c *cloud) startNeutrons(ctx context.Context) error {
	paths := []string{c.neutronNoAuth.database(), c.neutron.database()}
	args := []string{python, "-W", "ignore", "-c", neutronSchema}
	if err := c.run(ctx, process.Program{Name: "neutron-schema", Args: append(args, paths...)}); err != nil {
		return err
	}
	if err := c.useWAL(ctx, paths...); err != nil {
		return err
	}
	return together(ctx,
		func(ctx context.Context) error { return c.startNeutron(ctx, &c.neutronNoAuth, "noauth", http.StatusOK) },
		func(ctx context.Context) error {
			return c.startNeutron(ctx, &c.neutron, "keystone", http.StatusUnauthorized)
		},
	)
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
// ready when it responds to an unauthenticated list with a status. Only the one with
// Keystone has dns-integration, so that the tests see both cases. Neutron 21 is a
// server of its own, later ones are an application for uWSGI.
func (c *cloud) startNeutron(ctx context.Context, s *server, authStrategy string, want int) error {
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
	return c.serve(ctx, s, process.Program{Name: s.File, Args: args}, "/v2.0/networks", want)
}
