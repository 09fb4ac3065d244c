package main

import "path/filepath"

// cloudNames are the clouds in clouds.yaml. The first one is for the controller.
const cloudNames = "ours ours-app short other-tenant admin"

const (
	cloudsName = "clouds.yaml"
	secureName = "secure.yaml" // in the same folder
)

// cloudsConfig has the values in clouds.yaml and secure.yaml.
type cloudsConfig struct {
	Region          string
	Keystone, Short string // URLs
	Ours, Other     string // names of users and of their projects
	Passwords       passwords
	Credential      credential
}

// writeClouds writes how to log in: the secrets into secure.yaml, the rest into
// clouds.yaml.
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

// cloudsFile returns the path of clouds.yaml.
func (c *cloud) cloudsFile() string {
	return filepath.Join(c.dir, cloudsName)
}
