package main

import "path/filepath"

// cloudNames are the clouds in clouds.yaml, the one that is meant for the
// controller first.
const cloudNames = "ours ours-app short other-tenant admin"

const (
	cloudsName = "clouds.yaml"
	secureName = "secure.yaml" // belongs next to it
)

// cloudsConfig is what is filled in in clouds.yaml and secure.yaml.
type cloudsConfig struct {
	Region          string
	Keystone, Short string // URLs
	Ours, Other     string // names of users and of their projects
	Passwords       passwords
	Credential      credential
}

// writeClouds writes how to log in: what may be known into clouds.yaml, what is
// secret into secure.yaml.
func (c *cloud) writeClouds() error {
	config := cloudsConfig{
		Region: region, Keystone: c.keystone.URL() + "/v3", Short: c.keystoneShort.URL() + "/v3",
		Ours: oursName, Other: otherName, Passwords: c.passwords, Credential: c.credential,
	}
	for _, name := range []string{cloudsName, secureName} {
		if err := c.writeFile(name, name, config); err != nil {
			return err
		}
	}
	return nil
}

// cloudsFile is the path of clouds.yaml.
func (c *cloud) cloudsFile() string {
	return filepath.Join(c.dir, cloudsName)
}
