// Command svg records what a program prints as an animated SVG, in real time:
//
//	make -s demo | go run ./hack/demo/svg >docs/images/demo.svg
//
// The image follows the reader's light or dark color scheme. It stands still,
// at the first screen, for readers who prefer reduced motion.
package main

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"os"
	"strings"
	"time"
)

func main() {
	lines, err := record(os.Stdin, time.Now)
	if err == nil {
		_, err = io.WriteString(os.Stdout, draw(lines))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "svg:", err)
		os.Exit(1)
	}
}

// line is a line of output, and when it was printed.
type line struct {
	text string
	at   time.Duration // since the first line
}

// A line stays on the screen for at least minPause and at most maxPause before
// the next one follows, however long the program took; the last one for longer.
const (
	minPause  = 120 * time.Millisecond
	maxPause  = 1500 * time.Millisecond
	lastPause = 5 * time.Second
)

// record reads lines as they are printed, without those before the first that
// is not empty.
func record(input io.Reader, now func() time.Time) ([]line, error) {
	var lines []line
	var at time.Duration
	last := now()
	for scanner := bufio.NewScanner(input); ; {
		if !scanner.Scan() {
			if len(lines) == 0 && scanner.Err() == nil {
				return nil, fmt.Errorf("reading the output: %w", io.ErrUnexpectedEOF)
			}
			return lines, scanner.Err()
		}
		text := strings.TrimRight(scanner.Text(), " ")
		if len(lines) > 0 {
			at += min(max(now().Sub(last), minPause), maxPause)
		}
		last = now()
		if text != "" || len(lines) > 0 {
			lines = append(lines, line{text, at})
		}
	}
}

// The size of the screen, in characters, and of a character, in pixels.
const (
	columns, rows         = 108, 27
	charWidth, lineHeight = 7.8, 18
	margin                = 16
)

// draw returns an SVG in which the lines appear one after the other, and the
// screen scrolls when it is full. It repeats.
func draw(lines []line) string {
	total := lines[len(lines)-1].at + lastPause
	percent := func(at time.Duration) float64 { return 100 * at.Seconds() / total.Seconds() }

	width, height := columns*charWidth+2*margin, rows*lineHeight+2*margin
	var styles, texts strings.Builder
	styles.WriteString("@keyframes scroll{0%{transform:translateY(0)}")
	for i, l := range lines {
		y := margin + (i+1)*lineHeight - 5
		fmt.Fprintf(&texts, `<text y="%d" class="l%d%s">%s</text>`+"\n", y, i, class(l.text), html.EscapeString(clip(l.text)))
		fmt.Fprintf(&styles, "%.2f%%{transform:translateY(%dpx)}", percent(l.at), -lineHeight*max(0, i+1-rows))
	}
	styles.WriteString("}\n")
	for i, l := range lines {
		fmt.Fprintf(&styles, "@keyframes k%d{0%%{opacity:0}%.2f%%{opacity:1}}.l%d{animation-name:k%d}\n", i, percent(l.at), i, i)
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" width="%.0f" height="%d" xml:space="preserve" role="img" aria-label="The output of make demo">
<style>
rect{fill:#f6f8fa;stroke:#d1d9e0}
text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#1f2328;white-space:pre}
.title{font-weight:bold}.command{fill:#0550ae}.good{fill:#1a7f37}
@media(prefers-color-scheme:dark){rect{fill:#0d1117;stroke:#3d444d}text{fill:#e6edf3}.command{fill:#79c0ff}.good{fill:#56d364}}
@media(prefers-reduced-motion:no-preference){
#screen,text{animation-duration:%.1fs;animation-timing-function:step-end;animation-iteration-count:infinite}
#screen{animation-name:scroll}
%s}
</style>
<rect x="0.5" y="0.5" width="%.0f" height="%d" rx="8"/>
<svg x="%d" y="%d" width="%.0f" height="%d" viewBox="0 %d %.0f %d">
<g id="screen">
%s</g>
</svg>
</svg>
`, width, height, width, height, total.Seconds(), styles.String(), width-1, height-1,
		margin, margin, width-2*margin, rows*lineHeight, margin, width-2*margin, rows*lineHeight, texts.String())
}

// class returns the style of a line, after a space.
func class(text string) string {
	switch {
	case strings.HasPrefix(text, "$ "):
		return " command"
	case strings.HasPrefix(text, "✔"), strings.Contains(text, "Ready=True"):
		return " good"
	case text != "" && text[0] >= '0' && text[0] <= '9':
		return " title"
	}
	return ""
}

// clip shortens a text to the width of the screen.
func clip(text string) string {
	if runes := []rune(text); len(runes) > columns {
		return string(runes[:columns-1]) + "…"
	}
	return text
}
