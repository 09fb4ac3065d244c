package main

// advice is what a user needs in addition to the meaning of a reason.
type advice struct {
	Status string // of the condition Ready
	Cure   string
	Retry  string
}

// advices has an entry for each reason in the code.
var advices = map[string]advice{
	"Provisioned": {
		Status: "True",
		Cure:   "None needed.",
		Retry:  "The controller compares the network with the spec at each refresh of its cache of Neutron's state.",
	},
	"Pending": {
		Status: "Unknown",
		Cure: "Wait a few seconds. If the reason stays, check that the controller runs, has a leader, and watches the " +
			"namespace (`-namespaces`).",
		Retry: "Not applicable: no controller has started to reconcile the Network.",
	},
	"Reconciling": {
		Status: "False",
		Cure:   "Wait. The message names the first step.",
		Retry:  "Not applicable: the controller is working on the Network.",
	},
	"Deleting": {
		Status: "False",
		Cure:   "Wait. The message names the first step.",
		Retry:  "Not applicable: the controller is working on the Network.",
	},
	"NeutronUnavailable": {
		Status: "False",
		Cure: "Restore the connection to the server that the message names, Neutron or Keystone. " +
			"The message has the error.",
		Retry: "After 0.2 s, 0.4 s and so on, up to 2 minutes, or after the time in the response header `Retry-After`. " +
			"After up to 30 seconds if an earlier create request may still complete.",
	},
	"LoginRejected": {
		Status: "False",
		Cure: "Correct the credentials, or `auth_url`, in `clouds.yaml` or the Secret that contains it. " +
			"The message contains the address of Keystone and its error. Application credentials expire.",
		Retry: "After 0.2 s, 0.4 s and so on, up to 2 minutes. " +
			"The login itself is repeated after 2 s, 4 s and so on, up to 2 minutes, and with the first retry after the files " +
			"have changed.",
	},
	"NoCloud": {
		Status: "False",
		Cure: "Create or correct the Secret that the message names, and let the controller read it: " +
			"[a cloud for each namespace](../operate/clouds.md).",
		Retry: "When the Secret can be used. The controller reads it every half minute.",
	},
	"Refused": {
		Status: "False",
		Cure: "Correct the spec, free or raise the quota of the OpenStack project, or ask its administrator for the " +
			"permission. For a range that overlaps another one on the router, change the range or `spec.router`. " +
			"The message contains the error.",
		Retry: "After 5 to 7.5 minutes, and at once when the spec or the annotation `samplecrd.k8s.io/retry` changes. " +
			"If it exceeded a quota, also when the controller has created or deleted something else.",
	},
	"InUse": {
		Status: "False",
		Cure: "Delete the ports or subnets that the message names, detach the subnet from routers that the message " +
			"names, or restore the previous spec. For a Network that is being deleted, `deletionPolicy: Retain` keeps the " +
			"network instead.",
		Retry: "After 20 to 30 seconds.",
	},
	"Paused": {
		Status: "unchanged",
		Cure: "Remove the annotation `samplecrd.k8s.io/paused`. The reason is that of the condition Reconciling; Ready " +
			"stays as it was.",
		Retry: "Never.",
	},
	"InvalidSpec": {
		Status: "False",
		Cure:   "Change the field that the message names.",
		Retry:  "Never.",
	},
	"Ambiguous": {
		Status: "False",
		Cure: "For networks or subnets: delete the ones that are not needed, or remove the owner marker from their " +
			"description. " +
			"For a network from before the Network was created: confirm it with the annotation that the message contains. " +
			"The controller deletes only provable duplicates itself. For subnet pools and routers: set `spec.subnetPool.id` " +
			"or `spec.router.id` instead of the name.",
		Retry: "After 20 to 30 seconds.",
	},
	"NotOurs": {
		Status: "False",
		Cure: "If the network belongs to this Network, restore its description. Otherwise remove `status.networkID` " +
			"(`kubectl edit network NAME --subresource=status`), or create a Network with another `spec.networkID`. " +
			"If the message names a router, detach the subnet from it, or set `spec.router` to it.",
		Retry: "After 20 to 30 seconds.",
	},
	"OtherCloud": {
		Status: "False",
		Cure: "Connect the controller to the cloud that the message names, and restart it. To move the Network on purpose, " +
			"set `-leave-cloud`: " +
			"[the cloud of a Network](../operate/configure.md#the-cloud-of-a-network).",
		Retry: "When the controller restarts.",
	},
	"OtherCluster": {
		Status: "False",
		Cure: "If this cluster replaces the other one, set its name with `-cluster-name`. If both share the OpenStack " +
			"project, set `-other-clusters`: " +
			"[other clusters in the project](../operate/configure.md#other-clusters-in-the-project).",
		Retry: "After 20 to 30 seconds.",
	},
	"Drifted": {
		Status: "False",
		Cure: "Set `spec.driftPolicy` to `Correct` to revert the change, or change the spec to keep it: " +
			"[drift](../operate/configure.md#drift).",
		Retry: "At each refresh of the cache of Neutron's state.",
	},
	"NotFound": {
		Status: "False",
		Cure: "Create the network, subnet pool or router in the OpenStack project of the controller; a subnet pool can " +
			"also be shared with it. If the spec has the wrong name or ID, change `spec.subnetPool` or `spec.router`, " +
			"or create another Network: `spec.networkID` is immutable.",
		Retry: "After 20 to 30 seconds.",
	},
	"AdoptionNotAllowed": {
		Status: "False",
		Cure: "Create the Network without `spec.networkID`, " +
			"or run the controller with `-allow-adoption` for its namespace.",
		Retry: "When the controller restarts.",
	},
	"ExtensionMissing": {
		Status: "False",
		Cure: "Remove the field that the message names, or ask the administrator of the cloud to enable the extension. " +
			"Everything else is as the spec requests.",
		Retry: "At each refresh of the cache of Neutron's state.",
	},
	"SubnetPoolMismatch": {
		Status: "False",
		Cure:   "Change the field that the message names, or name another subnet pool.",
		Retry:  "After 20 to 30 seconds.",
	},
	"NamespaceLimit": {
		Status: "False",
		Cure: "Delete a Network of the namespace that is not needed. The administrator lists the retained and orphaned " +
			"networks with `samplecrd-controller plan`, " +
			"deletes those that are not needed with `openstack network delete`, or raises `-max-networks-per-namespace`.",
		Retry: "After 5 to 7.5 minutes, or at the first refresh of the cache of Neutron's state that shows fewer networks.",
	},
	"DefinitionDeleted": {
		Status: "False",
		Cure: "To keep the Neutron networks: set `spec.deletionPolicy` to `Retain`, and apply `crd/` again " +
			"after the deletion. " +
			"To delete everything, annotate the CustomResourceDefinition as the message says.",
		Retry: "After 20 to 30 seconds.",
	},
	"NotConverging": {
		Status: "False",
		Cure: "Read the controller's log with `-v=4` and the log of Neutron: " +
			"Neutron's responses do not match the requests.",
		Retry: "After 5 to 7.5 minutes.",
	},
}
