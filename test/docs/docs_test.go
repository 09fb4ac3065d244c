// Package docs checks what the documents claim about the repository: links,
// paths, make targets, flags and tests exist, the README is short, and the
// Chinese documents have the structure and the commands of the English ones.
package docs

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// readmeWords is the most words that README.md has, without code and link targets.
const readmeWords = 660

// root is the folder of the repository.
const root = "../.."

var (
	fence   = regexp.MustCompile("(?ms)^ *```((\\w*)[^\n`]*)\n(.*?)^ *```$")
	heading = regexp.MustCompile(`(?m)^(#+) (.*)$`)
	link    = regexp.MustCompile(`\]\(([^):#]*)(?:#([^)]+))?\)`)
	// unbreakable is a row of a table, or a line with a link or a picture.
	unbreakable = regexp.MustCompile(`^\||\]\(|src=`)
	picture     = regexp.MustCompile(`(?:src|srcset)="([^":]+)"`)
	code        = regexp.MustCompile("`([^`\n]+)`")
	testName    = regexp.MustCompile(`^((?:Test|Fuzz)[A-Z]\w*)(?:/([\w-]+))?$`)
	target      = regexp.MustCompile(`\bmake (?:-s )?([a-z][a-z0-9-]*)`)
	path        = regexp.MustCompile(`^(?:\.ci|crd|deploy|docs|example|hack|pkg|test)/[\w./-]*$`)
)

// TestLinks: each relative link leads to a file, and to a heading in it; each picture exists.
func TestLinks(t *testing.T) {
	for file, text := range documents(t) {
		text = fence.ReplaceAllString(text, "")
		for _, match := range append(link.FindAllStringSubmatch(text, -1), picture.FindAllStringSubmatch(text, -1)...) {
			linked := filepath.Join(filepath.Dir(file), match[1])
			if match[1] == "" {
				linked = file
			}
			if _, err := os.Stat(filepath.Join(root, linked)); err != nil {
				t.Errorf("%s links to %s, which does not exist", file, match[1])
			} else if len(match) > 2 && match[2] != "" && !anchors(read(t, linked))[match[2]] {
				t.Errorf("%s links to %s#%s, and there is no such heading", file, match[1], match[2])
			}
		}
	}
}

// TestPaths: files and folders in code spans exist, but for those that are
// built, and those that the reader is to create.
func TestPaths(t *testing.T) {
	ours := []string{"deploy/overlays/mine"}
	for file, text := range documents(t) {
		for _, span := range spans(text) {
			if !path.MatchString(span) || slices.ContainsFunc(ours, func(p string) bool { return strings.HasPrefix(span, p) }) {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, span)); err != nil {
				t.Errorf("%s names %s, which does not exist", file, span)
			}
		}
	}
}

// TestTargets: make has each target that is named.
func TestTargets(t *testing.T) {
	makefile := read(t, "Makefile")
	for file, text := range documents(t) {
		for _, command := range append(spans(text), commands(text)...) {
			for _, match := range target.FindAllStringSubmatch(command, -1) {
				if !strings.Contains(makefile, "\n"+match[1]+":") {
					t.Errorf("%s names make %s, which does not exist", file, match[1])
				}
			}
		}
	}
}

