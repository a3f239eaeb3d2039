package records

import (
	"errors"
	"iter"
	"slices"

	"github.com/convlog/convlog/interop"
)

// Tally is the Result of an import in progress. The zero value is ready for use.
type Tally struct {
	interop.Result
	touched map[string]bool // the Sessions, if they are many
}

// Touch adds a session to Sessions, once.
func (r *Tally) Touch(session string) {
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
func (r *Tally) Reject(e *RecordError) {
	r.Rejected = append(r.Rejected, interop.Rejection{Line: e.Line, Offset: e.Offset, Reason: e.Cause.Error()})
}

// Take calls take with each record and counts the records. A *RecordError, of the
// sequence or of take, rejects the record. Any other error ends Take.
func (r *Tally) Take(records iter.Seq2[Record, error], take func(Record) error) error {
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

// Found counts a record that the log had already. withheld says that its event is redacted.
func (r *Tally) Found(withheld bool) {
	r.Present++
	if withheld {
		r.Withheld++
	}
}

// Refuse returns the Result of a source that is one rejected record.
func Refuse(src interop.Source, cause error) interop.Result {
	rec := Record{Source: src.Name, Line: 1}
	t := Tally{Result: interop.Result{Records: 1}}
	t.Reject(rec.Reject(cause))
	return t.Result
}

// NoHeader says in the result that the file has no readable header, so that the session has
// its id from the name of the file.
func (r *Tally) NoHeader() {
	r.Incomplete("the header of the session is missing: the name of the file gives the session its id")
}

// Incomplete rejects a record that the session needs and the file lacks.
func (r *Tally) Incomplete(reason string) {
	if len(r.Rejected) > 0 && r.Rejected[0].Line == 1 {
		r.Rejected[0].Reason += "; " + reason
		return
	}
	r.Records++
	r.Rejected = slices.Insert(r.Rejected, 0, interop.Rejection{Line: 1, Reason: reason})
}
