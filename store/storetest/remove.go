package storetest

import (
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/erase"
)

var removeCases = []testCase{
	{
		name:        "is gone",
		explanation: "A removed session is missing to every method, also after a reopen, and the others stay.",
		needs:       []Need{Remover},
		run: func(t *env) {
			t.fill(t.log(), "a", 3)
			t.fill(t.log(), "b", 2)
			t.must(erase.Remove(t.ctx, t.log(), "a"))
			t.twice(func(l *eventlog.Log) {
				t.missing(l, "a")
				t.wantErr(eventlog.ErrNotFound, erase.Remove(t.ctx, l, "a"))
				infos, err := collect(l.Sessions(t.ctx))
				t.must(err)
				t.same("number of sessions", 1, len(infos))
				t.same("events of the other", 2, len(t.lines(l, "b")))
			})
		},
	},
	{
		name:        "created anew",
		explanation: "No head of a removed session satisfies At in the session that was created anew, even from the same events.",
		needs:       []Need{Remover},
		run:         testRemoveRecreate,
	},
	{
		name:        "in use",
		explanation: "A session that forks read through cannot be removed; once they are gone it can.",
		needs:       []Need{Remover},
		run: func(t *env) {
			t.fill(t.log(), "p", 3)
			t.append(t.log(), "f", eventlog.New(), t.forkAt("p", 2))
			t.wantErr(eventlog.ErrInUse, erase.Remove(t.ctx, t.log(), "p"))
			t.same("events", 3, len(t.read(t.log(), "f", eventlog.All())))
			t.must(erase.Remove(t.ctx, t.log(), "f"))
			t.must(erase.Remove(t.ctx, t.reopen(), "p"))
			t.missing(t.log(), "p")
		},
	},
	{
		name:        "damaged",
		explanation: "A session is removed also where it is damaged, anywhere; forks of it keep it, and another session whose parent cannot be read keeps it until the caller says otherwise.",
		needs:       []Need{Remover, Damage},
		run:         testRemoveDamaged,
	},
	{
		name:        "a race with a fork",
		explanation: "Of removing a session and forking it at the same time, one fails: no fork is left without its parent.",
		needs:       []Need{Remover, Locker, Handles},
		run:         testRemoveFork,
	},
	{
		name:        "without the ability",
		explanation: "Where the store cannot do what is asked, the answer is ErrUnsupported, and nothing changes.",
		run:         testUnsupported,
	},
}

func testRemoveDamaged(t *env) {
	for _, at := range []int{0, 1, 2} {
		l := t.log()
		t.fill(l, "a", 3)
		t.append(l, "f", eventlog.New(), t.forkAt("a", 3))
		t.append(l, "f", eventlog.Any(), note(9))
		l = t.damage("a", onLine(at, flipped))
		t.wantErr(eventlog.ErrInUse, erase.Remove(t.ctx, l, "a"))
		l = t.damage("f", onLine(0, flipped))
		t.wantErr(eventlog.ErrLineage, erase.Remove(t.ctx, l, "a"))
		t.must(erase.Remove(t.ctx, l, "a", erase.RemoveOptions{DespiteUnreadable: true}))
		t.missing(l, "a")
		t.must(erase.Remove(t.ctx, l, "f"))
		t.twice(func(l *eventlog.Log) {
			t.missing(l, "a")
			t.missing(l, "f")
		})
	}
}

func testRemoveRecreate(t *env) {
	l := t.log()
	events := notes(4)
	var old []event.Head
	for i := range events {
		old = append(old, t.append(l, "a", eventlog.Any(), events[i]))
	}
	t.must(erase.Remove(t.ctx, l, "a"))
	for _, h := range old {
		t.refused(eventlog.ErrNotFound, l, "a", eventlog.At(h), note(9))
	}
	t.append(l, "a", eventlog.New(), events...)
	t.twice(func(l *eventlog.Log) {
		for _, h := range old {
			t.refused(eventlog.ErrConflict, l, "a", eventlog.At(h), note(9))
			t.refused(eventlog.ErrConflict, l, "a", eventlog.At(h), events[h.Seq%4])
		}
	})
	t.sound(t.log(), "a")
}

func testRemoveFork(t *env) {
	l, other := t.log(), t.second()
	for i := range 20 {
		parent, child := fmt.Sprintf("p%d", i), fmt.Sprintf("c%d", i)
		t.fill(l, parent, 1)
		fork := t.forkAt(parent, 1)
		removed := make(chan error, 1)
		go func() { removed <- erase.Remove(t.ctx, other, parent) }()
		_, err := l.Append(t.ctx, child, eventlog.New(), fork)
		switch removal := <-removed; {
		case err == nil:
			t.wantErr(eventlog.ErrInUse, removal)
			t.sound(l, child)
		default:
			t.wantErr(eventlog.ErrNotFound, err)
			t.must(removal)
		}
	}
}

// bare hides the abilities of a store.
type bare struct{ eventlog.Store }

func testUnsupported(t *env) {
	t.fill(t.log(), "a", 2)
	before := t.lines(t.log(), "a")
	l := t.over(bare{t.store()})
	t.wantErr(eventlog.ErrUnsupported, erase.Remove(t.ctx, l, "a"))
	_, err := erase.Redact(t.ctx, l, "a", []int64{1}, erase.RedactOptions{Reason: "test"})
	t.wantErr(eventlog.ErrUnsupported, err)
	_, err = l.PutBlob(t.ctx, newReader("body"))
	t.wantErr(eventlog.ErrUnsupported, err)
	_, err = l.OpenBlob(t.ctx, event.DigestOf(nil))
	t.wantErr(eventlog.ErrUnsupported, err)
	t.same("lines", before, t.lines(l, "a"))
	w := t.watch(l, "a", 1)
	w.take(2)
	t.fill(l, "a", 1)
	t.same("what a watcher sees", int64(3), w.take(1)[0].Seq)
	w.stop()
}
