package launch

import (
	"os"
	"path/filepath"
	"testing"
)

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
