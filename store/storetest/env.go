package storetest

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/verify"
)

// env is what a promise is tested with: its store, and helpers that end the
// test when what they need fails.
type env struct {
	testing.TB
	ctx     context.Context
	harness Harness
	opener  Opener        // makes more stores like the harness's
	limit   time.Duration // of ctx
	main    *eventlog.Log
	opened  []interface{ Close() error }
}

// open opens a handle on the data, which is closed when the test ends.
func (t *env) open() eventlog.Store {
	t.Helper()
	s, err := t.harness.Open()
	if err != nil {
		t.Fatalf("open the store: %v", err)
	}
	t.opened = append(t.opened, s)
	return s
}

// log is the log of the main handle, opened at the first call.
func (t *env) log() *eventlog.Log {
	t.Helper()
	if t.main == nil {
		t.main = t.over(t.open())
	}
	return t.main
}

// store is the main handle.
func (t *env) store() eventlog.Store {
	t.Helper()
	return t.log().Store()
}

// over opens another log over a handle.
func (t *env) over(s eventlog.Store, opts ...eventlog.Options) *eventlog.Log {
	l := eventlog.Open(s, opts...)
	t.opened = append(t.opened, l)
	return l
}

// second opens a log over an independent handle on the same data.
func (t *env) second() *eventlog.Log {
	t.Helper()
	return t.over(t.open())
}

// reopen closes everything and opens the data again.
func (t *env) reopen() *eventlog.Log {
	t.Helper()
	if t.main != nil {
		if err := t.main.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
	}
	t.close()
	return t.log()
}

// twice runs check now and again after a reopen.
func (t *env) twice(check func(l *eventlog.Log)) {
	t.Helper()
	check(t.log())
	check(t.reopen())
}

// aside opens a log over another store, which stays open until the test ends.
func (t *env) aside(s eventlog.Store, opts ...eventlog.Options) *eventlog.Log {
	l := eventlog.Open(s, opts...)
	t.Cleanup(func() { t.must(l.Close()) })
	return l
}

// close closes what is open, newest first. Logs share handles, so a second
// Close may say that the handle is closed.
func (t *env) close() {
	t.Helper()
	for i := len(t.opened) - 1; i >= 0; i-- {
		if err := t.opened[i].Close(); err != nil && !errors.Is(err, eventlog.ErrClosed) {
			t.Errorf("close: %v", err)
		}
	}
	t.opened, t.main = nil, nil
}

// readOnly closes everything and opens the data for reading.
func (t *env) readOnly() *eventlog.Log {
	t.Helper()
	t.close()
	s, err := t.harness.OpenReadOnly()
	if err != nil {
		t.Fatalf("open read-only: %v", err)
	}
	t.main = t.over(s)
	return t.main
}

// append appends and ends the test if that fails.
func (t *env) append(l *eventlog.Log, session string, x eventlog.Expect, events ...event.Event) event.Head {
	t.Helper()
	h, err := l.Append(t.ctx, session, x, events...)
	if err != nil {
		t.Fatalf("append %d events to %q: %v", len(events), session, err)
	}
	return h
}

// fill appends n notes one by one.
func (t *env) fill(l *eventlog.Log, session string, n int) (head event.Head) {
	t.Helper()
	for i := range n {
		head = t.append(l, session, eventlog.Any(), note(i))
	}
	return head
}

// refused makes sure that an append fails with want and changes nothing.
func (t *env) refused(want error, l *eventlog.Log, session string, x eventlog.Expect, events ...event.Event) error {
	t.Helper()
	before := t.linesOrNone(l, session)
	_, err := l.Append(t.ctx, session, x, events...)
	t.wantErr(want, err)
	if diff := cmp.Diff(before, t.linesOrNone(l, session)); diff != "" {
		t.Errorf("the refused append changed session %q (-before +after):\n%s", session, diff)
	}
	return err
}

// wantErr compares an error with a sentinel.
func (t *env) wantErr(want, got error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("got error %v, want %v", got, want)
	}
}

// same compares two values.
func (t *env) same(what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// must ends the test on an error.
func (t *env) must(err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// read reads a range of a session.
func (t *env) read(l *eventlog.Log, session string, r eventlog.Range) []event.Event {
	t.Helper()
	events, err := collect(l.Read(t.ctx, session, r))
	if err != nil {
		t.Fatalf("read %q: %v", session, err)
	}
	return events
}

// lines reads all stored lines of a session.
func (t *env) lines(l *eventlog.Log, session string) []string {
	t.Helper()
	lines := t.linesOrNone(l, session)
	if lines == nil {
		t.Fatalf("session %q is missing", session)
	}
	return lines
}

// linesOrNone is lines; nil is a session that is missing.
func (t *env) linesOrNone(l *eventlog.Log, session string) []string {
	t.Helper()
	events, err := collect(l.Store().Read(t.ctx, session, eventlog.Span{}))
	if errors.Is(err, eventlog.ErrNotFound) || errors.Is(err, event.ErrInvalidSession) {
		return nil
	}
	if err != nil {
		t.Fatalf("read lines of %q: %v", session, err)
	}
	return linesOf(events)
}

// missing makes sure that a session does not exist.
func (t *env) missing(l *eventlog.Log, session string) {
	t.Helper()
	_, err := l.Head(t.ctx, session)
	t.wantErr(eventlog.ErrNotFound, err)
}

// sound makes sure that a session verifies: crc, chain, seqs, appends.
func (t *env) sound(l *eventlog.Log, session string) {
	t.Helper()
	report, err := verify.Session(t.ctx, l, session)
	t.must(err)
	for _, d := range report.Defects {
		t.Errorf("session %q is damaged: %v", session, d)
	}
}

// head reads a session's head.
func (t *env) head(l *eventlog.Log, session string) event.Head {
	t.Helper()
	h, err := l.Head(t.ctx, session)
	t.must(err)
	return h
}

// collect gathers a sequence up to its first error.
func collect[T any](seq iter.Seq2[T, error]) (all []T, err error) {
	for v, err := range seq {
		if err != nil {
			return all, err
		}
		all = append(all, v)
	}
	return all, nil
}

func linesOf(events []event.Event) []string {
	lines := make([]string, len(events))
	for i := range events {
		lines[i] = string(events[i].Line())
	}
	return lines
}

func idsOf(events []event.Event) []string {
	ids := make([]string, len(events))
	for i := range events {
		ids[i] = events[i].ID.String()
	}
	return ids
}

func seqsIn(events []event.Event) []int64 {
	seqs := []int64{}
	for i := range events {
		seqs = append(seqs, events[i].Seq)
	}
	return seqs
}