// TestFlags: the program has each flag that is named.
func TestFlags(t *testing.T) {
	help, err := exec.CommandContext(t.Context(), "go", "run", root, "plan", "-help").Output() // it has all flags
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^  (-\w[\w-]*)`).FindAllSubmatch(help, -1) {
		flags[string(match[1])] = true
	}
	if len(flags) < 20 {
		t.Fatalf("the help has the flags %v: have they another form now?", slices.Sorted(maps.Keys(flags)))
	}
	others := []string{"-n", "-k", "-f", "-p", "-update"} // of kubectl, and of tests
	// And those of the programs of lessons and examples.
	walk(t, func(file string) {
		if strings.HasPrefix(file, "docs/learn/code/") || strings.HasPrefix(file, "example/") {
			for _, match := range regexp.MustCompile(`\bflag\.\w+\((?:&[\w.]+, )?"([\w-]+)"`).FindAllStringSubmatch(read(t, file), -1) {
				others = append(others, "-"+match[1])
			}
		}
	})
	for file, text := range documents(t) {
		for _, span := range spans(text) {
			if !strings.HasPrefix(span, "-") {
				continue
			}
			for _, word := range strings.Fields(span) {
				name, _, _ := strings.Cut(word, "=")
				if regexp.MustCompile(`^-[a-z][\w-]*$`).MatchString(name) && !flags[name] && !slices.Contains(others, name) {
					t.Errorf("%s names the flag %s, which does not exist", file, name)
				}
			}
		}
	}
}

// TestTests: each test and story that is named exists.
func TestTests(t *testing.T) {
	var tests bytes.Buffer
	stories := map[string]bool{}
	walk(t, func(file string) {
		switch {
		case strings.HasSuffix(file, "_test.go"):
			tests.WriteString(read(t, file))
		case filepath.Ext(file) == ".txtar":
			stories[strings.TrimSuffix(filepath.Base(file), ".txtar")] = true
		}
	})
	for file, text := range documents(t) {
		for _, span := range spans(text) {
			match := testName.FindStringSubmatch(span)
			if match != nil && (!bytes.Contains(tests.Bytes(), []byte("\nfunc "+match[1]+"(")) || match[2] != "" && !stories[match[2]]) {
				t.Errorf("%s names %s, which does not exist", file, span)
			}
		}
	}
}

// TestExamples: their index names each of them.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "example", "[^R]*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if name := filepath.Base(file); !strings.Contains(read(t, "example/README.md"), "("+name) {
			t.Errorf("example/README.md does not name %s", name)
		}
	}
}

// TestReadme: it is short enough to be read whole.
func TestReadme(t *testing.T) {
	text := link.ReplaceAllString(fence.ReplaceAllString(read(t, "README.md"), ""), "]")
	if n := len(strings.Fields(text)); n > readmeWords {
		t.Errorf("README.md has %d words, more than %d", n, readmeWords)
	}
}

// TestLineLength: a line of English prose has at most 120 characters. Those with a link or a
// picture may be longer: it cannot be broken.
func TestLineLength(t *testing.T) {
	for file, text := range documents(t) {
		if strings.Contains(file, "zh-CN") || isGenerated(file, text) {
			continue
		}
		for line := range strings.Lines(fence.ReplaceAllString(text, "")) {
			if len([]rune(line)) > 121 && !unbreakable.MatchString(line) {
				t.Errorf("%s has a line of %d characters: %s", file, len([]rune(line))-1, line)
			}
		}
	}
}

// commands returns the blocks of shell commands of a document.
func commands(text string) (blocks []string) {
	for _, match := range fence.FindAllStringSubmatch(text, -1) {
		if match[2] == "sh" || match[2] == "console" {
			blocks = append(blocks, match[3])
		}
	}
	return blocks
}

// spans returns what is between backticks in a document, outside of blocks.
func spans(text string) (all []string) {
	for _, match := range code.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		all = append(all, match[1])
	}
	return all
}

// anchors returns what the headings of a document can be linked by.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		slug := regexp.MustCompile(`[^\pL\pN _-]`).ReplaceAllString(strings.ToLower(match[2]), "")
		all[strings.ReplaceAll(slug, " ", "-")] = true
	}
	return all
}

// documents returns the Markdown files of the repository, by path.
func documents(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	walk(t, func(file string) {
		if filepath.Ext(file) == ".md" {
			all[file] = read(t, file)
		}
	})
	if len(all) < 20 {
		t.Fatalf("the repository has the documents %v: is this its root?", slices.Sorted(maps.Keys(all)))
	}
	return all
}

// walk visits the files of the repository, without those that are built.
func walk(t *testing.T, visit func(file string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "build" || name == ".git"):
			return filepath.SkipDir
		case entry.Type().IsRegular():
			visit(name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Error(err)
	}
	return string(text)
}
