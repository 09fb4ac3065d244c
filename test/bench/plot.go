package main

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// line is one line of a plot.
type line struct {
	name   string
	points [][2]float64
}

// colors are those of Okabe and Ito, which people with colour blindness distinguish.
var colors = []string{"#000000", "#56B4E9", "#D55E00", "#009E73", "#CC79A7"}

const (
	plotWidth, plotHeight              = 760, 400
	plotLeft, plotRight, plotTop, base = 70, 290, 40, 350
)

// plot returns an SVG of a figure against the number of Networks, with logarithmic
// axes. Values of 0 or less are not drawn.
func plot(title, yTitle string, lines []line) string {
	xs, ys := bounds(lines, 0), bounds(lines, 1)
	x := func(v float64) float64 { return plotLeft + xs.position(v)*(plotWidth-plotLeft-plotRight) }
	y := func(v float64) float64 { return base - ys.position(v)*(base-plotTop) }
	var svg strings.Builder
	text := func(x, y float64, anchor, content string) {
		fmt.Fprintf(&svg, `<text x="%.0f" y="%.0f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, html.EscapeString(content))
	}
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&svg, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", plotWidth, plotHeight)
	text(plotLeft, 24, "start", title)
	text((plotLeft+plotWidth-plotRight)/2, base+38, "middle", "Networks")
	fmt.Fprintf(&svg, `<text transform="translate(16,%d) rotate(-90)" text-anchor="middle">%s</text>`+"\n", (plotTop+base)/2, html.EscapeString(yTitle))
	for _, tick := range xs.ticks() {
		fmt.Fprintf(&svg, `<path d="M%.0f %dV%d" stroke="#dddddd"/>`+"\n", x(tick), plotTop, base)
		text(x(tick), base+18, "middle", number(tick))
	}
	for _, tick := range ys.ticks() {
		fmt.Fprintf(&svg, `<path d="M%d %.0fH%d" stroke="#dddddd"/>`+"\n", plotLeft, y(tick), plotWidth-plotRight)
		text(plotLeft-6, y(tick)+4, "end", number(tick))
	}
	for i, l := range lines {
		color := colors[i%len(colors)]
		var path []string
		for _, p := range l.points {
			if p[0] > 0 && p[1] > 0 {
				path = append(path, fmt.Sprintf("%.1f,%.1f", x(p[0]), y(p[1])))
				fmt.Fprintf(&svg, `<circle cx="%.1f" cy="%.1f" r="4" fill="%s"/>`+"\n", x(p[0]), y(p[1]), color)
			}
		}
		fmt.Fprintf(&svg, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(path, " "), color)
		legend := float64(plotTop + 14 + 22*i)
		fmt.Fprintf(&svg, `<path d="M%d %.0fh20" stroke="%s" stroke-width="3"/>`+"\n", plotWidth-plotRight+12, legend-4, color)
		text(plotWidth-plotRight+38, legend, "start", l.name)
	}
	svg.WriteString("</svg>\n")
	return svg.String()
}

// axis is a range of powers of ten.
type axis struct{ from, to float64 }

func bounds(lines []line, coordinate int) axis {
	var values []float64
	for _, l := range lines {
		for _, p := range l.points {
			if p[0] > 0 && p[1] > 0 {
				values = append(values, p[coordinate])
			}
		}
	}
	if len(values) == 0 {
		values = []float64{1, 10}
	}
	a := axis{math.Floor(math.Log10(slices.Min(values))), math.Ceil(math.Log10(slices.Max(values)))}
	a.to = max(a.to, a.from+1)
	return a
}

// position returns the position of a value on the axis, from 0 to 1.
func (a axis) position(v float64) float64 { return (math.Log10(v) - a.from) / (a.to - a.from) }

func (a axis) ticks() (all []float64) {
	for exponent := a.from; exponent <= a.to; exponent++ {
		all = append(all, math.Pow(10, exponent))
	}
	return all
}

// number returns a number with commas between thousands.
func number(v float64) string {
	text := fmt.Sprintf("%.4g", v)
	if v >= 1000 {
		text = fmt.Sprintf("%.0f", v)
		for i := len(text) - 3; i > 0; i -= 3 {
			text = text[:i] + "," + text[i:]
		}
	}
	return text
}
