package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// namedCode is a link to a Go file whose text is a name in its code, such as
// [`syncHandler`](../../controller.go).
var namedCode = regexp.MustCompile("\\[`([\\pL\\pN_.]+)`\\]\\(([^):#]*\\.go)\\)")

// TestNamedCode: a file of code contains each name that a link to it has.
func TestNamedCode(t *testing.T) {
	found, names := 0, map[string]map[string]bool{} // by file
	for file, text := range documents(t) {
		for _, match := range namedCode.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			if strings.HasSuffix(match[1], ".go") { // the name of the file
				continue
			}
			linked := filepath.Join(filepath.Dir(file), match[2])
			if names[linked] == nil {
				names[linked] = identifiers(t, linked)
			}
			found++
			for name := range strings.SplitSeq(match[1], ".") {
				if !names[linked][name] {
					t.Errorf("%s links to %s in %s, whose code has no %s", file, match[1], linked, name)
				}
			}
		}
	}
	if found < 120 {
		t.Errorf("%d links have the name of a function or the like: has their form changed?", found)
	}
}

// identifiers returns the names in the code of a Go file. Those in comments do not
// count.
func identifiers(t *testing.T, file string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	parsed, err := parser.ParseFile(token.NewFileSet(), file, read(t, file), parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return all
	}
	ast.Inspect(parsed, func(node ast.Node) bool {
		if name, ok := node.(*ast.Ident); ok {
			all[name.Name] = true
		}
		return true
	})
	return all
}
