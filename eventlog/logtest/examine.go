package logtest

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

// Examine looks at a session in every way, then appends to it, and looks at the
// others. s is closed.
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

// Try is Examine without the ranges, the watcher, the copies and the others.
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

// ranges reads parts of the session. What ends without an error ends where the
// session does.
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
		until := w.read(t, l, f.Session, eventlog.Until(written[seq-first].ID))
		if until.Err == nil && (len(until.Seqs) == 0 || until.Seqs[len(until.Seqs)-1] != seq) {
			t.Errorf("reading until the id of seq %d gives %v", seq, until.Seqs)
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

// complete makes sure that a reading without an error lacks nothing of seqs from
// to to, as far as a reading of everything has them.
func (w *Witness) wantComplete(t testing.TB, f *Findings, r Reading, from, to int64) {
	t.Helper()
	if r.Err != nil || f.Forward.Err != nil || f.Backward.Err != nil {
		return
	}
	want := slices.DeleteFunc(slices.Clone(f.Forward.Seqs), func(seq int64) bool { return seq < from || seq > to })
	if !slices.Equal(want, r.Seqs) {
		t.Errorf("reading seqs %d to %d of %v gives %v without an error", from, to, f.Forward.Seqs, r.Seqs)
	}
}

// listing makes sure that the other sessions are listed as they were, and that
// what is said of the damaged one is true.
func (w *Witness) checkListing(t testing.TB, l *eventlog.Log, f *Findings) {
	t.Helper()
	infos, err := suite.Collect(l.Sessions(t.Context()))
	if err != nil {
		t.Errorf("the listing ends: %v", err)
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
			t.Errorf("session %q is not listed as it was: %+v", session, infos)
		}
	}
}

func headEvent(events []event.Event) *event.Event { return &events[len(events)-1] }

// row checks the listed first and last event of the damaged session.
func (w *Witness) checkRow(t testing.TB, f *Findings) {
	t.Helper()
	w.WantLocated(t, "the listing", f.Listed.Err)
	for _, e := range []event.Event{f.Listed.First, f.Listed.Last} {
		if f.Listed.Err == nil && !w.matchesStored(f.Session, &e) {
			t.Errorf("the listing shows %v, which was not written", &e)
		}
	}
}

// stored is wrote for an event whose data was not fetched.
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

// watch makes sure that a watcher is given what a reader is, or part of that and
// an error.
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
		t.Errorf("Watch gives %v and %v, reading %v and %v", got, failed, f.Forward.Seqs, f.Forward.Err)
	}
}

// first is the seq of the session's first event.
func (f *Findings) firstSeq() int64 {
	if len(f.Forward.Seqs) > 0 {
		return f.Forward.Seqs[0]
	}
	return 0
}

// export makes sure that nothing incomplete is exported.
func (w *Witness) checkExport(t testing.TB, l *eventlog.Log, f *Findings) {
	t.Helper()
	var out bytes.Buffer
	err := transfer.Export(t.Context(), l, &out, f.Session)
	w.WantLocated(t, "Export", err)
	if err == nil && f.Forward.Err != nil {
		t.Errorf("Export says nothing of %v", f.Forward.Err)
	}
	if err != nil && f.Forward.Err == nil && !f.Detected() {
		t.Errorf("Export: %v, but reading and Verify find nothing", err)
	}
}

// convert copies the store: all other sessions come over whole.
func (w *Witness) checkConvert(t testing.TB, l *eventlog.Log, f *Findings) {
	t.Helper()
	dst := eventlog.Open(memory.New())
	failed := map[string]error{}
	for adopted, err := range transfer.Convert(t.Context(), dst, l) {
		w.WantLocated(t, "Convert", err)
		failed[adopted.Session] = err
	}
	if failed[f.Session] == nil && f.Listed != nil && f.Forward.Err != nil && !errors.Is(f.Forward.Err, eventlog.ErrNotFound) {
		t.Errorf("Convert says nothing of %v", f.Forward.Err)
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

// orphaned reports whether a session is a fork of one that is damaged.
func (w *Witness) isOrphan(f *Findings, session string) bool {
	fork, forked, err := event.Decode[event.Fork](&w.written[session][0])
	return err == nil && forked && !w.isUnaffected(f, fork.Parent)
}

// others makes sure that the other sessions are as they were.
func (w *Witness) checkOthers(t testing.TB, l *eventlog.Log, f *Findings) {
	t.Helper()
	for session, written := range w.written {
		if !w.isUnaffected(f, session) {
			continue
		}
		events, err := suite.Collect(l.Read(t.Context(), session, eventlog.All().Own()))
		if err != nil || !slices.EqualFunc(events, written, same) {
			t.Errorf("session %q is not as it was: %d of %d events, %v", session, len(events), len(written), err)
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

// append appends behind what is left: that is refused as damage, with nothing
// written, or what is left stays, with the new event behind it.
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
			t.Errorf("after an append %v is shown, which was not written", &e)
		}
	}
	want := f.Forward.Seqs
	if f.Append == nil && (f.Forward.Err == nil || errors.Is(f.Forward.Err, eventlog.ErrNotFound)) {
		want = append(slices.Clone(want), head.Seq)
	}
	if !slices.Equal(want, f.After.Seqs) {
		t.Errorf("%v was shown; after an append (%v) it is %v, want %v", f.Forward.Seqs, f.Append, f.After.Seqs, want)
	}
}

// hung is when an append that damage keeps from ending counts as such.
const appendTimeout = time.Minute
