package storetest

import (
	"context"
	"errors"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
)

var abilityCases = []testCase{
	{
		Name:        "version tells changes",
		Explanation: "Versioner: a version that is equal means that the session has not changed; a missing session is ErrNotFound.",
		Needs:       []suite.Need{suite.Versioner},
		Run:         testVersion,
	},
	{
		Name:        "version sees other handles",
		Explanation: "Versioner: an append through another handle changes the version.",
		Needs:       []suite.Need{suite.Versioner, suite.Handles},
		Run:         testVersionAcross,
	},
	{
		Name:        "sync",
		Explanation: "Syncer: a session that is there can be synced at any time, a missing one is ErrNotFound.",
		Needs:       []suite.Need{suite.Syncer},
		Run: func(t *env) {
			s := t.Store()
			syncer := suite.Ability[eventlog.Syncer](t, s)
			t.WantErr(eventlog.ErrNotFound, syncer.Sync(t.Ctx, "a"))
			head := t.Put(s, event.Head{}, suite.BatchAfter("a", event.Head{}, 1))
			t.Must(syncer.Sync(t.Ctx, "a"))
			t.Put(s, head, suite.BatchAfter("a", head, 1))
			t.Must(syncer.Sync(t.Ctx, "a"))
			t.WantErr(eventlog.ErrNotFound, syncer.Sync(t.Ctx, "b"))
		},
	},
	{
		Name:        "rewrite",
		Explanation: "Eraser: the named lines are replaced and the new ones added, in one step; all other lines stay byte for byte.",
		Needs:       []suite.Need{suite.Eraser},
		Run:         testRewrite,
	},
	{
		Name:        "rewrite compares the head",
		Explanation: "Eraser: at another head than expected nothing changes, and the error is a ConflictError.",
		Needs:       []suite.Need{suite.Eraser},
		Run:         testRewriteConflict,
	},
	{
		Name:        "remove compares the head",
		Explanation: "Eraser: a session is removed only at the expected head; then it is missing and may be created anew.",
		Needs:       []suite.Need{suite.Eraser},
		Run:         testRemoveSession,
	},
	{
		Name:        "lock excludes",
		Explanation: "Locker: shared locks go together, an exclusive one goes alone, and waiting ends with the context.",
		Needs:       []suite.Need{suite.Locker},
		Run:         func(t *env) { testLock(t, t.Store(), t.Store()) },
	},
	{
		Name:        "lock excludes other handles",
		Explanation: "Locker: the lock holds between independent handles.",
		Needs:       []suite.Need{suite.Locker, suite.Handles},
		Run:         func(t *env) { testLock(t, t.Store(), t.Open()) },
	},
}

func testVersion(t *env) {
	s := t.Store()
	v := suite.Ability[eventlog.Versioner](t, s)
	_, err := v.Version(t.Ctx, "a")
	t.WantErr(eventlog.ErrNotFound, err)
	head := t.Put(s, event.Head{}, suite.BatchAfter("a", event.Head{}, 1))
	seen := map[uint64]bool{}
	for range 20 {
		version, err := v.Version(t.Ctx, "a")
		t.Must(err)
		again, err := v.Version(t.Ctx, "a")
		t.Must(err)
		if seen[version] {
			t.Fatalf("version %d came again after an append", version)
		}
		t.Same("version without a change", version, again)
		seen[version] = true
		head = t.Put(s, head, suite.BatchAfter("a", head, 1))
	}
}

func testVersionAcross(t *env) {
	s, other := t.Store(), t.Open()
	head := t.Put(s, event.Head{}, suite.BatchAfter("a", event.Head{}, 1))
	v := suite.Ability[eventlog.Versioner](t, s)
	for range 10 {
		before, err := v.Version(t.Ctx, "a")
		t.Must(err)
		head = t.Put(other, head, suite.BatchAfter("a", head, 1))
		after, err := v.Version(t.Ctx, "a")
		t.Must(err)
		if before == after {
			t.Fatalf("the version is %d before and after an append of another handle", before)
		}
	}
}

