package storetest

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

var abilityCases = []testCase{
	{
		name:        "version tells changes",
		explanation: "Versioner: a version that is equal means that the session has not changed; a missing session is ErrNotFound.",
		needs:       []Need{Versioner},
		run:         testVersion,
	},
	{
		name:        "version sees other handles",
		explanation: "Versioner: an append through another handle changes the version.",
		needs:       []Need{Versioner, Handles},
		run:         testVersionAcross,
	},
	{
		name:        "sync",
		explanation: "Syncer: a session that is there can be synced at any time, a missing one is ErrNotFound.",
		needs:       []Need{Syncer},
		run: func(t *env) {
			s := t.store()
			syncer := ability[eventlog.Syncer](t, s)
			t.wantErr(eventlog.ErrNotFound, syncer.Sync(t.ctx, "a"))
			head := t.put(s, event.Head{}, batchAfter("a", event.Head{}, 1))
			t.must(syncer.Sync(t.ctx, "a"))
			t.put(s, head, batchAfter("a", head, 1))
			t.must(syncer.Sync(t.ctx, "a"))
			t.wantErr(eventlog.ErrNotFound, syncer.Sync(t.ctx, "b"))
		},
	},
	{
		name:        "rewrite",
		explanation: "Rewriter: the named lines are replaced and the new ones added, in one step; all other lines stay byte for byte.",
		needs:       []Need{Rewriter},
		run:         testRewrite,
	},
	{
		name:        "rewrite compares the head",
		explanation: "Rewriter: at another head than expected nothing changes, and the error is a ConflictError.",
		needs:       []Need{Rewriter},
		run:         testRewriteConflict,
	},
	{
		name:        "remove compares the head",
		explanation: "Remover: a session is removed only at the expected head; then it is missing and may be created anew.",
		needs:       []Need{Remover},
		run:         testRemoveSession,
	},
	{
		name:        "lock excludes",
		explanation: "Locker: shared locks go together, an exclusive one goes alone, and waiting ends with the context.",
		needs:       []Need{Locker},
		run:         func(t *env) { testLock(t, t.store(), t.store()) },
	},
	{
		name:        "lock excludes other handles",
		explanation: "Locker: the lock holds between independent handles.",
		needs:       []Need{Locker, Handles},
		run:         func(t *env) { testLock(t, t.store(), t.open()) },
	},
}

// ability finds an ability that the harness does not lack.
func ability[T any](t *env, s eventlog.Store) T {
	t.Helper()
	a, ok := eventlog.As[T](s)
	if !ok {
		t.Fatalf("the store has no %T", *new(T))
	}
	return a
}

func testVersion(t *env) {
	s := t.store()
	v := ability[eventlog.Versioner](t, s)
	_, err := v.Version(t.ctx, "a")
	t.wantErr(eventlog.ErrNotFound, err)
	head := t.put(s, event.Head{}, batchAfter("a", event.Head{}, 1))
	seen := map[uint64]bool{}
	for range 20 {
		version, err := v.Version(t.ctx, "a")
		t.must(err)
		again, err := v.Version(t.ctx, "a")
		t.must(err)
		if seen[version] {
			t.Fatalf("version %d came again after an append", version)
		}
		t.same("version without a change", version, again)
		seen[version] = true
		head = t.put(s, head, batchAfter("a", head, 1))
	}
}

func testVersionAcross(t *env) {
	s, other := t.store(), t.open()
	head := t.put(s, event.Head{}, batchAfter("a", event.Head{}, 1))
	v := ability[eventlog.Versioner](t, s)
	for range 10 {
		before, err := v.Version(t.ctx, "a")
		t.must(err)
		head = t.put(other, head, batchAfter("a", head, 1))
		after, err := v.Version(t.ctx, "a")
		t.must(err)
		if before == after {
			t.Fatalf("the version is %d before and after an append of another handle", before)
		}
	}
}

