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
		words := map[verdict]string{bad: "FAILS", notClaimed: "-", notRun: "not run"}
		line(r.System, func(id string) string { return r.cell(id, words) })
	}
	if !strings.Contains(b.String(), " - ") {
		return b.String()
	}
	return b.String() + "-: it falls short, and does not claim more\n"
}

// cell is a row's verdict in the words of one table. The cost is a number of messages.
func (r *report) cell(id string, words map[verdict]string) string {
	for _, w := range r.Rows {
		switch first, _, _ := strings.Cut(w.Facts, " "); {
		case w.Row != id:
		case w.Verdict == good && id == "cost":
			return first + "/s"
		case w.Verdict == good:
			return "ok"
		default:
			return words[w.Verdict]
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
	head, rule := "| | claims |", "| --- | --- |"
	for _, w := range rows() {
		head, rule = head+" "+w.id+" |", rule+" --- |"
	}
	table := head + "\n" + rule + "\n"
	words := map[verdict]string{bad: "**fails**", notClaimed: "–", notRun: "·"}
	var failures, versions, dates []string
	for _, r := range reports {
		if r.Problem != "" {
			continue
		}
		var claims []string
		for claim, unsaid := range defaultClaims() {
			if unsaid == "no" && strings.HasPrefix(r.Claims[claim], "yes") {
				claims = append(claims, claim)
			}
		}
		table += "| " + r.Title + " | " + distinct(claims) + " |"
		for _, w := range rows() {
			table += " " + r.cell(w.id, words) + " |"
		}
		table += "\n"
		for _, w := range r.Rows {
			if w.Verdict == bad {
				failures = append(failures, fmt.Sprintf("- %s, `%s`: %s.\n", r.Title, w.Row, w.Facts))
			}
		}
		versions, dates = append(versions, r.Version, r.ServerVersion), append(dates, r.Date)
	}
	return table + "\n–: falls short, and does not claim more. ·: not run. " +
		"Cost: messages of a waiter.\n\n" + strings.Join(failures, "") +
		"\nRun with `make fencetest` on " + distinct(dates) + ": " + distinct(versions) + ".\n"
}

func distinct(all []string) string {
	slices.Sort(all)
	all = slices.DeleteFunc(slices.Compact(all), func(s string) bool { return s == "" })
	return strings.Join(all, ", ")
}
