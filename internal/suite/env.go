package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testsize"
)

// Env is the environment of a promise: the store under test and helper methods. A
// helper fails the test on an error. The helpers named Want check a result.
type Env struct {
	testing.TB
	Ctx     context.Context
	Harness Harness
	Opener  Opener        // makes more stores of the same kind
	Limit   time.Duration // time limit of Ctx
	OpenLog *eventlog.Log
	opened  []interface{ Close() error }
}

// Open opens a handle on the data. The handle is closed at the end of the test.
func (t *Env) Open() eventlog.Store {
	t.Helper()
	s, err := t.Harness.Open()
	if err != nil {
		t.Fatalf("open the store: %v", err)
	}
	t.opened = append(t.opened, s)
	return s
}

// Main returns the log of the main handle. The first call opens it.
func (t *Env) Main() *eventlog.Log {
	t.Helper()
	if t.OpenLog == nil {
		t.OpenLog = t.LogOver(t.Open())
	}
	return t.OpenLog
}

// Store returns the main handle.
func (t *Env) Store() eventlog.Store {
	t.Helper()
	return t.Main().Store()
}

// LogOver opens another log over a handle.
func (t *Env) LogOver(s eventlog.Store, opts ...eventlog.Options) *eventlog.Log {
	l := eventlog.Open(Overwriting{s}, opts...)
	t.opened = append(t.opened, l)
	return l
}

// Second opens a log over a second handle on the same data.
func (t *Env) Second() *eventlog.Log {
	t.Helper()
	return t.LogOver(t.Open())
}

// Reopen closes all handles and opens the data again.
func (t *Env) Reopen() *eventlog.Log {
	t.Helper()
	if t.OpenLog != nil {
		if err := t.OpenLog.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
	}
	t.Close()
	return t.Main()
}

// NowAndAfterReopen runs check now and again after a reopen.
func (t *Env) NowAndAfterReopen(check func(l *eventlog.Log)) {
	t.Helper()
	check(t.Main())
	check(t.Reopen())
}

// OtherLog opens a log over another store. The log is closed at the end of the test.
func (t *Env) OtherLog(s eventlog.Store, opts ...eventlog.Options) *eventlog.Log {
	l := eventlog.Open(Overwriting{s}, opts...)
	t.Cleanup(func() { t.Must(l.Close()) })
	return l
}

// Close closes all logs and handles, newest first. Logs share handles, so ErrClosed is
// no failure.
func (t *Env) Close() {
	t.Helper()
	for i := len(t.opened) - 1; i >= 0; i-- {
		if err := t.opened[i].Close(); err != nil && !errors.Is(err, eventlog.ErrClosed) {
			t.Errorf("close: %v", err)
		}
	}
	t.opened, t.OpenLog = nil, nil
}

// ReadOnly closes all handles and opens the data for reading.
func (t *Env) ReadOnly() *eventlog.Log {
	t.Helper()
	t.Close()
	s, err := t.Harness.OpenReadOnly()
	if err != nil {
		t.Fatalf("open read-only: %v", err)
	}
	t.OpenLog = t.LogOver(s)
	return t.OpenLog
}

// Append appends events through a log.
func (t *Env) Append(l *eventlog.Log, session string, x eventlog.Expect, events ...event.Event) event.Head {
	t.Helper()
	h, err := l.Append(t.Ctx, session, x, events...)
	if err != nil {
		t.Fatalf("append %d events to %q: %v", len(events), session, err)
	}
	return h
}

// Fill appends n notes, each in an append of its own.
func (t *Env) Fill(l *eventlog.Log, session string, n int) (head event.Head) {
	t.Helper()
	for i := range n {
		head = t.Append(l, session, eventlog.Any(), Note(i))
	}
	return head
}

// Read reads a range of a session.
func (t *Env) Read(l *eventlog.Log, session string, r eventlog.Range) []event.Event {
	t.Helper()
	events, err := Collect(l.Read(t.Ctx, session, r))
	if err != nil {
		t.Fatalf("read %q: %v", session, err)
	}
	return events
}

// Lines reads all stored lines of a session.
func (t *Env) Lines(l *eventlog.Log, session string) []string {
	t.Helper()
	lines := t.linesOrNone(l, session)
	if lines == nil {
		t.Fatalf("session %q is missing", session)
	}
	return lines
}

// linesOrNone reads all stored lines of a session. It returns nil if the session is
// missing.
func (t *Env) linesOrNone(l *eventlog.Log, session string) []string {
	t.Helper()
	events, err := Collect(l.Store().Read(t.Ctx, session, eventlog.Span{}))
	if errors.Is(err, eventlog.ErrNotFound) || errors.Is(err, event.ErrInvalidSession) {
		return nil
	}
	if err != nil {
		t.Fatalf("read lines of %q: %v", session, err)
	}
	return LinesOf(events)
}

// Head returns a session's head.
func (t *Env) Head(l *eventlog.Log, session string) event.Head {
	t.Helper()
	h, err := l.Head(t.Ctx, session)
	t.Must(err)
	return h
}

// Collect reads a sequence up to its first error.
func Collect[T any](seq iter.Seq2[T, error]) (all []T, err error) {
	for v, err := range seq {
		if err != nil {
			return all, err
		}
		all = append(all, v)
	}
	return all, nil
}

