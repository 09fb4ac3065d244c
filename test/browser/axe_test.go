package browser

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/chromedp/chromedp"
)

// The version of axe-core, and the checksum of its script.
const (
	axeVersion = "4.14.1"
	axeSHA256  = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
)

// axe returns the script of axe-core, which npm downloads to build/ once.
func axe() (string, error) {
	dir := filepath.Join(root, "build", "npm")
	path := filepath.Join(dir, "node_modules", "axe-core", "axe.min.js")
	if _, err := os.Stat(path); err != nil {
		npm, err := program("npm", "npm")
		if err != nil {
			return "", err
		}
		install := exec.Command(npm, "install", "--prefix", dir, "--no-save", "--ignore-scripts", "--silent", "axe-core@"+axeVersion)
		if output, err := install.CombinedOutput(); err != nil {
			return "", fmt.Errorf("downloading axe-core with npm: %w\n%s", err, output)
		}
	}
	script, err := os.ReadFile(path)
	if hash := sha256.Sum256(script); err == nil && hex.EncodeToString(hash[:]) != axeSHA256 {
		err = fmt.Errorf("the checksum of %s is %x, want %s: remove the folder, and check the version", path, hash, axeSHA256)
	}
	return string(script), err
}

// violation is what axe-core finds wrong.
type violation struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

func (v violation) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s (%s): %s", v.ID, v.Impact, v.Help)
	for _, node := range v.Nodes[:min(len(v.Nodes), 5)] {
		fmt.Fprintf(&text, "\n  %s\n  %s", node.HTML, node.FailureSummary)
	}
	return text.String()
}

// violations runs all rules of axe-core.
func (p *tab) violations() []violation {
	p.Helper()
	script, err := axe()
	if err != nil {
		p.Fatal(err)
	}
	p.do(chromedp.Evaluate[chromedp.Void](script))
	return evaluate[[]violation](p, `axe.run().then(result => result.violations)`)
}
