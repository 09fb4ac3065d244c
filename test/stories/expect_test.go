package stories

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// check VERB ARGS… [= TEXT | = SECTION | ~ PATTERN] runs a verb once, and compares what it
// prints.
func (s *story) check(args []string) (string, error) {
	run, err := s.comparison(args)
	if err != nil {
		return "", err
	}
	return "", run()
}

// until runs a verb until it prints what check expects.
func (s *story) until(args []string) (string, error) {
	run, err := s.comparison(args)
	if err != nil {
		return "", err
	}
	return "", s.eventually(run)
}

// comparison returns a function that runs a verb, and compares what it prints. Without = and
// ~, the verb must only succeed.
func (s *story) comparison(args []string) (run func() error, err error) {
	compare := func(string) error { return nil }
	if n := len(args); n >= 3 && (args[n-2] == "~" || args[n-2] == "=") {
		if compare, err = s.expectation(args[n-2], args[n-1]); err != nil {
			return nil, err
		}
		args = args[:n-2]
	}
	if len(args) == 0 || verbs[args[0]] == nil {
		return nil, errors.New("usage: check | until VERB ARGS… [= TEXT | = SECTION | ~ PATTERN]")
	}
	return func() error {
		output, err := verbs[args[0]](s, args[1:])
		if err != nil {
			return err
		}
		return compare(output)
	}, nil
}

// expectation returns a function that compares an output with a pattern, with a section of
// the script or with a text.
func (s *story) expectation(operator, want string) (compare func(output string) error, err error) {
	if operator == "~" {
		pattern, err := regexp.Compile("(?m)" + want)
		return func(output string) error {
			if !pattern.MatchString(output) {
				return fmt.Errorf("nothing matches %s in\n%s", want, output)
			}
			return nil
		}, err
	}
	section, err := os.ReadFile(s.script.MkAbs(want))
	if err != nil {
		section = []byte(want)
	}
	return func(output string) error {
		if diff := cmp.Diff(lines(string(section)), lines(output)); diff != "" {
			return fmt.Errorf("differs from %s (-want +got):\n%sgot:\n%s", want, diff, output)
		}
		return nil
	}, nil
}

// lines returns the lines of a text with single spaces, without empty lines: the width of
// columns does not count.
func lines(text string) (all []string) {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 0 {
			all = append(all, strings.Join(fields, " "))
		}
	}
	return all
}
