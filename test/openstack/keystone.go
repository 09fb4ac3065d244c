package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	"github.com/samplecrd/network-controller/test/internal/process"
)

// shortLife is the lifetime of the second Keystone's tokens in seconds.
const shortLife = 8

// region is the region that the endpoints are in.
const region = "RegionOne"

// keystoneConfig has the values in the configuration of a Keystone.
type keystoneConfig struct {
	server
	wsgi
	Database string
	Life     int  // of its tokens, in seconds
	Cache    bool // false if it must see changes in the database at once
}

// manageKeystone runs keystone-manage.
func (c *cloud) manageKeystone(ctx context.Context, env []string, args ...string) error {
	args = append([]string{python, "-W", "ignore", "/usr/bin/keystone-manage", "--config-file", "keystone.conf"}, args...)
	return c.run(ctx, process.Program{Name: "keystone-manage", Args: args, Env: env})
}

// startKeystones starts two Keystones that differ only in the lifetime of their
// tokens, which is one setting for all tokens of a Keystone. Either accepts the
// tokens of the other.
func (c *cloud) startKeystones(ctx context.Context) error {
	if err := c.configureKeystones(); err != nil {
		return err
	}
	if err := c.manageKeystone(ctx, nil, "db_sync"); err != nil {
		return err
	}
	if err := c.useWAL(ctx, c.keystone.database()); err != nil {
		return err
	}
	// The password is in the environment, because every user can read command lines.
	err := c.manageKeystone(ctx, []string{"OS_BOOTSTRAP_PASSWORD=" + c.passwords.Admin}, "bootstrap",
		"--bootstrap-region-id", region,
		"--bootstrap-public-url", c.keystone.URL()+"/v3", "--bootstrap-internal-url", c.keystone.URL()+"/v3")
	if err != nil {
		return err
	}
	return together(ctx,
		func(ctx context.Context) error {
			if err := c.startKeystone(ctx, &c.keystone); err != nil {
				return err
			}
			return c.setUpIdentity(ctx)
		},
		func(ctx context.Context) error { return c.startKeystone(ctx, &c.keystoneShort) },
	)
}

// configureKeystones writes the configuration of both Keystones, and the keys for
// their tokens.
func (c *cloud) configureKeystones() error {
	for _, config := range []keystoneConfig{
		{server: c.keystone, Life: 3600, Cache: true},
		{server: c.keystoneShort, Life: shortLife},
	} {
		config.Database = c.keystone.database()
		config.wsgi = wsgi{Application: "keystone.server.wsgi:initialize_public_application()",
			Variable: "OS_KEYSTONE_CONFIG_FILES", Threads: 8}
		if err := c.writeFile(config.File+".conf", "keystone.conf", config); err != nil {
			return err
		}
		if err := c.writeFile(config.File+"-uwsgi.ini", "uwsgi.ini", config); err != nil {
			return err
		}
	}
	for _, name := range []string{"fernet-keys", "credential-keys"} {
		if err := writeKeys(filepath.Join(c.dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// writeKeys makes a repository of Fernet keys: one that is staged, one that is in
// use. keystone-manage would need a second or two for it.
func writeKeys(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	for number := range 2 {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // it never fails
		text := []byte(base64.URLEncoding.EncodeToString(key))
		if err := os.WriteFile(filepath.Join(path, strconv.Itoa(number)), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (c *cloud) startKeystone(ctx context.Context, s *server) error {
	return c.serve(ctx, s, process.Program{Name: s.File, Args: s.uwsgi()}, "/v3", http.StatusOK)
}
