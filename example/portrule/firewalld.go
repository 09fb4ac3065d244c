package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/godbus/dbus/v5"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

const (
	firewalldName = "org.fedoraproject.FirewallD1"
	firewalldPath = "/org/fedoraproject/FirewallD1"
	policyName    = "portrule" // all in it is the agent's
)

// firewalld opens ports in firewalld, if that runs on the node. It rejects what is not
// opened, whatever the table of the agent accepts.
type firewalld struct {
	address string // of the D-Bus
	reload  bool   // once, if firewalld does not have the policy yet
}

// Sync makes the policy in firewalld as desired, that of now and the permanent one.
func (f *firewalld) Sync(ctx context.Context, all []access) error {
	bus, err := dbus.Connect(f.address, dbus.WithContext(ctx))
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
	if err := p.syncRuntime(all, f.reload); err != nil {
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
// in which it forgets what others have changed without making it permanent.
func (p policy) syncRuntime(all []access, reload bool) error {
	var names []string
	if err := p.call(firewalldPath, ".policy.getPolicies", &names); err != nil {
		return err
	}
	if !slices.Contains(names, policyName) {
		if len(all) == 0 {
			return nil
		}
		if !reload {
			return errors.New("policy " + policyName + " is new: run firewall-cmd --reload once on this node, " +
				"or start the agent with -reload-firewalld")
		}
		klog.FromContext(p.ctx).Info("Reloading firewalld, because the policy is new", "policy", policyName)
		if err := p.call(firewalldPath, ".reload", nil); err != nil {
			return err
		}
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
		for _, version := range a.families() {
			rule, to := "rule", ""
			if version != 0 {
				rule = fmt.Sprintf(`rule family="ipv%d"`, version)
			}
			if a.port.host.IsValid() {
				to = fmt.Sprintf(` destination address="%s"`, a.port.host)
			}
			to += fmt.Sprintf(` port port="%d" protocol="%s" accept`, a.port.number, a.port.protocol)
			if a.sources == nil {
				rules = append(rules, rule+to)
			}
			for _, sources := range a.ranges(version) {
				for _, prefix := range sources.Prefixes() {
					rules = append(rules, fmt.Sprintf(`%s source address="%s"%s`, rule, prefix, to))
				}
			}
		}
	}
	slices.Sort(rules)
	return slices.Compact(rules)
}

// Watch calls a function whenever firewalld starts, ends or was reloaded, until the context
// ends.
func (f *firewalld) Watch(ctx context.Context, changed func()) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		bus, err := dbus.Connect(f.address, dbus.WithContext(ctx))
		if err != nil {
			return // it may come later
		}
		defer func() { _ = bus.Close() }()
		if err := errors.Join(
			bus.AddMatchSignalContext(ctx, dbus.WithMatchInterface(firewalldName), dbus.WithMatchMember("Reloaded")),
			bus.AddMatchSignalContext(ctx, dbus.WithMatchInterface("org.freedesktop.DBus"),
				dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, firewalldName)),
		); err != nil {
			klog.FromContext(ctx).Error(err, "Watching firewalld failed; trying again")
			return
		}
		signals := make(chan *dbus.Signal, 16)
		bus.Signal(signals)
		changed()
		for range signals { // closed with the connection
			changed()
		}
	}, 10*time.Second)
}
