package logtest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/upkeep/verify"
)

// Witness knows what a store held before it was damaged, and looks at what is
// left of it. Whatever the damage, it fails the test where an event is shown
// that was not written, where a reading has a gap, and where an error does not
// say what is damaged.
type Witness struct {
	// Tolerates is of errors that are neither damage nor a missing session or
	// blob and may come up all the same; nil is none.
	Tolerates func(error) bool
	// Damaged are sessions that are damaged beside the one that is examined.
	Damaged []string

	written map[string][]event.Event
}

// NewWitness takes down what a sound store holds.
func NewWitness(t testing.TB, s eventlog.Store) *Witness {
	t.Helper()
	w := &Witness{written: map[string][]event.Event{}}
	l := eventlog.Open(s)
	infos, err := suite.Collect(l.Sessions(t.Context()))
	if err != nil {
		t.Fatalf("list the sample: %v", err)
	}
	for _, info := range infos {
		if w.written[info.ID], err = suite.Collect(l.Read(t.Context(), info.ID, eventlog.All().Own())); err != nil {
			t.Fatalf("read the sample: %v", err)
		}
		report, err := verify.Session(t.Context(), l, info.ID)
		if err != nil || len(report.Defects)+len(report.Notes) > 0 {
			t.Fatalf("verify the sample: %v %v %v", report.Defects, report.Notes, err)
		}
	}
	return w
}

// Written is what a session held.
func (w *Witness) Written(session string) []event.Event { return w.written[session] }

// spared reports whether a session must be as it was.
func (w *Witness) isUnaffected(f *Findings, session string) bool {
	return session != f.Session && !slices.Contains(w.Damaged, session)
}

// Reading is the seqs that a reading gave, and what ended it early.
type Reading struct {
	Seqs []int64
	Err  error
}

// Findings are what is left of a session.
type Findings struct {
	Session string
	// Forward and Backward are readings of the session's own events, with their
	// data.
	Forward, Backward Reading
	// Report is that of Verify, and VerifyErr its error.
	Report    verify.Report
	VerifyErr error
	// Around is what Check says of the store, where Verify says nothing of a
	// session that cannot be read: an index of the store may be damaged that
	// Verify had no need of.
	CheckDefects []eventlog.Defect
	// Listed is the session's row of a listing, nil if it has none. Examine fills it in.
	Listed *eventlog.SessionInfo
	// Append is the error of an append behind what is left, and After what is
	// there then. Examine fills them in.
	Append error
	After  Reading
}

// Noticed says that Verify speaks of something, or Check.
func (f *Findings) Detected() bool {
	return f.VerifyErr != nil || len(f.Report.Defects)+len(f.Report.Notes)+len(f.CheckDefects) > 0
}

// Whole says that every event that was written is read in both directions.
func (w *Witness) Complete(f *Findings) bool {
	want := suite.SeqsOf(w.written[f.Session])
	forward := f.Forward.Err == nil && slices.Equal(f.Forward.Seqs, want)
	slices.Reverse(want)
	return forward && f.Backward.Err == nil && slices.Equal(f.Backward.Seqs, want)
}

// Look reads a session in both directions and verifies it. It closes nothing.
func (w *Witness) Inspect(t testing.TB, s eventlog.Store, session string) *Findings {
	t.Helper()
	l := eventlog.Open(s)
	f := &Findings{Session: session}
	f.Report, f.VerifyErr = verify.Session(t.Context(), l, session)
	w.WantLocated(t, "Verify", f.VerifyErr)
	f.Forward = w.read(t, l, session, eventlog.All())
	f.Backward = w.read(t, l, session, eventlog.All().Backward())
	if (f.Forward.Err != nil || f.Backward.Err != nil) && !f.Detected() {
		f.CheckDefects = w.checkDefects(t, l)
	}
	if (f.Forward.Err != nil || f.Backward.Err != nil) && !f.Detected() {
		t.Errorf("Verify and Check say nothing, but reading session %q gives %v and %v", session, f.Forward.Err, f.Backward.Err)
	}
	return f
}

// around gives what Check says.
func (w *Witness) checkDefects(t testing.TB, l *eventlog.Log) (found []eventlog.Defect) {
	t.Helper()
	for d, err := range verify.Store(t.Context(), l) {
		if err != nil {
			t.Errorf("Check: %v", err)
			break
		}
		found = append(found, d)
	}
	return found
}

// read reads a range of a session's own events.
func (w *Witness) read(t testing.TB, l *eventlog.Log, session string, r eventlog.Range) (got Reading) {
	t.Helper()
	step := int64(0)
	for e, err := range l.Read(t.Context(), session, r.Own()) {
		if err != nil {
			got.Err = err
			w.WantLocated(t, fmt.Sprintf("reading %v", r), err)
			break
		}
		if !w.matches(session, &e) {
			t.Errorf("reading %v shows %v, which was not written: %s", r, &e, e.Line())
		}
		if n := len(got.Seqs); n > 0 {
			if step == 0 {
				step = e.Seq - got.Seqs[0]
			}
			if e.Seq != got.Seqs[n-1]+step || step != 1 && step != -1 {
				t.Errorf("reading %v shows seq %d behind %v", r, e.Seq, got.Seqs)
			}
		}
		if got.Seqs = append(got.Seqs, e.Seq); len(got.Seqs) > len(w.written[session]) {
			t.Errorf("reading %v does not end", r)
			break
		}
	}
	return got
}

// wrote reports whether e is the event that was written at its seq. How its
// line is laid out does not count.
func (w *Witness) matches(session string, e *event.Event) bool {
	written := w.written[session]
	if len(written) == 0 || e.Seq < written[0].Seq || e.Seq > written[len(written)-1].Seq {
		return false
	}
	return equal(e, &written[e.Seq-written[0].Seq])
}

func equal(a, b *event.Event) bool {
	return a.Head() == b.Head() && a.SessionID == b.SessionID && a.Type == b.Type && a.ID == b.ID && a.More() == b.More() &&
		a.Cost == b.Cost && a.Timestamp.Equal(b.Timestamp) && bytes.Equal(a.Metadata, b.Metadata) && bytes.Equal(a.Data, b.Data) &&
		bytes.Equal(a.Extras(), b.Extras()) && bytes.Equal(a.Kept(), b.Kept()) && slices.Equal(a.Blobs(), b.Blobs())
}

// Located makes sure that an error is of a kind that damage may have, and says
// where it is.
func (w *Witness) WantLocated(t testing.TB, what string, err error) {
	t.Helper()
	var corrupt *eventlog.CorruptError
	switch {
	case err == nil, errors.Is(err, eventlog.ErrNotFound), errors.Is(err, eventlog.ErrEventNotFound), errors.Is(err, eventlog.ErrBlobNotFound),
		errors.Is(err, event.ErrVersion):
	case w.Tolerates != nil && w.Tolerates(err):
	case errors.As(err, &corrupt) && (corrupt.Path != "" || corrupt.Session != ""):
	default:
		t.Errorf("%s: %v (%T), which locates no damage", what, err, err)
	}
}
