package openstack

import (
	"context"
	"net/http"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// Quotas returns the quotas of the session's project, and none without a login. Neutron
// permits them to members of the project: docs.openstack.org/api-ref/network/v2,
// "show quota details".
func (c *client) Quotas(ctx context.Context) (map[string]neutron.Quota, error) {
	s, err := c.login(ctx, nil)
	if err != nil || s.project == "" {
		return nil, err
	}
	var response struct {
		Quota map[string]struct{ Limit, Used *int }
	}
	err = c.write(ctx, request{
		op: "read quotas", method: http.MethodGet, path: []string{"quotas", s.project, "details"}}, &response)
	if err != nil {
		return nil, err
	}
	quotas := map[string]neutron.Quota{}
	for _, kind := range []string{"network", "subnet"} {
		if of := response.Quota[kind]; of.Limit != nil && of.Used != nil {
			quotas[kind] = neutron.Quota{Limit: *of.Limit, Used: *of.Used}
		}
	}
	return quotas, nil
}
