package chart_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"testing"

	"github.com/fencepost/fencepost/test/bench/chart"
)

func speeds() chart.Chart {
	return chart.Chart{
		Title: "cycles a second",
		X:     chart.Axis{Label: "clients", Log: true, Ticks: []float64{1, 8, 512}},
		Y:     chart.Axis{Label: "cycles/s", Log: true},
		Series: []chart.Series{
			{Name: "Fencepost <embedded>", Points: []chart.Point{{1, 1600}, {8, 5000}, {512, 9000}}},
			{Name: "peer", Points: []chart.Point{{1, 275}, {8, 700}, {512, 8900}}},
		},
	}
}

// elements reads the picture, which has to be XML, and returns its elements with their texts.
func elements(t *testing.T, svg []byte, name string) (all []map[string]string) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == name {
			attributes := map[string]string{}
			for _, a := range start.Attr {
				attributes[a.Name.Local] = a.Value
			}
			if text, err := d.Token(); err == nil {
				if chars, ok := text.(xml.CharData); ok {
					attributes["text"] = string(chars)
				}
			}
			all = append(all, attributes)
		}
	}
}

func TestEveryPointIsDrawnWithinThePicture(t *testing.T) {
	points := elements(t, speeds().SVG(), "circle")
	if len(points) != 6 {
		t.Fatalf("%d points", len(points))
	}
	above := map[string]float64{}
	for _, p := range points {
		x, _ := strconv.ParseFloat(p["cx"], 64)
		y, _ := strconv.ParseFloat(p["cy"], 64)
		if x < 70 || x > 590 || y < 50 || y > 340 {
			t.Errorf("a point at %v, %v", x, y)
		}
		if last, ok := above[p["fill"]]; ok && y >= last {
			t.Error("a greater value is not drawn higher")
		}
		above[p["fill"]] = y
	}
}

func TestNamesOfLinesDoNotOverlap(t *testing.T) {
	at := map[string]float64{}
	for _, e := range elements(t, speeds().SVG(), "text") {
		at[e["text"]], _ = strconv.ParseFloat(e["y"], 64)
	}
	ours, peers := at["Fencepost <embedded>"], at["peer"]
	if ours == 0 || peers-ours < 14 {
		t.Errorf("the names are at %v and %v", ours, peers)
	}
}

func TestTicksAreRoundAndContainAllValues(t *testing.T) {
	line := chart.Series{Name: "a", Points: []chart.Point{{0, 60}, {10_000, 290}}}
	c := chart.Chart{Series: []chart.Series{line}}
	texts := map[string]bool{}
	for _, e := range elements(t, c.SVG(), "text") {
		texts[e["text"]] = true
	}
	for _, want := range []string{"0", "50", "300", "10\u2009000"} {
		if !texts[want] {
			t.Errorf("no tick %q in %v", want, texts)
		}
	}
}
