// Command reference writes docs/reference/conditions.md, flags.md and metrics.md
// from the code: the reasons' doc comments, the output of -help, and the metrics
// registry. It runs in the module's root.
package main

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

// The templates have the text that is not in the code.
//
//go:embed *.md.tmpl
var templates embed.FS

func main() {
	if err := writeAll(filepath.Join("docs", "reference")); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func writeAll(folder string) error {
	all, err := template.New("").Funcs(template.FuncMap{"cell": cell, "lower": strings.ToLower}).ParseFS(templates, "*.md.tmpl")
	if err != nil {
		return fmt.Errorf("reading the templates: %w", err)
	}
	for name, read := range map[string]func() (any, error){
		"conditions.md": func() (any, error) { return readReasons("pkg") },
		"flags.md":      func() (any, error) { return readFlags() },
		"metrics.md":    func() (any, error) { return readMetrics() },
	} {
		content, err := read()
		if err != nil {
			return fmt.Errorf("collecting the content of %s: %w", name, err)
		}
		var page strings.Builder
		if err := all.ExecuteTemplate(&page, name+".tmpl", content); err != nil {
			return fmt.Errorf("rendering %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(page.String()), 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return nil
}

// cell returns a text as the content of a table cell.
func cell(text string) string {
	return strings.NewReplacer("\n", " ", "|", `\|`, "<", `\<`).Replace(text)
}
