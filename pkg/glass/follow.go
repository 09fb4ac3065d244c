package glass

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/samplecrd/network-controller/pkg/commandline"
)

// RunFollow runs the command follow of a program: it follows a key in the page of any program
// until the context ends, and returns the exit code. Without a key, it prints some.
func RunFollow(ctx context.Context, program string, args []string, stdout, stderr io.Writer) int {
	f, flags := follower{out: stdout}, commandline.New(program+" follow")
	flags.Group("Follow", func(flags *flag.FlagSet) {
		flags.StringVar(&f.address, "address", "127.0.0.1:8123",
			"The `address` of the debug page: -debug-bind-address of the running controller.")
		flags.StringVar(&f.controller, "controller", "",
			"The `name` of the controller, if the program has several. Defaults to the first one.")
	})
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		f.key, args = args[0], args[1:]
	}
	err := flags.Parse(args)
	if rest := flags.Args(); err == nil && f.key == "" && len(rest) > 0 { // the flags came first
		f.key = rest[0]
		err = flags.Parse(rest[1:])
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags.Help(stdout, program+` follow prints what happens to one key in a running controller, one line at a time.

It works with each program that serves the debug page. The controller needs -debug-bind-address.
A key is the namespace and name of an object. Without a key, the command lists some.

Example:
  `+program+` follow default/example -address=127.0.0.1:8123`)
		return 0
	case err == nil && len(flags.Args()) > 0:
		err = errors.New("follow accepts one key, such as default/example")
	case err == nil:
		err = f.run(ctx)
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "%s follow: %v\n", program, err)
		return 1
	}
	return 0
}

// follower prints the moments of a key.
type follower struct {
	address, key, controller string
	out                      io.Writer
}

// errNoPage explains how to get a debug page.
const errNoPage = "start the controller with -debug-bind-address=%s, " +
	"or set -address to the address in its log (Serving the debug page)"

// reconnectPause is the time between two attempts to connect again.
const reconnectPause = time.Second

// run prints one line for each stage that the key reaches, until the context ends. If the
// connection ends, it connects again.
func (f *follower) run(ctx context.Context) error {
	host, port, err := net.SplitHostPort(strings.TrimSuffix(strings.TrimPrefix(f.address, "http://"), "/"))
	if err != nil || !isLoopback(host) {
		return fmt.Errorf("-address is %q: it must be a loopback address with a port, such as 127.0.0.1:8123; "+
			"use kubectl port-forward for a controller in a cluster", f.address)
	}
	f.address = net.JoinHostPort(host, port)
	if f.key == "" {
		return f.listKeys(ctx)
	}
	key, err := parseKey(f.key)
	if err != nil {
		return err
	}
	f.key = nameOf(key)
	if err := f.checkKey(ctx); err != nil {
		return err
	}
	for connected := false; ctx.Err() == nil; {
		stream, err := f.get(ctx, "stream", "key", f.key)
		switch {
		case err == nil:
			connected = true
			f.print("Following " + f.key + "; Ctrl-C ends")
			f.printMoments(stream)
			if ctx.Err() == nil {
				f.print("The connection has ended; connecting again")
			}
		case !connected && ctx.Err() == nil:
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(reconnectPause):
		}
	}
	return nil
}

func (f *follower) print(text string) { _, _ = fmt.Fprintln(f.out, text) }

// get requests data from the debug page.
func (f *follower) get(ctx context.Context, path, parameter, value string) (io.ReadCloser, error) {
	query := url.Values{parameter: {value}, "controller": {f.controller}}
	address := "http://" + f.address + "/api/" + path + "?" + query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("creating a request: %w", err)
	}
	// No proxy reaches this machine.
	direct := &http.Client{Transport: &http.Transport{ResponseHeaderTimeout: 10 * time.Second}}
	response, err := direct.Do(request)
	if err != nil {
		return nil, fmt.Errorf("connecting to the debug page: %w; "+errNoPage, err, f.address)
	}
	contentType := response.Header.Get("Content-Type")
	if response.StatusCode == http.StatusOK && (contentType == "application/json" || contentType == "text/event-stream") {
		return response.Body, nil
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, 200))
	_ = response.Body.Close()
	words := clip(strings.TrimSpace(string(text)))
	if response.StatusCode == http.StatusNotFound && f.controller != "" {
		return nil, errors.New(words)
	}
	return nil, fmt.Errorf("the response is not that of a debug page: %s: %s; "+errNoPage, response.Status, words, f.address)
}

// keys returns keys that begin with a text.
func (f *follower) keys(ctx context.Context, prefix string) (keys []string, err error) {
	body, err := f.get(ctx, "keys", "prefix", prefix)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	if err := json.NewDecoder(io.LimitReader(body, 1<<20)).Decode(&keys); err != nil {
		return nil, fmt.Errorf("reading the keys: %w", err)
	}
	return keys, nil
}

func (f *follower) listKeys(ctx context.Context) error {
	keys, err := f.keys(ctx, "")
	if err != nil {
		return err
	}
	f.print("Name the key to follow:")
	for _, key := range keys {
		f.print("  " + clip(key))
	}
	return nil
}

// checkKey tells a person if there is no such key. It may come later.
func (f *follower) checkKey(ctx context.Context) error {
	keys, err := f.keys(ctx, f.key)
	if err == nil && !slices.Contains(keys, f.key) {
		f.print(f.key + " does not exist in this controller; waiting for its first event")
	}
	return err
}

// maxLine bounds a line of the stream, which has at most a second's moments.
const maxLine = 8 << 20

// printMoments prints the moments of a stream until it ends.
func (f *follower) printMoments(stream io.ReadCloser) {
	defer func() { _ = stream.Close() }()
	lines, event := bufio.NewScanner(stream), ""
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		if name == "event" {
			event = value
		}
		var some []Moment
		if name != "data" || event != "moments" || json.Unmarshal([]byte(value), &some) != nil {
			continue
		}
		for _, moment := range some {
			if text := moment.line(); moment.Key == f.key && text != "" {
				f.print(text)
			}
		}
	}
}

// stageWords describes the stages in a terminal. Stages of a sync have their names as words, and
// those that would repeat another line have none.
var stageWords = map[Stage]string{
	StageWatch: "the API server sent it", StageHandler: "event handler",
	StageSkipped: "  nothing to do for the handler", StageQueue: "added to the queue",
	StageMerged: "is in the queue already", StageWorker: "taken by worker",
	StageDone: "done", StageBackoff: "failed; waiting for the retry",
}

var repeated = []Stage{StageFIFO, StageIndexer, StageSync, StageApply}

// line returns a moment as a line, or nothing.
func (m Moment) line() string {
	words, ok := stageWords[m.Stage]
	switch {
	case slices.Contains(repeated, m.Stage):
		return ""
	case m.Stage == StageServer:
		return m.at() + "  " + clip(m.Text) // the text begins with its name
	case !ok:
		words = "  " + string(m.Stage)
	}
	line := m.at() + words
	if m.Stage == StageWorker {
		return line + fmt.Sprintf(" %d", m.Worker)
	}
	if m.Text != "" {
		line += ": " + clip(m.Text)
	}
	return line
}

func (m Moment) at() string { return m.Time.Local().Format("15:04:05.000") + "  " }
