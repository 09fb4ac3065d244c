package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"os"
	"strings"
)

// svg draws what it reads, the output of the demo, as an animated SVG:
//
//	make -s demo | go run ./hack/local svg >docs/images/demo.svg
//
// The image follows the reader's light or dark color scheme. It stands still,
// at the first screen, for readers who prefer reduced motion.
func svg(context.Context, <-chan os.Signal, []string) (exitCode int, err error) {
	output, err := io.ReadAll(os.Stdin)
	text := strings.TrimSpace(string(output))
	if err == nil && text == "" {
		err = errors.New("there is no output to draw")
	}
	if err == nil {
		_, err = fmt.Print(draw(strings.Split(text, "\n")))
	}
	return 0, err
}

// The times of the animation, in seconds: each line stays for a moment before the next
// one follows, a command until it has been read, and the last line for longer.
const (
	linePause, commandPause, lastPause = 0.12, 1.2, 5.0
)

// The size of the screen, in characters, and of a character, in pixels.
const (
	columns, rows         = 108, 27
	charWidth, lineHeight = 7.8, 18
	margin                = 16
)

// draw returns an SVG in which the lines appear one after the other, and the
// screen scrolls when it is full. It repeats.
func draw(lines []string) string {
	at, total := make([]float64, len(lines)), lastPause // when each line appears
	for i, line := range lines {
		at[i] = total - lastPause
		if total += linePause; strings.HasPrefix(line, "$ ") {
			total += commandPause
		}
	}
	width, height := columns*charWidth, rows*lineHeight
	outerWidth, outerHeight := width+2*margin, height+2*margin
	var scroll, styles, texts strings.Builder
	for i, line := range lines {
		percent := 100 * at[i] / total
		fmt.Fprintf(&texts, `<text y="%d" class="l%d%s">%s</text>`+"\n", margin+(i+1)*lineHeight-5, i, class(line), html.EscapeString(line))
		fmt.Fprintf(&scroll, "%.2f%%{transform:translateY(%dpx)}", percent, -lineHeight*max(0, i+1-rows))
		fmt.Fprintf(&styles, "@keyframes k%d{0%%{opacity:0}%.2f%%{opacity:1}}.l%d{animation-name:k%d}\n", i, percent, i, i)
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
@keyframes scroll{%s}
%s}
</style>
<rect x="0.5" y="0.5" width="%.0f" height="%d" rx="8"/>
<svg x="%d" y="%d" width="%.0f" height="%d" viewBox="0 %d %.0f %d">
<g id="screen">
%s</g>
</svg>
</svg>
`, outerWidth, outerHeight, outerWidth, outerHeight, total, scroll.String(), styles.String(), outerWidth-1, outerHeight-1,
		margin, margin, width, height, margin, width, height, texts.String())
}

// class returns the style of a line, after a space.
func class(line string) string {
	switch {
	case strings.HasPrefix(line, "$ "):
		return " command"
	case strings.HasPrefix(line, "✔"), strings.Contains(line, "Ready=True"):
		return " good"
	case line != "" && line[0] >= '0' && line[0] <= '9':
		return " title"
	}
	return ""
}
