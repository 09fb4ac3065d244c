package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/samplecrd/network-controller/hack/localcluster"
)

// beTheProgram is the environment variable that makes the test binary be the
// controller itself.
const beTheProgram = "BE_THE_PROGRAM"

// program is the controller as a process of its own.
type program struct {
	*exec.Cmd
	log output
}

func newProgram(t *testing.T, args ...string) *program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &program{Cmd: exec.CommandContext(t.Context(), self, args...)}
	p.Env = []string{beTheProgram + "=1", "HOME=" + t.TempDir()}
	p.Stdout, p.Stderr = &p.log, &p.log
	p.Cancel = func() error { return p.Process.Kill() }
	return p
}

// TestBadInput: one sentence that names the flag, and an exit code that is not 0.
func TestBadInput(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken")
	empty := filepath.Join(t.TempDir(), "empty")
	if err := errors.Join(os.WriteFile(broken, []byte("clusters: nonsense"), 0o600), os.WriteFile(empty, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	kubeconfig := "-kubeconfig=" + cluster.Kubeconfig()
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"unknown flag":              {[]string{"-nonsense"}, 2, "-nonsense"},
		"argument that is no flag":  {[]string{"start"}, 2, `"start" is not a flag`},
		"no number":                 {[]string{"-workers=many"}, 2, "-workers"},
		"no workers":                {[]string{"-workers=0"}, 2, "-workers is 0: it must be from 1 to 100"},
		"too many workers":          {[]string{"-workers=101"}, 2, "-workers is 101"},
		"no time to stop":           {[]string{"-shutdown-timeout=0s"}, 2, "-shutdown-timeout is 0s: it must be positive"},
		"password in the server":    {[]string{"-master=https://bob:s3cret@127.0.0.1:1"}, 1, "reading -master: "},
		"no time for Neutron":       {[]string{"-neutron-timeout=0s"}, 2, "-neutron-timeout is 0s"},
		"cluster name with a slash": {[]string{"-cluster-name=a/b"}, 2, `-cluster-name is "a/b"`},
		"logging format":            {[]string{"-logging-format=xml"}, 2, `-logging-format is "xml": it must be text or json`},
		"no cluster":                {nil, 1, "-kubeconfig is not given"},
		"kubeconfig is missing":     {[]string{"-kubeconfig=/does/not/exist"}, 1, "reading -kubeconfig /does/not/exist"},
		"kubeconfig is broken":      {[]string{"-kubeconfig=" + broken}, 1, "reading -kubeconfig " + broken},
		"kubeconfig is empty":       {[]string{"-kubeconfig=" + empty}, 1, "names no cluster, or has no current context"},
		"Neutron is no URL":         {[]string{kubeconfig, "-neutron-endpoint=neutron"}, 1, "-neutron-endpoint"},
		"Neutron in another scheme": {[]string{kubeconfig, "-neutron-endpoint=ftp://127.0.0.1"}, 1, "-neutron-endpoint"},
		"embedded for everybody":    {[]string{kubeconfig, "-embedded-neutron-address=0.0.0.0:0"}, 1, "-embedded-neutron-address 0.0.0.0:0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProgram(t, test.args...)
			err := p.Run()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != test.code {
				t.Errorf("ended with %v, want exit code %d", err, test.code)
			}
			said := strings.TrimSpace(p.log.String())
			last := said[strings.LastIndex(said, "\n")+1:]
			if !strings.HasPrefix(last, controllerName+": ") || !strings.Contains(last, test.want) {
				t.Errorf("said\n%s\nwant a last line with %q", said, test.want)
			}
			if strings.Contains(said, "goroutine") || strings.Contains(said, "s3cret") {
				t.Errorf("said\n%s", said)
			}
			if test.code == 2 && said != last {
				t.Errorf("said more than a line:\n%s", said)
			}
		})
	}
}

func TestPasswordInEndpointIsNotEchoed(t *testing.T) {
	p := newProgram(t, "-kubeconfig="+cluster.Kubeconfig(), "-neutron-endpoint=http://admin:s3cret@127.0.0.1:9696")
	if err := p.Run(); err == nil || strings.Contains(p.log.String(), "s3cret") {
		t.Errorf("ended with %v and said\n%s", err, &p.log)
	}
}

func TestHelp(t *testing.T) {
	p := newProgram(t, "--help")
	if err := p.Run(); err != nil {
		t.Errorf("-help ended with %v", err)
	}
	for _, flag := range []string{"-kubeconfig path", "-workers", "-neutron-endpoint URL", "-alsologtostderr", "-v value"} {
		if !strings.Contains(p.log.String(), flag) {
			t.Errorf("-help says nothing of %s", flag)
		}
	}
}

