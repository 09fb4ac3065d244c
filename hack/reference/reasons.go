package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// reason is a reason of the condition Ready.
type reason struct {
	Name, Meaning string
	advice
}

// readReasons returns the reasons that are declared below a folder, in
// alphabetical order. They are the string constants in declarations whose comment
// begins with "The reasons".
func readReasons(folder string) ([]reason, error) {
	meanings := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("parsing: %w", err)
		}
		for _, declaration := range file.Decls {
			constants, ok := declaration.(*ast.GenDecl)
			if !ok || constants.Tok != token.CONST || !strings.HasPrefix(constants.Doc.Text(), "The reasons ") {
				continue
			}
			for _, spec := range constants.Specs {
				if err := addMeaning(meanings, spec.(*ast.ValueSpec)); err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var all []reason
	for _, name := range slices.Sorted(maps.Keys(meanings)) {
		given, ok := advices[name]
		if !ok {
			return nil, fmt.Errorf("hack/reference/advice.go has no entry for the reason %s", name)
		}
		all = append(all, reason{name, meanings[name], given})
	}
	if len(all) != len(advices) {
		return nil, fmt.Errorf("hack/reference/advice.go has %d entries, but the code declares %d reasons", len(advices), len(all))
	}
	return all, nil
}

// addMeaning adds the first sentence of a constant's comment. A constant that is
// declared by another one, such as InUse = string(plan.ReasonInUse), is skipped.
func addMeaning(meanings map[string]string, spec *ast.ValueSpec) error {
	if len(spec.Values) != 1 {
		return errors.New("a reason has no value")
	}
	literal, ok := spec.Values[0].(*ast.BasicLit)
	if !ok {
		return nil
	}
	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		return fmt.Errorf("reading the value of %s: %w", spec.Names[0], err)
	}
	_, text, ok := strings.Cut(strings.Join(strings.Fields(spec.Doc.Text()), " "), ": ")
	if !ok || !strings.HasPrefix(spec.Doc.Text(), spec.Names[0].Name+": ") {
		return fmt.Errorf("the comment of %s must have the form %q", spec.Names[0], spec.Names[0].Name+": the meaning.")
	}
	sentence, _, _ := strings.Cut(text, ". ")
	meanings[value] = strings.ToUpper(sentence[:1]) + strings.TrimSuffix(sentence[1:], ".") + "."
	return nil
}
