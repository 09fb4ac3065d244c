package preview

import (
	"flag"
	"fmt"
	"strings"
)

// Options configure a preview.
type Options struct {
	// Files are the files and folders with Networks to preview; "-" is the standard
	// input. They are empty for the Networks of the cluster.
	Files []string
	// Format is the format of the output.
	Format string
}

// AddFlags adds the flags of the options.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	flags.Var((*paths)(&o.Files), "f", "A `file` or folder with Networks to plan, as if they were applied, instead of all Networks in the cluster; - is the standard input. Can be repeated.")
	flags.StringVar(&o.Format, "o", "text", "The output `format`: text or json.")
}

// Validate returns an error that names the flag with an invalid value.
func (o Options) Validate() error {
	if o.Format != "text" && o.Format != "json" {
		return fmt.Errorf("-o is %q: it must be text or json", o.Format)
	}
	return nil
}

// paths is a flag that can be repeated.
type paths []string

// String implements flag.Value.
func (p *paths) String() string { return strings.Join(*p, ",") }

// Set implements flag.Value.
func (p *paths) Set(path string) error {
	*p = append(*p, path)
	return nil
}
