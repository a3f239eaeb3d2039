package logtest

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/transfer"
)

var removeCases = []testCase{
	{
		Name:        "missing afterwards",
		Explanation: "Every method reports a removed session as missing, also after a reopen, and other sessions stay.",
		Needs:       []suite.Need{suite.Eraser},
		Run: func(t *env) {
			t.Fill(t.Main(), "a", 3)
			t.Fill(t.Main(), "b", 2)
			t.Must(erase.Remove(t.Ctx, t.Main(), "a"))
			t.NowAndAfterReopen(func(l *eventlog.Log) {
				t.WantMissing(l, "a")
				t.WantErr(eventlog.ErrNotFound, erase.Remove(t.Ctx, l, "a"))
				infos, err := suite.Collect(l.Sessions(t.Ctx))
				t.Must(err)
				t.WantEqual("number of sessions, with the notes of the store", 2, len(infos))
				t.WantEqual("events of the other", 2, len(t.Lines(l, "b")))
			})
		},
	},
	{
		Name:        "leaves a mark",
		Explanation: "A removal leaves a note in the session convlog:store, without the id of the removed session. A conversion of all sessions copies the note, and an import of an export leaves the session out, with the sessions below it, unless the caller wants it again.",
		Needs:       []suite.Need{suite.Eraser},
		Run:         testRemoveMark,
	},
	{
		Name:        "recreated",
		Explanation: "No head of a removed session satisfies At in a recreated session, even if the events are the same.",
		Needs:       []suite.Need{suite.Eraser},
		Run:         testRemoveRecreate,
	},
	{
		Name:        "with forks",
		Explanation: "A session with forks cannot be removed. After removing the forks it can.",
		Needs:       []suite.Need{suite.Eraser},
		Run: func(t *env) {
			t.Fill(t.Main(), "p", 3)
			t.Append(t.Main(), "f", eventlog.New(), t.ForkAt("p", 2))
			t.WantErr(eventlog.ErrInUse, erase.Remove(t.Ctx, t.Main(), "p"))
			t.WantEqual("events", 3, len(t.Read(t.Main(), "f", eventlog.All())))
			t.Must(erase.Remove(t.Ctx, t.Main(), "f"))
			t.Must(erase.Remove(t.Ctx, t.Reopen(), "p"))
			t.WantMissing(t.Main(), "p")
		},
	},
	{
		Name:        "damaged",
		Explanation: "A damaged session can be removed. It cannot be removed while it has forks, or while another session has an unreadable parent, unless the caller allows it.",
		Needs:       []suite.Need{suite.Eraser, suite.Damage},
		Run:         testRemoveDamaged,
	},
	{
		Name:        "concurrent fork",
		Explanation: "Of a concurrent removal and fork of a session one fails: no fork is left without its parent.",
		Needs:       []suite.Need{suite.Eraser, suite.Locker, suite.Handles},
		Run:         testRemoveFork,
	},
	{
		Name:        "unsupported",
		Explanation: "An operation that the store does not support is ErrUnsupported, and nothing changes.",
		Run:         testUnsupported,
	},
}

func testRemoveDamaged(t *env) {
	for _, at := range []int{0, 1, 2} {
		l := t.Main()
		t.Fill(l, "a", 3)
		t.Append(l, "f", eventlog.New(), t.ForkAt("a", 3))
		t.Append(l, "f", eventlog.Any(), suite.Note(9))
		l = t.Damage("a", onLine(at, flipByte))
		t.WantErr(eventlog.ErrInUse, erase.Remove(t.Ctx, l, "a"))
		l = t.Damage("f", onLine(0, flipByte))
		t.WantErr(engine.ErrLineage, erase.Remove(t.Ctx, l, "a"))
		t.Must(erase.Remove(t.Ctx, l, "a", erase.RemoveOptions{DespiteUnreadable: true}))
		t.WantMissing(l, "a")
		t.Must(erase.Remove(t.Ctx, l, "f"))
		t.NowAndAfterReopen(func(l *eventlog.Log) {
			t.WantMissing(l, "a")
			t.WantMissing(l, "f")
		})
	}
}

