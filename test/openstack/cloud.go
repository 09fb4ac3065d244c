package main

import (
	"context"
	"crypto/rand"
	"embed"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"text/template"
	"time"
)

// startTimeout is how long the start may take on a slow machine.
const startTimeout = 3 * time.Minute

// cloud is an OpenStack: its servers, and what they are told.
type cloud struct {
	launcher
	dir   string // its run folder
	cache string // what outlives it

	neutronNoAuth server // anybody may do anything there
	keystone      server
	keystoneShort server // the same, but its tokens live for seconds
	neutron       server // wants a token of either
	passwords     passwords
	credential    credential

	mu        sync.Mutex
	processes []*process
}

// server is a server that listens.
type server struct {
	Name string // for people
	File string // what the names of its files begin with
	Port int
	Dir  string // the run folder

	process *process
}

// URL is where the server is.
func (s server) URL() string {
	return fmt.Sprintf("http://127.0.0.1:%d", s.Port)
}

// passwords are the passwords of Keystone's users.
type passwords struct {
	Admin, Neutron, Ours, OtherTenant string
}

// credential is an application credential.
type credential struct {
	ID, Secret string
}

// start starts all, and returns when it can be used.
func (c *cloud) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ports, err := freePorts(ctx, 4)
	if err != nil {
		return err
	}
	c.neutronNoAuth = server{Name: "Neutron without authentication", File: "neutron-noauth", Port: ports[0], Dir: c.dir}
	c.neutron = server{Name: "Neutron with Keystone", File: "neutron", Port: ports[1], Dir: c.dir}
	c.keystone = server{Name: "Keystone", File: "keystone", Port: ports[2], Dir: c.dir}
	c.keystoneShort = server{Name: "Keystone with short-lived tokens", File: "keystone-short", Port: ports[3], Dir: c.dir}
	c.passwords = passwords{Admin: rand.Text(), Neutron: rand.Text(), Ours: rand.Text(), OtherTenant: rand.Text()}

	if err := c.makeDatabases(ctx); err != nil {
		return err
	}
	tell("Starting Keystone and Neutron.")
	began := time.Now()
	err = together(ctx,
		func(ctx context.Context) error { return c.startKeystones(ctx, began) },
		func(ctx context.Context) error {
			return c.startNeutron(ctx, &c.neutronNoAuth, "noauth", http.StatusOK, began)
		},
		func(ctx context.Context) error {
			return c.startNeutron(ctx, &c.neutron, "keystone", http.StatusUnauthorized, began)
		},
	)
	if err != nil {
		return err
	}
	if err := c.writeClouds(); err != nil {
		return err
	}
	return c.tryTokens(ctx)
}

// launch starts a program that ends with the cloud.
func (c *cloud) launch(from program) (*process, error) {
	p, err := c.launcher.launch(c.dir, from)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes = append(c.processes, p)
	return p, nil
}

// run runs a program until it ends.
func (c *cloud) run(ctx context.Context, from program) error {
	p, err := c.launch(from)
	if err != nil {
		return err
	}
	return p.finish(ctx)
}

// serve starts a server and waits until it answers a request with a status.
func (c *cloud) serve(ctx context.Context, s *server, from program, path string, want int, began time.Time) error {
	from.name, from.log = s.Name, s.File+".log"
	p, err := c.launch(from)
	if err != nil {
		return err
	}
	s.process = p
	err = p.waitUntil(ctx, func(ctx context.Context) bool {
		status, err := get(ctx, s.URL()+path, "")
		return err == nil && status == want
	})
	if err != nil {
		return err
	}
	tell("%s is ready after %s.", s.Name, time.Since(began).Round(100*time.Millisecond))
	return nil
}

// stop ends all that runs.
func (c *cloud) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.processes {
		p.kill()
	}
}

// client makes requests to the servers, never by way of a proxy.
var client = &http.Client{Transport: &http.Transport{}, Timeout: 20 * time.Second}

// get returns the status of an answer.
func get(ctx context.Context, url, token string) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	if token != "" {
		request.Header.Set("X-Auth-Token", token)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

//go:embed files
var files embed.FS

// templates are the configuration files. All that is filled in is free of
// characters that would mean something there.
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
