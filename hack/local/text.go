package local

import (
	"os"
	"strings"
)

// IsTerminal reports whether a file is a terminal.
func IsTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Bold makes a text bold if the output is a terminal.
func Bold(text string) string {
	if !IsTerminal(os.Stdout) || os.Getenv("NO_COLOR") != "" {
		return text
	}
	return "\x1b[1m" + text + "\x1b[0m"
}

// Indent indents the lines of an output.
func Indent(text string) string {
	if text = strings.TrimRight(text, "\n"); text == "" {
		return ""
	}
	return "  " + strings.ReplaceAll(text, "\n", "\n  ") + "\n"
}

// ShellWords returns a command line as a user would type it.
func ShellWords(args []string) string {
	var words []string
	for _, arg := range args {
		if strings.ContainsAny(arg, `{}" `) {
			arg = "'" + arg + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}
