package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/verify"
)

// Env is what a promise is tested with: its store, and helpers that end the
// test when what they need fails.
type Env struct {
	testing.TB
	Ctx     context.Context
	Harness Harness
	Opener  Opener        // makes more stores like the harness's
	Limit   time.Duration // of ctx
	OpenLog *eventlog.Log
	opened  []interface{ Close() error }
}

// open opens a handle on the data, which is closed when the test ends.
func (t *Env) Open() eventlog.Store {
	t.Helper()
	s, err := t.Harness.Open()
	if err != nil {
		t.Fatalf("open the store: %v", err)
	}
	t.opened = append(t.opened, s)
	return s
}

// log is the log of the main handle, opened at the first call.
func (t *Env) Main() *eventlog.Log {
	t.Helper()
	if t.OpenLog == nil {
		t.OpenLog = t.LogOver(t.Open())
	}
	return t.OpenLog
}

// store is the main handle.
func (t *Env) Store() eventlog.Store {
	t.Helper()
	return t.Main().Store()
}

// over opens another log over a handle.
func (t *Env) LogOver(s eventlog.Store, opts ...eventlog.Options) *eventlog.Log {
	l := eventlog.Open(s, opts...)
	t.opened = append(t.opened, l)
	return l
}

// second opens a log over an independent handle on the same data.
func (t *Env) Second() *eventlog.Log {
	t.Helper()
	return t.LogOver(t.Open())
}

// reopen closes everything and opens the data again.
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

// twice runs check now and again after a reopen.
func (t *Env) NowAndAfterReopen(check func(l *eventlog.Log)) {
	t.Helper()
	check(t.Main())
	check(t.Reopen())
}

// aside opens a log over another store, which stays open until the test ends.
func (t *Env) OtherLog(s eventlog.Store, opts ...eventlog.Options) *eventlog.Log {
	l := eventlog.Open(s, opts...)
	t.Cleanup(func() { t.Must(l.Close()) })
	return l
}

// close closes what is open, newest first. Logs share handles, so a second
// Close may say that the handle is closed.
func (t *Env) Close() {
	t.Helper()
	for i := len(t.opened) - 1; i >= 0; i-- {
		if err := t.opened[i].Close(); err != nil && !errors.Is(err, eventlog.ErrClosed) {
			t.Errorf("close: %v", err)
		}
	}
	t.opened, t.OpenLog = nil, nil
}

// readOnly closes everything and opens the data for reading.
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

// append appends and ends the test if that fails.
func (t *Env) Append(l *eventlog.Log, session string, x eventlog.Expect, events ...event.Event) event.Head {
	t.Helper()
	h, err := l.Append(t.Ctx, session, x, events...)
	if err != nil {
		t.Fatalf("append %d events to %q: %v", len(events), session, err)
	}
	return h
}

// fill appends n notes one by one.
func (t *Env) Fill(l *eventlog.Log, session string, n int) (head event.Head) {
	t.Helper()
	for i := range n {
		head = t.Append(l, session, eventlog.Any(), Note(i))
	}
	return head
}

// refused makes sure that an append fails with want and changes nothing.
func (t *Env) WantAppendError(want error, l *eventlog.Log, session string, x eventlog.Expect, events ...event.Event) error {
	t.Helper()
	before := t.linesOrNone(l, session)
	_, err := l.Append(t.Ctx, session, x, events...)
	t.WantErr(want, err)
	if diff := cmp.Diff(before, t.linesOrNone(l, session)); diff != "" {
		t.Errorf("the refused append changed session %q (-before +after):\n%s", session, diff)
	}
	return err
}

// wantErr compares an error with a sentinel.
func (t *Env) WantErr(want, got error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("got error %v, want %v", got, want)
	}
}

