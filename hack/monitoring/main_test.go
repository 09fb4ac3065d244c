package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGeneratedFilesAreUpToDate(t *testing.T) {
	t.Chdir("../..")
	files, err := generated()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range files {
		got, err := os.ReadFile(path)
		if diff := cmp.Diff(string(want), string(got)); err != nil || diff != "" {
			t.Errorf("%s (%v) is not what `go run ./hack/monitoring` writes (-want +got):\n%s", path, err, diff)
		}
	}
}
