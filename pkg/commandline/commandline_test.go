package commandline

import (
	"errors"
	"flag"
	"strings"
	"testing"
	"time"
)

func newFlags() (f *Flags, period *time.Duration) {
	f, period = New("program"), new(time.Duration)
	f.Group("Work", func(flags *flag.FlagSet) {
		flags.Int("workers", 5, "Number of `items` at once.")
		flags.DurationVar(period, "resync-period", 30*time.Second, "Time between lists.")
		flags.Bool("fast", false, "Be fast.")
		flags.String("endpoint", "", "The `URL`.")
	})
	f.Group("Logging", func(flags *flag.FlagSet) { flags.Int("v", 0, "Verbosity.") })
	return f, period
}

// TestMistakes: the error of a mistake contains the way out, and no secret.
func TestMistakes(t *testing.T) {
	for name, test := range map[string]struct{ arg, want string }{
		"an unknown flag":            {"-nonsense", "flag provided but not defined: -nonsense"},
		"a duration has no unit":     {"-resync-period=30", `invalid value "30" for flag -resync-period: give a unit, such as 30s`},
		"a fraction has no unit":     {"-resync-period=1.5", `invalid value "1.5" for flag -resync-period: give a unit, such as 1.5s`},
		"a duration is no number":    {"-resync-period=soon", `invalid value "soon" for flag -resync-period: it must be a number with a unit, such as 30s, 5m or 1h`},
		"a URL in place of a number": {"-workers=http://a:s3cret@host/?key=s3cret", `invalid value "http://…@host/?…" for flag -workers: parse error`},
		"a flag without its value":   {"-endpoint", "flag needs an argument: -endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := newFlags()
			if err := f.Parse([]string{test.arg}); err == nil || err.Error() != test.want {
				t.Errorf("Parse(%s) = %v, want %s", test.arg, err, test.want)
			}
		})
	}
}

func TestGiven(t *testing.T) {
	f, period := newFlags()
	if err := f.Parse([]string{"-fast", "-resync-period=2m", "-endpoint=https://bob:s3cret@host:1/path?api_key=s3cret&x=y", "rest"}); err != nil {
		t.Fatal(err)
	}
	names, redacted := f.Given()
	if got, want := strings.Join(redacted, " "), "endpoint=https://…@host:1/path?… fast=true resync-period=2m0s"; got != want {
		t.Errorf("Given() = %s, want %s", got, want)
	}
	if !names["fast"] || names["workers"] || *period != 2*time.Minute || f.Value("workers") != "5" || len(f.Args()) != 1 {
		t.Errorf("names %v, period %v, workers %s, arguments %v", names, *period, f.Value("workers"), f.Args())
	}
	f, _ = newFlags()
	if _, redacted = f.Given(); redacted == nil {
		t.Error("without flags, the log shows null")
	}
}

// TestHelp: each flag is printed in its group, with its type and default.
func TestHelp(t *testing.T) {
	f, _ := newFlags()
	if err := f.Parse([]string{"-help"}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("Parse(-help) = %v", err)
	}
	var text strings.Builder
	f.Help(&text, "What it does.")
	const want = `What it does.

Work:
  -endpoint URL
    	The URL.
  -fast
    	Be fast.
  -resync-period duration
    	Time between lists. (default 30s)
  -workers items
    	Number of items at once. (default 5)

Logging:
  -v int
    	Verbosity.
`
	if text.String() != want {
		t.Errorf("Help() printed\n%s\nwant\n%s", &text, want)
	}
}
