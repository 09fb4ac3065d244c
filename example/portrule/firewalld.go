package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/godbus/dbus/v5"
	"k8s.io/klog/v2"
)

const firewalldName = "org.fedoraproject.FirewallD1"
const firewalldPath = "/org/fedoraproject/FirewallD1"
const policyName = "portrule" // all in it is the agent's

// syncFirewalld opens ports in firewalld, if that runs on the node. It rejects what is not
// opened, whatever the table of the agent accepts. The agent has a policy of its own there,
// in what firewalld does now and in its permanent configuration.
func syncFirewalld(ctx context.Context, all []access) error {
	bus, err := dbus.ConnectSystemBus(dbus.WithContext(ctx))
	if err != nil {
		return nil // without D-Bus, there is no firewalld
	}
	defer func() { _ = bus.Close() }()
	var runs bool
	hasOwner := bus.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.NameHasOwner", 0, firewalldName)
	if err := hasOwner.Store(&runs); err != nil || !runs {
		return err
	}
	c := connection{bus}
	if err := errors.Join(c.syncPermanent(all), c.syncRuntime(all)); err != nil {
		return fmt.Errorf("changing firewalld: %w", err)
	}
	return nil
}

// connection is a connection to firewalld. It ends with the context of a Sync.
type connection struct{ *dbus.Conn }

type settings = map[string]dbus.Variant

// call calls a method of firewalld, and stores what it returns.
func (c connection) call(path dbus.ObjectPath, method string, result any, args ...any) error {
	call := c.Object(firewalldName, path).CallWithContext(c.Context(), firewalldName+method, dbus.FlagNoAutoStart, args...)
	if result == nil {
		return call.Err
	}
	return call.Store(result)
}

// syncPermanent adds the policy when it is needed first. It stays, without rules: firewalld
// would have to be reloaded without it.
func (c connection) syncPermanent(all []access) error {
	desired := richRules(slices.DeleteFunc(slices.Clone(all), func(a access) bool { return !a.permanent }))
	var path dbus.ObjectPath
	exists, err := c.hasPolicy(firewalldPath+"/config", ".config.getPolicyNames")
	if err != nil || !exists && len(all) == 0 {
		return err
	}
	if !exists {
		return c.call(firewalldPath+"/config", ".config.addPolicy", &path, policyName, settings{
			"ingress_zones": dbus.MakeVariant([]string{"ANY"}), "egress_zones": dbus.MakeVariant([]string{"HOST"}),
			"target": dbus.MakeVariant("CONTINUE"), "rich_rules": desired,
			"description": dbus.MakeVariant("The rules of PortRules. Their agent replaces them."),
		})
	}
	if err := c.call(firewalldPath+"/config", ".config.getPolicyByName", &path, policyName); err != nil {
		return err
	}
	var actual settings
	if err := c.call(path, ".config.policy.getSettings", &actual); err != nil || haveRules(actual, desired) {
		return err
	}
	return c.call(path, ".config.policy.update", nil, settings{"rich_rules": desired})
}

// syncRuntime changes what firewalld does now. It knows a new policy only after a reload,
// in which it forgets what others have changed without making it permanent: a person decides.
func (c connection) syncRuntime(all []access) error {
	exists, err := c.hasPolicy(firewalldPath, ".policy.getPolicies")
	if err != nil || !exists && len(all) == 0 {
		return err
	}
	if !exists {
		return errors.New("policy " + policyName + " is new: run firewall-cmd --reload once on this node")
	}
	var actual settings
	desired := richRules(all)
	err = c.call(firewalldPath, ".policy.getPolicySettings", &actual, policyName)
	if err != nil || haveRules(actual, desired) {
		return err
	}
	klog.FromContext(c.Context()).Info("Replacing the rules in firewalld", "policy", policyName)
	return c.call(firewalldPath, ".policy.setPolicySettings", nil, policyName, settings{"rich_rules": desired})
}

// hasPolicy reports whether the policy is in a list of names.
func (c connection) hasPolicy(path dbus.ObjectPath, list string) (bool, error) {
	var names []string
	err := c.call(path, list, &names)
	return slices.Contains(names, policyName), err
}

func haveRules(actual settings, desired dbus.Variant) bool {
	rules, _ := actual["rich_rules"].Value().([]string) // absent if there are none
	slices.Sort(rules)
	return slices.Equal(rules, desired.Value().([]string))
}

// richRules returns the rules in the words of firewalld, in which it also returns them.
func richRules(all []access) dbus.Variant {
	rules := []string{} // dbus has no variant of nil
	for _, a := range all {
		address, rule := cmp.Or(a.source.Addr(), a.port.host), "rule"
		if a.source.IsValid() && a.port.host.IsValid() && a.source.Addr().Is4() != a.port.host.Is4() {
			continue // it cannot reach the host
		}
		if address.IsValid() {
			rule += fmt.Sprintf(` family="ipv%d"`, map[int]int{32: 4, 128: 6}[address.BitLen()])
		}
		if a.source.IsValid() {
			rule += fmt.Sprintf(` source address="%s"`, a.source)
		}
		if a.port.host.IsValid() {
			rule += fmt.Sprintf(` destination address="%s"`, a.port.host)
		}
		rules = append(rules, rule+fmt.Sprintf(` port port="%d" protocol="%s" accept`, a.port.number, a.port.protocol))
	}
	slices.Sort(rules)
	return dbus.MakeVariant(slices.Compact(rules))
}
