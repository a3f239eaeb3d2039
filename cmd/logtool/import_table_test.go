package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/interop"
)

// printed is the table of an import, on a terminal of a width; 0 is no terminal.
func printed(t *testing.T, table *interop.Table, all bool, width int) string {
	t.Helper()
	var text strings.Builder
	p := &printer{Printer: term.NewPrinter(&text, term.Options{Terminal: width > 0, Width: width})}
	(&importTable{p, table, all}).print()
	if err := p.Flush(); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestTheTableOfAnImport(t *testing.T) {
	table := interop.Table{
		Rows: []interop.Row{
			{Path: "a.jsonl", Result: interop.Result{Records: 3, Imported: 2, Events: 4, Sessions: []string{"s"}, Rejected: []interop.Rejection{{Line: 3, Offset: 70, Reason: "cut off"}}}},
			{Path: "b.jsonl", Result: interop.Result{Records: 1, Present: 1, Sessions: []string{"s"}}, Cycle: "a.jsonl", Err: errors.New("no luck")},
			{Path: "d.jsonl", Result: interop.Result{Records: 1234567}, Err: errors.New("d.jsonl:7: no luck either")},
		},
		Skipped: []string{"c.txt"},
	}
	text := printed(t, &table, false, 0)
	for _, want := range []string{"a.jsonl", "1,234,571 ", "3 files", "rejected: a.jsonl:3 (byte 70): cut off", "stopped: b.jsonl: no luck\n", "stopped: d.jsonl:7: no luck either\n", "cycle: b.jsonl was imported before a.jsonl; each needs the other\n", "skipped: 1 other file: c.txt\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

// Of many files those are listed that have something to look at; all of them if
// they are asked for.
func TestALongTableIsFolded(t *testing.T) {
	var table interop.Table
	for i := range 5000 {
		row := interop.Row{Path: fmt.Sprintf("%04d.jsonl", i), Format: []string{"one", "two"}[i%2], Result: interop.Result{Records: 1, Events: 1, Sessions: []string{fmt.Sprint(i)}}}
		if i%100 == 0 {
			for line := range 20 {
				row.Rejected = append(row.Rejected, interop.Rejection{Line: int64(line + 1), Reason: "torn"})
			}
		}
		table.Rows = append(table.Rows, row)
	}
	table.Rows[7].Err = errors.New("no luck")
	table.Skipped = []string{"a", "b", "c", "d"}
	table.Links = []string{"l\x1b[2J"}
	short, long := printed(t, &table, false, 0), printed(t, &table, true, 0)
	for _, want := range []string{
		"  … 4,960 more files\n", "  2,500 files of one\n", "  2,500 files of two\n", "  5,000 files\n",
		"  5,000   5,000        0    0        0     1,000     5,000  5,000 files\n",
		"rejected: 0000.jsonl:10 (byte 0): torn\n", "rejected: … and 950 more\n", "stopped: 0007.jsonl: no luck\n",
		"skipped: 4 other files: a, b, c, …\n", "not followed: 1 link: l\\x1b[2J\n",
	} {
		if !strings.Contains(short, want) {
			t.Errorf("%q is missing in\n%s", want, short)
		}
	}
	if n := strings.Count(short, "\n"); n > 110 {
		t.Errorf("%d lines", n)
	}
	if n := strings.Count(long, "\n"); n != 1+5000+3+1000+1+5+1 {
		t.Errorf("all of it is %d lines", n)
	}
}

// With --verbose, the table lists every skipped file, else the first ones.
func TestSkippedFilesAreListed(t *testing.T) {
	table := interop.Table{Skipped: []string{"a", "b", "c", "d"}}
	short, long := printed(t, &table, false, 0), printed(t, &table, true, 0)
	if short != "skipped: 4 other files: a, b, c, …\n" || long != "skipped: 4 other files\n  a\n  b\n  c\n  d\n" {
		t.Errorf("%s%s", short, long)
	}
}

// A narrow table leaves out columns, and the beginnings of names.
func TestNarrowTables(t *testing.T) {
	table := interop.Table{Rows: []interop.Row{
		{Path: "a.jsonl", Result: interop.Result{Records: 12345}},
		{Path: "/home/ada/" + strings.Repeat("é", 100) + "/projects/b.jsonl", Result: interop.Result{Records: 1}},
	}}
	for _, width := range []int{50, 60, 80, 120} {
		text := printed(t, &table, false, width)
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if len(lines) != 4 || !strings.HasSuffix(lines[1], "  a.jsonl") || !strings.HasSuffix(lines[2], "/projects/b.jsonl") {
			t.Errorf("%d columns:\n%s", width, text)
		}
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); n > width || !strings.Contains(line, "  ") {
				t.Errorf("%d columns of %d: %s", n, width, line)
			}
		}
	}
}

// Records whose events were erased are counted below the table.
func TestWithheldRecordsAreCounted(t *testing.T) {
	none, some := interop.Result{Present: 1}, interop.Result{Present: 1, Withheld: 1}
	table := interop.Table{Rows: []interop.Row{{Path: "a", Result: none}, {Path: "b", Result: some}, {Path: "c", Result: some}}}
	if text := printed(t, &table, false, 0); !strings.Contains(text, "withheld: 2 records, erased in the log\n") {
		t.Error(text)
	}
	if total := table.Total(); total.Present != 3 || total.Withheld != 2 {
		t.Errorf("the total is %+v", total)
	}
	table.Rows = table.Rows[:1]
	if text := printed(t, &table, false, 0); strings.Contains(text, "withheld") {
		t.Error(text)
	}
}
