package main

import (
	"context"
	"crypto/rand"
	"embed"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"text/template"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/samplecrd/network-controller/test/internal/process"
	"github.com/samplecrd/network-controller/test/internal/runfolder"
)

// startTimeout limits the start. It is long enough for a slow machine.
const startTimeout = 5 * time.Minute

// cloud is an OpenStack: its servers, and their users.
type cloud struct {
	folder *runfolder.Folder
	dir    string // the path of the folder
	root   string // the root folder of its programs, or "" for that of this machine
	began  time.Time

	neutronNoAuth server // accepts every request
	keystone      server
	keystoneShort server // shares the database of keystone; its tokens live for seconds
	neutron       server // accepts tokens of either Keystone
	passwords     passwords
	credential    credential

	mu        sync.Mutex
	processes []*process.Process
}

// server is a server that listens.
type server struct {
	File string // its name, and the beginning of the names of its files
	Port int
	Dir  string // the run folder
}

// URL returns the URL of the server.
func (s server) URL() string {
	return fmt.Sprintf("http://127.0.0.1:%d", s.Port)
}

// database returns the path of the server's database.
func (s server) database() string { return filepath.Join(s.Dir, s.File+".sqlite") }

// passwords are the passwords of Keystone's users.
type passwords struct {
	Admin, Neutron, Ours, OtherTenant string
}

// credential is an application credential.
type credential struct {
	ID, Secret string
}

// start starts all servers, and returns when they can be used.
func (c *cloud) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ports, err := process.FreePorts(ctx, 4)
	if err != nil {
		return err
	}
	c.neutronNoAuth = server{File: "neutron-noauth", Port: ports[0], Dir: c.dir}
	c.neutron = server{File: "neutron", Port: ports[1], Dir: c.dir}
	c.keystone = server{File: "keystone", Port: ports[2], Dir: c.dir}
	c.keystoneShort = server{File: "keystone-short", Port: ports[3], Dir: c.dir}
	c.passwords = passwords{Admin: rand.Text(), Neutron: rand.Text(), Ours: rand.Text(), OtherTenant: rand.Text()}

	c.began = time.Now()
	if err := together(ctx, c.startKeystones, c.startNeutrons); err != nil {
		return err
	}
	return c.writeClouds()
}

// writeClouds writes how to log in: the secrets into secure.yaml, the rest into
// clouds.yaml.
func (c *cloud) writeClouds() error {
	for _, name := range []string{"clouds.yaml", "secure.yaml"} {
		err := c.writeFile(name, name, map[string]any{
			"Region": region, "Keystone": c.keystone.URL() + "/v3", "Short": c.keystoneShort.URL() + "/v3",
			"Ours": oursName, "Other": otherName, "Passwords": c.passwords, "Credential": c.credential,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// python is Debian's, which has the packages.
const python = "/usr/bin/python3"

// launch starts a program that ends with the cloud.
func (c *cloud) launch(program process.Program) (*process.Process, error) {
	// PATH is that of Debian's programs: another Python may lack the packages.
	program.Env = append(program.Env, "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8")
	p, err := process.Start(c.dir, c.inRoot(program))
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes = append(c.processes, p)
	return p, nil
}

// run runs a program until it ends.
func (c *cloud) run(ctx context.Context, program process.Program) error {
	p, err := c.launch(program)
	if err != nil {
		return err
	}
	return p.Finish(ctx)
}

// useWAL sets the journal mode of databases in which readers and a writer don't wait for
// each other.
func (c *cloud) useWAL(ctx context.Context, paths ...string) error {
	const script = `import sqlite3, sys
for path in sys.argv[1:]: sqlite3.connect(path).execute("PRAGMA journal_mode = wal").close()`
	return c.run(ctx, process.Program{Name: "journal-mode", Args: append([]string{python, "-c", script}, paths...)})
}

// serve starts a server and waits until it responds to a request with a status.
func (c *cloud) serve(ctx context.Context, s *server, program process.Program, path string, want int) error {
	p, err := c.launch(program)
	if err != nil {
		return err
	}
	err = process.WaitUntil(ctx, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+path, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		if _ = response.Body.Close(); response.StatusCode != want {
			return fmt.Errorf("status %d, want %d", response.StatusCode, want)
		}
		return nil
	}, p)
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", s.File, err)
	}
	logf("%s is ready after %s.", s.File, time.Since(c.began).Round(100*time.Millisecond))
	return nil
}

// stop ends all programs. They have nothing to save.
func (c *cloud) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.processes {
		p.Kill()
	}
}

// together calls functions concurrently. The first error ends all of them, and is
// returned.
func together(ctx context.Context, tasks ...func(context.Context) error) error {
	all, ctx := errgroup.WithContext(ctx)
	for _, task := range tasks {
		all.Go(func() error { return task(ctx) })
	}
	return all.Wait()
}

// client makes requests to the servers, never by way of a proxy.
var client = &http.Client{Transport: &http.Transport{}, Timeout: 20 * time.Second}

//go:embed files
var files embed.FS

// templates are the configuration files. No value that is filled in has characters
// with a meaning in them.
var templates = template.Must(template.ParseFS(files, "files/*"))

// writeFile fills in a template and writes it into the run folder.
func (c *cloud) writeFile(name, templateName string, values any) error {
	file, err := os.OpenFile(filepath.Join(c.dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := templates.ExecuteTemplate(file, templateName, values); err != nil {
		_ = file.Close()
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return file.Close()
}
