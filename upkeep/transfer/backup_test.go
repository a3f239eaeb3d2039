package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testkit"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/transfer"
	"github.com/convlog/convlog/upkeep/verify"
)

// The test makes backups while other goroutines append, spill, fork and redact. Each
// backup verifies and has all events that were acknowledged before it began. Each of its
// sessions is a beginning of the session in the source, except for later redactions.
func TestBackupWhileOthersWrite(t *testing.T) {
	for from, open := range testkit.Stores {
		for to, openTarget := range testkit.Stores {
			t.Run(from+" to "+to, func(t *testing.T) {
				src := testkit.Open(t, open(t.TempDir()), eventlog.Options{SpillOver: 300})
				w := busy{t: t, log: src, acked: map[string]event.Head{}}
				w.write(20) // so that there is something at the first backup
				stop := make(chan struct{})
				var writers sync.WaitGroup
				for range 3 {
					writers.Go(func() {
						for {
							select {
							case <-stop:
								return
							default:
								w.write(5)
							}
						}
					})
				}
				for range 3 {
					before := w.acknowledged()
					dst := testkit.Open(t, openTarget(t.TempDir()))
					for _, err := range transfer.Backup(t.Context(), dst, src) {
						if err != nil {
							t.Error(err)
						}
					}
					checkBackup(t, dst, src, before)
				}
				close(stop)
				writers.Wait()
			})
		}
	}
}

// checkBackup compares a backup with its source.
func checkBackup(t *testing.T, dst, src *eventlog.Log, before map[string]event.Head) {
	t.Helper()
	ctx := t.Context()
	for info, err := range dst.Sessions(ctx) {
		if err != nil || info.Err != nil {
			t.Fatal(err, info.Err)
		}
		if report, err := verify.Session(ctx, dst, info.ID); err != nil || len(report.Defects) > 0 {
			t.Errorf("the backup of %q: %v, %v", info.ID, report.Defects, err)
		}
		if e, err := src.Event(ctx, info.ID, info.Last.Seq); err != nil || e.Hash() != info.Last.Hash() {
			t.Errorf("the backup of %q is no beginning of it: %v, %v", info.ID, info.Last.Head(), err)
		}
	}
	for session, head := range before {
		e, err := dst.Event(ctx, session, head.Seq)
		if err != nil || e.Hash() != head.Hash {
			t.Errorf("event %d of %q was acknowledged before the backup and is not in it: %v", head.Seq, session, err)
		}
	}
}

// busy writes to a log in every way.
type busy struct {
	t   *testing.T
	log *eventlog.Log

	mu    sync.Mutex
	n     int
	acked map[string]event.Head
}

func (b *busy) acknowledged() map[string]event.Head {
	b.mu.Lock()
	defer b.mu.Unlock()
	heads := map[string]event.Head{}
	for session, head := range b.acked {
		heads[session] = head
	}
	return heads
}

func (b *busy) ack(session string, head event.Head) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.acked[session].Seq < head.Seq {
		b.acked[session] = head
	}
}

func (b *busy) next() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n++
	return b.n
}

func (b *busy) write(n int) {
	for range n {
		i := b.next()
		if err := b.one(b.t.Context(), i); err != nil {
			b.t.Errorf("write %d: %v", i, err)
			return
		}
	}
}

// one writes once; sessions sort so that forks come before and after parents.
func (b *busy) one(ctx context.Context, i int) error {
	session := fmt.Sprintf("s%d", i%7)
	events := []event.Event{event.UserMessage(fmt.Sprintf("%d %s", i, strings.Repeat("x", i%5*100))), event.UserMessage("and more")}
	head, err := b.log.Append(ctx, session, eventlog.Any(), events...)
	if err != nil {
		return err
	}
	b.ack(session, head)
	if i%5 == 0 {
		name := fmt.Sprintf("%c%d", "az"[i%2], i)
		forked, err := testkit.Fork(ctx, b.log, name, session, head.Seq)
		if err != nil {
			return err
		}
		b.ack(name, forked)
	}
	if i%11 == 0 {
		_, err = erase.Redact(ctx, b.log, session, []int64{head.Seq}, erase.RedactOptions{Reason: "test"})
	}
	return err
}

// meddling is a store in which something happens before a session is listed.
type meddling struct {
	eventlog.Store
	before map[string]func()
}

func (m *meddling) Unwrap() eventlog.Store { return m.Store }

func (m *meddling) Sessions(ctx context.Context) iter.Seq2[eventlog.SessionInfo, error] {
	return func(yield func(eventlog.SessionInfo, error) bool) {
		for info, err := range m.Store.Sessions(ctx) {
			if f := m.before[info.ID]; f != nil {
				f()
			}
			if !yield(info, err) {
				return
			}
		}
		if f := m.before[""]; f != nil {
			f()
			for info, err := range m.Store.Sessions(ctx) {
				if info.ID == "z" && !yield(info, err) {
					return
				}
			}
		}
	}
}

