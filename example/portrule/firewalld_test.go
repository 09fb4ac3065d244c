package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// A bus in a folder: the one of the machine is not touched.
const busConfiguration = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><listen>%s</listen><auth>EXTERNAL</auth><policy context="default">
<allow user="*"/><allow own="*"/><allow send_destination="*"/><allow send_type="signal"/><allow receive_sender="*"/>
</policy></busconfig>`

// start runs a program until the test or the returned function ends it.
func (m *machine) start(name string, args ...string) (stop func()) {
	m.Helper()
	command := exec.Command(name, args...)
	if err := command.Start(); err != nil {
		m.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
	})
	m.Cleanup(stop)
	return stop
}

// TestFirewalld: firewalld of Debian's package, in a network namespace and with a bus of its own.
func TestFirewalld(t *testing.T) {
	for _, program := range []string{"firewalld", "dbus-daemon"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("TEST_REQUIRE_ALL") == "yes" {
				t.Fatal(err)
			}
			t.Skipf("%v: apt-get install firewalld dbus", err)
		}
	}
	m := newMachine(t, "fwd")
	folder := t.TempDir()
	address := "unix:path=" + filepath.Join(folder, "bus")
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", address)
	configuration := filepath.Join(folder, "bus.conf")
	if err := os.WriteFile(configuration, fmt.Appendf(nil, busConfiguration, address), 0o600); err != nil {
		t.Fatal(err)
	}
	m.start("dbus-daemon", "--config-file="+configuration, "--nofork", "--nopidfile")
	m.eventually(func() error {
		_, err := os.Stat(strings.TrimPrefix(address, "unix:path="))
		return err
	})
	ctl := func(args ...string) string {
		output, err := exec.Command("firewall-cmd", args...).CombinedOutput()
		if err != nil {
			return fmt.Sprintf("firewall-cmd %v: %v: %s", args, err, output)
		}
		return string(output)
	}
	is := func(want string, args ...string) func() error {
		return func() error {
			if got := strings.TrimSpace(ctl(args...)); got != want {
				return fmt.Errorf("firewall-cmd %v prints %q, want %q", args, got, want)
			}
			return nil
		}
	}
	firewalld := func() (stop func()) {
		stop = m.start("ip", "netns", "exec", m.node, "firewalld", "--nofork", "--nopid",
			"--system-config", folder, "--log-target", "file", "--log-file", filepath.Join(folder, "log"))
		m.eventually(is("running", "--state"))
		return stop
	}
	empty := is("", "--policy", "portrule", "--list-rich-rules")
	emptyForGood := is("", "--permanent", "--policy", "portrule", "--list-rich-rules")

	stop := firewalld()
	m.serve(web)
	m.serve(serverAddress + ":9090")
	m.eventually(m.rejected(secondClient, web)) // no zone opens it
	ctl("--permanent", "--add-port=22/tcp")
	zone := ctl("--permanent", "--list-all")

	// The agent does not reload firewalld, and asks for it.
	m.agent()
	m.rule("web", "{port: 8080, sources: [10.77.0.3/32], isPermanent: true}")
	m.rule("metrics", "{port: 9090}")
	m.eventually(m.applied("web", "False 1 Failed: changing firewalld: policy portrule is new: run firewall-cmd --reload"))
	ctl("--reload")
	open := []func() error{
		m.rejected(firstClient, web), m.passes(secondClient, web), m.passes(firstClient, serverAddress+":9090"),
	}
	m.eventually(append(open, m.applied("web", "True 1"))...)

	// A reload forgets what is not permanent. The agent is notified.
	ctl("--reload")
	m.eventually(open...)

	// A restart without an agent: only what is permanent is open.
	m.stop()
	stop()
	stop = firewalld()
	m.eventually(m.passes(secondClient, web), m.rejected(firstClient, web), m.rejected(firstClient, serverAddress+":9090"))
	m.agent()
	m.eventually(open...)

	// Firewalld starts while the agent runs.
	stop()
	firewalld()
	m.eventually(open...)

	// An agent that removes its rules with itself removes those in firewalld, too.
	m.stop()
	m.removeRules = true
	m.agent()
	m.eventually(open...)
	m.stop()
	m.eventually(m.rejected(secondClient, web), empty, emptyForGood)
	m.removeRules = false
	m.agent()
	m.eventually(open...)

	// Deletion while the agent is down.
	m.stop()
	m.Do("delete", "ports", "web", "metrics")
	m.agent()
	m.eventually(m.rejected(secondClient, web), empty, emptyForGood)
	if after := ctl("--permanent", "--list-all"); after != zone {
		t.Errorf("the zone was\n%sand is\n%s", zone, after)
	}
}
