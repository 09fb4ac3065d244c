package main

import (
	"encoding/xml"
	"slices"
	"strings"
	"testing"
)

// The image is XML that has each line, whatever is in it, and scrolls only when the
// screen is full.
func TestDraw(t *testing.T) {
	lines := []string{"$ kubectl get networks <a> & b", strings.Repeat("x", 2*columns)}
	if strings.Contains(draw(lines), "translateY(-") {
		t.Error("a screen that is not full scrolls")
	}
	for len(lines) <= rows {
		lines = append(lines, "one more")
	}
	image := draw(lines)
	if !strings.Contains(image, "translateY(-18px)") {
		t.Error("a full screen does not scroll")
	}
	var drawn struct {
		Texts []string `xml:"svg>g>text"`
	}
	if err := xml.Unmarshal([]byte(image), &drawn); err != nil || !slices.Equal(drawn.Texts, lines) {
		t.Errorf("the image has the lines %.60q (error %v), want %.60q", drawn.Texts, err, lines)
	}
}
