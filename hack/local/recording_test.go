package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samplecrd/network-controller/pkg/glass"
)

// The recording of docs/watch has the words of the tour and what the debug page receives
// today, and nothing of the machine that recorded it.
func TestRecording(t *testing.T) {
	script, err := os.ReadFile("../../docs/watch/recording.js")
	if err != nil {
		t.Fatal(err)
	}
	if found := regexp.MustCompile(`127\.0\.0\.1|localhost|/home/|/root/|/tmp/`).Find(script); found != nil {
		t.Errorf("the recording has %s, of the machine that recorded it", found)
	}
	if len(script) > 300_000 {
		t.Errorf("the recording has %d bytes, more than 300,000", len(script))
	}
	var played recording
	_, value, _ := bytes.Cut(script, []byte("globalThis.recording = "))
	strictly(t, bytes.TrimSuffix(value, []byte(";\n")), &played)
	if played.Format != recordingFormat {
		t.Errorf("its format is %d, want %d", played.Format, recordingFormat)
	}
	var want []recordedStep
	for i, s := range steps[:min(len(steps), len(played.Steps))] {
		want = append(want, s.recorded(played.Steps[i].At))
		want[i].Commands = played.Steps[i].Commands
	}
	if diff := cmp.Diff(want, played.Steps); diff != "" || len(want) != len(steps) {
		t.Errorf("the words differ from those of the tour: run make recording (-tour, +recording)\n%s", diff)
	}
	state := fields{}
	for _, next := range played.Frames {
		maps.Copy(state, next.State)
		encoded, err := json.Marshal(state)
		if err != nil {
			t.Fatal(err)
		}
		strictly(t, encoded, new(glass.State))
		if next.Moments != nil {
			strictly(t, next.Moments, new([]glass.Moment))
		}
		for _, changed := range next.Journeys {
			if encoded, err = json.Marshal(changed); err != nil {
				t.Fatal(err)
			}
			strictly(t, encoded, new(glass.Journey))
		}
	}
}

// strictly decodes what must have no other fields.
func strictly(t *testing.T, encoded []byte, value any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(value); err != nil {
		t.Fatalf("decoding a %T: %v: run make recording", value, err)
	}
}
