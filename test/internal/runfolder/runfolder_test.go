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

// A folder that cannot be removed at once is removed when another one is made.
func TestRemoveFails(t *testing.T) {
	dir, busy := t.TempDir(), errors.New("busy")
	folder, err := New(t.Context(), dir, "cluster-*", func(string) error { return busy })
	if err != nil {
		t.Fatal(err)
	}
	if err := folder.Remove(); !errors.Is(err, busy) {
		t.Errorf("error is %v, want %v", err, busy)
	}
	if newFolder(t, dir); exists(folder.Path) {
		t.Error("after another folder was made, it still exists")
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
