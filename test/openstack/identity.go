package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/applicationcredentials"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/endpoints"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/projects"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/roles"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/services"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/users"
)

// The names of projects and users in Keystone's default domain.
const (
	oursName    = "network-controller"
	otherName   = "other-tenant"
	serviceName = "service"
	neutronName = "neutron"
	domain      = "default"
)

// tenant is a project with a user, who has a role in it.
type tenant struct{ project, user, password, role string }

// setUpIdentity creates projects, users and the catalog in an empty Keystone, and an
// application credential.
func (c *cloud) setUpIdentity(ctx context.Context) error {
	admin, _, err := c.logIn(ctx, tenant{project: "admin", user: "admin", password: c.passwords.Admin})
	if err != nil {
		return err
	}
	service := tenant{serviceName, neutronName, c.passwords.Neutron, "admin"}
	ours := tenant{oursName, oursName, c.passwords.Ours, "member"}
	other := tenant{otherName, otherName, c.passwords.OtherTenant, "member"}
	for _, t := range []tenant{service, ours, other} {
		if err := t.create(ctx, admin); err != nil {
			return fmt.Errorf("creating the user %s: %w", t.user, err)
		}
	}
	if err := c.addNeutron(ctx, admin); err != nil {
		return fmt.Errorf("adding Neutron to the catalog: %w", err)
	}
	session, userID, err := c.logIn(ctx, ours)
	if err != nil {
		return err
	}
	opts := applicationcredentials.CreateOpts{Name: oursName}
	created, err := applicationcredentials.Create(ctx, session, userID, opts).Extract()
	if err != nil {
		return fmt.Errorf("creating an application credential: %w", err)
	}
	c.credential = credential{created.ID, created.Secret}
	return nil
}

// logIn returns a session at Keystone.
func (c *cloud) logIn(ctx context.Context, t tenant) (session *gophercloud.ServiceClient, userID string, _ error) {
	provider, err := openstack.AuthenticatedClient(ctx, gophercloud.AuthOptions{
		IdentityEndpoint: c.keystone.URL() + "/v3", Username: t.user, Password: t.password, TenantName: t.project,
		DomainID: domain,
	})
	if err != nil {
		return nil, "", fmt.Errorf("logging in at Keystone: %w", err)
	}
	user, err := provider.GetAuthResult().(tokens.CreateResult).ExtractUser()
	if err != nil {
		return nil, "", fmt.Errorf("logging in at Keystone: %w", err)
	}
	session, err = openstack.NewIdentityV3(provider, gophercloud.EndpointOpts{Region: region})
	return session, user.ID, err
}

func (t tenant) create(ctx context.Context, admin *gophercloud.ServiceClient) error {
	project, err := projects.Create(ctx, admin, projects.CreateOpts{Name: t.project, DomainID: domain}).Extract()
	if err != nil {
		return err
	}
	opts := users.CreateOpts{Name: t.user, Password: t.password, DomainID: domain}
	user, err := users.Create(ctx, admin, opts).Extract()
	if err != nil {
		return err
	}
	pages, err := roles.List(admin, roles.ListOpts{Name: t.role}).AllPages(ctx)
	if err != nil {
		return err
	}
	found, err := roles.ExtractRoles(pages)
	if err != nil || len(found) != 1 {
		return errors.Join(err, fmt.Errorf("%d roles have the name %s", len(found), t.role))
	}
	assigned := roles.AssignOpts{UserID: user.ID, ProjectID: project.ID}
	return roles.Assign(ctx, admin, found[0].ID, assigned).ExtractErr()
}

// addNeutron adds the Neutron with Keystone to the catalog.
func (c *cloud) addNeutron(ctx context.Context, admin *gophercloud.ServiceClient) error {
	opts := services.CreateOpts{Type: "network", Name: neutronName}
	service, err := services.Create(ctx, admin, opts).Extract()
	if err != nil {
		return err
	}
	for _, availability := range []gophercloud.Availability{"public", "internal"} {
		_, err := endpoints.Create(ctx, admin, endpoints.CreateOpts{
			ServiceID: service.ID, Availability: availability, URL: c.neutron.URL(), Region: region,
		}).Extract()
		if err != nil {
			return err
		}
	}
	return nil
}