func testRewrite(t *env) {
	s := t.store()
	secret := line{data: `"the secret"`}
	events := chainAfter("a", event.Head{}, line{data: "1"}, secret, line{data: "3"}, secret, line{data: "5"})
	head := t.put(s, event.Head{}, events)
	add := batchAfter("a", head, 1)
	replace := []event.Event{erased(events[1]), erased(events[3])}
	t.must(ability[eventlog.Eraser](t, s).Rewrite(t.ctx, "a", head, replace, add))
	events[1], events[3] = replace[0], replace[1]
	want := linesOf(append(events, add...))
	t.same("lines", want, t.lines(t.log(), "a"))
	t.same("newest", want[4:], linesOf(t.span(s, "a", eventlog.Span{From: 5})))
	next := t.put(s, headOf(add), batchAfter("a", headOf(add), 2))
	t.same("head", next, t.head(t.log(), "a"))
	t.same("lines after a reopen", want, t.lines(t.reopen(), "a")[:6])
}

func testRewriteConflict(t *env) {
	s := t.store()
	rewriter := ability[eventlog.Eraser](t, s)
	first := batchAfter("a", event.Head{}, 2)
	old := t.put(s, event.Head{}, first)
	head := t.put(s, old, batchAfter("a", old, 1))
	want := t.lines(t.log(), "a")
	err := rewriter.Rewrite(t.ctx, "a", old, []event.Event{erased(first[0])}, batchAfter("a", old, 1))
	t.conflict(err, old, head)
	t.same("lines", want, t.lines(t.log(), "a"))
	err = rewriter.Rewrite(t.ctx, "b", head, nil, batchAfter("b", head, 1))
	if !errors.Is(err, eventlog.ErrConflict) && !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("rewriting a missing session: %v", err)
	}
	t.missing(t.log(), "b")
}

func testRemoveSession(t *env) {
	s := t.store()
	remover := ability[eventlog.Eraser](t, s)
	old := t.put(s, event.Head{}, batchAfter("a", event.Head{}, 2))
	head := t.put(s, old, batchAfter("a", old, 1))
	t.put(s, event.Head{}, batchAfter("b", event.Head{}, 1))
	t.conflict(remover.RemoveSession(t.ctx, "a", old), old, head)
	t.same("lines", 3, len(t.lines(t.log(), "a")))
	t.must(remover.RemoveSession(t.ctx, "a", head))
	_, err := collect(s.Read(t.ctx, "a", eventlog.Span{}))
	t.wantErr(eventlog.ErrNotFound, err)
	t.conflict(s.Append(t.ctx, "a", head, batchAfter("a", head, 1), false), head, event.Head{})
	again := t.put(s, event.Head{}, batchAfter("a", event.Head{}, 4))
	t.same("head", again, t.head(t.reopen(), "a"))
	t.same("lines of the other session", 1, len(t.lines(t.log(), "b")))
}

// briefly is a context that ends soon: for waits that cannot succeed.
func (t *env) briefly() (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.ctx, 40*time.Millisecond)
}

func testLock(t *env, a, b eventlog.Store) {
	first, second := ability[eventlog.Locker](t, a), ability[eventlog.Locker](t, b)
	for _, exclusive := range []bool{false, true} {
		_, held, err := first.Lock(t.ctx, exclusive)
		t.must(err)
		for _, other := range []bool{false, true} {
			ctx, cancel := t.briefly()
			_, unlock, err := second.Lock(ctx, other)
			cancel()
			switch free := !exclusive && !other; {
			case free && err != nil:
				t.Fatalf("two shared locks: %v", err)
			case free:
				unlock()
			case err == nil:
				t.Fatalf("a lock (exclusive %v) was given while another (exclusive %v) was held", other, exclusive)
			default:
				t.wantErr(context.DeadlineExceeded, err)
			}
		}
		held()
	}
	testLockHandOver(t, first, second)
}

// testLockHandOver makes sure that a waiter gets the lock that is given back.
func testLockHandOver(t *env, first, second eventlog.Locker) {
	_, held, err := first.Lock(t.ctx, true)
	t.must(err)
	got := make(chan error)
	go func() {
		_, unlock, err := second.Lock(t.ctx, true)
		if err == nil {
			unlock()
		}
		got <- err
	}()
	held()
	t.must(<-got)
}

// text is a blob's body of n bytes that depend on seed.
func text(seed string, n int) string { return strings.Repeat(seed, n/len(seed)+1)[:n] }

func newReader(body string) io.Reader { return strings.NewReader(body) }
