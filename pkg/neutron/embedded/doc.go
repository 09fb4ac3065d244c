// Package embedded is an OpenStack Neutron in memory, behind real HTTP: to try the
// controller without a cloud, and for tests, which can make it fail as a real one
// does (see package faults).
//
// It has the part of the API that the controller uses, and what a user needs to
// follow along with curl: networks, subnets, subnet pools and ports, with filters,
// pages, tags, revisions, quotas and extensions. Within that part it
// responds as neutron-server 21.0 with the ml2 plugin does, with the same error
// types; the contract in package neutrontest runs against both.
//
// It has one project and no authentication, so it listens on loopback only. It has no
// agents, address scopes or security groups. A port gets the first free address, and a
// subnet the first free range of its subnet pool.
//
// server.go has the HTTP; collection.go and list.go are the part that all kinds of
// objects share. networks.go, subnets.go, subnetpools.go, ports.go and routers.go have a
// table of attributes each, and the rules that no table can hold. One mutex guards it all.
package embedded
