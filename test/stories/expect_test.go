package stories

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// expectation is what follows check and until: VERB ARGS… = TEXT, or = SECTION,
// or ~ PATTERN. Without = and ~, the verb must only succeed.
type expectation struct {
	verb    verb
	args    []string
	want    string         // for =
	section string         // where want comes from, if it is a section of the script
	pattern *regexp.Regexp // for ~
	exact   bool
}

func (s *story) parseExpectation(args []string) (e expectation, err error) {
	usage := errors.New("usage: check | until VERB ARGS… [= TEXT | = SECTION | ~ PATTERN]")
	if n := len(args); n >= 3 && args[n-2] == "~" {
		if e.pattern, err = regexp.Compile("(?m)" + args[n-1]); err != nil {
			return e, err
		}
		args = args[:n-2]
	} else if n >= 3 && args[n-2] == "=" {
		e.exact, e.want = true, args[n-1]
		if text, err := os.ReadFile(s.script.MkAbs(e.want)); err == nil {
			e.section, e.want = e.want, string(text)
		}
		args = args[:n-2]
	}
	if len(args) == 0 || verbs[args[0]] == nil {
		return e, usage
	}
	e.verb, e.args = verbs[args[0]], args[1:]
	return e, nil
}

// match compares outputs line by line; the width of columns does not count.
func (e expectation) match(output string) error {
	switch {
	case e.pattern != nil && !e.pattern.MatchString(output):
		return fmt.Errorf("nothing matches %s in\n%s", strings.TrimPrefix(e.pattern.String(), "(?m)"), output)
	case e.exact && e.section == "" && strings.TrimSpace(output) != e.want:
		return fmt.Errorf("got %q, want %q", strings.TrimSpace(output), e.want)
	case e.exact && e.section != "":
		if diff := cmp.Diff(lines(e.want), lines(output)); diff != "" {
			return fmt.Errorf("differs from %s (-want +got):\n%sgot:\n%s", e.section, diff, output)
		}
	}
	return nil
}

// lines returns the lines of a text with single spaces, without empty lines.
func lines(text string) (all []string) {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 0 {
			all = append(all, strings.Join(fields, " "))
		}
	}
	return all
}

// check runs a verb once. With -update, a section that differs is replaced.
func (s *story) check(args []string) (string, error) {
	e, err := s.parseExpectation(args)
	if err != nil {
		return "", err
	}
	output, err := e.verb(s, e.args)
	if err != nil {
		return "", err
	}
	if err = e.match(output); err != nil && *update > 0 && e.section != "" {
		s.updates[e.section], err = output, nil
	}
	return "", err
}

// until runs a verb until its output is as expected. With -update, a section
// is replaced by the first output that stays the same.
func (s *story) until(args []string) (string, error) {
	e, err := s.parseExpectation(args)
	if err != nil {
		return "", err
	}
	var last string
	changed := time.Now()
	return "", s.eventually(func() error {
		output, err := e.verb(s, e.args)
		if err == nil {
			err = e.match(output)
		}
		if output != last {
			last, changed = output, time.Now()
		}
		if err != nil && *update > 0 && e.section != "" && time.Since(changed) > *update {
			s.updates[e.section], err = output, nil
		}
		return err
	})
}

// writeUpdates writes golden sections into the script.
func (s *story) writeUpdates() error {
	if len(s.updates) == 0 {
		return nil
	}
	path := s.namespace + ".txtar"
	archive, err := txtar.ParseFile(path)
	if err != nil {
		return err
	}
	for name, text := range s.updates {
		i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == name })
		if i < 0 {
			return fmt.Errorf("%s has no section %s", path, name)
		}
		archive.Files[i].Data = []byte(text)
	}
	return os.WriteFile(path, txtar.Format(archive), 0o644)
}
