package runfolder

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func newFolder(t *testing.T, dir string) *Folder {
	t.Helper()
	folder, err := New(t.Context(), dir, "cluster-*", os.RemoveAll)
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

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
	owned := newFolder(t, dir)
	removed := map[string]bool{
		owned.Path: false,
		folder("cluster-left-over", lockName, "etcd.log"):   true,
		folder("cluster-empty"):                             true,
		folder("cluster-without-a-lock", "notes"):           false,
		folder("of-another-pattern", lockName, "notes.txt"): false,
	}
	other := newFolder(t, dir)
	for path, want := range removed {
		if got := !exists(path); got != want {
			t.Errorf("%s: removed is %v, want %v", filepath.Base(path), got, want)
		}
	}
	for _, folder := range []*Folder{owned, other} {
		if err := folder.Remove(); err != nil {
			t.Error(err)
		}
		if exists(folder.Path) {
			t.Errorf("%s is left", folder.Path)
		}
	}
}

// A folder that cannot be removed at once is removed by a later sweep.
func TestRemoveFails(t *testing.T) {
	dir, busy := t.TempDir(), errors.New("busy")
	folder, err := New(t.Context(), dir, "cluster-*", func(string) error { return busy })
	if err != nil {
		t.Fatal(err)
	}
	if err := folder.Remove(); !errors.Is(err, busy) {
		t.Errorf("error is %v, want %v", err, busy)
	}
	if err := Sweep(t.Context(), dir, "cluster-*", os.RemoveAll); err != nil || exists(folder.Path) {
		t.Errorf("after a sweep (%v), it exists: %v", err, exists(folder.Path))
	}
}

func TestOwner(t *testing.T) {
	folder := newFolder(t, t.TempDir())
	if got := Owner(folder.Path); got != 0 {
		t.Errorf("before SetOwner: %d", got)
	}
	if err := folder.SetOwner(42); err != nil {
		t.Fatal(err)
	}
	if got := Owner(folder.Path); got != 42 {
		t.Errorf("owner is %d, want 42", got)
	}
	if err := folder.Lock.Close(); err != nil {
		t.Fatal(err)
	}
	if got := Owner(folder.Path); got != 0 {
		t.Errorf("without the lock: %d", got)
	}
}

func TestLockWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TryLock(path); !errors.Is(err, ErrLocked) {
		t.Errorf("error is %v, want %v", err, ErrLocked)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Lock(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want that the context ended", err)
	}
	locked := make(chan error, 1)
	go func() {
		second, err := Lock(t.Context(), path)
		locked <- errors.Join(err, second.Close())
	}()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-locked; err != nil {
		t.Error(err)
	}
}

func TestModuleRoot(t *testing.T) {
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
			root := t.TempDir()
			inside := filepath.Join(root, "inside")
			if err := errors.Join(os.Mkdir(inside, 0o700), os.WriteFile(filepath.Join(root, "go.mod"), []byte(test.goMod), 0o600)); err != nil {
				t.Fatal(err)
			}
			t.Chdir(inside)
			if got, err := ModuleRoot(); (err == nil) != test.want || test.want && got != root {
				t.Errorf("root is %q, %v", got, err)
			}
		})
	}
}
