package docs

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// namedCode is a link to a Go file whose text is a name in its code, such as
// [`syncHandler`](../../controller.go).
var namedCode = regexp.MustCompile("\\[`([\\pL\\pN_.]+)`\\]\\(([^):#]*\\.go)\\)")

// goComment is a comment of Go. Names in comments do not count.
var goComment = regexp.MustCompile(`//.*`)

// TestNamedCode: a file of code contains each name that a link to it has.
func TestNamedCode(t *testing.T) {
	found := 0
	for file, text := range documents(t) {
		for _, match := range namedCode.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			if strings.HasSuffix(match[1], ".go") { // the name of the file
				continue
			}
			linked := filepath.Join(filepath.Dir(file), match[2])
			source := goComment.ReplaceAllString(read(t, linked), "")
			found++
			for name := range strings.SplitSeq(match[1], ".") {
				if !regexp.MustCompile(`\b` + name + `\b`).MatchString(source) {
					t.Errorf("%s links to %s in %s, whose code has no %s", file, match[1], linked, name)
				}
			}
		}
	}
	if found < 120 {
		t.Errorf("%d links have the name of a function or the like: has their form changed?", found)
	}
}
