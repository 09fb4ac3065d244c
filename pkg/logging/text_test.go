package logging

import (
	"bytes"
	"errors"
	"flag"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"k8s.io/klog/v2"
)

// TestEntriesAreLines: no text makes an entry of several lines, or reaches a terminal
// with its control sequences. Harmless texts are printed as without this package.
func TestEntriesAreLines(t *testing.T) {
	const evil = "first\nE1121 00:00:00 forged.go:1] \"Deleted everything\"\r\x1b[2Jcleared"
	flags := flag.NewFlagSet("", flag.PanicOnError)
	klog.InitFlags(flags)
	if err := flags.Parse([]string{"-logtostderr=false", "-alsologtostderr=false", "-stderrthreshold=FATAL", "-one_output=true"}); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	klog.SetOutput(&log)
	logger := EscapeText()
	defer klog.ClearLogger()
	defer klog.SetLogFilter(nil)
	for name, test := range map[string]struct {
		write func()
		want  string
	}{
		"a value":                 {func() { logger.Info("Read", "text", evil) }, `"Read" text="first\\nE1121 .*\\r\\x1b\[2Jcleared"`},
		"a message":               {func() { logger.Info(evil) }, `"first\\nE1121 .*`},
		"an error":                {func() { logger.Error(errors.New(evil), "Failed") }, `"Failed" err="first\\nE1121 .*\\x1b`},
		"an error among values":   {func() { logger.Info("Failed", "err", errors.New(evil)) }, `err="first\\nE1121 `},
		"a value of all entries":  {func() { logger.WithValues("text", evil).WithName("name").Info("Read") }, `text="first\\nE1121 `},
		"an error of several":     {func() { logger.Error(errors.Join(errors.New("a"), errors.New("b")), "Failed") }, `err="a\\nb"`},
		"without a context":       {func() { klog.InfoS("Read", "text", evil) }, `text="first\\nE1121 `},
		"an old library":          {func() { klog.Infof("read %s: %v", evil, errors.New(evil)) }, `read first\\nE1121 .*: first\\nE1121 `},
		"an old library's texts":  {func() { klog.Info("read ", evil) }, `read first\\nE1121 `},
		"harmless texts":          {func() { logger.Error(errors.New("not found"), "Failed", "name", "a/b", "count", 3) }, `"Failed" err="not found" name="a/b" count=3`},
		"the line of the program": {func() { logger.Info("Here", "line", line()) }, `text_test.go:(\d+)\] "Here" line=(\d+)`},
		"also of an error":        {func() { logger.WithValues("a", 1).Error(nil, "Here", "line", line()) }, `text_test.go:(\d+)\] "Here" a=1 line=(\d+)`},
		"values of other types":   {func() { logger.Info("Read", "texts", []string{evil}) }, `texts=\["first\\nE1121 `},
	} {
		t.Run(name, func(t *testing.T) {
			log.Reset()
			test.write()
			klog.Flush()
			text := strings.TrimSuffix(log.String(), "\n")
			match := regexp.MustCompile(test.want).FindStringSubmatch(text)
			if strings.ContainsFunc(text, isControl) || match == nil {
				t.Fatalf("logged %q, want one line with %s", text, test.want)
			}
			if len(match) == 3 && match[1] != match[2] {
				t.Errorf("logged %q, want the line of the caller", text)
			}
		})
	}
}

// line returns the line of its caller.
func line() int {
	_, _, number, _ := runtime.Caller(1)
	return number
}
