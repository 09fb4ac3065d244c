// Package commandline parses flags, prints them in groups, and explains how to write a
// duration.
package commandline

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"time"
)

// Flags are the flags of a program, in groups.
type Flags struct {
	all    *flag.FlagSet
	groups []group
}

type group struct {
	title string
	flags *flag.FlagSet
}

// New returns an empty set of flags.
func New(program string) *Flags {
	f := &Flags{all: flag.NewFlagSet(program, flag.ContinueOnError)}
	f.all.SetOutput(io.Discard) // Parse returns errors, and Help prints the flags
	f.all.Usage = func() {}
	return f
}

// Group adds the flags that a function adds, under a title.
func (f *Flags) Group(title string, addFlags func(*flag.FlagSet)) {
	flags := flag.NewFlagSet(title, flag.ContinueOnError)
	addFlags(flags)
	f.groups = append(f.groups, group{title, flags})
	flags.VisitAll(func(one *flag.Flag) {
		value := one.Value
		if getter, ok := value.(flag.Getter); ok {
			if _, ok := getter.Get().(time.Duration); ok {
				value = duration{value}
			}
		}
		f.all.Var(value, one.Name, one.Usage)
	})
}

// duration is a flag whose error explains how to write a duration.
type duration struct{ flag.Value }

// Set implements flag.Value.
func (d duration) Set(text string) error {
	err := d.Value.Set(text)
	if _, isNumber := strconv.ParseFloat(text, 64); err != nil && isNumber == nil {
		return fmt.Errorf("give a unit, such as %ss", text)
	}
	if err != nil {
		return errors.New("it must be a number with a unit, such as 30s, 5m or 1h")
	}
	return nil
}

// Parse parses arguments. It returns flag.ErrHelp for -help and -h.
func (f *Flags) Parse(args []string) error {
	err := f.all.Parse(args)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return err
	}
	return errors.New(Redact(err.Error()))
}

// Args returns the arguments that are no flags.
func (f *Flags) Args() []string { return f.all.Args() }

// Value returns the value of a flag.
func (f *Flags) Value(name string) string { return f.all.Lookup(name).Value.String() }

// Given returns the flags that were given, without what may be secret in their
// values: the credentials and the query of a URL.
func (f *Flags) Given() (names map[string]bool, redacted []string) {
	names, redacted = map[string]bool{}, []string{} // and not null in the log
	f.all.Visit(func(one *flag.Flag) {
		names[one.Name] = true
		redacted = append(redacted, one.Name+"="+Redact(one.Value.String()))
	})
	return names, redacted
}

// credentials matches the credentials in a URL, and query its query or fragment.
var (
	credentials = regexp.MustCompile(`://[^\s"]*@`)
	query       = regexp.MustCompile(`[?#][^\s"]+`)
)

// Redact removes what may be secret from the URLs in a text.
func Redact(text string) string {
	return query.ReplaceAllString(credentials.ReplaceAllString(text, "://…@"), "?…")
}

// Help prints all flags, after a description of the program.
func (f *Flags) Help(w io.Writer, description string) {
	_, _ = fmt.Fprintln(w, description)
	for _, group := range f.groups {
		_, _ = fmt.Fprintf(w, "\n%s:\n", group.title)
		group.flags.SetOutput(w)
		group.flags.PrintDefaults()
	}
}
