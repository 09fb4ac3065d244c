// Package logging makes the text format of klog safe: each entry is one line, and
// text of users or of servers cannot control a terminal. The JSON format is so by
// itself.
package logging

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"k8s.io/klog/v2"
)

// EscapeText makes klog escape the values of all entries, and returns a logger that
// escapes errors, too.
func EscapeText() klog.Logger {
	klog.SetLogFilter(escapeValues{})
	return klog.New(escapeErrors{LogSink: klog.NewKlogr().GetSink()})
}

// escapeValues is a klog.LogFilter. It leaves alone what klog itself quotes: the
// messages, and values of one line.
type escapeValues struct{}

// Filter implements klog.LogFilter, for the arguments of klog.Info.
func (escapeValues) Filter(args []any) []any { return escapeAll(args) }

// FilterF implements klog.LogFilter, for the arguments of klog.Infof.
func (escapeValues) FilterF(format string, args []any) (string, []any) {
	return format, escapeAll(args)
}

// FilterS implements klog.LogFilter, for keys and values.
func (escapeValues) FilterS(message string, keysAndValues []any) (string, []any) {
	escaped := make([]any, len(keysAndValues))
	for i, value := range keysAndValues {
		escaped[i] = value
		if text, ok := textOf(value); ok && strings.Contains(text, "\n") { // klog prints the lines as they are
			escaped[i] = quoted(text)
		}
	}
	return message, escaped
}

// quoted is a text that klog prints as a Go string in one line.
type quoted string

// WriteText is what klog calls.
func (q quoted) WriteText(b *bytes.Buffer) { b.WriteString(strconv.Quote(string(q))) }

// textOf returns the text of a value that klog prints as a text.
func textOf(value any) (text string, ok bool) {
	switch value := value.(type) {
	case quoted, quotedError:
		return "", false
	case string:
		return value, true
	case error:
		return value.Error(), true
	case fmt.Stringer:
		return value.String(), true
	}
	return "", false
}

// escapeAll escapes what is not printable in texts that klog does not quote.
func escapeAll(args []any) []any {
	escaped := make([]any, len(args))
	for i, arg := range args {
		escaped[i] = arg
		if text, ok := textOf(arg); ok && strings.ContainsFunc(strings.TrimSuffix(text, "\n"), isControl) {
			escaped[i] = strings.Trim(strconv.Quote(text), `"`)
		}
	}
	return escaped
}

func isControl(r rune) bool { return !unicode.IsPrint(r) && r != '\t' }

// escapeErrors is the sink of klog, with errors that it prints in one line: they do
// not pass through a klog.LogFilter.
type escapeErrors struct{ klog.LogSink }

// Init implements klog.LogSink. The sink of klog already skips its other callers when
// it looks for the line to log; this wrapper is one more.
func (s escapeErrors) Init(klog.RuntimeInfo) { s.LogSink.Init(klog.RuntimeInfo{CallDepth: 1}) }

// Enabled implements klog.LogSink. Like Info, it exists to be that caller.
func (s escapeErrors) Enabled(level int) bool { return s.LogSink.Enabled(level) }

// Info implements klog.LogSink.
func (s escapeErrors) Info(level int, message string, keysAndValues ...any) {
	s.LogSink.Info(level, message, keysAndValues...)
}

// Error implements klog.LogSink.
func (s escapeErrors) Error(err error, message string, keysAndValues ...any) {
	if err != nil && strings.Contains(err.Error(), "\n") {
		err = quotedError{err}
	}
	s.LogSink.Error(err, message, keysAndValues...)
}

// WithValues implements klog.LogSink.
func (s escapeErrors) WithValues(keysAndValues ...any) klog.LogSink {
	return escapeErrors{s.LogSink.WithValues(keysAndValues...)}
}

// WithName implements klog.LogSink.
func (s escapeErrors) WithName(name string) klog.LogSink {
	return escapeErrors{s.LogSink.WithName(name)}
}

// WithCallDepth implements logr.CallDepthLogSink.
func (s escapeErrors) WithCallDepth(depth int) klog.LogSink {
	if deeper, ok := s.LogSink.(interface{ WithCallDepth(int) klog.LogSink }); ok {
		return escapeErrors{deeper.WithCallDepth(depth)}
	}
	return s
}

// quotedError is an error that klog prints as a Go string in one line.
type quotedError struct{ error }

// WriteText is what klog calls.
func (e quotedError) WriteText(b *bytes.Buffer) { b.WriteString(strconv.Quote(e.Error())) }
