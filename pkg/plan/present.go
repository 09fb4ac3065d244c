package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// stepToPresent creates what is missing, and corrects what differs.
func stepToPresent(desired Desired, actual Actual) Step {
	network, others, step := selectNetwork(desired, actual)
	if step == nil && network != nil && desired.Adopted == "" {
		step = stepToTakeOver(desired, actual, *network)
	}
	if step != nil {
		return step
	}
	switch {
	case !actual.Finalizer:
		return AddFinalizer{Cloud: actual.connected}
	case network == nil && desired.Adopted != "":
		return blocked(ReasonNotFound,
			"network %s, which spec.networkID names, does not exist, or belongs to another project than the controller.",
			desired.Adopted)
	case network == nil:
		return stepToNewNetwork(desired, actual)
	case desired.Adopted != "" && neutron.IsMarker(network.Description):
		return blocked(ReasonNotOurs,
			"network %s cannot be adopted: it has the owner marker of another Network (%q).", network.ID, network.Description)
	}
	type stepTo = func(Desired, Actual, neutron.Network) Step
	for _, stepTo := range []stepTo{stepToSettings, stepToSubnet, stepToRouter, stepToTags} {
		if step := stepTo(desired, actual, *network); step != nil {
			return step
		}
	}
	// The status names the network before its duplicates are deleted: then all
	// processes agree on which one to keep.
	if len(others) > 0 && (network.ID == actual.NetworkID || !areDuplicates(desired, actual, *network, others)) {
		return stepToNoDuplicates(desired, actual, *network, others)
	}
	return endOfPlan(desired, actual, *network)
}

// endOfPlan returns the end of a plan in which everything possible is done:
// Nothing, or Blocked with the fields that this Neutron does not support.
func endOfPlan(desired Desired, actual Actual, network neutron.Network) Step {
	var unsupported []string
	for _, s := range settings {
		if s.isSet(desired.Settings) && !s.matches(desired.Settings, network.NetworkSettings) {
			unsupported = append(unsupported, fmt.Sprintf("spec.%s requires %q", s.field, s.extension))
		}
	}
	isMissing := func(tag string) bool { return !slices.Contains(network.Tags, tag) }
	if slices.ContainsFunc(desired.Tags, isMissing) {
		unsupported = append(unsupported, fmt.Sprintf("spec.tags requires %q", neutron.ExtensionTags))
	}
	if has, known := actual.hasExtension(neutron.ExtensionRouter); known && !has && desired.Router != nil {
		unsupported = append(unsupported, fmt.Sprintf("spec.router requires %q", neutron.ExtensionRouter))
	}
	if unsupported == nil {
		return Nothing{}
	}
	return blocked(ReasonExtensionMissing,
		"this cloud lacks a Neutron extension: %s. Everything else is as desired. Omit the field, or ask the operator of "+
			"the cloud for the extension.",
		strings.Join(unsupported, ", "))
}
