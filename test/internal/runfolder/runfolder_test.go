package runfolder

import (
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
		err := os.Mkdir(path, 0o700)
		for _, file := range files {
			err = errors.Join(err, os.WriteFile(filepath.Join(path, file), nil, 0o600))
		}
		if err != nil {
			t.Fatal(err)
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
	newFolder(t, dir)
	for path, want := range removed {
		if got := !exists(path); got != want {
			t.Errorf("%s: removed is %v, want %v", filepath.Base(path), got, want)
		}
	}
	if err := owned.Remove(); err != nil || exists(owned.Path) {
		t.Errorf("%s is left (%v)", owned.Path, err)
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
