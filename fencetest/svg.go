package main

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"time"
)

// The measures of a picture, in pixels.
const svgLeft, svgWidth, svgLane, svgTop = 60, 900, 34, 60

// picture is a history drawn in lanes: faults in the first, then one for each client.
type picture struct {
	strings.Builder
	lanes  []string
	end    time.Duration
	faults int // that are drawn
}

// svg draws a history: a pale bar waits, a dark one holds, a hatched one is stopped. Late writes
// are red.
func svg(title, facts string, events []event) string {
	p := &picture{lanes: []string{""}, end: time.Millisecond}
	for _, e := range events {
		p.end = max(p.end, e.At)
		if !slices.Contains(p.lanes, e.Who) {
			p.lanes = append(p.lanes, e.Who)
		}
	}
	p.end += p.end / 6 // the words of the last events
	p.frame(title, facts)
	p.bars(events, waits, "#cfd8dc", holds, gaveUp, failed, killed)
	p.bars(events, holds, "#3b6ea5", releases, loses, killed)
	p.bars(events, stopped, "url(#stopped)", resumed, killed)
	for _, e := range events {
		p.mark(e)
	}
	return p.String() + "</svg>\n"
}

func (p *picture) x(at time.Duration) int { return svgLeft + int(svgWidth*at/p.end) }

func (p *picture) y(who string) int { return svgTop + svgLane*slices.Index(p.lanes, who) }

func (p *picture) frame(title, facts string) {
	bottom := svgTop + svgLane*len(p.lanes)
	fmt.Fprintf(p, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" `+
		`font-family="sans-serif" font-size="11"><rect width="100%%" height="100%%" fill="#fff"/>`+
		`<defs><pattern id="stopped" width="6" height="6" patternUnits="userSpaceOnUse" `+
		`patternTransform="rotate(45)"><rect width="3" height="6" fill="#f2a900"/></pattern></defs>`+"\n",
		svgLeft+svgWidth+160, bottom+50)
	p.text(10, 20, "#000", title)
	p.text(10, 38, "#444", facts)
	p.text(10, bottom+38, "#444", "pale: waits · dark: holds · hatched: stopped · ●: writes (red: late) · ✕: ends")
	for _, name := range p.lanes {
		p.text(10, p.y(name)+18, "#000", name)
	}
	for i := range 11 {
		x := svgLeft + svgWidth*i/10
		fmt.Fprintf(p, `<path d="M%d %dV%d" stroke="#eee"/>`+"\n", x, svgTop, bottom)
		p.text(x, bottom+16, "#888", seconds(p.end*time.Duration(i)/10))
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
			if later.Who == e.Who && slices.Contains(ends, later.What) {
				to = later.At
				break
			}
		}
		x, width := p.x(e.At), max(1, p.x(to)-p.x(e.At))
		fmt.Fprintf(p, `<rect x="%d" y="%d" width="%d" height="18" fill="%s" fill-opacity="0.8"/>`+"\n",
			x, p.y(e.Who)+5, width, color)
		if begin == holds && width > 8*len(e.Fence) {
			p.text(x+2, p.y(e.Who)+18, "#fff", e.Fence)
		}
	}
}

// mark draws what has no duration.
func (p *picture) mark(e event) {
	x, y := p.x(e.At), p.y(e.Who)
	switch e.What {
	case fault:
		fmt.Fprintf(p, `<path d="M%d %dV%d" stroke="#c60" stroke-dasharray="4 3"/>`+"\n", x, y,
			svgTop+svgLane*len(p.lanes))
		p.text(x+3, y+4+11*(p.faults%3), "#c60", e.Text)
		p.faults++
	case writes:
		p.text(x-4, y+18, "#7f7", "●")
	case stale:
		p.text(x-4, y+18, "#d00", "●")
		p.text(x-4, y+32, "#d00", "late write "+e.Text)
	case killed, loses, failed:
		p.text(x-3, y+18, "#d00", "✕")
		p.text(x+8, y+18, "#a33", string(e.What))
	}
}

// text near the right edge ends at x.
func (p *picture) text(x, y int, color, text string) {
	anchor := "start"
	if x > svgLeft+svgWidth*4/5 && len(text) > 12 {
		anchor = "end"
	}
	fmt.Fprintf(p, `<text x="%d" y="%d" fill="%s" text-anchor="%s">%s</text>`+"\n",
		x, y, color, anchor, html.EscapeString(text))
}
