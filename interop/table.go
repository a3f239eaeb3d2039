package interop

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Result is what the import of one source came to. Every record read is in
// exactly one of Imported, Raw, Present, Held and Refused.
type Result struct {
	Records  int // records read
	Imported int // records that became events of their own
	Raw      int // records kept raw, in events of the format's own types
	Present  int // records that the log had already
	// Held counts records that belong to no session, or to one whose first
	// message the source does not have yet.
	Held    int
	Refused []Refusal
	Events  int // events written, for these records and around them
	// Sessions are those that records of the source belong to, in order of
	// appearance.
	Sessions []string
}

// Refusal is a record that could not be read.
type Refusal struct {
	Line   int64
	Offset int64
	Reason string
}

// Touch notes that a record belongs to a session.
func (r *Result) Touch(session string) {
	if !slices.Contains(r.Sessions, session) {
		r.Sessions = append(r.Sessions, session)
	}
}

// Refuse notes a refused record.
func (r *Result) Refuse(e *RecordError) {
	r.Refused = append(r.Refused, Refusal{Line: e.Line, Offset: e.Offset, Reason: e.Cause.Error()})
}

func (r *Result) add(o *Result) {
	r.Records += o.Records
	r.Imported += o.Imported
	r.Raw += o.Raw
	r.Present += o.Present
	r.Held += o.Held
	r.Events += o.Events
	r.Refused = append(r.Refused, o.Refused...)
	for _, id := range o.Sessions {
		r.Touch(id)
	}
}

// Row is one file of a Table.
type Row struct {
	Path   string
	Format string
	Result
	// Err is why the import of this file stopped; nil if it did not.
	Err error
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
}

// Total sums the rows up.
func (t *Table) Total() Result {
	var total Result
	for i := range t.Rows {
		total.add(&t.Rows[i].Result)
	}
	return total
}

// Print writes the table as aligned text, refusals below it.
func (t *Table) Print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "records\tevents\tpresent\traw\theld\trefused\tsessions\t  file")
	for i := range t.Rows {
		printRow(tw, &t.Rows[i].Result, t.Rows[i].Path)
	}
	if len(t.Rows) != 1 {
		total := t.Total()
		printRow(tw, &total, thousands(len(t.Rows))+" files")
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	return t.printRest(w)
}

func printRow(w io.Writer, r *Result, name string) {
	for _, n := range []int{r.Records, r.Events, r.Present, r.Raw, r.Held, len(r.Refused), len(r.Sessions)} {
		fmt.Fprintf(w, "%s\t", thousands(n))
	}
	fmt.Fprintf(w, "  %s\n", name)
}

func (t *Table) printRest(w io.Writer) error {
	var err error
	note := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(w, format, args...)
		}
	}
	for i := range t.Rows {
		row := &t.Rows[i]
		for _, r := range row.Refused {
			note("refused: %s:%d (byte %d): %s\n", row.Path, r.Line, r.Offset, r.Reason)
		}
		if row.Err != nil {
			note("stopped: %v\n", row.located())
		}
	}
	if n := len(t.Skipped); n > 0 {
		note("skipped: %s other %s\n", thousands(n), files(n))
	}
	return err
}

func files(n int) string {
	if n == 1 {
		return "file"
	}
	return "files"
}

// thousands writes 1234567 as 1,234,567.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