// same compares two values.
func (t *Env) WantEqual(what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// must ends the test on an error.
func (t *Env) Must(err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// read reads a range of a session.
func (t *Env) Read(l *eventlog.Log, session string, r eventlog.Range) []event.Event {
	t.Helper()
	events, err := Collect(l.Read(t.Ctx, session, r))
	if err != nil {
		t.Fatalf("read %q: %v", session, err)
	}
	return events
}

// lines reads all stored lines of a session.
func (t *Env) Lines(l *eventlog.Log, session string) []string {
	t.Helper()
	lines := t.linesOrNone(l, session)
	if lines == nil {
		t.Fatalf("session %q is missing", session)
	}
	return lines
}

// linesOrNone is lines; nil is a session that is missing.
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

// missing makes sure that a session does not exist.
func (t *Env) WantMissing(l *eventlog.Log, session string) {
	t.Helper()
	_, err := l.Head(t.Ctx, session)
	t.WantErr(eventlog.ErrNotFound, err)
}

// sound makes sure that a session verifies: crc, chain, seqs, appends.
func (t *Env) WantVerified(l *eventlog.Log, session string) {
	t.Helper()
	report, err := verify.Session(t.Ctx, l, session)
	t.Must(err)
	for _, d := range report.Defects {
		t.Errorf("session %q is damaged: %v", session, d)
	}
}

// head reads a session's head.
func (t *Env) Head(l *eventlog.Log, session string) event.Head {
	t.Helper()
	h, err := l.Head(t.Ctx, session)
	t.Must(err)
	return h
}

// collect gathers a sequence up to its first error.
func Collect[T any](seq iter.Seq2[T, error]) (all []T, err error) {
	for v, err := range seq {
		if err != nil {
			return all, err
		}
		all = append(all, v)
	}
	return all, nil
}

func LinesOf(events []event.Event) []string {
	lines := make([]string, len(events))
	for i := range events {
		lines[i] = string(events[i].Line())
	}
	return lines
}

func IDsOf(events []event.Event) []string {
	ids := make([]string, len(events))
	for i := range events {
		ids[i] = events[i].ID.String()
	}
	return ids
}

func SeqsOf(events []event.Event) []int64 {
	seqs := []int64{}
	for i := range events {
		seqs = append(seqs, events[i].Seq)
	}
	return seqs
}

// span reads finished events.
func (t *Env) Span(s eventlog.Store, session string, r eventlog.Span) []event.Event {
	t.Helper()
	events, err := Collect(s.Read(t.Ctx, session, r))
	if err != nil {
		t.Fatalf("read %q %+v: %v", session, r, err)
	}
	return events
}

// conflict makes sure that err is a ConflictError between two heads.
func (t *Env) WantConflict(err error, expected, actual event.Head) {
	t.Helper()
	var c *eventlog.ConflictError
	if !errors.As(err, &c) || !errors.Is(err, eventlog.ErrConflict) {
		t.Errorf("got error %v, want a ConflictError", err)
		return
	}
	if c.Expected != expected || c.Actual != actual {
		t.Errorf("the conflict says expected %v, actual %v; want %v and %v", c.Expected, c.Actual, expected, actual)
	}
}

// together runs n functions at the same time and gathers their errors.
func Concurrently(n int, run func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = run(i)
		})
	}
	close(start)
	wg.Wait()
	return errs
}

func (t *Env) EndedContext() context.Context {
	ctx, cancel := context.WithCancel(t.Ctx)
	cancel()
	return ctx
}

// blob reads a whole blob.
func (t *Env) Blob(l *eventlog.Log, d event.Digest) string {
	t.Helper()
	r, err := l.OpenBlob(t.Ctx, d)
	t.Must(err)
	body, err := io.ReadAll(r)
	t.Must(errors.Join(err, r.Close()))
	return string(body)
}

// damage changes the stored lines of a session while nothing is open.
func (t *Env) Damage(session string, edit func(lines []string) []string) *eventlog.Log {
	t.Helper()
	t.Close()
	t.Must(t.Harness.Damage(session, edit))
	return t.Main()
}

// stored are the raw lines of a session.
func (t *Env) RawLines(session string) (lines []string) {
	t.Helper()
	t.Close()
	t.Must(t.Harness.Damage(session, func(found []string) []string {
		lines = found
		return found
	}))
	return lines
}

