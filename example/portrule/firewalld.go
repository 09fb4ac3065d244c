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

const (
	firewalldName = "org.fedoraproject.FirewallD1"
	firewalldPath = "/org/fedoraproject/FirewallD1"
	policyName    = "portrule" // all in it is the agent's
)

// firewalld opens ports in firewalld, if that runs on the node. It rejects what is not
// opened, whatever the table of the agent accepts.
type firewalld struct{}

// Sync makes the policy in firewalld as desired, that of now and the permanent one.
func (firewalld) Sync(ctx context.Context, all []access) error {
	bus, err := dbus.ConnectSystemBus(dbus.WithContext(ctx))
	if err != nil {
		klog.FromContext(ctx).V(4).Info("There is no D-Bus, so there is no firewalld", "err", err)
		return nil
	}
	defer func() { _ = bus.Close() }()
	var runs bool
	hasOwner := bus.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.NameHasOwner", 0, firewalldName)
	if err := hasOwner.Store(&runs); err != nil || !runs {
		return err
	}
	p := policy{ctx, bus}
	if err := p.syncPermanent(all); err != nil {
		return fmt.Errorf("changing the permanent configuration of firewalld: %w", err)
	}
	if err := p.syncRuntime(all); err != nil {
		return fmt.Errorf("changing firewalld: %w", err)
	}
	return nil
}

// policy is the agent's policy in firewalld.
type policy struct {
	ctx context.Context //nolint:containedctx // it lives as long as one Sync
	bus *dbus.Conn
}

type settings = map[string]dbus.Variant

// call calls a method of firewalld, and stores what it returns.
func (p policy) call(path dbus.ObjectPath, method string, result any, args ...any) error {
	call := p.bus.Object(firewalldName, path).CallWithContext(p.ctx, firewalldName+method, dbus.FlagNoAutoStart, args...)
	if result == nil {
		return call.Err
	}
	return call.Store(result)
}

// syncPermanent adds the policy when it is needed first. It stays, without rules: firewalld
// would have to be reloaded without it.
func (p policy) syncPermanent(all []access) error {
	desired := richRules(slices.DeleteFunc(slices.Clone(all), func(a access) bool { return !a.permanent }))
	var names []string
	if err := p.call(firewalldPath+"/config", ".config.getPolicyNames", &names); err != nil {
		return err
	}
	if !slices.Contains(names, policyName) {
		if len(all) == 0 {
			return nil
		}
		var path dbus.ObjectPath
		return p.call(firewalldPath+"/config", ".config.addPolicy", &path, policyName, settings{
			"ingress_zones": dbus.MakeVariant([]string{"ANY"}), "egress_zones": dbus.MakeVariant([]string{"HOST"}),
			"target": dbus.MakeVariant("CONTINUE"), "rich_rules": dbus.MakeVariant(desired),
			"description": dbus.MakeVariant("The rules of PortRules. Their agent replaces them."),
		})
	}
	var path dbus.ObjectPath
	if err := p.call(firewalldPath+"/config", ".config.getPolicyByName", &path, policyName); err != nil {
		return err
	}
	var actual settings
	if err := p.call(path, ".config.policy.getSettings", &actual); err != nil || haveRules(actual, desired) {
		return err
	}
	return p.call(path, ".config.policy.update", nil, settings{"rich_rules": dbus.MakeVariant(desired)})
}

// syncRuntime changes what firewalld does now. It knows a new policy only after a reload,
// in which it forgets what others have changed without making it permanent: a person decides.
func (p policy) syncRuntime(all []access) error {
	var names []string
	if err := p.call(firewalldPath, ".policy.getPolicies", &names); err != nil {
		return err
	}
	if !slices.Contains(names, policyName) {
		if len(all) == 0 {
			return nil
		}
		return errors.New("policy " + policyName + " is new: run firewall-cmd --reload once on this node")
	}
	var actual settings
	desired := richRules(all)
	err := p.call(firewalldPath, ".policy.getPolicySettings", &actual, policyName)
	if err != nil || haveRules(actual, desired) {
		return err
	}
	klog.FromContext(p.ctx).Info("Replacing the rules in firewalld", "policy", policyName, "rules", len(desired))
	changed := settings{"rich_rules": dbus.MakeVariant(desired)}
	return p.call(firewalldPath, ".policy.setPolicySettings", nil, policyName, changed)
}

func haveRules(actual settings, desired []string) bool {
	rules, _ := actual["rich_rules"].Value().([]string) // absent if there are none
	slices.Sort(rules)
	return slices.Equal(rules, desired)
}

// richRules returns the rules in the words of firewalld, in which it also returns them.
func richRules(all []access) []string {
	rules := []string{} // dbus has no variant of nil
	for _, a := range all {
		for _, source := range a.sources {
			rule := "rule"
			if address := cmp.Or(source.Addr(), a.port.host); address.IsValid() {
				rule += fmt.Sprintf(` family="ipv%d"`, map[int]int{32: 4, 128: 6}[address.BitLen()])
			}
			if source.IsValid() {
				rule += fmt.Sprintf(` source address="%s"`, source)
			}
			if a.port.host.IsValid() {
				rule += fmt.Sprintf(` destination address="%s"`, a.port.host)
			}
			rules = append(rules, rule+fmt.Sprintf(` port port="%d" protocol="%s" accept`, a.port.number, a.port.protocol))
		}
	}
	slices.Sort(rules)
	return slices.Compact(rules)
}

// Watch calls a function whenever firewalld starts, ends or was reloaded.
func (firewalld) Watch(ctx context.Context, changed func()) error {
	bus, err := dbus.ConnectSystemBus(dbus.WithContext(ctx))
	if err != nil {
		return nil // it may come later
	}
	defer func() { _ = bus.Close() }()
	if err := errors.Join(
		bus.AddMatchSignalContext(ctx, dbus.WithMatchInterface(firewalldName), dbus.WithMatchMember("Reloaded")),
		bus.AddMatchSignalContext(ctx, dbus.WithMatchInterface("org.freedesktop.DBus"),
			dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, firewalldName)),
	); err != nil {
		return fmt.Errorf("watching firewalld: %w", err)
	}
	signals := make(chan *dbus.Signal, 16)
	bus.Signal(signals)
	changed()
	for range signals { // closed with the connection
		changed()
	}
	return nil
}