func testRemoveRecreate(t *env) {
	l := t.Main()
	events := suite.Notes(4)
	var old []event.Head
	for i := range events {
		old = append(old, t.Append(l, "a", eventlog.Any(), events[i]))
	}
	t.Must(erase.Remove(t.Ctx, l, "a"))
	for _, h := range old {
		t.WantAppendError(eventlog.ErrNotFound, l, "a", eventlog.At(h), suite.Note(9))
	}
	t.Append(l, "a", eventlog.New(), events...)
	t.NowAndAfterReopen(func(l *eventlog.Log) {
		for _, h := range old {
			t.WantAppendError(eventlog.ErrConflict, l, "a", eventlog.At(h), suite.Note(9))
			t.WantAppendError(eventlog.ErrConflict, l, "a", eventlog.At(h), events[h.Seq%4])
		}
	})
	t.WantVerified(t.Main(), "a")
}

func testRemoveFork(t *env) {
	l, other := t.Main(), t.Second()
	for i := range 20 {
		parent, child := fmt.Sprintf("p%d", i), fmt.Sprintf("c%d", i)
		t.Fill(l, parent, 1)
		fork := t.ForkAt(parent, 1)
		removed := make(chan error, 1)
		go func() { removed <- erase.Remove(t.Ctx, other, parent) }()
		_, err := l.Append(t.Ctx, child, eventlog.New(), fork)
		switch removal := <-removed; {
		case err == nil:
			t.WantErr(eventlog.ErrInUse, removal)
			t.WantVerified(l, child)
		default:
			t.WantErr(eventlog.ErrNotFound, err)
			t.Must(removal)
		}
	}
}

func testUnsupported(t *env) {
	t.Fill(t.Main(), "a", 2)
	before := t.Lines(t.Main(), "a")
	l := t.LogOver(suite.BareStore{Store: t.Store()})
	t.WantErr(eventlog.ErrUnsupported, erase.Remove(t.Ctx, l, "a"))
	_, err := erase.Redact(t.Ctx, l, "a", []int64{1}, erase.RedactOptions{Reason: "test"})
	t.WantErr(eventlog.ErrUnsupported, err)
	_, err = l.PutBlob(t.Ctx, suite.NewReader("body"))
	t.WantErr(eventlog.ErrUnsupported, err)
	_, err = l.OpenBlob(t.Ctx, event.DigestOf(nil))
	t.WantErr(eventlog.ErrUnsupported, err)
	t.WantEqual("lines", before, t.Lines(l, "a"))
	w := t.watch(l, "a", 1)
	w.next(2)
	t.Fill(l, "a", 1)
	t.WantEqual("what a watcher sees", int64(3), w.next(1)[0].Seq)
	w.stop()
}

// testRemoveMark imports an export into the log of the removal and into a copy of it.
func testRemoveMark(t *env) {
	const removed = "a session with a long and private name"
	t.Fill(t.Main(), removed, 3)
	t.Append(t.Main(), "f", eventlog.New(), t.ForkAt(removed, 2))
	t.Fill(t.Main(), "b", 2)
	var export bytes.Buffer
	t.Must(transfer.Export(t.Ctx, t.Main(), &export, removed, "f", "b"))
	want := t.Lines(t.Main(), removed)
	t.Must(erase.RemoveEach(t.Ctx, t.Main(), []string{"f", removed}, func(string) error { return nil }))
	for _, line := range t.Lines(t.Main(), engine.StoreSession) {
		if strings.Contains(string(line), removed) {
			t.Errorf("the note %q has the id", line)
		}
	}
	dst := eventlog.Open(memory.New())
	defer dst.Close()
	for _, err := range transfer.Convert(t.Ctx, dst, t.Main()) {
		t.Must(err)
	}
	for _, l := range []*eventlog.Log{t.Reopen(), dst} {
		results, err := transfer.Import(t.Ctx, l, bytes.NewReader(export.Bytes()))
		t.Must(err)
		for _, r := range results {
			t.WantEqual("left out: "+r.Session, r.Session != "b", r.LeftOut)
		}
		t.WantEqual("sessions of the export", 3, len(results))
		t.WantMissing(l, removed)
		results, err = transfer.Import(t.Ctx, l, bytes.NewReader(export.Bytes()), transfer.Options{Again: true})
		t.Must(err)
		t.WantEqual("sessions of the export", 3, len(results))
		t.WantEqual("lines", want, t.Lines(l, removed))
	}
}
