package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// roleVariable makes the test binary this program, or a controller that this
// program runs.
const roleVariable = "RUN_TEST_ROLE"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(guardedVariable) != "" || os.Getenv(roleVariable) == "run":
		_ = os.Setenv(roleVariable, "controller") // what this program starts
		main()
	case os.Getenv(roleVariable) == "controller":
		os.Exit(controller())
	default:
		os.Exit(m.Run())
	}
}

// controller stands in for the controller. It tells its flags and its process
// ID. The flag -exit makes it end with that code. Else it waits for a signal,
// and then reports whether the API server is still there.
func controller() int {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	fmt.Println("flags", strings.Join(os.Args[1:], " "))
	fmt.Println("pid", os.Getpid())
	last := os.Args[len(os.Args)-1]
	if code, ok := strings.CutPrefix(last, "-exit="); ok {
		number, _ := strconv.Atoi(code)
		return number
	}
	fmt.Println("signal", <-signals)
	config, err := clientcmd.BuildConfigFromFlags("", strings.TrimPrefix(os.Args[1], "-kubeconfig="))
	if err == nil {
		fmt.Println("readyz", readyz(config))
	}
	if len(signals) > 0 {
		fmt.Println("another signal", <-signals)
	}
	return 7
}

// readyz returns what the API server says about itself.
func readyz(config *rest.Config) string {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err.Error()
	}
	response, err := client.Get(config.Host + "/readyz")
	if err != nil {
		return err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	return response.Status
}

// program is this program, running.
type program struct {
	*exec.Cmd
	output *bufio.Scanner
	told   map[string]string // the lines that the controller told, by their first word
}

// start starts this program.
func start(t *testing.T, args ...string) *program {
	t.Helper()
	p := &program{Cmd: exec.CommandContext(t.Context(), os.Args[0], args...), told: map[string]string{}}
	p.Env = append(os.Environ(), roleVariable+"=run")
	p.Stderr = os.Stderr
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as a shell does it with its jobs
	output, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.output = bufio.NewScanner(output)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() }) // it has ended, unless the test failed
	return p
}

// read reads the output until a line with the first word, or to its end.
func (p *program) read(until string) {
	for p.output.Scan() {
		word, rest, _ := strings.Cut(strings.TrimSpace(p.output.Text()), " ")
		p.told[word] = rest
		if word == until {
			return
		}
	}
}

// end reads the rest of the output and returns the exit code.
func (p *program) end() int {
	p.read("")
	_ = p.Wait() // its result is in the state
	return p.ProcessState.ExitCode()
}

func TestExitCodeIsPassedOn(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(kubeconfig, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args  []string
		code  int
		flags string
	}{
		"of a controller that succeeds": {
			args:  []string{"-kubeconfig", kubeconfig, "--", os.Args[0], "-exit=0"},
			flags: "-kubeconfig=" + kubeconfig + " PAGE -exit=0",
		},
		"of a controller that fails": {
			args:  []string{"-kubeconfig", kubeconfig, "--", os.Args[0], "-v=4", "-exit=3"},
			code:  3,
			flags: "-kubeconfig=" + kubeconfig + " PAGE -v=4 -exit=3",
		},
		"without a controller":            {args: []string{"-kubeconfig", kubeconfig}, code: 2},
		"with a controller not there":     {args: []string{"--", "/no/such/controller"}, code: 1},
		"with a kubeconfig not there":     {args: []string{"-kubeconfig", "/no/such/file", "--", os.Args[0]}, code: 1},
		"with a flag that does not exist": {args: []string{"-no-such-flag"}, code: 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := start(t, test.args...)
			if code := p.end(); code != test.code {
				t.Errorf("exit code is %d, want %d", code, test.code)
			}
			page := regexp.MustCompile(`http://(\S+)/`).FindStringSubmatch(p.told["To"])
			want := test.flags
			if page != nil {
				want = strings.Replace(want, "PAGE", "-debug-bind-address="+page[1], 1)
			}
			if p.told["flags"] != want {
				t.Errorf("flags of the controller are %q, want %q", p.told["flags"], want)
			}
		})
	}
}

