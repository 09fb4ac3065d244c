package glass

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/samplecrd/network-controller/pkg/commandline"
	"github.com/samplecrd/network-controller/pkg/observe"
)

// RunFollow runs the command follow of a program: it follows a key in the page of any program
// until the context ends, and returns the exit code. Without a key, it prints some. The
// arguments begin with the name of the program.
func RunFollow(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	program := args[0]
	f, flags := follower{out: stdout}, commandline.New(program+" follow")
	flags.Group("Follow", func(flags *flag.FlagSet) {
		flags.StringVar(&f.address, "address", "127.0.0.1:8123",
			"The `address` of the debug page: -debug-bind-address of the running controller.")
		flags.StringVar(&f.controller, "controller", "",
			"The `name` of the controller, if the program has several. Defaults to the first one.")
	})
	err := flags.Parse(args[1:])
	if rest := flags.Args(); err == nil && len(rest) > 0 { // the key, and the flags after it
		f.key, err = observe.NameOf(rest[0]).String(), flags.Parse(rest[1:])
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags.Help(stdout, program+` follow prints what happens to one key in a running controller, one line at a time.

It works with each program that serves the debug page. The controller needs -debug-bind-address.
A key is the namespace and name of an object. Without a key, the command lists some.

Example:
  `+program+` follow default/example -address=127.0.0.1:8123`)
		return 0
	case err == nil && f.key != "" && len(flags.Args()) > 0:
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
	f.address = strings.TrimSuffix(strings.TrimPrefix(f.address, "http://"), "/")
	if err := checkAddress("-address", f.address); err != nil {
		return err
	}
	keys, err := f.keys(ctx)
	if err != nil {
		return err
	}
	if f.key == "" {
		f.print("Name the key to follow:\n  " + strings.Join(keys, "\n  "))
		return nil
	}
	if !slices.Contains(keys, f.key) {
		f.print(f.key + " does not exist in this controller; waiting for its first event")
	}
	for {
		if stream, err := f.get(ctx, "stream", "key", f.key); err == nil {
			f.print("Following " + f.key + "; Ctrl-C ends")
			f.printMoments(stream)
			if ctx.Err() == nil {
				f.print("The connection has ended; connecting again")
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(reconnectPause):
		}
	}
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
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, 200))
	_ = response.Body.Close()
	return nil, fmt.Errorf("%s responds: %s: %s", f.address, response.Status, clip(strings.TrimSpace(string(text))))
}

// keys returns keys that begin with the key, or any.
func (f *follower) keys(ctx context.Context) (keys []string, err error) {
	body, err := f.get(ctx, "keys", "prefix", f.key)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	if err := json.NewDecoder(io.LimitReader(body, 1<<20)).Decode(&keys); err != nil {
		return nil, fmt.Errorf("the response is not that of a debug page: %w; "+errNoPage, err, f.address)
	}
	for i, key := range keys {
		keys[i] = clip(key)
	}
	return keys, nil
}

// maxLine bounds a line of the stream, which has at most a second's moments.
const maxLine = 8 << 20

// Events returns the events of /api/stream with their data, until it ends.
func Events(stream io.Reader) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		lines, event := bufio.NewScanner(stream), ""
		lines.Buffer(nil, maxLine)
		for lines.Scan() {
			switch name, value, _ := strings.Cut(lines.Text(), ": "); {
			case name == "event":
				event = value
			case name == "data" && !yield(event, []byte(value)):
				return
			}
		}
	}
}

// printMoments prints the moments of a stream until it ends.
func (f *follower) printMoments(stream io.ReadCloser) {
	defer func() { _ = stream.Close() }()
	for event, data := range Events(stream) {
		var some []Moment
		if event == "moments" && json.Unmarshal(data, &some) == nil {
			for _, moment := range some {
				if words := moment.words(); moment.Key == f.key && words != "" {
					f.print(moment.Time.Local().Format("15:04:05.000") + "  " + words)
				}
			}
		}
	}
}

// stageWords describes the stages in a terminal. Stages of a sync have their names as words, and
// those that would repeat another line have none.
var stageWords = map[Stage]string{
	StageWatch: "the API server sent it", StageFIFO: "", StageIndexer: "", StageHandler: "event handler",
	StageSkipped: "  nothing to do for the handler", StageQueue: "added to the queue",
	StageMerged: "is in the queue already", StageWorker: "taken by worker", StageSync: "", StageApply: "",
	StageDone: "done", StageBackoff: "failed; waiting for the retry",
}

// words describes a moment in a terminal, or is empty.
func (m Moment) words() string {
	words, ok := stageWords[m.Stage]
	switch {
	case m.Stage == StageApply && m.Failed:
		words = "  the step failed"
	case m.Stage == StageKubernetes || m.Stage == StageServer: // the text begins with its name
		return fmt.Sprintf("  %s in %.0f ms", clip(m.Text), m.Milliseconds)
	case m.Stage == StageWorker:
		return fmt.Sprintf("%s %d", words, m.Worker)
	case !ok:
		words = "  " + string(m.Stage)
	}
	if words != "" && m.Text != "" {
		words += ": " + clip(m.Text)
	}
	return words
}
