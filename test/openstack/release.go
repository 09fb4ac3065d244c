package main

import (
	"path/filepath"

	"github.com/samplecrd/network-controller/test/internal/process"
)

// releaseVariable has the name of a release of Debian, such as trixie or sid. If it is
// not set, the programs are those of this machine.
const releaseVariable = "OPENSTACK_RELEASE"

// enter runs a command in another root folder, which has the run folders as well, and
// in its working directory. Only the command sees the mounts. They end with it.
const enter = `
root=$1 runs=$2
shift 2
mkdir -p "$root$runs"
mount --bind "$runs" "$root$runs"
mount -t proc proc "$root/proc"
exec unshare --root="$root" --wd="$PWD" "$@"
`

// inRoot returns a program that runs in the root folder of the cloud, as the process
// that was started.
func (c *cloud) inRoot(program process.Program) process.Program {
	if c.root != "" {
		inside := []string{"/usr/bin/unshare", "--mount", "sh", "-euc", enter, "sh", c.root, filepath.Dir(c.dir)}
		program.Args = append(inside, program.Args...)
	}
	return program
}

// wsgi has the values in the configuration of uWSGI, which serves an application.
type wsgi struct {
	Application string
	Variable    string // for the names of its configuration files
	Threads     int
}

// uwsgi returns the command of a server that uWSGI serves.
func (s server) uwsgi() []string {
	return []string{"/usr/bin/uwsgi-core", "--ini", s.File + "-uwsgi.ini"}
}