// The controller is told once to stop, and has the API server until it has
// stopped. After that nothing is left.
func TestLocalCluster(t *testing.T) {
	tests := map[string]struct {
		signal syscall.Signal
		group  bool
		told   string
	}{
		"stopped by kill":   {signal: syscall.SIGTERM, told: "terminated"},
		"stopped by Ctrl-C": {signal: syscall.SIGINT, group: true, told: "interrupt"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := start(t, "--", os.Args[0], "-v=4")
			p.read("pid")
			kubeconfig := strings.TrimPrefix(p.told["export"], "KUBECONFIG=")
			folder, err := filepath.EvalSymlinks(kubeconfig)
			if err != nil {
				t.Fatal(err)
			}
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				t.Fatal(err)
			}
			receiver := p.Process.Pid
			if test.group {
				receiver = -receiver
			}
			if err := syscall.Kill(receiver, test.signal); err != nil {
				t.Fatal(err)
			}
			if code := p.end(); code != 7 {
				t.Errorf("exit code is %d, want the controller's 7", code)
			}
			if p.told["signal"] != test.told || p.told["another"] != "" {
				t.Errorf("the controller was told %v, want one signal, %s", p.told, test.told)
			}
			if p.told["readyz"] != "200 OK" {
				t.Errorf("while the controller stops, the API server is %s, want 200 OK", p.told["readyz"])
			}
			if connection, err := net.Dial("tcp", strings.TrimPrefix(config.Host, "https://")); err == nil {
				_ = connection.Close()
				t.Error("the API server still runs")
			}
			if _, err := os.Lstat(kubeconfig); !os.IsNotExist(err) {
				t.Errorf("%s still exists (%v)", kubeconfig, err)
			}
			if _, err := os.Stat(filepath.Dir(folder)); !os.IsNotExist(err) {
				t.Errorf("the run folder %s still exists (%v)", filepath.Dir(folder), err)
			}
			if !strings.HasSuffix(p.told["Stopped"], "Removed its data and "+kubeconfig+".") {
				t.Errorf("it printed %q, want that it removed %s", p.told["Stopped"], kubeconfig)
			}
		})
	}
}

// Killed with kill -9, this program can stop nothing itself.
func TestKilled(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(kubeconfig, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, "-kubeconfig", kubeconfig, "--", os.Args[0], "-v=4")
	p.read("pid")
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.read("") // ends when the controller has ended: it has the output too
	if p.told["signal"] != "terminated" {
		t.Errorf("the controller was told %v, want a signal to stop", p.told)
	}
	_ = p.Wait()
}

// The path is the same in every run. Two runs at once do not share a path.
func TestLinkTo(t *testing.T) {
	dir := t.TempDir()
	link, file := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "admin.kubeconfig")
	if err := os.Symlink(filepath.Join(dir, "of-a-run-that-was-killed"), link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := linkTo(file, link); got != link {
		t.Errorf("the first run uses %s, want %s", got, link)
	}
	if target, err := os.Readlink(link); err != nil || target != file {
		t.Errorf("the link leads to %s (%v), want %s", target, err, file)
	}
	if got := linkTo(filepath.Join(dir, "another"), link); got != filepath.Join(dir, "another") {
		t.Errorf("the second run uses %s", got)
	}
}

