package docs

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
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

// readingOrder is a row of the reading order: its paths, and its lines of code.
var readingOrder = regexp.MustCompile(`(?m)^\| \d+ \| (.*?) \| ([\d,]+) \|`)

// TestReadingOrder: the numbers of lines are right, give or take a tenth.
func TestReadingOrder(t *testing.T) {
	rows := readingOrder.FindAllStringSubmatch(read(t, "docs/learn/README.md"), -1)
	if len(rows) < 10 {
		t.Fatalf("the reading order has %d rows with a number of lines: has its form changed?", len(rows))
	}
	for _, row := range rows {
		actual := 0
		for _, span := range code.FindAllStringSubmatch(row[1], -1) {
			actual += codeLines(t, span[1])
		}
		stated, err := strconv.Atoi(strings.ReplaceAll(row[2], ",", ""))
		if err != nil {
			t.Fatal(err)
		}
		if off := stated - actual; off*off*100 > actual*actual {
			t.Errorf("the reading order says that %s has %d lines of code, and it has %d", row[1], stated, actual)
		}
	}
}

// codeLines returns the lines of code of a file or folder: without tests, what is
// generated, comments and empty lines.
func codeLines(t *testing.T, path string) (count int) {
	t.Helper()
	files := []string{path}
	if filepath.Ext(path) != ".go" {
		entries, err := os.ReadDir(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		files = nil
		for _, entry := range entries {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	for _, file := range files {
		if name := filepath.Base(file); filepath.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "zz_generated") {
			count += linesWithTokens([]byte(read(t, file)))
		}
	}
	return count
}

// linesWithTokens returns the number of lines on which code begins.
func linesWithTokens(source []byte) int {
	var s scanner.Scanner
	lines, file := map[int]bool{}, token.NewFileSet().AddFile("", -1, len(source))
	s.Init(file, source, nil, 0) // without comments
	for position, kind, literal := s.Scan(); kind != token.EOF; position, kind, literal = s.Scan() {
		if kind != token.SEMICOLON || literal == ";" { // the others are inserted
			lines[file.Line(position)] = true
		}
	}
	return len(lines)
}
