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
	fmt.Fprintf(&b, "%-*s", width, "")
	for _, w := range rows() {
		fmt.Fprintf(&b, " %-*s", max(7, len(w.id)), w.id)
	}
	b.WriteString("\n")
	for _, r := range reports {
		fmt.Fprintf(&b, "%-*s", width, r.System)
		if r.Problem != "" {
			b.WriteString(" not tested: " + short(r.Problem))
		}
		for _, w := range rows() {
			if r.Problem == "" {
				fmt.Fprintf(&b, " %-*s", max(7, len(w.id)), cell(r, w.id, "FAILS", "-", "not run"))
			}
		}
		b.WriteString("\n")
	}
	return b.String() + "-: it falls short, and does not claim more\n"
}

// cell is a verdict in the words of one table.
func cell(r report, id, fails, unclaimed, missing string) string {
	i := slices.IndexFunc(r.Rows, func(w result) bool { return w.Row == id })
	if i < 0 {
		return ""
	}
	switch w := r.Rows[i]; w.Verdict {
	case bad:
		if w.Runs > 1 {
			return fmt.Sprintf("%s %d/%d", fails, w.Failed, w.Runs)
		}
		return fails
	case notClaimed:
		return unclaimed
	case notRun:
		return missing
	}
	return "ok"
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
	info, err := os.Stat(document)
	if err != nil {
		return err
	}
	all := before + markBegin + "\n\n" + markdown(reports) + "\n" + markEnd + after
	return os.WriteFile(document, []byte(all), info.Mode())
}

// markdown is the results as a section: a table, what failed, and how it was run.
func markdown(reports []report) string {
	var b strings.Builder
	b.WriteString("| |")
	for _, w := range rows() {
		if w.id != "cost" {
			b.WriteString(" " + w.id + " |")
		}
	}
	b.WriteString("\n|" + strings.Repeat(" --- |", len(rows())) + "\n")
	var failures, versions []string
	for _, r := range reports {
		if r.Problem != "" {
			continue
		}
		fmt.Fprintf(&b, "| %s |", r.Title)
		for _, w := range rows() {
			if w.id != "cost" {
				b.WriteString(" " + cell(r, w.id, "**fails**", "–", "·") + " |")
			}
		}
		b.WriteString("\n")
		for _, w := range r.Rows {
			if w.Verdict == bad {
				failures = append(failures, fmt.Sprintf("- %s, %s: %s.\n", r.Title, w.Row, w.Facts))
			}
		}
		versions = append(versions, strings.Trim(r.Version+" on "+r.ServerVersion, " on"))
	}
	b.WriteString("\n–: not claimed, and not so. ·: not run.\n")
	if len(failures) > 0 {
		b.WriteString("\n" + strings.Join(failures, ""))
	}
	slices.Sort(versions)
	fmt.Fprintf(&b, "\nRun with `%s` on %s: %s.\n", commands(reports), dates(reports),
		strings.Join(slices.Compact(versions), "; "))
	return b.String()
}

func commands(reports []report) string {
	var all []string
	for _, r := range reports {
		all = append(all, r.Command)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), "`, `")
}

func dates(reports []report) string {
	var all []string
	for _, r := range reports {
		all = append(all, r.Date)
	}
	slices.Sort(all)
	if len(all) == 0 || all[0] == all[len(all)-1] {
		return strings.Join(all[:min(1, len(all))], "")
	}
	return all[0] + " to " + all[len(all)-1]
}
