package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// The names of projects and users in Keystone's default domain.
const (
	oursName    = "network-controller"
	otherName   = "other-tenant"
	serviceName = "service"
	neutronName = "neutron"
	domain      = "default"
)

// object is a JSON object.
type object = map[string]any

// identity is a session at a Keystone.
type identity struct {
	url    string
	token  string
	userID string
}

// logIn gets a token by an authentication method.
func logIn(ctx context.Context, url string, auth object) (*identity, error) {
	i := &identity{url: url + "/v3"}
	var answer struct {
		Token struct{ User struct{ ID string } }
	}
	header, err := i.call(ctx, http.MethodPost, "/auth/tokens", object{"auth": auth}, &answer)
	if err != nil {
		return nil, fmt.Errorf("logging in at Keystone: %w", err)
	}
	i.token, i.userID = header.Get("X-Subject-Token"), answer.Token.User.ID
	return i, nil
}

// byPassword logs in with a password, for a project.
func byPassword(user, password, project string) object {
	inDomain := object{"id": domain}
	return object{
		"identity": object{
			"methods":  []string{"password"},
			"password": object{"user": object{"name": user, "domain": inDomain, "password": password}},
		},
		"scope": object{"project": object{"name": project, "domain": inDomain}},
	}
}

// call makes a request. Its errors do not contain the body, which may be a secret.
func (i *identity) call(ctx context.Context, method, path string, body, answer any) (http.Header, error) {
	var sent []byte
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, i.url+path, bytes.NewReader(sent))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if i.token != "" {
		request.Header.Set("X-Auth-Token", i.token)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	got, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if response.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, response.Status, bytes.TrimSpace(got))
	}
	if answer != nil {
		if err := json.Unmarshal(got, answer); err != nil {
			return nil, fmt.Errorf("%s %s: %w", method, path, err)
		}
	}
	return response.Header, nil
}

// create creates an object of a kind, and returns its ID.
func (i *identity) create(ctx context.Context, path, kind string, values object) (id string, err error) {
	var answer map[string]struct{ ID string }
	if _, err := i.call(ctx, http.MethodPost, path, object{kind: values}, &answer); err != nil {
		return "", fmt.Errorf("creating a %s: %w", kind, err)
	}
	return answer[kind].ID, nil
}

// role returns the ID of a role, which it creates if needed.
func (i *identity) role(ctx context.Context, name string) (id string, err error) {
	var found struct{ Roles []struct{ ID string } }
	if _, err := i.call(ctx, http.MethodGet, "/roles?name="+name, nil, &found); err != nil {
		return "", fmt.Errorf("looking for the role %s: %w", name, err)
	}
	if len(found.Roles) > 0 {
		return found.Roles[0].ID, nil
	}
	return i.create(ctx, "/roles", "role", object{"name": name})
}

// tenant creates a project, and a user with roles in it.
func (i *identity) tenant(ctx context.Context, project, user, password string, roles ...string) error {
	projectID, err := i.create(ctx, "/projects", "project", object{"name": project, "domain_id": domain})
	if err != nil {
		return err
	}
	userID, err := i.create(ctx, "/users", "user", object{"name": user, "password": password, "domain_id": domain})
	if err != nil {
		return err
	}
	for _, name := range roles {
		roleID, err := i.role(ctx, name)
		if err != nil {
			return err
		}
		path := "/projects/" + projectID + "/users/" + userID + "/roles/" + roleID
		if _, err := i.call(ctx, http.MethodPut, path, nil, nil); err != nil {
			return fmt.Errorf("giving %s the role %s: %w", user, name, err)
		}
	}
	return nil
}

// service puts a service into the catalog.
func (i *identity) service(ctx context.Context, kind, name, url string) error {
	id, err := i.create(ctx, "/services", "service", object{"type": kind, "name": name})
	if err != nil {
		return err
	}
	for _, reachable := range []string{"public", "internal"} {
		endpoint := object{"service_id": id, "interface": reachable, "url": url, "region_id": region}
		if _, err := i.create(ctx, "/endpoints", "endpoint", endpoint); err != nil {
			return err
		}
	}
	return nil
}

// applicationCredential creates an application credential of the user.
func (i *identity) applicationCredential(ctx context.Context, name string) (credential, error) {
	var answer struct {
		Credential credential `json:"application_credential"`
	}
	body := object{"application_credential": object{"name": name}}
	if _, err := i.call(ctx, http.MethodPost, "/users/"+i.userID+"/application_credentials", body, &answer); err != nil {
		return credential{}, fmt.Errorf("creating an application credential: %w", err)
	}
	return answer.Credential, nil
}

// setUpIdentity creates projects, users and the catalog in an empty Keystone.
func (c *cloud) setUpIdentity(ctx context.Context) error {
	admin, err := logIn(ctx, c.keystone.URL(), byPassword("admin", c.passwords.Admin, "admin"))
	if err != nil {
		return err
	}
	if err := admin.tenant(ctx, serviceName, neutronName, c.passwords.Neutron, "admin", "service"); err != nil {
		return err
	}
	if err := admin.tenant(ctx, oursName, oursName, c.passwords.Ours, "member"); err != nil {
		return err
	}
	if err := admin.tenant(ctx, otherName, otherName, c.passwords.OtherTenant, "member"); err != nil {
		return err
	}
	if err := admin.service(ctx, "network", neutronName, c.neutron.URL()); err != nil {
		return err
	}
	ours, err := logIn(ctx, c.keystone.URL(), byPassword(oursName, c.passwords.Ours, oursName))
	if err != nil {
		return err
	}
	c.credential, err = ours.applicationCredential(ctx, oursName)
	return err
}
