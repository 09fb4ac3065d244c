package openstack

import (
	"context"
	"encoding/json"
)

func (c *client) Extensions(ctx context.Context) ([]string, error) {
	aliases := []string{}
	_, err := c.readPage(ctx, pageRequest{plural: "extensions", left: maxResponse}, func(raw json.RawMessage) error {
		var extension struct {
			Alias string `json:"alias"`
		}
		if err := json.Unmarshal(raw, &extension); err != nil || len(extension.Alias) > maxText {
			return unusable("it has an extension without a usable alias")
		}
		if len(aliases) >= maxObjects {
			return unusable("it has more than %d extensions", maxObjects)
		}
		aliases = append(aliases, extension.Alias)
		return nil
	})
	if err != nil {
		return nil, c.failed(ctx, "list extensions", err)
	}
	return aliases, nil
}
