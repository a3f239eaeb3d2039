package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
)

// stores are the ways of keeping a log in a folder of the test's.
var stores = map[string]func(dir string) eventlog.Store{
	"jsonl": func(dir string) eventlog.Store { return jsonl.New(dir, jsonl.Options{Sync: jsonl.Never}) },
	"sqlite": func(dir string) eventlog.Store {
		return sqlite.New(filepath.Join(dir, "s.db"), sqlite.Options{Synchronous: sqlite.Off})
	},
}

func openLog(t *testing.T, s eventlog.Store, opts ...eventlog.Options) *eventlog.Log {
	t.Helper()
	l := eventlog.Open(s, opts...)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func userSays(t *testing.T, text string) eventlog.Event {
	t.Helper()
	e, err := eventlog.NewUserMessage(text)
	if err != nil {
		t.Error(err)
	}
	return e
}

// A backup is taken again and again while others append, spill, fork and
// redact. Each verifies, has what was acknowledged before it began, and each of
// its sessions is a beginning of the session in the source, but for what was
// redacted since.
func TestBackupWhileOthersWrite(t *testing.T) {
	for from, open := range stores {
		for to, openTarget := range stores {
			t.Run(from+" to "+to, func(t *testing.T) {
				src := openLog(t, open(t.TempDir()), eventlog.Options{SpillOver: 300})
				w := busy{t: t, log: src, acked: map[string]eventlog.Head{}}
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
					dst := openLog(t, openTarget(t.TempDir()))
					for _, err := range eventlog.Backup(t.Context(), dst, src) {
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
func checkBackup(t *testing.T, dst, src *eventlog.Log, before map[string]eventlog.Head) {
	t.Helper()
	ctx := t.Context()
	for info, err := range dst.Sessions(ctx) {
		if err != nil || info.Err != nil {
			t.Fatal(err, info.Err)
		}
		if report, err := dst.Verify(ctx, info.ID); err != nil || len(report.Defects) > 0 {
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
	acked map[string]eventlog.Head
}

func (b *busy) acknowledged() map[string]eventlog.Head {
	b.mu.Lock()
	defer b.mu.Unlock()
	heads := map[string]eventlog.Head{}
	for session, head := range b.acked {
		heads[session] = head
	}
	return heads
}

func (b *busy) ack(session string, head eventlog.Head) {
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
	events := []eventlog.Event{userSays(b.t, fmt.Sprintf("%d %s", i, strings.Repeat("x", i%5*100))), userSays(b.t, "and more")}
	head, err := b.log.Append(ctx, session, eventlog.Any, events...)
	if err != nil {
		return err
	}
	b.ack(session, head)
	if i%5 == 0 {
		if err := b.fork(ctx, fmt.Sprintf("%c%d", "az"[i%2], i), session, head); err != nil {
			return err
		}
	}
	if i%11 == 0 {
		_, err = b.log.Redact(ctx, session, "test", head.Seq)
	}
	return err
}

func (b *busy) fork(ctx context.Context, name, parent string, at eventlog.Head) error {
	point, err := b.log.Event(ctx, parent, at.Seq)
	if err != nil {
		return err
	}
	fork, err := eventlog.NewSessionForked(eventlog.Fork{Parent: parent, Seq: at.Seq, EventID: point.ID, Hash: point.Hash()})
	if err != nil {
		return err
	}
	head, err := b.log.Append(ctx, name, eventlog.New, fork, userSays(b.t, "in the fork"))
	if err == nil {
		b.ack(name, head)
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
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			m := &meddling{Store: open(t.TempDir())}
			src := openLog(t, m)
			b := busy{t: t, log: src, acked: map[string]eventlog.Head{}}
			for _, session := range []string{"a", "b"} {
				if _, err := src.Append(ctx, session, eventlog.New, userSays(t, "hello")); err != nil {
					t.Fatal(err)
				}
			}
			m.before = map[string]func(){"": func() {
				head, err := src.Append(ctx, "a", eventlog.Any, userSays(t, "later"), userSays(t, "latest"))
				if err == nil {
					err = b.fork(ctx, "z", "a", head)
				}
				if err != nil {
					t.Fatal(err)
				}
			}}
			dst := openLog(t, open(t.TempDir()))
			var order []string
			for s, err := range eventlog.Backup(ctx, dst, src) {
				if err != nil {
					t.Error(err)
				}
				order = append(order, fmt.Sprintf("%s %d", s.Session, s.Stored))
			}
			if got := strings.Join(order, ", "); got != "a 1, b 1, a 2, z 2" {
				t.Errorf("stored %s", got)
			}
			checkBackup(t, dst, src, b.acknowledged())
		})
	}
}

// Damage is reported and the rest copied; a fork of what is damaged is left out
// too. A full target ends the backup.
func TestBackupOfDamage(t *testing.T) {
	ctx := t.Context()
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			inner := open(t.TempDir())
			l := openLog(t, inner)
			b := busy{t: t, log: l, acked: map[string]eventlog.Head{}}
			for _, session := range []string{"bad", "good", "parent"} {
				head, err := l.Append(ctx, session, eventlog.New, userSays(t, "one"), userSays(t, "two"))
				if err == nil {
					_, err = l.Append(ctx, session, eventlog.Any, userSays(t, "three"))
				}
				if err == nil && session == "parent" {
					err = b.fork(ctx, "child", "parent", head)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			src := eventlog.Open(&unreadable{inner, []string{"bad", "parent"}})
			dst := openLog(t, open(t.TempDir()))
			failed := map[string]error{}
			for s, err := range eventlog.Backup(ctx, dst, src) {
				var source *eventlog.SourceError
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
			checkBackup(t, dst, l, map[string]eventlog.Head{})
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
			for _, err := range eventlog.Backup(ctx, dst, l) {
				if !errors.Is(err, eventlog.ErrExists) {
					t.Errorf("a backup into a store with sessions: %v", err)
				}
			}
			results := 0
			for _, err := range eventlog.Backup(ctx, openLog(t, &full{open(t.TempDir())}), l) {
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

// unreadable is a store with sessions that are damaged behind their first
// append.
type unreadable struct {
	eventlog.Store
	sessions []string
}

func (u *unreadable) Unwrap() eventlog.Store { return u.Store }

func (u *unreadable) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[eventlog.Event, error] {
	return func(yield func(eventlog.Event, error) bool) {
		for e, err := range u.Store.Read(ctx, session, r) {
			if strings.Contains(strings.Join(u.sessions, " "), session) && e.Seq > 2 {
				yield(eventlog.Event{}, &eventlog.CorruptError{Session: session, Offset: -1, Seq: e.Seq, Cause: errors.New("damaged")})
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

func (f *full) Append(context.Context, string, eventlog.Head, []eventlog.Event, bool) error {
	return errFull
}
