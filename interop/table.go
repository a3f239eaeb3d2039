package interop

import (
	"fmt"
	"strings"
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
	// Skipped counts records that belong to no session, or to a session whose first
	// message is not in the source yet.
	Skipped  int
	Rejected []Rejection
	Events   int // events written
	// Sessions are the sessions of the source's records, in order of appearance.
	Sessions []string
}

// Rejection is a record that cannot be parsed.
type Rejection struct {
	Line   int64
	Offset int64
	Reason string
}

// correct moves records to Present that the importer counted as new.
func (r *Result) correct(imported, raw int) {
	imported, raw = min(imported, r.Imported), min(raw, r.Raw)
	r.Imported -= imported
	r.Raw -= raw
	r.Present += imported + raw
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
	seen := map[string]bool{}
	for i := range t.Rows {
		row := &t.Rows[i]
		total.add(&row.Result)
		for _, id := range row.Sessions {
			if !seen[id] {
				seen[id] = true
				total.Sessions = append(total.Sessions, id)
			}
		}
	}
	return total
}