// TestStartsBeforeEverything: the API server is away, then it has no CRD, then
// all is there. The controller says what it waits for, recovers by itself, and
// ends with 0 when it is asked to.
func TestStartsBeforeEverything(t *testing.T) {
	t.Parallel()
	bare, err := localcluster.Start(t.Context(), localcluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bare.Stop() })
	if err := bare.StopAPIServer(); err != nil {
		t.Fatal(err)
	}

	p := newProgram(t, "-kubeconfig="+bare.Kubeconfig(), "-alsologtostderr=true", "-logging-format=json")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	p.waitFor(t, `"why":"the API server does not answer: .*connection refused"`)
	if err := bare.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.waitFor(t, `"why":"the API server does not know Networks: install .* kubectl apply -f crd/"`)
	kubectl(t, bare, "apply", "-f", "crd/")
	p.waitFor(t, `"msg":"Starting workers"`)
	kubectl(t, bare, "apply", "-f", "example/")
	kubectl(t, bare, "wait", "--for=condition=Ready", "networks", "--all", "--timeout=60s")

	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("ended with %v after SIGTERM and said\n%s", err, &p.log)
	}
}

// TestExamples applies every file of example/, as a newcomer would, to a
// controller with the classic command line.
func TestExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("example/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("example/ has %v: %v", files, err)
	}
	own, err := localcluster.Start(t.Context(), localcluster.Options{Apply: []string{"crd"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Stop() })
	p := newProgram(t, "--kubeconfig="+own.Kubeconfig(), "-alsologtostderr=true")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	p.waitFor(t, `networks exist only in the memory .* curl http://127\.0\.0\.1:\d+/v2\.0/networks`)

	for _, file := range files {
		kubectl(t, own, "apply", "-f", file)
		kubectl(t, own, "wait", "--for=condition=Ready", "-f", file, "--timeout=60s")
		kubectl(t, own, "delete", "-f", file, "--timeout=60s")
	}
}

// TestNeutronIsAway: the controller starts all the same, and says so.
func TestNeutronIsAway(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	endpoint := "http://" + listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	p := newProgram(t, "-kubeconfig="+cluster.Kubeconfig(), "-neutron-endpoint="+endpoint)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	p.waitFor(t, "Neutron gives no usable answer; starting all the same")
	p.waitFor(t, "Using Kubernetes")
}

func kubectl(t *testing.T, c *localcluster.Cluster, args ...string) {
	t.Helper()
	if output, err := c.Kubectl(t.Context(), args...); err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

// waitFor waits until the program has logged something that matches.
func (p *program) waitFor(t *testing.T, pattern string) {
	t.Helper()
	want := regexp.MustCompile(pattern)
	h := &harness{T: t}
	h.eventually(func() error {
		if !want.MatchString(p.log.String()) {
			return fmt.Errorf("the log has nothing that matches %s:\n%s", pattern, &p.log)
		}
		return nil
	})
}

// output is what a program has written so far.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// TestReadme: what the READMEs say of flags, make targets and files is so.
func TestReadme(t *testing.T) {
	makefile := read(t, "Makefile")
	help := newProgram(t, "-help")
	if err := help.Run(); err != nil {
		t.Fatal(err)
	}
	flags := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^  -(\w[\w-]*)`).FindAllStringSubmatch(help.log.String(), -1) {
		flags[match[1]] = true
	}
	for _, file := range []string{"README.md", "README.zh-CN.md"} {
		t.Run(file, func(t *testing.T) {
			text := read(t, file)
			for name := range flags {
				if !strings.Contains(text, "`-"+name+"`") {
					t.Errorf("says nothing of the flag -%s", name)
				}
			}
			for _, match := range regexp.MustCompile("(?m)^\\| `-([\\w-]+)` \\|").FindAllStringSubmatch(text, -1) {
				if !flags[match[1]] {
					t.Errorf("speaks of the flag -%s, which does not exist", match[1])
				}
			}
			for _, match := range regexp.MustCompile("(?m)(?:^|`)make ([a-z-]+)").FindAllStringSubmatch(text, -1) {
				if !strings.Contains(makefile, "\n"+match[1]+":") {
					t.Errorf("speaks of make %s, which does not exist", match[1])
				}
			}
			for _, match := range regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(text, -1) {
				if _, err := os.Stat(match[1]); err != nil {
					t.Errorf("links to %s: %v", match[1], err)
				}
			}
			if code := fenced(text); code != fenced(read(t, "README.md")) {
				t.Error("its commands are not those of README.md")
			}
		})
	}
}

// fenced returns the shell commands in a text.
func fenced(text string) string {
	var all []string
	for _, match := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(text, -1) {
		all = append(all, match[1])
	}
	return strings.Join(all, "\n")
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
