// Package chart draws lines as SVG, to be read in light and in dark themes.
package chart

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Chart is lines over one pair of axes.
type Chart struct {
	Title  string
	X, Y   Axis
	Series []Series
}

// Axis says what a coordinate is.
type Axis struct {
	Label string
	// Log has equal ratios at equal distances; all values must be positive.
	Log bool
	// Ticks are the values with a mark; none lets the chart choose.
	Ticks []float64
}

// Series is one line.
type Series struct {
	Name   string
	Points []Point
}

// Point is where a line bends.
type Point struct{ X, Y float64 }

const (
	width, height            = 760, 400
	left, right, top, bottom = 70, 590, 50, 340 // of the area of the lines
	apart                    = 16               // least distance of the names of two lines
)

// Colors that stay apart for color-blind readers, on white and on black.
const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">
<style>
svg { font: 13px system-ui, sans-serif; --ink: #1f2328; --grid: #d1d9e0; --paper: #ffffff }
svg { --c0: #0550ae; --c1: #bc4c00; --c2: #1a7f37; --c3: #8250df; --c4: #6e7781 }
@media (prefers-color-scheme: dark) {
svg { --ink: #e6edf3; --grid: #30363d; --paper: #0d1117 }
svg { --c0: #58a6ff; --c1: #f0883e; --c2: #3fb950; --c3: #bc8cff; --c4: #8b949e }
}
text { fill: var(--ink) } path { fill: none; stroke-width: 2 }
.grid { stroke: var(--grid); stroke-width: 1 }
</style>
<rect width="100%%" height="100%%" fill="var(--paper)"/>
`

// SVG draws the chart.
func (c Chart) SVG() []byte {
	x := newScale(c.X, c.values(func(p Point) float64 { return p.X }), left, right)
	y := newScale(c.Y, c.values(func(p Point) float64 { return p.Y }), bottom, top)
	out := fmt.Appendf(nil, head, width, height, escape(c.Title))
	out = text(out, left, 24, `font-weight="600"`, c.Title)
	for _, v := range y.ticks {
		out = fmt.Appendf(out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n", left, y.at(v), right)
		out = text(out, left-8, y.at(v)+4, `text-anchor="end"`, number(v))
	}
	for _, v := range x.ticks {
		out = text(out, x.at(v), bottom+20, `text-anchor="middle"`, number(v))
	}
	out = text(out, (left+right)/2, bottom+44, `text-anchor="middle"`, c.X.Label)
	out = text(out, left, top-8, "", c.Y.Label)
	out = c.lines(out, x, y)
	return append(out, "</svg>\n"...)
}

func (c Chart) values(of func(Point) float64) []float64 {
	var all []float64
	for _, s := range c.Series {
		for _, p := range s.Points {
			all = append(all, of(p))
		}
	}
	return all
}

// lines draws each series, with its name at its right end.
func (c Chart) lines(out []byte, x, y scale) []byte {
	names := make([]label, 0, len(c.Series))
	for i, s := range c.Series {
		color := fmt.Sprintf("var(--c%d)", i)
		path := "M"
		for _, p := range s.Points {
			path += fmt.Sprintf("%.1f %.1f ", x.at(p.X), y.at(p.Y))
			out = fmt.Appendf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n",
				x.at(p.X), y.at(p.Y), color)
		}
		out = fmt.Appendf(out, "<path d=\"%s\" stroke=\"%s\"/>\n", path, color)
		if n := len(s.Points); n > 0 {
			names = append(names, label{s.Name, color, y.at(s.Points[n-1].Y)})
		}
	}
	slices.SortFunc(names, func(a, b label) int { return cmp.Compare(a.y, b.y) })
	for i, l := range names {
		if i > 0 {
			l.y = max(l.y, names[i-1].y+apart)
			names[i] = l
		}
		out = text(out, right+10, l.y+4, `style="fill: `+l.color+`"`, l.name)
	}
	return out
}

// label is the name of a line.
type label struct {
	name, color string
	y           float64
}

func text(out []byte, x, y float64, attributes, s string) []byte {
	return fmt.Appendf(out, "<text x=\"%.1f\" y=\"%.1f\" %s>%s</text>\n", x, y, attributes, escape(s))
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(s)
}

// number writes a value with a space between thousands.
func number(v float64) string {
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if v < 1000 {
		return s
	}
	return s[:len(s)-3] + "\u2009" + s[len(s)-3:]
}

// scale maps values of an axis to places in the picture.
type scale struct {
	ticks    []float64
	low, up  float64 // the values at from and to
	from, to float64
	of       func(float64) float64
}

func newScale(a Axis, values []float64, from, to float64) scale {
	s := scale{ticks: a.Ticks, from: from, to: to, of: func(v float64) float64 { return v }}
	least, most := slices.Min(values), slices.Max(values)
	if a.Log {
		s.of = math.Log
	} else {
		least = min(least, 0)
	}
	if len(s.ticks) == 0 {
		s.ticks = ticks(a.Log, least, most)
	}
	s.low, s.up = min(least, s.ticks[0]), max(most, s.ticks[len(s.ticks)-1])
	return s
}

func (s scale) at(v float64) float64 {
	return s.from + (s.to-s.from)*(s.of(v)-s.of(s.low))/(s.of(s.up)-s.of(s.low))
}

// ticks chooses round values around all of an axis: 1, 2 and 5 times powers of ten, or,
// when it is linear, at most seven multiples of one of those.
func ticks(log bool, least, most float64) []float64 {
	if log {
		return around(least, most)
	}
	var all []float64
	for _, step := range around(most/1000, most) {
		if most/step > 6 {
			continue
		}
		for v := 0.0; ; v += step {
			if all = append(all, v); v >= most {
				return all
			}
		}
	}
	return []float64{0, most}
}

// around returns round values from the last that is not above least to the first that is
// not below most.
func around(least, most float64) []float64 {
	var all []float64
	for power := math.Pow(10, math.Floor(math.Log10(least))); ; power *= 10 {
		for _, factor := range []float64{1, 2, 5} {
			v := power * factor
			if v <= least {
				all = all[:0]
			}
			if all = append(all, v); v >= most {
				return all
			}
		}
	}
}
