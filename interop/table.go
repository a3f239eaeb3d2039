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
	touched  map[string]bool // the Sessions, if they are many
}

// Rejection is a record that cannot be parsed.
type Rejection struct {
	Line   int64
	Offset int64
	Reason string
}

// Touch adds a session to Sessions, once.
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

// Reject adds a rejected record.
func (r *Result) Reject(e *RecordError) {
	r.Rejected = append(r.Rejected, Rejection{Line: e.Line, Offset: e.Offset, Reason: e.Cause.Error()})
}

// Take calls take with each record and counts the records. A *RecordError, of the
// sequence or of take, rejects the record. Any other error ends Take.
func (r *Result) Take(records iter.Seq2[Record, error], take func(Record) error) error {
	for rec, err := range records {
		var rejected *RecordError
		if err != nil && !errors.As(err, &rejected) {
			return err
		}
		r.Records++
		if rejected == nil {
			err = take(rec)
		}
		if errors.As(err, &rejected) {
			r.Reject(rejected)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Found counts a record that the log had already.
func (r *Result) Found(m Match) {
	r.Present++
	if m.Withheld {
		r.Withheld++
	}
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

// located is Err with the file's name. An error that names a line already begins with
// the file's name.
func (r *Row) located() error {
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
