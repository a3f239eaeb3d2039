package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/interop"
)

// The limits of an import's table without --verbose.
const (
	mostRows       = 40 // files; of more, only files with rejected records
	mostRejections = 50 // rejected records
	mostOfOne      = 10 // rejected records of one file
	mostNames      = 3  // skipped files
)

// importTable prints the table of an import.
type importTable struct {
	*printer
	*interop.Table
	all bool // every file, rejected record and skipped file
}

// print prints the files, a sum for each of several formats, and the total. Rejected
// records and skipped files follow. Of more than 40 files it prints only files with
// rejected records. It shortens long lists and counts the rest.
func (t *importTable) print() {
	total := t.Total()
	if len(t.Rows) > 0 {
		t.printRows(&total)
	}
	t.rejected(!t.all && len(total.Rejected) > mostRejections)
	if total.Withheld > 0 {
		t.note("withheld: %s, erased in the log", count(total.Withheld, "record"))
	}
	if n := len(total.LeftOut); n > 0 {
		t.note("left out: %s, removed from this log; --again imports them", count(n, "session"))
	}
	t.names("skipped", "other file", t.Skipped)
	t.names("not followed", "link", t.Links)
}

// printRows prints the rows of files and the sums.
func (t *importTable) printRows(total *interop.Result) {
	out := term.Table{
		Heading: []string{"RECORDS", "EVENTS", "PRESENT", "RAW", "SKIPPED", "REJECTED", "SESSIONS", "FILE"},
		Right:   []int{0, 1, 2, 3, 4, 5, 6}, Keep: "FILE", Ends: []string{"FILE"},
		Drop: []string{"RAW", "SKIPPED", "SESSIONS", "PRESENT"},
	}
	add := func(r *interop.Result, name string) {
		out.Add([]string{
			thousands(r.Records), thousands(r.Events), thousands(r.Present), thousands(r.Raw), thousands(r.Skipped),
			thousands(len(r.Rejected)), thousands(len(r.Sessions)), lineOf(name),
		})
	}
	brief, shown := !t.all && len(t.Rows) > mostRows, 0
	for i := range t.Rows {
		row := &t.Rows[i]
		if !brief || shown < mostRows && (row.Err != nil || len(row.Rejected) > 0) {
			add(&row.Result, row.Path)
			shown++
		}
	}
	if hidden := len(t.Rows) - shown; hidden > 0 {
		out.Add([]string{"", "", "", "", "", "", "", "… " + count(hidden, "more file")})
	}
	if len(t.Rows) > 1 {
		t.addFormats(add)
		add(total, count(len(t.Rows), "file"))
	}
	t.Print(out)
}

// addFormats adds a sum for each format, if there are several.
func (t *importTable) addFormats(add func(r *interop.Result, name string)) {
	formats := map[string]*interop.Table{}
	for _, row := range t.Rows {
		if row.Format == "" {
			continue
		}
		if formats[row.Format] == nil {
			formats[row.Format] = &interop.Table{}
		}
		formats[row.Format].Rows = append(formats[row.Format].Rows, row)
	}
	if len(formats) < 2 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(formats)) {
		sum := formats[name].Total()
		add(&sum, count(len(formats[name].Rows), "file")+" of "+name)
	}
}

// rejected lists rejected records, errors and cycles, by file.
func (t *importTable) rejected(fold bool) {
	shown, hidden := 0, 0
	for i := range t.Rows {
		row := &t.Rows[i]
		for j, r := range row.Rejected {
			if fold && (shown == mostRejections || j == mostOfOne) {
				hidden += len(row.Rejected) - j
				break
			}
			t.note("rejected: %s:%d (byte %d): %s", row.Path, r.Line, r.Offset, r.Reason)
			shown++
		}
		if row.Err != nil {
			t.note("stopped: %v", row.Located())
		}
		if row.Cycle != "" {
			t.note("cycle: %s was imported before %s; each needs the other", row.Path, row.Cycle)
		}
	}
	if hidden > 0 {
		t.note("rejected: … and %s more", thousands(hidden))
	}
}

// names prints the number of files and the first names, or each name on a line.
func (t *importTable) names(verb, noun string, names []string) {
	switch head := verb + ": " + count(len(names), noun); {
	case len(names) == 0:
	case len(names) <= mostNames:
		t.note("%s: %s", head, strings.Join(names, ", "))
	case !t.all:
		t.note("%s: %s, …", head, strings.Join(names[:mostNames], ", "))
	default:
		t.note("%s", head)
		for _, name := range names {
			t.note("  %s", name)
		}
	}
}

// note prints a line.
func (t *importTable) note(format string, args ...any) {
	t.Printf("%s\n", lineOf(fmt.Sprintf(format, args...)))
}

// lineOf makes one safe line of a text: a tab, which would break the columns, becomes a space.
func lineOf(text string) string { return clean(strings.ReplaceAll(text, "\t", " ")) }
