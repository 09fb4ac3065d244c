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
	"strings"
	"time"

	"github.com/samplecrd/network-controller/pkg/commandline"
)

// RunFollow runs the command follow of a program: it follows a key until the context ends,
// and returns the exit code. Without a key, it prints keys that can be followed.
func RunFollow(ctx context.Context, program string, args []string, stdout, stderr io.Writer) int {
	f, flags := follower{out: stdout}, commandline.New(program+" follow")
	flags.Group("Follow", func(flags *flag.FlagSet) {
		flags.StringVar(&f.address, "address", "127.0.0.1:8123",
			"The `address` of the debug page: -debug-bind-address of the running controller.")
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
		flags.Help(stdout, program+` follow prints what happens to one Network in a running controller, one line at a time.

The controller needs -debug-bind-address. Without a Network, the command lists some.

Example:
  `+program+` follow default/example -address=127.0.0.1:8123`)
		return 0
	case err == nil && len(flags.Args()) > 0:
		err = errors.New("follow accepts one Network, as namespace/name")
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
	address, key string
	out          io.Writer
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
	if _, err := parseKey(f.key); err != nil {
		return err
	}
	for connected := false; ctx.Err() == nil; {
		stream, err := f.get(ctx, "/api/stream?key=", "text/event-stream")
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

// get requests the data of the key from the debug page.
func (f *follower) get(ctx context.Context, path, contentType string) (io.ReadCloser, error) {
	address := "http://" + f.address + path + url.QueryEscape(f.key)
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
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != contentType {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 200))
		_ = response.Body.Close()
		return nil, fmt.Errorf("the response is not that of a debug page: %s: %s; "+errNoPage,
			response.Status, clip(strings.TrimSpace(string(text))), f.address)
	}
	return response.Body, nil
}

func (f *follower) listKeys(ctx context.Context) error {
	body, err := f.get(ctx, "/api/keys?prefix=", "application/json")
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	var keys []string
	if err := json.NewDecoder(io.LimitReader(body, 1<<20)).Decode(&keys); err != nil {
		return fmt.Errorf("reading the keys: %w", err)
	}
	f.print("Name the Network to follow:")
	for _, key := range keys {
		f.print("  " + clip(key))
	}
	return nil
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

// stageWords describes the stages in a terminal. A stage without words is omitted.
var stageWords = map[Stage]string{
	StageWatch: "the API server sent it", StageHandler: "event handler",
	StageSkipped: "  nothing to do for the handler", StageQueue: "added to the queue",
	StageMerged: "is in the queue already", StageWorker: "taken by worker", StageDesired: "  desired",
	StageActual: "  actual", StagePlan: "  plan", StageNeutron: "  Neutron", StageReport: "  report",
	StageDone: "done", StageBackoff: "failed; waiting for the retry",
}

// line returns a moment as a line, or nothing.
func (m Moment) line() string {
	words, ok := stageWords[m.Stage]
	if !ok {
		return ""
	}
	line := m.Time.Local().Format("15:04:05.000") + "  " + words
	if m.Stage == StageWorker {
		return line + fmt.Sprintf(" %d", m.Worker)
	}
	if m.Text != "" {
		line += ": " + clip(m.Text)
	}
	return line
}
