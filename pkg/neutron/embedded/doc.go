// Package embedded is an OpenStack Neutron in memory, behind real HTTP. It is
// for trying the controller without a cloud, and for tests: those can make it
// fail in the ways a real one does.
//
// It answers as neutron-server 21.0 with the ml2 plugin does, measured, down to
// the words of its errors: networks, subnets, subnet pools and ports with their
// attributes, filters, pages, bulk requests, revisions, tags and quotas, and the
// list of the extensions that all this belongs to. Options switch some of those
// on and off. The suite in package neutrontest runs against both.
//
// It knows one project and asks for no authentication, so it listens on
// loopback only; what it has is lost when it stops. It has no agents, routers,
// address scopes, prefix delegation and security groups, no DNS names of ports,
// and it takes some spellings for errors that a real one takes for addresses
// (10.0.0/24, 010.0.0.0/24). Where a real one leaves something to chance, it
// does one of the things that can happen: a port gets the first free address,
// new host routes are in another order than they were given in.
//
// How it is made, from the outside in: server.go has the HTTP, fault.go what
// can go wrong with it, collection.go what is done to any kind of object, and
// networks.go, subnets.go, subnetpools.go and ports.go a table of attributes
// each, with the rules that no table can hold. One mutex guards it all.
package embedded