// files lists everything in the folder that holds the harness's path.
func (t *Env) Files() []string {
	t.Helper()
	if t.Harness.Path == "" {
		return nil
	}
	parent := filepath.Dir(t.Harness.Path)
	var names []string
	t.Must(filepath.WalkDir(parent, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(parent, path)
		names = append(names, name)
		return err
	}))
	return names
}

// contents are the digests of all files in the folder that holds the harness's
// path.
func (t *Env) Contents() []event.Digest {
	t.Helper()
	var digests []event.Digest
	for _, name := range t.Files() {
		path := filepath.Join(filepath.Dir(t.Harness.Path), name)
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			t.Must(err)
			continue
		}
		body, err := os.ReadFile(path)
		t.Must(err)
		digests = append(digests, event.DigestOf(body))
	}
	return digests
}

// contained makes sure that nothing was written beside the harness's path.
func (t *Env) WantNoOtherFiles() {
	t.Helper()
	base := ""
	if t.Harness.Path != "" {
		base = filepath.Base(t.Harness.Path)
	}
	for _, name := range t.Files() {
		if name != "." && !strings.HasPrefix(name, base) {
			t.Errorf("the store wrote outside its own place: %q", name)
		}
	}
}

// path reads the active path.
func (t *Env) Path(l *eventlog.Log, session string) []event.Event {
	t.Helper()
	events, err := Collect(l.Read(t.Ctx, session, eventlog.All().OnPath()))
	t.Must(err)
	return events
}

// forkAt makes the first event of a fork of the main log's session.
func (t *Env) ForkAt(parent string, seq int64) event.Event {
	t.Helper()
	e, err := t.Main().Event(t.Ctx, parent, seq)
	t.Must(err)
	return ForkOf(parent, &e)
}

func (t *Env) EventAt(l *eventlog.Log, session string, seq int64) *event.Event {
	t.Helper()
	e, err := l.Event(t.Ctx, session, seq)
	t.Must(err)
	return &e
}

func ForkOf(parent string, e *event.Event) event.Event {
	return NewEvent(event.SessionForked, fmt.Sprintf(`{"parent":%q,"seq":%d,"event_id":"%s","hash":"%s"}`, parent, e.Seq, e.ID, e.Hash()))
}

// briefly is a context that ends soon: for waits that cannot succeed.
func (t *Env) ShortContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Ctx, 40*time.Millisecond)
}

// text is a blob's body of n bytes that depend on seed.
func Text(seed string, n int) string { return strings.Repeat(seed, n/len(seed)+1)[:n] }

func NewReader(body string) io.Reader { return strings.NewReader(body) }

// ability finds an ability that the harness does not lack.
func Ability[T any](t testing.TB, s eventlog.Store) T {
	t.Helper()
	a, ok := eventlog.As[T](s)
	if !ok {
		t.Fatalf("the store has no %T", *new(T))
	}
	return a
}

func Ptr[T any](v T) *T { return &v }

// nowhere makes sure that the stored bytes do not have a text, as far as the harness
// can tell. Everything must be closed.
func (t *Env) WantErased(text string) {
	t.Helper()
	if t.Harness.Holds != nil {
		if where := t.Harness.Holds(text); where != "" {
			t.Errorf("the erased content is in %s", where)
		}
	}
	for _, name := range t.Files() {
		path := filepath.Join(filepath.Dir(t.Harness.Path), name)
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			t.Must(err)
			continue
		}
		body, err := os.ReadFile(path)
		t.Must(err)
		if strings.Contains(string(body), text) {
			t.Errorf("the erased content is in %s", name)
		}
	}
}

// put appends finished events and ends the test if that fails.
func (t *Env) AppendLines(s eventlog.Store, expect event.Head, events []event.Event) event.Head {
	t.Helper()
	if err := s.Append(t.Ctx, events[0].SessionID, expect, events, false); err != nil {
		t.Fatalf("append %d lines at %v: %v", len(events), expect, err)
	}
	return HeadOf(events)
}
