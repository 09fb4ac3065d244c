package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/samplecrd/network-controller/test/internal/debian"
	"github.com/samplecrd/network-controller/test/internal/process"
)

// makeDatabases makes an empty database for each server. Creating a schema takes
// seconds, so its result is kept for this version of the package, or with the root
// folder, whose packages stay as they are.
func (c *cloud) makeDatabases(ctx context.Context) error {
	return together(ctx,
		func(ctx context.Context) error {
			return c.emptyDatabase(ctx, "python3-neutron", c.createNeutronSchema, c.neutronNoAuth.database(),
				c.neutron.database())
		},
		func(ctx context.Context) error {
			return c.emptyDatabase(ctx, "python3-keystone", c.createKeystoneSchema, c.keystone.database())
		},
	)
}

// database returns the path of the server's database.
func (s server) database() string {
	return filepath.Join(s.Dir, s.File+".sqlite")
}

// emptyDatabase makes empty databases with the schema of a package.
func (c *cloud) emptyDatabase(ctx context.Context, packageName string,
	create func(ctx context.Context, path string) error, paths ...string) error {
	kept := filepath.Join(c.root, packageName+".sqlite")
	if c.root == "" {
		version, err := debian.VersionOf(ctx, packageName)
		if err != nil {
			return err
		}
		kept = filepath.Join(c.cache, packageName+"-"+strings.ReplaceAll(version, ":", "_")+".sqlite")
	}
	if _, err := os.Stat(kept); err != nil {
		logf("Creating the schema of %s (once).", packageName)
		path := filepath.Join(c.dir, packageName+"-empty.sqlite")
		if err := create(ctx, path); err != nil {
			return err
		}
		if err := c.keepDatabase(ctx, path, kept); err != nil {
			return err
		}
	}
	for _, path := range paths {
		if err := copyFile(kept, path); err != nil {
			return err
		}
	}
	return nil
}

// keepDatabase keeps a database for later runs. In its journal mode, readers and a
// writer don't wait for each other.
func (c *cloud) keepDatabase(ctx context.Context, path, kept string) error {
	const script = `import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute("PRAGMA journal_mode = wal").close()`
	err := c.run(ctx, process.Program{Name: "journal-mode", Args: []string{python, "-c", script, path}})
	if err != nil {
		return err
	}
	// With the rename, the file is complete or does not exist. Another process may do
	// this at the same time.
	unfinished := kept + "-" + filepath.Base(c.dir) + ".new"
	if err := copyFile(path, unfinished); err != nil {
		return err
	}
	return os.Rename(unfinished, kept)
}

// python is Debian's, which has the packages.
const python = "/usr/bin/python3"

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(target, source); err != nil {
		_ = target.Close()
		return err
	}
	return target.Close()
}
