package main

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRecord: lines keep their order and their times, within bounds.
func TestRecord(t *testing.T) {
	clock := time.Unix(0, 0)
	slow := func() time.Time { clock = clock.Add(time.Hour); return clock }
	lines, err := record(strings.NewReader("\nfirst\n\nlast  \n"), slow)
	if want := []line{{"first", 0}, {"", maxPause}, {"last", 2 * maxPause}}; err != nil || !slices.Equal(lines, want) {
		t.Errorf("record() = %v, %v; want %v", lines, err, want)
	}
	if _, err := record(strings.NewReader(""), time.Now); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("of no output, record returns %v", err)
	}
}

// TestDraw: the image is XML that has each line, whatever is in it, and scrolls
// only when the screen is full.
func TestDraw(t *testing.T) {
	lines := []line{{"$ kubectl get networks <a> & b", 0}, {strings.Repeat("x", 2*columns), time.Second}}
	if image := draw(lines); strings.Contains(image, "translateY(-") {
		t.Error("a screen that is not full scrolls")
	}
	for len(lines) <= rows {
		lines = append(lines, line{"one more", time.Second})
	}
	image := draw(lines)
	if !strings.Contains(image, "translateY(-18px)") {
		t.Error("a full screen does not scroll")
	}
	var texts []string
	decoder := xml.NewDecoder(strings.NewReader(image))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "text" {
			var text string
			if err := decoder.DecodeElement(&text, &start); err != nil {
				t.Fatal(err)
			}
			texts = append(texts, text)
		}
	}
	if len(texts) != len(lines) || texts[0] != lines[0].text || texts[1] != strings.Repeat("x", columns-1)+"…" {
		t.Errorf("the image has %d lines, the first are %.60q", len(texts), texts)
	}
}
