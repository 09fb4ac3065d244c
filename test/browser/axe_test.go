package browser

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/chromedp/chromedp"
)

// The version of axe-core, and the checksum of its package as npm writes it.
const (
	axeVersion = "4.14.1"
	axeSHA512  = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
)

// axe returns the script of axe-core. It is downloaded to build/ once.
var axe = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(root, "build", "npm")
	path := filepath.Join(dir, "axe-core-"+axeVersion+".tgz")
	pack, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		if err := fetchAxe(dir); err != nil {
			return "", err
		}
		pack, err = os.ReadFile(path)
	}
	if err != nil {
		return "", fmt.Errorf("reading axe-core: %w", err)
	}
	hash := sha512.Sum512(pack)
	if got := base64.StdEncoding.EncodeToString(hash[:]); got != axeSHA512 {
		return "", fmt.Errorf("the checksum of %s is %s, want %s: remove the file, and check the version", path, got, axeSHA512)
	}
	return fileOf(pack, "package/axe.min.js")
})

func fetchAxe(dir string) error {
	npm, err := program("npm", "npm")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	pack := exec.CommandContext(ctx, npm, "pack", "axe-core@"+axeVersion, "--ignore-scripts", "--silent")
	pack.Dir = dir
	if output, err := pack.CombinedOutput(); err != nil {
		return fmt.Errorf("downloading axe-core with npm: %w\n%s", err, bytes.TrimSpace(output))
	}
	return nil
}

// fileOf returns a file of a package.
func fileOf(pack []byte, name string) (string, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(pack))
	if err != nil {
		return "", fmt.Errorf("reading axe-core: %w", err)
	}
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if err != nil {
			return "", fmt.Errorf("finding %s in axe-core: %w", name, err)
		}
		if header.Name == name {
			content, err := io.ReadAll(files)
			return string(content), err
		}
	}
}

// violation is what axe-core finds wrong.
type violation struct {
	ID, Impact, Help string
	Nodes            []struct {
		HTML           string
		FailureSummary string
	}
}

func (v violation) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s (%s): %s", v.ID, v.Impact, v.Help)
	for _, node := range v.Nodes[:min(len(v.Nodes), 5)] {
		fmt.Fprintf(&text, "\n  %s\n  %s", node.HTML, strings.ReplaceAll(node.FailureSummary, "\n", "\n  "))
	}
	return text.String()
}

// violations runs all rules of axe-core.
func (p *tab) violations() []violation {
	p.Helper()
	if !evaluate[bool](p, `'axe' in window`) {
		script, err := axe()
		if err != nil {
			p.Fatal(err)
		}
		p.do(chromedp.Evaluate[chromedp.Void](script))
	}
	return evaluate[[]violation](p, `axe.run().then(result => result.violations)`)
}