func testRewrite(t *env) {
	s := t.Store()
	secret := suite.Line{Data: `"the secret"`}
	events := suite.ChainAfter("a", event.Head{}, suite.Line{Data: "1"}, secret, suite.Line{Data: "3"}, secret, suite.Line{Data: "5"})
	head := t.Put(s, event.Head{}, events)
	add := suite.BatchAfter("a", head, 1)
	replace := []event.Event{suite.Erased(events[1]), suite.Erased(events[3])}
	t.Must(suite.Ability[eventlog.Eraser](t, s).Rewrite(t.Ctx, "a", head, replace, add))
	events[1], events[3] = replace[0], replace[1]
	want := suite.LinesOf(append(events, add...))
	t.Same("lines", want, t.Lines(t.Main(), "a"))
	t.Same("newest", want[4:], suite.LinesOf(t.Span(s, "a", eventlog.Span{From: 5})))
	next := t.Put(s, suite.HeadOf(add), suite.BatchAfter("a", suite.HeadOf(add), 2))
	t.Same("head", next, t.Head(t.Main(), "a"))
	t.Same("lines after a reopen", want, t.Lines(t.Reopen(), "a")[:6])
}

func testRewriteConflict(t *env) {
	s := t.Store()
	rewriter := suite.Ability[eventlog.Eraser](t, s)
	first := suite.BatchAfter("a", event.Head{}, 2)
	old := t.Put(s, event.Head{}, first)
	head := t.Put(s, old, suite.BatchAfter("a", old, 1))
	want := t.Lines(t.Main(), "a")
	err := rewriter.Rewrite(t.Ctx, "a", old, []event.Event{suite.Erased(first[0])}, suite.BatchAfter("a", old, 1))
	t.Conflict(err, old, head)
	t.Same("lines", want, t.Lines(t.Main(), "a"))
	err = rewriter.Rewrite(t.Ctx, "b", head, nil, suite.BatchAfter("b", head, 1))
	if !errors.Is(err, eventlog.ErrConflict) && !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("rewriting a missing session: %v", err)
	}
	t.Missing(t.Main(), "b")
}

func testRemoveSession(t *env) {
	s := t.Store()
	remover := suite.Ability[eventlog.Eraser](t, s)
	old := t.Put(s, event.Head{}, suite.BatchAfter("a", event.Head{}, 2))
	head := t.Put(s, old, suite.BatchAfter("a", old, 1))
	t.Put(s, event.Head{}, suite.BatchAfter("b", event.Head{}, 1))
	t.Conflict(remover.RemoveSession(t.Ctx, "a", old), old, head)
	t.Same("lines", 3, len(t.Lines(t.Main(), "a")))
	t.Must(remover.RemoveSession(t.Ctx, "a", head))
	_, err := suite.Collect(s.Read(t.Ctx, "a", eventlog.Span{}))
	t.WantErr(eventlog.ErrNotFound, err)
	t.Conflict(s.Append(t.Ctx, "a", head, suite.BatchAfter("a", head, 1), false), head, event.Head{})
	again := t.Put(s, event.Head{}, suite.BatchAfter("a", event.Head{}, 4))
	t.Same("head", again, t.Head(t.Reopen(), "a"))
	t.Same("lines of the other session", 1, len(t.Lines(t.Main(), "b")))
}

func testLock(t *env, a, b eventlog.Store) {
	first, second := suite.Ability[eventlog.Locker](t, a), suite.Ability[eventlog.Locker](t, b)
	for _, exclusive := range []bool{false, true} {
		_, held, err := first.Lock(t.Ctx, exclusive)
		t.Must(err)
		for _, other := range []bool{false, true} {
			ctx, cancel := t.Briefly()
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
				t.WantErr(context.DeadlineExceeded, err)
			}
		}
		held()
	}
	testLockHandOver(t, first, second)
}

// testLockHandOver makes sure that a waiter gets the lock that is given back.
func testLockHandOver(t *env, first, second eventlog.Locker) {
	_, held, err := first.Lock(t.Ctx, true)
	t.Must(err)
	got := make(chan error)
	go func() {
		_, unlock, err := second.Lock(t.Ctx, true)
		if err == nil {
			unlock()
		}
		got <- err
	}()
	held()
	t.Must(<-got)
}
