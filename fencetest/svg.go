package main

import (
	"fmt"
	"html"
	"strings"
	"time"
)

// The measures of a picture, in pixels.
const (
	svgLeft, svgWidth, svgLane, svgTop = 60, 900, 34, 70
)

// picture is a history drawn in lanes: faults in the first, then one for each client.
type picture struct {
	strings.Builder
	lanes []string
	end   time.Duration
}

// svg draws a history: a pale bar waits, a dark one holds, a hatched one is stopped. Late writes
// are red.
func svg(title, facts string, events []event) string {
	p := &picture{lanes: []string{""}, end: time.Millisecond}
	for _, e := range events {
		p.end = max(p.end, e.At)
		if p.lane(e.Who) < 0 {
			p.lanes = append(p.lanes, e.Who)
		}
	}
	p.frame(title, facts)
	p.bars(events, waits, "#cfd8dc", holds, gaveUp, failed, killed)
	p.bars(events, holds, "#3b6ea5", releases, loses, killed)
	p.bars(events, stopped, "url(#stopped)", resumed, killed)
	for _, e := range events {
		p.mark(e)
	}
	p.WriteString("</svg>\n")
	return p.String()
}

func (p *picture) lane(who string) int {
	for i, name := range p.lanes {
		if name == who {
			return i
		}
	}
	return -1
}

func (p *picture) x(at time.Duration) float64 {
	return svgLeft + svgWidth*float64(at)/float64(p.end)
}

func (p *picture) y(who string) int { return svgTop + svgLane*p.lane(who) }

func (p *picture) height() int { return svgTop + svgLane*len(p.lanes) + 30 }

func (p *picture) frame(title, facts string) {
	fmt.Fprintf(p, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" `+
		`font-family="sans-serif" font-size="11"><rect width="100%%" height="100%%" fill="#fff"/>`+
		`<defs><pattern id="stopped" width="6" height="6" patternUnits="userSpaceOnUse" `+
		`patternTransform="rotate(45)"><rect width="3" height="6" fill="#f2a900"/></pattern></defs>`+"\n",
		svgLeft+svgWidth+80, p.height())
	p.text(10, 20, "#000", title, `font-size="15"`)
	p.text(10, 38, "#444", facts, "")
	for i, name := range p.lanes {
		p.text(10, svgTop+svgLane*i+18, "#000", name, `font-weight="bold"`)
	}
	for i := range 11 {
		at := p.end * time.Duration(i) / 10
		fmt.Fprintf(p, `<path d="M%.1f %dV%d" stroke="#eee"/>`+"\n", p.x(at), svgTop-8, p.height()-24)
		p.text(p.x(at), p.height()-10, "#888", seconds(at), "")
	}
}

// bars draws a bar from each event of one kind to the client's next one that ends it.
func (p *picture) bars(events []event, begin what, color string, ends ...what) {
	for i, e := range events {
		if e.What != begin {
			continue
		}
		to := p.end
		for _, later := range events[i+1:] {
			if later.Who == e.Who && contains(ends, later.What) {
				to = later.At
				break
			}
		}
		fmt.Fprintf(p, `<rect x="%.1f" y="%d" width="%.1f" height="18" fill="%s" fill-opacity="0.8"/>`+"\n",
			p.x(e.At), p.y(e.Who)+5, max(1, p.x(to)-p.x(e.At)), color)
		if begin == holds && e.Fence != "" {
			p.text(p.x(e.At)+2, p.y(e.Who)+18, "#fff", e.Fence, "")
		}
	}
}

func contains(all []what, w what) bool {
	for _, one := range all {
		if one == w {
			return true
		}
	}
	return false
}

// mark draws what has no duration.
func (p *picture) mark(e event) {
	x, y := p.x(e.At), p.y(e.Who)
	switch e.What {
	case fault:
		fmt.Fprintf(p, `<path d="M%.1f %dV%d" stroke="#c60" stroke-dasharray="4 3"/>`+"\n", x, y, p.height()-24)
		p.text(x+3, y+12, "#c60", e.Text, "")
	case stale:
		p.point(e, "#d00", 6)
		p.text(x+8, y+32, "#d00", "late write "+e.Text, `font-weight="bold"`)
	case writes:
		p.point(e, "#2a2", 3)
	case killed, loses, failed:
		p.text(x-3, y+18, "#d00", "✕", `font-size="14"`)
		p.text(x+8, y+32, "#a33", string(e.What), "")
	}
}

func (p *picture) point(e event, color string, radius int) {
	fmt.Fprintf(p, `<circle cx="%.1f" cy="%d" r="%d" fill="%s"><title>%s</title></circle>`+"\n",
		p.x(e.At), p.y(e.Who)+14, radius, color, html.EscapeString(string(e.What)+" "+e.Text))
}

func (p *picture) text(x float64, y int, color, text, more string) {
	fmt.Fprintf(p, `<text x="%.1f" y="%d" fill="%s" %s>%s</text>`+"\n", x, y, color, more,
		html.EscapeString(text))
}
