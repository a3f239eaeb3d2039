package witness

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/transfer"
	"github.com/convlog/convlog/upkeep/verify"
)

// Examine reads a damaged session in every way, appends to it and checks the other
// sessions. It closes s.
func (w *Witness) Examine(t testing.TB, s eventlog.Store, session string) *Findings {
	t.Helper()
	l := eventlog.Open(s)
	defer closeLog(t, l)
	f := w.Inspect(t, s, session)
	w.checkRanges(t, l, f)
	w.checkListing(t, l, f)
	w.checkWatch(t, l, f)
	w.checkExport(t, l, f)
	w.checkConvert(t, l, f)
	w.checkOthers(t, l, f)
	w.checkAppend(t, l, f)
	w.checkOthers(t, l, f)
	return f
}

// ExamineBriefly is Examine without the ranges, the watcher, the copies and the other
// sessions.
func (w *Witness) ExamineBriefly(t testing.TB, s eventlog.Store, session string) *Findings {
	t.Helper()
	l := eventlog.Open(s)
	defer closeLog(t, l)
	f := w.Inspect(t, s, session)
	w.checkListing(t, l, f)
	w.checkAppend(t, l, f)
	return f
}

func closeLog(t testing.TB, l *eventlog.Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// checkRanges reads parts of the session. A read without an error must reach the end
// of its range.
func (w *Witness) checkRanges(t testing.TB, l *eventlog.Log, f *Findings) {
	t.Helper()
	written := w.written[f.Session]
	first, last := written[0].Seq, written[len(written)-1].Seq
	for _, seq := range []int64{first, first + 1, (first + last) / 2, last} {
		from := w.read(t, l, f.Session, eventlog.From(seq))
		w.wantComplete(t, f, from, seq, last)
		w.wantComplete(t, f, w.read(t, l, f.Session, eventlog.Between(seq, seq)), seq, seq)
		w.wantComplete(t, f, w.read(t, l, f.Session, eventlog.Between(0, seq)), first, seq)
		w.wantComplete(t, f, reversed(w.read(t, l, f.Session, eventlog.Between(seq, 0).Backward())), seq, last)
		w.wantComplete(t, f, reversed(w.read(t, l, f.Session, eventlog.Between(0, seq).Backward())), first, seq)
		until := w.read(t, l, f.Session, eventlog.All().Until(written[seq-first].ID))
		if until.Err == nil && (len(until.Seqs) == 0 || until.Seqs[len(until.Seqs)-1] != seq) {
			t.Errorf("reading until the id of seq %d returns %v", seq, until.Seqs)
		}
	}
	from := last - 2
	if n := len(f.Forward.Seqs); n > 0 {
		from = f.Forward.Seqs[max(n-3, 0)]
	}
	w.wantComplete(t, f, w.read(t, l, f.Session, eventlog.Last(3)), from, last)
	w.wantComplete(t, f, reversed(w.read(t, l, f.Session, eventlog.Last(3).Backward())), from, last)
}

func reversed(r Reading) Reading {
	slices.Reverse(r.Seqs)
	return r
}

// wantComplete checks that a read without an error has all readable seqs from from to
// to.
func (w *Witness) wantComplete(t testing.TB, f *Findings, r Reading, from, to int64) {
	t.Helper()
	if r.Err != nil || f.Forward.Err != nil || f.Backward.Err != nil {
		return
	}
	want := slices.DeleteFunc(slices.Clone(f.Forward.Seqs), func(seq int64) bool { return seq < from || seq > to })
	if !slices.Equal(want, r.Seqs) {
		t.Errorf("reading seqs %d to %d of %v returns %v without an error", from, to, f.Forward.Seqs, r.Seqs)
	}
}

// checkListing checks that the listing shows the other sessions unchanged and only
// written events of the damaged one.
func (w *Witness) checkListing(t testing.TB, l *eventlog.Log, f *Findings) {
	t.Helper()
	infos, err := suite.Collect(l.Sessions(t.Context()))
	if err != nil {
		t.Errorf("the listing fails: %v", err)
	}
	for session, written := range w.written {
		i := slices.IndexFunc(infos, func(i eventlog.SessionInfo) bool { return i.ID == session })
		if session == f.Session {
			if i >= 0 {
				f.Listed = &infos[i]
				w.checkRow(t, f)
			}
			continue
		}
		if w.isUnaffected(f, session) && (i < 0 || infos[i].Err != nil || infos[i].First.Head() != written[0].Head() || infos[i].Last.Head() != headEvent(written).Head()) {
			t.Errorf("the listing of session %q changed: %+v", session, infos)
		}
	}
}

func headEvent(events []event.Event) *event.Event { return &events[len(events)-1] }

// checkRow checks the first and last event in the damaged session's row.
func (w *Witness) checkRow(t testing.TB, f *Findings) {
	t.Helper()
	w.WantLocated(t, "the listing", f.Listed.Err)
	for _, e := range []event.Event{f.Listed.First, f.Listed.Last} {
		if f.Listed.Err == nil && !w.matchesStored(f.Session, &e) {
			t.Errorf("the listing has %v, which was never written", &e)
		}
	}
}

// matchesStored is matches for an event without its spilled data.
func (w *Witness) matchesStored(session string, e *event.Event) bool {
	full := *e
	if _, _, spilled := e.Spilled(); spilled {
		for i := range w.written[session] {
			if w.written[session][i].Seq == e.Seq {
				full.Data = w.written[session][i].Data
			}
		}
	}
	return w.matches(session, &full)
}

// checkWatch checks that a watcher gets the same events as a reader, or some of them
// and an error.
func (w *Witness) checkWatch(t testing.TB, l *eventlog.Log, f *Findings) {
	t.Helper()
	var got []int64
	var failed error
	whole := f.Forward.Err == nil
	for e, err := range l.Watch(t.Context(), f.Session, f.firstSeq()) {
		if failed = err; err != nil {
			break
		}
		if got = append(got, e.Seq); len(got) > len(f.Forward.Seqs) || whole && len(got) == len(f.Forward.Seqs) {
			break
		}
	}
	w.WantLocated(t, "Watch", failed)
	given := f.Forward.Seqs
	if failed != nil {
		given = given[:min(len(got), len(given))]
	}
	if !slices.Equal(got, given) || whole && failed != nil && f.Backward.Err == nil {
		t.Errorf("Watch returns %v and %v, a read returns %v and %v", got, failed, f.Forward.Seqs, f.Forward.Err)
	}
}

// firstSeq returns the seq of the session's first event.
func (f *Findings) firstSeq() int64 {
	if len(f.Forward.Seqs) > 0 {
		return f.Forward.Seqs[0]
	}
	return 0
}

// checkExport checks that Export fails for an incomplete session.
func (w *Witness) checkExport(t testing.TB, l *eventlog.Log, f *Findings) {
	t.Helper()
	var out bytes.Buffer
	err := transfer.Export(t.Context(), l, &out, f.Session)
	w.WantLocated(t, "Export", err)
	if err == nil && f.Forward.Err != nil {
		t.Errorf("Export does not report %v", f.Forward.Err)
	}
	if err != nil && f.Forward.Err == nil && !f.Detected() {
		t.Errorf("Export: %v, but a read and Verify find no damage", err)
	}
}

// checkConvert copies the store and checks that all other sessions are copied.
func (w *Witness) checkConvert(t testing.TB, l *eventlog.Log, f *Findings) {
	t.Helper()
	dst := eventlog.Open(memory.New())
	failed := map[string]error{}
	for adopted, err := range transfer.Convert(t.Context(), dst, l) {
		w.WantLocated(t, "Convert", err)
		failed[adopted.Session] = err
	}
	if failed[f.Session] == nil && f.Listed != nil && f.Forward.Err != nil && !errors.Is(f.Forward.Err, eventlog.ErrNotFound) {
		t.Errorf("Convert does not report %v", f.Forward.Err)
	}
	for session, written := range w.written {
		if !w.isUnaffected(f, session) || failed[session] != nil && w.isOrphan(f, session) {
			continue
		}
		copied, err := suite.Collect(dst.Read(t.Context(), session, eventlog.All().Own()))
		if err != nil || failed[session] != nil || !slices.EqualFunc(copied, written, same) {
			t.Errorf("session %q is not copied: %v, %v", session, failed[session], err)
		}
	}
}

func same(a, b event.Event) bool { return equal(&a, &b) }

// isOrphan reports whether a session is a fork of a damaged session.
func (w *Witness) isOrphan(f *Findings, session string) bool {
	fork, forked, err := event.Decode[event.Fork](&w.written[session][0])
	return err == nil && forked && !w.isUnaffected(f, fork.Parent)
}

// checkOthers checks that the other sessions have not changed.
func (w *Witness) checkOthers(t testing.TB, l *eventlog.Log, f *Findings) {
	t.Helper()
	for session, written := range w.written {
		if !w.isUnaffected(f, session) {
			continue
		}
		events, err := suite.Collect(l.Read(t.Context(), session, eventlog.All().Own()))
		if err != nil || !slices.EqualFunc(events, written, same) {
			t.Errorf("session %q changed: %d of %d events, %v", session, len(events), len(written), err)
		}
		report, err := verify.Session(t.Context(), l, session)
		if err != nil {
			t.Errorf("Verify of session %q: %v", session, err)
		}
		for _, d := range slices.Concat(report.Defects, report.Notes) {
			if d.Rule != "fork" || !w.isOrphan(f, session) {
				t.Errorf("Verify of session %q: %v", session, d)
			}
		}
	}
}

// checkAppend appends to the damaged session. The append must fail with damage and
// write nothing, or add its event after the readable events.
func (w *Witness) checkAppend(t testing.TB, l *eventlog.Log, f *Findings) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), appendTimeout)
	defer cancel()
	head, err := l.Append(ctx, f.Session, eventlog.Any(), suite.Note(99))
	f.Append = err
	w.WantLocated(t, "Append", err)
	for e, err := range l.Read(t.Context(), f.Session, eventlog.All().Own()) {
		if err != nil {
			f.After.Err = err
			break
		}
		f.After.Seqs = append(f.After.Seqs, e.Seq)
		if appended := f.Append == nil && e.Head() == head; !appended && !w.matches(f.Session, &e) {
			t.Errorf("after an append the session has %v, which was never written", &e)
		}
	}
	want := f.Forward.Seqs
	if f.Append == nil && (f.Forward.Err == nil || errors.Is(f.Forward.Err, eventlog.ErrNotFound)) {
		want = append(slices.Clone(want), head.Seq)
	}
	if !slices.Equal(want, f.After.Seqs) {
		t.Errorf("the session had %v; after an append (%v) it has %v, want %v", f.Forward.Seqs, f.Append, f.After.Seqs, want)
	}
}

// appendTimeout is the time limit of an append to a damaged session.
const appendTimeout = time.Minute
