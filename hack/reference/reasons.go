package main

import (
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
)

// reason is a reason of the condition Ready, which has the status.
type reason struct{ Name, Meaning, Status, Cure, Retry string }

// advice has what a user needs in addition to the meaning of each reason.
//
//go:embed advice.csv
var advice string

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
	rows, err := csv.NewReader(strings.NewReader(advice)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("reading advice.csv: %w", err)
	}
	var all []reason
	for _, row := range rows[1:] {
		all = append(all, reason{row[0], meanings[row[0]], row[1], row[2], row[3]})
		delete(meanings, row[0])
	}
	for name := range meanings {
		return nil, fmt.Errorf("hack/reference/advice.csv has no row for the reason %s", name)
	}
	return all, nil
}

// addMeaning adds the first sentence of a constant's comment. A reason that two
// packages declare has both meanings.
func addMeaning(meanings map[string]string, spec *ast.ValueSpec) error {
	name := spec.Names[0].Name
	if len(spec.Values) != 1 {
		return fmt.Errorf("%s has no value", name)
	}
	value, err := valueOf(spec.Values[0])
	if err != nil {
		return fmt.Errorf("reading the value of %s: %w", name, err)
	}
	text, ok := strings.CutPrefix(strings.Join(strings.Fields(spec.Doc.Text()), " "), name+": ")
	if !ok {
		return fmt.Errorf("the comment of %s must have the form %q", name, name+": the meaning.")
	}
	sentence, _, _ := strings.Cut(text, ". ")
	sentence = strings.ToUpper(sentence[:1]) + strings.TrimSuffix(sentence[1:], ".") + "."
	meanings[value] = strings.TrimSpace(meanings[value] + " " + sentence)
	return nil
}

// valueOf returns the value of a literal, or of a conversion such as
// string(plan.ReasonInUse).
func valueOf(expression ast.Expr) (string, error) {
	switch expression := expression.(type) {
	case *ast.BasicLit:
		return strconv.Unquote(expression.Value)
	case *ast.CallExpr:
		if selector, ok := expression.Args[0].(*ast.SelectorExpr); ok {
			return strings.TrimPrefix(selector.Sel.Name, "Reason"), nil
		}
	}
	return "", errors.New("it is neither a string nor a conversion of a reason")
}