// Defects reads the defects of a store that are damage.
func Defects(seq iter.Seq2[eventlog.Defect, error]) ([]eventlog.Defect, error) {
	all, err := Collect(seq)
	return slices.DeleteFunc(all, func(d eventlog.Defect) bool { return d.Rule == "watermark" }), err
}

// LinesOf returns the events' lines.
func LinesOf(events []event.Event) []string {
	lines := make([]string, len(events))
	for i := range events {
		lines[i] = string(events[i].Line())
	}
	return lines
}

// IDsOf returns the events' ids.
func IDsOf(events []event.Event) []string {
	ids := make([]string, len(events))
	for i := range events {
		ids[i] = events[i].ID.String()
	}
	return ids
}

// SeqsOf returns the events' seqs.
func SeqsOf(events []event.Event) []int64 {
	seqs := []int64{}
	for i := range events {
		seqs = append(seqs, events[i].Seq)
	}
	return seqs
}

// Span reads a span of a session from a store.
func (t *Env) Span(s eventlog.Store, session string, r eventlog.Span) []event.Event {
	t.Helper()
	events, err := Collect(s.Read(t.Ctx, session, r))
	if err != nil {
		t.Fatalf("read %q %+v: %v", session, r, err)
	}
	return events
}

// Concurrently runs n functions at the same time and returns their errors. A panic is an
// error too.
func Concurrently(n int, run func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					errs[i] = errors.New(described(p))
				}
			}()
			<-start
			errs[i] = run(i)
		})
	}
	close(start)
	wg.Wait()
	return errs
}

// EndedContext returns a context that has ended.
func (t *Env) EndedContext() context.Context {
	ctx, cancel := context.WithCancel(t.Ctx)
	cancel()
	return ctx
}

// Blob reads a blob.
func (t *Env) Blob(l *eventlog.Log, d event.Digest) string {
	t.Helper()
	r, err := l.OpenBlob(t.Ctx, d)
	t.Must(err)
	body, err := io.ReadAll(r)
	t.Must(errors.Join(err, r.Close()))
	return string(body)
}

// Damage closes everything, edits the stored lines of a session and opens the main
// log.
func (t *Env) Damage(session string, edit func(lines []string) []string) *eventlog.Log {
	t.Helper()
	t.Close()
	t.Must(t.Harness.Damage(session, edit))
	return t.Main()
}

// RawLines closes everything and returns the stored lines of a session.
func (t *Env) RawLines(session string) (lines []string) {
	t.Helper()
	t.Close()
	t.Must(t.Harness.Damage(session, func(found []string) []string {
		lines = found
		return found
	}))
	return lines
}

// Path reads the active path of a session.
func (t *Env) Path(l *eventlog.Log, session string) []event.Event {
	t.Helper()
	events, err := Collect(l.Read(t.Ctx, session, eventlog.All().OnPath()))
	t.Must(err)
	return events
}

// ForkAt returns the first event of a fork of the main log's session.
func (t *Env) ForkAt(parent string, seq int64) event.Event {
	t.Helper()
	e, err := t.Main().Event(t.Ctx, parent, seq)
	t.Must(err)
	return ForkOf(parent, &e)
}

// EventAt reads the event of a seq.
func (t *Env) EventAt(l *eventlog.Log, session string, seq int64) *event.Event {
	t.Helper()
	e, err := l.Event(t.Ctx, session, seq)
	t.Must(err)
	return &e
}

// ForkOf returns the first event of a fork at e.
func ForkOf(parent string, e *event.Event) event.Event {
	return NewEvent(event.SessionForked, fmt.Sprintf(`{"parent":%q,"seq":%d,"event_id":"%s","hash":"%s"}`, parent, e.Seq, e.ID, e.Hash()))
}

// ShortContext returns a context that ends after 40 ms and some round trips, for waits
// that cannot succeed.
func (t *Env) ShortContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Ctx, 40*time.Millisecond+10*t.Harness.Latency)
}

// Volume is n in the long form of the tests, and less in the shorter forms and for a distant
// store.
func (t *Env) Volume(n int) int {
	most := testsize.Pick(n/40, n/20, n)
	if t.Harness.Latency > 0 {
		return min(most, n/20)
	}
	return most
}

// Text returns a text of n bytes that repeats seed.
func Text(seed string, n int) string { return strings.Repeat(seed, n/len(seed)+1)[:n] }

// NewReader returns a reader of body.
func NewReader(body string) io.Reader { return strings.NewReader(body) }

// Ability returns the store as the optional interface T. The promise must list the
// interface in Needs.
func Ability[T any](t testing.TB, s eventlog.Store) T {
	t.Helper()
	a, ok := eventlog.As[T](s)
	if !ok {
		t.Fatalf("the store has no %T", *new(T))
	}
	return a
}

// Ptr returns a pointer to v.
func Ptr[T any](v T) *T { return &v }

// AppendLines appends parsed lines to a store.
func (t *Env) AppendLines(s eventlog.Store, expect event.Head, events []event.Event) event.Head {
	t.Helper()
	if err := s.Append(t.Ctx, events[0].SessionID, expect, events, false); err != nil {
		t.Fatalf("append %d lines at %v: %v", len(events), expect, err)
	}
	return HeadOf(events)
}
