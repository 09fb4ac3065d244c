package openstack

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// parseURL returns the URL of a service without a version and slashes at its end.
// Its errors do not repeat the URL, which may hold a password.
func parseURL(text, version string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return nil, errors.New("is empty")
	case err != nil:
		return nil, errors.New("is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("must begin with http:// or https://")
	case u.User != nil:
		return nil, errors.New("holds a user name or password; remove them")
	case u.Hostname() == "":
		return nil, errors.New("has no host")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("has a query or a fragment; remove it")
	}
	path := strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/"+version)
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimRight(path, "/")}, nil
}

// hostPort returns the host and port that requests go to.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// isLoopback reports whether requests to a URL stay on this machine.
func isLoopback(u *url.URL) bool {
	address, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && address.IsLoopback()
}
