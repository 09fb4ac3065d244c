package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/samplecrd/network-controller/test/internal/programs"
)

// roleVariable makes the test binary a process that launches a program and is
// killed then.
const roleVariable = "OPENSTACK_TEST_ROLE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(roleVariable); dir != "" {
		p, err := newLauncher().launch(dir, program{name: "sleep", log: "log", args: []string{"sleep", "600"}})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(p.command.Process.Pid)
		<-p.done
		return
	}
	os.Exit(m.Run())
}

// Whoever is killed cannot tidy up any more.
func TestLaunchedProgramDiesWithItsParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("nothing is launched elsewhere")
	}
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), roleVariable+"="+t.TempDir())
	parent.Stderr = os.Stderr
	output, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || !running(pid) {
		t.Fatalf("launched %q (%v), want the process ID of a program that runs", line, err)
	}
	_ = parent.Process.Kill()
	_ = parent.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ended := func(context.Context) (bool, error) { return !running(pid), nil }
	if err := programs.Poll(ctx, 10*time.Millisecond, ended); err != nil {
		t.Errorf("process %d still runs: %v", pid, err)
	}
}

// running says whether a process runs, and does not just wait for somebody to
// notice its end.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(stat, []byte(") Z "))
}

func TestSweep(t *testing.T) {
	f := folders{runs: t.TempDir()}
	for _, name := range []string{"openstack-up", "openstack-exec-1", "openstack-exec-2", "cluster-1"} {
		if err := os.Mkdir(filepath.Join(f.runs, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	left, err := own(filepath.Join(f.runs, "openstack-exec-1"))
	if err != nil {
		t.Fatal(err)
	}
	left()
	release, err := own(f.up())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if got, want := ownerOf(f.up()), os.Getpid(); got != want {
		t.Errorf("the owner is %d, want %d", got, want)
	}
	f.sweep()
	entries, err := os.ReadDir(f.runs)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if want := []string{"cluster-1", "openstack-up"}; !slices.Equal(names, want) {
		t.Errorf("after a sweep there are %q, want %q", names, want)
	}
}

// Each cloud is in both files, and what is secret in one of them only.
func TestClouds(t *testing.T) {
	c := &cloud{
		dir:       t.TempDir(),
		passwords: passwords{Admin: "SECRET-1", Neutron: "SECRET-2", Ours: "SECRET-3", OtherTenant: "SECRET-4"},
		// Without quotes, this would be read as a number.
		credential: credential{ID: "00000000000000000000000000001e10", Secret: "SECRET-5"},
	}
	if err := c.writeClouds(); err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, name := range []string{cloudsName, secureName} {
		path := filepath.Join(c.dir, name)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(content)
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; want only its owner to read it", name, info.Mode(), err)
		}
		for cloud := range strings.FieldsSeq(cloudNames) {
			if !strings.Contains(texts[name], "\n  "+cloud+":\n") {
				t.Errorf("%s has no cloud %s", name, cloud)
			}
		}
	}
	if strings.Contains(texts[cloudsName], "SECRET") {
		t.Errorf("%s has a secret:\n%s", cloudsName, texts[cloudsName])
	}
	if want := `"` + c.credential.ID + `"`; !strings.Contains(texts[cloudsName], want) {
		t.Errorf("%s has no %s", cloudsName, want)
	}
	for _, secret := range []string{c.passwords.Admin, c.passwords.Ours, c.passwords.OtherTenant, c.credential.Secret} {
		if !strings.Contains(texts[secureName], `"`+secret+`"`) {
			t.Errorf("%s has no %s", secureName, secret)
		}
	}
}

func TestEnvironment(t *testing.T) {
	env := environment{"OS_CLOUD=ours", "OPENSTACK_CLOUDS=ours it's $HOME"}
	dir := t.TempDir()
	if err := env.write(dir); err != nil {
		t.Fatal(err)
	}
	read, err := readEnvironment(dir)
	if err != nil || !slices.Equal(read, env) {
		t.Errorf("read %q, %v; want %q", read, err, env)
	}
	if got, want := env.exports(), "export OS_CLOUD='ours'\nexport OPENSTACK_CLOUDS='ours it'\\''s $HOME'\n"; got != want {
		t.Errorf("exports are\n%s\nwant\n%s", got, want)
	}
	if got, want := env.addTo([]string{"PATH=/bin", "OS_PASSWORD=x"}), append([]string{"PATH=/bin"}, env...); !slices.Equal(got, want) {
		t.Errorf("added: %q, want %q", got, want)
	}
}

func TestRunExitCodes(t *testing.T) {
	tests := map[string]struct {
		args []string
		want int
	}{
		"no such command":            {args: []string{"restart"}, want: exitUsage},
		"no such flag":               {args: []string{"down", "-lifetime=1s"}, want: exitUsage},
		"an argument too many":       {args: []string{"up", "now"}, want: exitUsage},
		"nothing to run":             {args: []string{"exec", "--"}, want: exitUsage},
		"something that is not here": {args: []string{"exec", "--", "/no/such/command"}, want: exitFailed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, _ := run(test.args[0], test.args[1:]); got != test.want {
				t.Errorf("exit code is %d, want %d", got, test.want)
			}
		})
	}
}
