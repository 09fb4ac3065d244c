package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/samplecrd/network-controller/pkg/glass"
)

// recordingFormat is raised when a page of before could not play the recording.
const recordingFormat = 4

// recording is what the debug page received during a tour. The page plays it from
// docs/watch, without a controller.
type recording struct {
	Format int            `json:"format"`
	Key    string         `json:"key"` // whose journeys it has
	Began  time.Time      `json:"began"`
	Steps  []recordedStep `json:"steps"`
	Frames []frame        `json:"frames"`
}

// recordedStep is a step of the tour. The texts are by language.
type recordedStep struct {
	At       int64             `json:"at"` // milliseconds since the beginning, as in a frame
	Title    map[string]string `json:"title"`
	Lesson   map[string]string `json:"lesson"`
	Commands []string          `json:"commands"`
}

// frame is what arrived at a time. A state and a journey have only the fields that changed
// since the one before; a field that is gone is null.
type frame struct {
	At       int64           `json:"at"`
	State    fields          `json:"state,omitempty"`
	Moments  json.RawMessage `json:"moments,omitempty"`
	Journeys []fields        `json:"journeys,omitzero"` // all, the newest first; only some may have changed
}

type fields map[string]json.RawMessage

// recorder records a stream.
type recorder struct {
	mu       sync.Mutex
	tape     recording
	state    fields
	journeys map[string]fields // of the last event, by ID
}

// start records the stream of a page, until the context ends.
func (r *recorder) start(ctx context.Context, page, key string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page+"/api/stream?key="+key, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request) //nolint:bodyclose // the goroutine closes it
	if err != nil {
		return fmt.Errorf("opening the stream to record: %w", err)
	}
	r.tape.Format, r.tape.Key, r.tape.Began = recordingFormat, key, time.Now()
	go func() {
		defer func() { _ = response.Body.Close() }()
		for event, data := range glass.Events(response.Body) {
			r.add(event, data)
		}
	}()
	return nil
}

// add records an event of the stream, unless nothing changed with it.
func (r *recorder) add(event string, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := frame{At: r.now()}
	switch event {
	case "state":
		state := fields{}
		if json.Unmarshal(data, &state) != nil {
			return
		}
		state.anonymize()
		next.State = state.since(r.state)
		if r.state = state; len(next.State) == 0 {
			return
		}
	case "moments":
		next.Moments = data
	case "journeys":
		var journeys []fields
		if json.Unmarshal(data, &journeys) != nil {
			return
		}
		next.Journeys = []fields{}
		known := map[string]fields{}
		for _, journey := range journeys {
			id := string(journey["id"])
			changed := journey.since(r.journeys[id])
			changed["id"], known[id] = journey["id"], journey
			next.Journeys = append(next.Journeys, changed)
		}
		r.journeys = known
	}
	r.tape.Frames = append(r.tape.Frames, next)
}

func (r *recorder) now() int64 { return time.Since(r.tape.Began).Milliseconds() }

// anonymize removes from a state what is of this machine only, and what is for the time of
// the tour only. The page that plays the recording has its own time.
func (f fields) anonymize() {
	delete(f, "time")
	process := fields{}
	if json.Unmarshal(f["process"], &process) != nil {
		return
	}
	delete(process, "holder") // has the name of the host
	process["version"] = json.RawMessage(`"recording"`)
	f["process"], _ = json.Marshal(process) // it was decoded
	f["controllers"] = json.RawMessage("[]")
	var servers []fields
	if json.Unmarshal(f["servers"], &servers) == nil {
		for _, server := range servers {
			delete(server, "instance") // has a port
		}
		f["servers"], _ = json.Marshal(servers)
	}
}

// since returns the fields that are other ones than before.
func (f fields) since(before fields) fields {
	changed := fields{}
	for name, value := range f {
		if !bytes.Equal(value, before[name]) {
			changed[name] = value
		}
	}
	for name := range before {
		if _, ok := f[name]; !ok {
			changed[name] = json.RawMessage("null")
		}
	}
	return changed
}

// begin records that a step of the tour begins. Only the tour uses the steps.
func (r *recorder) begin(s step) { r.tape.Steps = append(r.tape.Steps, s.recorded(r.now())) }

// command records a command of the step.
func (r *recorder) command(line string) {
	last := &r.tape.Steps[len(r.tape.Steps)-1]
	last.Commands = append(last.Commands, line)
}

// recorded returns the step as a recording has it.
func (s step) recorded(at int64) recordedStep {
	return recordedStep{At: at, Title: s.title.byLanguage(), Lesson: s.lesson.byLanguage(), Commands: []string{}}
}

// byLanguage returns the texts by the names of the languages on the page, without the line
// breaks of a terminal.
func (w words) byLanguage() map[string]string {
	return map[string]string{
		"en":    strings.ReplaceAll(w.english, "\n", " "),
		"zh-CN": strings.ReplaceAll(w.chinese, "\n", ""),
	}
}

// write writes the recording: a classic script, because a page that was opened as a file
// can load only that. Each frame is a line.
func (r *recorder) write(path string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.tape.Frames) == 0 {
		return errors.New("the debug page sent nothing to record")
	}
	encoded, err := json.Marshal(r.tape)
	if err != nil {
		return fmt.Errorf("encoding the recording: %w", err)
	}
	lines := bytes.ReplaceAll(encoded, []byte(`,{"at":`), []byte(",\n"+`{"at":`))
	text := fmt.Sprintf("// Code generated by make recording. DO NOT EDIT.\nglobalThis.recording = %s;\n", lines)
	return os.WriteFile(path, []byte(text), 0o644)
}