// A parent grows after it was copied, and is forked at an event that the backup
// does not have: the rest of it comes first.
func TestBackupOfForkMadeMeanwhile(t *testing.T) {
	ctx := t.Context()
	for name, open := range testkit.Stores {
		t.Run(name, func(t *testing.T) {
			m := &meddling{Store: open(t.TempDir())}
			src := testkit.Open(t, m)
			for _, session := range []string{"a", "b"} {
				if _, err := src.Append(ctx, session, eventlog.New(), event.UserMessage("hello")); err != nil {
					t.Fatal(err)
				}
			}
			acked := map[string]event.Head{}
			m.before = map[string]func(){"": func() {
				head, err := src.Append(ctx, "a", eventlog.Any(), event.UserMessage("later"), event.UserMessage("latest"))
				if err == nil {
					acked["z"], err = testkit.Fork(ctx, src, "z", "a", head.Seq)
				}
				if err != nil {
					t.Fatal(err)
				}
			}}
			dst := testkit.Open(t, open(t.TempDir()))
			var order []string
			for s, err := range transfer.Backup(ctx, dst, src) {
				if err != nil {
					t.Error(err)
				}
				order = append(order, fmt.Sprintf("%s %d", s.Session, s.Stored))
			}
			if got := strings.Join(order, ", "); got != "a 1, b 1, a 2, z 2" {
				t.Errorf("stored %s", got)
			}
			checkBackup(t, dst, src, acked)
		})
	}
}

// A backup reports damaged sessions, skips them and their forks, and copies all other
// sessions. A full destination ends the backup.
func TestBackupOfDamage(t *testing.T) {
	ctx := t.Context()
	for name, open := range testkit.Stores {
		t.Run(name, func(t *testing.T) {
			inner := open(t.TempDir())
			l := testkit.Open(t, inner)
			for _, session := range []string{"bad", "good", "parent"} {
				head, err := l.Append(ctx, session, eventlog.New(), event.UserMessage("one"), event.UserMessage("two"))
				if err == nil {
					_, err = l.Append(ctx, session, eventlog.Any(), event.UserMessage("three"))
				}
				if err == nil && session == "parent" {
					_, err = testkit.Fork(ctx, l, "child", "parent", head.Seq)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			src := eventlog.Open(&unreadable{inner, []string{"bad", "parent"}})
			dst := testkit.Open(t, open(t.TempDir()))
			failed := map[string]error{}
			for s, err := range transfer.Backup(ctx, dst, src) {
				var source *transfer.SourceError
				if err != nil && (!errors.As(err, &source) || source.Session != s.Session) {
					t.Errorf("%q: %v", s.Session, err)
				}
				if err != nil {
					failed[s.Session] = err
				}
			}
			if len(failed) != 3 || !errors.Is(failed["bad"], eventlog.ErrCorrupt) || !errors.Is(failed["parent"], eventlog.ErrCorrupt) || failed["child"] == nil {
				t.Errorf("failed: %v", failed)
			}
			checkBackup(t, dst, l, map[string]event.Head{})
			var copied []string
			for info, err := range dst.Sessions(ctx) {
				copied = append(copied, info.ID)
				if err != nil {
					t.Fatal(err)
				}
			}
			if len(copied) != 1 || copied[0] != "good" {
				t.Errorf("copied %q", copied)
			}
			for _, err := range transfer.Backup(ctx, dst, l) {
				if !errors.Is(err, eventlog.ErrExists) {
					t.Errorf("a backup into a store with sessions: %v", err)
				}
			}
			results := 0
			for _, err := range transfer.Backup(ctx, testkit.Open(t, &full{open(t.TempDir())}), l) {
				if results++; !errors.Is(err, errFull) {
					t.Errorf("a full target: %v", err)
				}
			}
			if results != 1 {
				t.Errorf("%d results where the first one ends it", results)
			}
		})
	}
}

// unreadable is a store with sessions that are damaged after their first append.
type unreadable struct {
	eventlog.Store
	sessions []string
}

func (u *unreadable) Unwrap() eventlog.Store { return u.Store }

func (u *unreadable) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range u.Store.Read(ctx, session, r) {
			if strings.Contains(strings.Join(u.sessions, " "), session) && e.Seq > 2 {
				yield(event.Event{}, &eventlog.CorruptError{Session: session, Offset: -1, Seq: e.Seq, Cause: errors.New("damaged")})
				return
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

var errFull = errors.New("no space left")

// full is a store that nothing fits into.
type full struct{ eventlog.Store }

func (f *full) Append(context.Context, string, event.Head, []event.Event, bool) error {
	return errFull
}
