package interop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/convlog/convlog/internal/importrun"
)

// Result counts the records and events of one import of a source. Every record is
// counted in exactly one of Imported, Raw, Present, Skipped and Rejected.
type Result struct {
	Records  int // records read
	Imported int // records that became events of their own
	Raw      int // records that became raw events
	Present  int // records that the log had already
	// Withheld counts the Present records whose event is redacted: nothing of them was
	// stored.
	Withheld int
	// Skipped counts records that belong to no session, to a session whose first message
	// is not in the source yet, to a session of LeftOut, or to a session whose import stopped.
	Skipped  int
	Rejected []Rejection
	Events   int // events written
	// Sessions are the sessions of the source's records, in order of appearance, without
	// the sessions of LeftOut.
	Sessions []string
	// LeftOut are the sessions of the source that were removed from the log, and new
	// sessions below them.
	LeftOut []string
}

// Rejection is a record that cannot be parsed.
type Rejection struct {
	Line   int64
	Offset int64
	Reason string
}

// correct moves records to Present that the importer counted as new.
func (r *Result) correct(c importrun.Counts) { r.Present += r.take(c) }

// lose moves records to Skipped that were read and not stored, because the import stopped.
func (r *Result) lose(c importrun.Counts) { r.Skipped += r.take(c) }

// leaveOut moves records to Skipped, and sessions to LeftOut. If the source has no other
// sessions, records without an event of their own are moved too.
func (r *Result) leaveOut(sessions []string, c importrun.Counts) {
	if len(sessions) == 0 {
		return
	}
	r.Skipped += r.take(c)
	r.LeftOut = sessions
	r.Sessions = slices.DeleteFunc(r.Sessions, func(id string) bool { return slices.Contains(sessions, id) })
	if len(r.Sessions) == 0 {
		r.Skipped += r.Imported + r.Raw + r.Present
		r.Imported, r.Raw, r.Present, r.Withheld = 0, 0, 0, 0
	}
}

// take subtracts records that the importer counted as new, and returns how many.
func (r *Result) take(c importrun.Counts) int {
	imported, raw := min(c.Imported, r.Imported), min(c.Raw, r.Raw)
	r.Imported -= imported
	r.Raw -= raw
	return imported + raw
}

func (r *Result) add(o *Result) {
	r.Records += o.Records
	r.Imported += o.Imported
	r.Raw += o.Raw
	r.Present += o.Present
	r.Withheld += o.Withheld
	r.Skipped += o.Skipped
	r.Events += o.Events
	r.Rejected = append(r.Rejected, o.Rejected...)
}

// Row is one file of a Table.
type Row struct {
	Path   string
	Format string
	Result
	// Err is the error that stopped the import of this file, or nil.
	Err error
	// Cycle is the path of a file that this file needs and that needs this file;
	// empty in most rows. This file was imported first.
	Cycle string
}

// Located is Err with the file's path. An error about a record begins with the path already.
func (r *Row) Located() error {
	if strings.HasPrefix(r.Err.Error(), r.Path) {
		return r.Err
	}
	return fmt.Errorf("%s: %w", r.Path, r.Err)
}

// Table is the result of an import: a row for each file, in the order of import.
type Table struct {
	Rows []Row
	// Skipped are files in folders that are no transcripts, ordered by path.
	Skipped []string
	// Links are symbolic links in folders, ordered by path. They were not followed.
	Links []string
}

// Total adds up the rows.
func (t *Table) Total() Result {
	var total Result
	seen, left := map[string]bool{}, map[string]bool{}
	for i := range t.Rows {
		row := &t.Rows[i]
		total.add(&row.Result)
		total.Sessions = appendNew(total.Sessions, seen, row.Sessions)
		total.LeftOut = appendNew(total.LeftOut, left, row.LeftOut)
	}
	return total
}

// appendNew appends the ids that were not seen before.
func appendNew(to []string, seen map[string]bool, ids []string) []string {
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			to = append(to, id)
		}
	}
	return to
}
