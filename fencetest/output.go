package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// matrix is the table of all systems and rows, for a terminal.
func matrix(reports []report) string {
	var b strings.Builder
	width := 6
	for _, r := range reports {
		width = max(width, len(r.System))
	}
	line := func(first string, cell func(id string) string) {
		fmt.Fprintf(&b, "%-*s", width, first)
		for _, w := range rows() {
			fmt.Fprintf(&b, " %-*s", max(7, len(w.id)), cell(w.id))
		}
		b.WriteString("\n")
	}
	line("", func(id string) string { return id })
	for _, r := range reports {
		if r.Problem != "" {
			fmt.Fprintf(&b, "%-*s not tested: %s\n", width, r.System, short(r.Problem))
			continue
		}
		words := map[verdict]string{good: "ok", bad: "FAILS", notClaimed: "-", notRun: "not run"}
		line(r.System, func(id string) string { return words[r.verdict(id)] })
	}
	return b.String() + "-: it falls short, and does not claim more\n"
}

func (r *report) verdict(id string) verdict {
	for _, w := range r.Rows {
		if w.Row == id {
			return w.Verdict
		}
	}
	return ""
}

const (
	markBegin = "<!-- fencetest begin -->"
	markEnd   = "<!-- fencetest end -->"
)

// writeMarkdown replaces what is between the marks of a document by the results of a file.
func writeMarkdown(document, from string) error {
	reports, err := load(from)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), markBegin)
	_, after, ends := strings.Cut(rest, markEnd)
	if !begins || !ends {
		return fmt.Errorf("%s has no part between %s and %s", document, markBegin, markEnd)
	}
	all := before + markBegin + "\n\n" + markdown(reports) + "\n" + markEnd + after
	return os.WriteFile(document, []byte(all), 0o600)
}

// markdown is the results as a section: a table, what failed, and how it was run.
func markdown(reports []report) string {
	head, rule := "| |", "| --- |"
	for _, w := range rows() {
		head, rule = head+" "+w.id+" |", rule+" --- |"
	}
	table := head + "\n" + rule + "\n"
	words := map[verdict]string{good: "ok", bad: "**fails**", notClaimed: "–", notRun: "·"}
	var failures, versions, commands, dates []string
	for _, r := range reports {
		if r.Problem != "" {
			continue
		}
		table += "| " + r.Title + " |"
		for _, w := range rows() {
			table += " " + words[r.verdict(w.id)] + " |"
		}
		table += "\n"
		for _, w := range r.Rows {
			if w.Verdict == bad {
				failures = append(failures, fmt.Sprintf("- %s, `%s`: %s.\n", r.Title, w.Row, w.Facts))
			}
		}
		versions = append(versions, r.Version, r.ServerVersion)
		commands, dates = append(commands, "`"+r.Command+"`"), append(dates, r.Date)
	}
	return table + "\n–: falls short, and does not claim more. ·: not run.\n\n" + strings.Join(failures, "") +
		"\nRun with " + distinct(commands) + " on " + distinct(dates) + ": " + distinct(versions) + ".\n"
}

func distinct(all []string) string {
	slices.Sort(all)
	all = slices.DeleteFunc(slices.Compact(all), func(s string) bool { return s == "" })
	return strings.Join(all, ", ")
}
