package interop

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Result counts the records and events of one import of a source. Every record is
// counted in exactly one of Imported, Raw, Present, Skipped and Rejected.
type Result struct {
	Records  int // records read
	Imported int // records that became events of their own
	Raw      int // records kept raw, in events of the format's own types
	Present  int // records that the log had already
	// Held counts records that belong to no session, or to one whose first
	// message the source does not have yet.
	Skipped    int
	Rejected []Rejection
	Events  int // events written, for these records and around them
	// Sessions are those that records of the source belong to, in order of
	// appearance.
	Sessions []string
	touched  map[string]bool // Sessions, once they are many
}

// Rejection is a record that could not be read.
type Rejection struct {
	Line   int64
	Offset int64
	Reason string
}

// Touch notes that a record belongs to a session.
func (r *Result) Touch(session string) {
	const few = 16
	switch n := len(r.Sessions); {
	case n > 0 && r.Sessions[n-1] == session, r.touched[session], n < few && slices.Contains(r.Sessions, session):
		return
	case n >= few && r.touched == nil:
		r.touched = make(map[string]bool, 2*few)
		for _, id := range r.Sessions {
			r.touched[id] = true
		}
		if r.touched[session] {
			return
		}
	}
	r.Sessions = append(r.Sessions, session)
	if r.touched != nil {
		r.touched[session] = true
	}
}

// Refuse notes a refused record.
func (r *Result) Reject(e *RecordError) {
	r.Rejected = append(r.Rejected, Rejection{Line: e.Line, Offset: e.Offset, Reason: e.Cause.Error()})
}

// Take gives records to a function, one after the other, and counts them. One
// that cannot be read, or that the function refuses with a *RecordError, is noted
// as refused; any other error ends it.
func (r *Result) Take(records iter.Seq2[Record, error], take func(Record) error) error {
	for rec, err := range records {
		var refused *RecordError
		if err != nil && !errors.As(err, &refused) {
			return err
		}
		r.Records++
		if refused == nil {
			err = take(rec)
		}
		if errors.As(err, &refused) {
			r.Reject(refused)
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (r *Result) add(o *Result) {
	r.Records += o.Records
	r.Imported += o.Imported
	r.Raw += o.Raw
	r.Present += o.Present
	r.Skipped += o.Skipped
	r.Events += o.Events
	r.Rejected = append(r.Rejected, o.Rejected...)
}

// Row is one file of a Table.
type Row struct {
	Path   string
	Format string
	Result
	// Err is why the import of this file stopped; nil if it did not.
	Err error
	// Cycle is the path of a file that this file needs and that needs this file;
	// empty in most rows. This file was imported first.
	Cycle string
}

// located is Err with the file's name, which formats put before it where they
// name the line, too.
func (r *Row) located() error {
	if strings.HasPrefix(r.Err.Error(), r.Path) {
		return r.Err
	}
	return fmt.Errorf("%s: %w", r.Path, r.Err)
}

// Table is what an import came to, a row for each file in order of import.
type Table struct {
	Rows []Row
	// Skipped are files in folders that are no transcripts, ordered by path.
	Skipped []string
	// Links are symbolic links in folders, which were not followed, ordered by path.
	Links []string
}

// Total sums the rows up.
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
