package controlplane

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	folder := func(name string, files ...string) string {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if err := os.WriteFile(filepath.Join(path, file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	owned, err := newRunFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	swept := map[string]bool{
		owned.path: false,
		folder("cluster-left", lockName, "etcd.log"):  true,
		folder("cluster-empty"):                       true,
		folder("cluster-of-somebody-else", "notes"):   false,
		folder("other-things", lockName, "notes.txt"): false,
	}

	other, err := newRunFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range swept {
		if got := !exists(path); got != want {
			t.Errorf("%s: swept is %v, want %v", filepath.Base(path), got, want)
		}
	}
	for _, folder := range []*runFolder{owned, other} {
		if err := folder.remove(); err != nil {
			t.Error(err)
		}
	}
}

func TestHoldPort(t *testing.T) {
	held, err := holdPort()
	if err != nil {
		t.Fatal(err)
	}
	address := "127.0.0.1:" + strconv.Itoa(held.number)
	if _, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("connecting while it is held: error is %v, want a refused connection", err)
	}
	if listener, err := net.Listen("tcp", address); err == nil {
		_ = listener.Close()
		t.Error("somebody else could listen at a port that is held")
	}
	held.release()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Errorf("listening at a port that was released: %v", err)
	} else {
		_ = listener.Close()
	}
}

func TestDeclares(t *testing.T) {
	tests := map[string]struct {
		goMod string
		want  bool
	}{
		"the module":         {goMod: "// a comment\nmodule " + modulePath + " // another\n\ngo 1.26.0\n", want: true},
		"the module, quoted": {goMod: "module \"" + modulePath + "\"\n", want: true},
		"a module inside":    {goMod: "module " + modulePath + "/hack/tools\n"},
		"a user of it":       {goMod: "module example.com/other\n\nrequire " + modulePath + " v1.0.0\n"},
		"nothing":            {},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := declares(test.goMod, modulePath); got != test.want {
				t.Errorf("declares is %v, want %v", got, test.want)
			}
		})
	}
}
