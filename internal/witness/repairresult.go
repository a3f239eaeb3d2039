package witness

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/upkeep/repair"
	"github.com/convlog/convlog/upkeep/verify"
)

// RepairResult is the result of repairing a damaged session.
type RepairResult struct {
	repair.Report
	// KeptSeqs are the seqs of the written events in the repaired session. LostSeqs are
	// the seqs of its lost events.
	KeptSeqs, LostSeqs []int64
}

// Repair repairs a damaged session into a new one, or truncates its torn tail. It
// checks that the result verifies, accepts appends and has written events only. It
// closes s. It returns nil if there is nothing to repair.
func (w *Witness) Repair(t testing.TB, s eventlog.Store, session string) *RepairResult {
	t.Helper()
	l := eventlog.Open(s)
	defer closeLog(t, l)
	done, err := repair.Session(t.Context(), l, session, repair.Options{})
	if err != nil {
		if !errors.As(err, new(*repair.Error)) {
			w.WantLocated(t, "Repair", err)
		}
		return nil
	}
	if done.Action == repair.Cut && done.Head.IsZero() {
		return &RepairResult{Report: done} // the session only had a torn tail
	}
	m := &RepairResult{Report: done}
	fixed := session
	if done.Action == repair.Salvage {
		fixed = done.As
	}
	w.sortSeqs(t, l, m, session, fixed)
	report, err := verify.Session(t.Context(), l, fixed)
	if err != nil {
		t.Errorf("Verify of the repaired session: %v", err)
	}
	for _, d := range slices.Concat(report.Defects, report.Notes) {
		known := slices.ContainsFunc(done.Unmended, func(u eventlog.Defect) bool { return u.Seq == d.Seq })
		// An event that a redacted event or a result refers to may be lost.
		if !known && d.Rule != "redaction" && d.Rule != "orphan_result" {
			t.Errorf("Verify of the repaired session: %v", d)
		}
	}
	if _, err := l.Append(t.Context(), fixed, eventlog.Any(), suite.Note(99)); err != nil {
		t.Errorf("append to the repaired session: %v", err)
	}
	return m
}

// sortSeqs fills in the seqs of m.
func (w *Witness) sortSeqs(t testing.TB, l *eventlog.Log, m *RepairResult, session, fixed string) {
	t.Helper()
	written := w.written[session]
	next := written[0].Seq
	for e, err := range l.Read(t.Context(), fixed, eventlog.All().Own()) {
		if err != nil {
			if !errors.Is(err, eventlog.ErrNotFound) {
				t.Errorf("reading the repaired session: %v", err)
			}
			return
		}
		if e.Seq != next {
			t.Errorf("the repaired session has seq %d, want seq %d", e.Seq, next)
		}
		next = e.Seq + 1
		i := int(e.Seq - written[0].Seq)
		switch {
		case e.Type == event.Lost && i >= 0:
			m.LostSeqs = append(m.LostSeqs, e.Seq)
		case i >= 0 && i < len(written) && sameContent(&e, &written[i]):
			m.KeptSeqs = append(m.KeptSeqs, e.Seq)
		default:
			t.Errorf("the repaired session has %v, which was never written: %s", &e, e.Line())
		}
	}
}

// sameContent compares the parts of two events that a repair must not change.
func sameContent(a, b *event.Event) bool {
	return a.Type == b.Type && a.ID == b.ID && a.Cost == b.Cost && a.Timestamp.Equal(b.Timestamp) &&
		bytes.Equal(a.Metadata, b.Metadata) && bytes.Equal(a.Data, b.Data) &&
		bytes.Equal(a.Extras(), b.Extras()) && bytes.Equal(a.Kept(), b.Kept()) && slices.Equal(a.Blobs(), b.Blobs())
}