// The page gets a port that is free. The controller's own flags have priority.
func TestPageOf(t *testing.T) {
	listener, err := net.Listen("tcp", pageAddress)
	if err == nil { // otherwise another run listens there
		defer func() { _ = listener.Close() }()
	}
	tests := map[string]struct {
		flags []string
		want  string // the address; "free" for any free one
	}{
		"by default":                {want: "free"},
		"another address":           {flags: []string{"-v=4", "-debug-bind-address=127.0.0.1:9999"}, want: "127.0.0.1:9999"},
		"another address, as words": {flags: []string{"--debug-bind-address", "127.0.0.1:9999", "-v=4"}, want: "127.0.0.1:9999"},
		"the last one counts":       {flags: []string{"-debug-bind-address=127.0.0.1:1", "-debug-bind-address=127.0.0.1:2"}, want: "127.0.0.1:2"},
		"switched off":              {flags: []string{"-debug-bind-address="}},
		"a port that the log shows": {flags: []string{"-debug-bind-address=127.0.0.1:0"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pageFlag, address, err := pageOf(t.Context(), test.flags)
			if err != nil {
				t.Fatal(err)
			}
			free := strings.TrimPrefix(pageFlag, "-debug-bind-address=")
			if test.want == "free" {
				test.want = free
			}
			if address != test.want {
				t.Errorf("address is %q, want %q", address, test.want)
			}
			if printed := whereThePageIs(address); strings.Contains(printed, "http://"+address+"/") != (address != "") {
				t.Errorf("for %q, it prints %q", address, printed)
			}
			listener, err := net.Listen("tcp", free)
			if err != nil || free == pageAddress {
				t.Fatalf("the flag is %s, want one with a free port (error %v)", pageFlag, err)
			}
			_ = listener.Close()
		})
	}
}

func TestHowToReach(t *testing.T) {
	tests := map[string]struct {
		kubeconfig string
		installed  bool
		want       []string
	}{
		"kubectl is installed": {
			kubeconfig: "/a/admin.kubeconfig", installed: true,
			want: []string{"  export KUBECONFIG=/a/admin.kubeconfig", "  kubectl get networks"},
		},
		"kubectl is not installed": {
			kubeconfig: "/a/admin.kubeconfig",
			want:       []string{"  export KUBECONFIG=/a/admin.kubeconfig", "  alias kubectl=/my/kubectl", "  kubectl get networks"},
		},
		"a path with a space": {
			kubeconfig: "/a b/admin.kubeconfig", installed: true,
			want: []string{"  export KUBECONFIG='/a b/admin.kubeconfig'", "  kubectl get networks"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			text := howToReach(test.kubeconfig, "/my/kubectl", "removes", test.installed)
			if want := "\n" + strings.Join(test.want, "\n") + "\n\n"; !strings.Contains(text, want) {
				t.Errorf("text is %q, want in it %q", text, want)
			}
		})
	}
}

func TestQuote(t *testing.T) {
	for _, text := range []string{"", "plain", "/a/b-c_d.e", "a b", "it's", `$HOME "x" \`, "a;b", "a\nb", "~"} {
		output, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+quote(text)).Output()
		if err != nil || string(output) != text {
			t.Errorf("a shell reads %s as %q (error %v), want %q", quote(text), output, err, text)
		}
	}
}

func TestExpandHome(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	for path, want := range map[string]string{
		"~/.kube/config": "/home/me/.kube/config",
		"~":              "/home/me",
		"~other/config":  "~other/config",
		"/tmp/~/config":  "/tmp/~/config",
		"config":         "config",
	} {
		if got, err := expandHome(path); err != nil || got != want {
			t.Errorf("expandHome(%q) is %q, error %v; want %q", path, got, err, want)
		}
	}
}

// A signal that comes while nothing runs yet ends what comes first.
func TestStopBeforeStart(t *testing.T) {
	s := listen()
	s.stop(os.Interrupt)
	select {
	case <-s.context.Done():
	case <-time.After(time.Minute):
		t.Fatal("the context has not ended")
	}
	command := exec.Command(os.Args[0])
	if code, err := s.runForeground(command); code != 130 || err != nil || command.Process != nil {
		t.Errorf("exit code is %d, error %v, process %v; want 130 and that nothing was started", code, err, command.Process)
	}
}
