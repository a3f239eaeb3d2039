// Package witness checks what a damaged store gives back: it knows what was stored, and examines the store
// after the damage. Tests of stores use it.
package witness

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

// Witness knows the content of a store before the store was damaged. It examines the
// damaged store. For every kind of damage it fails the test if a read returns an event
// that was never written, if a read has a gap, or if an error does not locate the
// damage.
type Witness struct {
	// Tolerates reports whether an error is allowed that is neither damage nor a missing
	// session or blob. A nil Tolerates allows no other errors.
	Tolerates func(error) bool
	// Damaged lists the other damaged sessions, besides the examined one.
	Damaged []string

	written map[string][]event.Event
}

// New reads the content of an undamaged store.
func New(t testing.TB, s eventlog.Store) *Witness {
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

// Written returns the events of a session before the damage.
func (w *Witness) Written(session string) []event.Event { return w.written[session] }

// isUnaffected reports whether the damage must not change a session.
func (w *Witness) isUnaffected(f *Findings, session string) bool {
	return session != f.Session && !slices.Contains(w.Damaged, session)
}

// Reading has the seqs that a read returned, and the error that ended it.
type Reading struct {
	Seqs []int64
	Err  error
}

// Findings are the results of examining a damaged session.
type Findings struct {
	Session string
	// Forward and Backward are reads of the session's own events, with their data.
	Forward, Backward Reading
	// Report and VerifyErr are the results of Verify.
	Report    verify.Report
	VerifyErr error
	// CheckDefects are the results of Check. They are filled in if Verify reports
	// nothing and a read fails: the damage may be in an index of the store that Verify
	// does not read.
	CheckDefects []eventlog.Defect
	// Listed is the session's row of a listing, or nil. Only Examine sets it.
	Listed *eventlog.SessionInfo
	// Append is the error of an append to the damaged session. After is a read after the
	// append. Only Examine sets them.
	Append error
	After  Reading
}

// Detected reports whether Verify or Check found damage.
func (f *Findings) Detected() bool {
	return f.VerifyErr != nil || len(f.Report.Defects)+len(f.Report.Notes)+len(f.CheckDefects) > 0
}

// Complete reports whether both reads returned every written event.
func (w *Witness) Complete(f *Findings) bool {
	want := suite.SeqsOf(w.written[f.Session])
	forward := f.Forward.Err == nil && slices.Equal(f.Forward.Seqs, want)
	slices.Reverse(want)
	return forward && f.Backward.Err == nil && slices.Equal(f.Backward.Seqs, want)
}

// Inspect reads a session in both directions and verifies it. It closes nothing.
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
		t.Errorf("Verify and Check report nothing, but reading session %q returns %v and %v", session, f.Forward.Err, f.Backward.Err)
	}
	return f
}

// checkDefects returns the defects that Check finds.
func (w *Witness) checkDefects(t testing.TB, l *eventlog.Log) (found []eventlog.Defect) {
	t.Helper()
	found, err := suite.Defects(verify.Store(t.Context(), l))
	if err != nil {
		t.Errorf("Check: %v", err)
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
			t.Errorf("reading %v returns %v, which was never written: %s", r, &e, e.Line())
		}
		if n := len(got.Seqs); n > 0 {
			if step == 0 {
				step = e.Seq - got.Seqs[0]
			}
			if e.Seq != got.Seqs[n-1]+step || step != 1 && step != -1 {
				t.Errorf("reading %v returns seq %d after %v", r, e.Seq, got.Seqs)
			}
		}
		if got.Seqs = append(got.Seqs, e.Seq); len(got.Seqs) > len(w.written[session]) {
			t.Errorf("reading %v does not end", r)
			break
		}
	}
	return got
}

// matches reports whether e is the written event of its seq. The layout of the line
// may differ.
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

// WantLocated checks that an error is an allowed error of damage and locates the
// damage.
func (w *Witness) WantLocated(t testing.TB, what string, err error) {
	t.Helper()
	var corrupt *eventlog.CorruptError
	switch {
	case err == nil, errors.Is(err, eventlog.ErrNotFound), errors.Is(err, eventlog.ErrEventNotFound), errors.Is(err, eventlog.ErrBlobNotFound),
		errors.Is(err, event.ErrVersion):
	case w.Tolerates != nil && w.Tolerates(err):
	case errors.As(err, &corrupt) && (corrupt.Path != "" || corrupt.Session != ""):
	default:
		t.Errorf("%s: %v (%T) does not locate the damage", what, err, err)
	}
}
