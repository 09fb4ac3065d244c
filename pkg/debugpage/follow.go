package debugpage

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
)

// FollowOptions configure Follow.
type FollowOptions struct {
	address string
}

// AddFlags adds the flags of the options.
func (o *FollowOptions) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.address, "address", "127.0.0.1:8123", "The `address` of the debug page: -debug-bind-address of the running controller.")
}

// errNoPage explains how to get a debug page.
const errNoPage = "start the controller with -debug-bind-address=%s, or set -address to the address in its log (Serving the debug page)"

// reconnectPause is the time between two attempts to connect again.
const reconnectPause = time.Second

// Follow prints what happens to a key, one line for each stage that it reaches, until
// the context ends. If the connection ends, it connects again. Without a key, it prints
// keys that can be followed.
func (o FollowOptions) Follow(ctx context.Context, key string, out io.Writer) error {
	host, port, err := net.SplitHostPort(strings.TrimSuffix(strings.TrimPrefix(o.address, "http://"), "/"))
	if err != nil || !isLoopback(host) {
		return fmt.Errorf("-address is %q: it must be a loopback address with a port, such as 127.0.0.1:8123; use kubectl port-forward for a controller in a cluster", o.address)
	}
	f := follower{page: "http://" + net.JoinHostPort(host, port), key: key, out: out}
	if key == "" {
		return f.listKeys(ctx)
	}
	if _, err := parseKey(key); err != nil {
		return err
	}
	for connected := false; ; connected = connected || f.connected {
		err := f.stream(ctx)
		if f.printErr != nil {
			return f.printErr
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // that is how it ends
		}
		if !connected && !f.connected {
			return fmt.Errorf("connecting to the debug page: %w; "+errNoPage, err, o.address)
		}
		if f.connected {
			f.print("The connection has ended; connecting again")
			f.connected, connected = false, true
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(reconnectPause):
		}
	}
}

// follower prints the moments of a key.
type follower struct {
	page, key string
	out       io.Writer
	connected bool
	printErr  error
}

func (f *follower) print(text string) {
	if _, err := fmt.Fprintln(f.out, text); err != nil {
		f.printErr = fmt.Errorf("printing: %w", err)
	}
}

func (f *follower) get(ctx context.Context, path, name, value string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.page+path+"?"+name+"="+url.QueryEscape(value), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("creating a request: %w", err)
	}
	direct := &http.Client{Transport: &http.Transport{ResponseHeaderTimeout: 10 * time.Second}} // no proxy reaches this machine
	response, err := direct.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 200))
		_ = response.Body.Close()
		return nil, fmt.Errorf("the response is %s: %s", response.Status, clip(strings.TrimSpace(string(text))))
	}
	return response, nil
}

func (f *follower) listKeys(ctx context.Context) error {
	response, err := f.get(ctx, "/api/keys", "prefix", "")
	if err != nil {
		return fmt.Errorf("connecting to the debug page: %w; "+errNoPage, err, strings.TrimPrefix(f.page, "http://"))
	}
	defer func() { _ = response.Body.Close() }()
	var keys []string
	if err := json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&keys); err != nil {
		return fmt.Errorf("reading the keys: %w; is it a debug page?", err)
	}
	f.print("Name the Network to follow:")
	for _, key := range keys {
		f.print("  " + clip(key))
	}
	return f.printErr
}

// maxLine bounds a line of the stream, which has at most a second's moments.
const maxLine = 8 << 20

// stream prints the moments of a stream until it ends.
func (f *follower) stream(ctx context.Context) error {
	response, err := f.get(ctx, "/api/stream", "key", f.key)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if kind := response.Header.Get("Content-Type"); kind != "text/event-stream" {
		return errors.New("the server is not a debug page")
	}
	f.connected = true
	f.print("Following " + f.key + "; Ctrl-C ends")
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, maxLine)
	event := ""
	for lines.Scan() && f.printErr == nil {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			event = name
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || event != "moments" {
			continue
		}
		var some []Moment
		if err := json.Unmarshal([]byte(data), &some); err != nil {
			return fmt.Errorf("reading moments: %w", err)
		}
		for _, moment := range some {
			if text := moment.line(); moment.Key == f.key && text != "" {
				f.print(text)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading the stream: %w", err)
	}
	return io.EOF
}

// stageWords describes the stages in a terminal. A stage without words is omitted.
var stageWords = map[Stage]string{
	StageWatch: "the API server sent it", StageHandler: "event handler", StageSkipped: "  nothing to do for the handler",
	StageQueue: "added to the queue", StageMerged: "is in the queue already", StageWorker: "taken by worker", StageDesired: "  desired",
	StageActual: "  actual", StagePlan: "  plan", StageNeutron: "  Neutron", StageReport: "  report", StageDone: "done", StageBackoff: "failed; waiting for the retry",
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
