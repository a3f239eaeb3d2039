package logtest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/search"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/transfer"
)

var holdCases = []testCase{
	{
		Name:        "refuses erasures",
		Explanation: "A session on hold is not redacted, matched, removed, or redacted because of another store. The error names the reason and the person. Nothing changes, in other sessions of the call neither. After the release everything is possible.",
		Needs:       []suite.Need{suite.Eraser, suite.Locker},
		Run:         testHoldRefuses,
	},
	{
		Name:        "covers the shared past",
		Explanation: "A hold on a fork holds the events that it shares with its parent, and not the later events of the parent.",
		Needs:       []suite.Need{suite.Eraser, suite.Locker},
		Run:         testHoldShared,
	},
	{
		Name:        "keeps bodies",
		Explanation: "The body of an event on hold stays when another session with this body is erased.",
		Needs:       []suite.Need{suite.Eraser, suite.Locker, suite.Blobs},
		Run:         testHoldBodies,
	},
	{
		Name:        "while an erasure runs",
		Explanation: "A hold waits for a running redaction. Nothing of the session is erased after the hold was acknowledged.",
		Needs:       []suite.Need{suite.Eraser, suite.Locker, suite.Handles},
		Run:         testHoldMeanwhile,
	},
	{
		Name:        "travels",
		Explanation: "A conversion of all sessions copies holds and releases first, also into a store with notes of its own, whose holds stay. A redaction that meets a hold leaves its session, and the other sessions are copied.",
		Needs:       []suite.Need{suite.Eraser, suite.Locker},
		Run:         testHoldTravels,
	},
	{
		Name:        "who and why",
		Explanation: "Removals, holds and releases are in the session convlog:store, with who and why, and without ids. Redactions have both in their redacted event.",
		Needs:       []suite.Need{suite.Eraser, suite.Locker},
		Run:         testNotes,
	},
	{
		Name:        "no forged notes",
		Explanation: "The session convlog:store takes no other events, other sessions take no notes, an import of an export leaves it out, and it cannot be removed. Its reasons can be redacted; holds and marks stay.",
		Needs:       []suite.Need{suite.Eraser, suite.Locker},
		Run:         testNotesForged,
	},
}

const holdReason = "case 17"

// wantHeld checks that an erasure is refused because of the hold on a session.
func (t *env) wantHeld(session string, err error) {
	t.Helper()
	var held *erase.HeldError
	if !errors.As(err, &held) {
		t.Fatalf("the error is %v, not a hold", err)
	}
	t.WantEqual("held session, by, reason", [3]string{session, "ann@host", holdReason}, [3]string{held.Session, held.By, held.Reason})
	if !strings.Contains(err.Error(), holdReason) || !strings.Contains(err.Error(), "ann@host") {
		t.Errorf("the error %q lacks the reason or the person", err)
	}
}

func (t *env) hold(l *eventlog.Log, session string) {
	t.Helper()
	t.Must(erase.Hold(t.Ctx, l, session, holdReason, "ann@host"))
}

func testHoldRefuses(t *env) {
	l := t.Main()
	t.Append(l, "a", eventlog.New(), event.UserMessage("a secret word"), event.UserMessage("more"))
	t.Append(l, "b", eventlog.New(), event.UserMessage("a secret word"))
	other := eventlog.Open(memory.New())
	defer other.Close()
	for _, err := range transfer.Convert(t.Ctx, other, l) {
		t.Must(err)
	}
	_, err := erase.Redact(t.Ctx, other, "a", []int64{1})
	t.Must(err)
	pattern, err := search.Literal("secret word")
	t.Must(err)
	t.WantErr(eventlog.ErrNotFound, erase.Hold(t.Ctx, l, "missing", holdReason, ""))
	t.WantErr(event.ErrInvalidPayload, erase.Hold(t.Ctx, l, "a", "", "ann@host"))
	t.hold(l, "a")
	a, b := t.Lines(l, "a"), t.Lines(l, "b")
	t.NowAndAfterReopen(func(l *eventlog.Log) {
		for _, dry := range []bool{true, false} {
			opts := erase.RedactOptions{DryRun: dry}
			_, err := erase.Redact(t.Ctx, l, "a", []int64{2}, opts)
			t.wantHeld("a", err)
			_, err = erase.Match(t.Ctx, l, pattern, nil, opts)
			t.wantHeld("a", err)
			_, err = erase.From(t.Ctx, l, other, opts)
			t.wantHeld("a", err)
		}
		t.wantHeld("a", erase.Remove(t.Ctx, l, "a"))
		t.wantHeld("a", erase.Remove(t.Ctx, l, "a", erase.RemoveOptions{DespiteUnreadable: true}))
		t.wantHeld("a", erase.RemoveEach(t.Ctx, l, []string{"b", "a"}, func(string) error { return nil }))
		t.WantEqual("lines of a", a, t.Lines(l, "a"))
		t.WantEqual("lines of b", b, t.Lines(l, "b"))
		holds, err := erase.Holds(t.Ctx, l)
		t.Must(err)
		t.WantEqual("holds", 1, len(holds))
		t.WantEqual("held session", "a", holds[0].Session)
	})
	l = t.Main()
	t.hold(l, "a")
	t.Must(erase.Release(t.Ctx, l, "a", "closed", "bob@host"))
	if err := erase.Release(t.Ctx, l, "a", "closed", "bob@host"); err == nil {
		t.Error("a session is released twice")
	}
	holds, err := erase.Holds(t.Ctx, l)
	t.Must(err)
	t.WantEqual("holds after the release", 0, len(holds))
	_, err = erase.From(t.Ctx, l, other)
	t.Must(err)
	t.Must(erase.RemoveEach(t.Ctx, l, []string{"b", "a"}, func(string) error { return nil }))
	t.WantMissing(l, "a")
	t.WantVerified(l, engine.StoreSession)
}

func testHoldShared(t *env) {
	l := t.Main()
	t.Fill(l, "p", 4)
	t.Append(l, "f", eventlog.New(), t.ForkAt("p", 2))
	t.Fill(l, "f", 1)
	t.hold(l, "f")
	_, err := erase.Redact(t.Ctx, l, "p", []int64{2})
	t.wantHeld("f", err)
	_, err = erase.Redact(t.Ctx, l, "p", []int64{4, 1})
	t.wantHeld("f", err)
	_, err = erase.Redact(t.Ctx, l, "p", []int64{3})
	t.Must(err)
	t.WantErr(eventlog.ErrInUse, erase.Remove(t.Ctx, l, "p"))
	before := t.Lines(l, "p")
	t.wantHeld("f", erase.RemoveEach(t.Ctx, l, []string{"f", "p"}, func(string) error { return nil }))
	t.WantEqual("lines of the parent", before, t.Lines(l, "p"))
	t.Must(erase.Release(t.Ctx, l, "f", "", ""))
	t.hold(l, "p")
	t.Must(erase.Remove(t.Ctx, l, "f"))
	t.wantHeld("p", erase.Remove(t.Ctx, l, "p"))
}

func testHoldBodies(t *env) {
	l := t.Main()
	body, err := l.PutBlob(t.Ctx, suite.NewReader("a shared body"))
	t.Must(err)
	for _, session := range []string{"a", "b"} {
		t.Append(l, session, eventlog.New(), event.New(event.Artifact{ArtifactID: "x", Name: "x", Kind: "file", Body: body}))
	}
	t.hold(l, "a")
	_, err = erase.Redact(t.Ctx, l, "b", []int64{1})
	t.Must(err)
	t.Must(erase.Remove(t.Ctx, l, "b"))
	_, err = erase.Collect(t.Ctx, l)
	t.Must(err)
	r, err := t.Reopen().OpenBlob(t.Ctx, body.Blob)
	t.Must(err)
	t.Must(r.Close())
}

func testHoldMeanwhile(t *env) {
	l, other := t.Main(), t.Second()
	for i := range 10 {
		session := fmt.Sprintf("s%d", i)
		t.Fill(l, session, 3)
		redacted := make(chan error, 1)
		go func() {
			_, err := erase.Redact(t.Ctx, other, session, []int64{2})
			redacted <- err
		}()
		t.hold(l, session)
		held := t.Lines(l, session)
		if err := <-redacted; err != nil {
			t.wantHeld(session, err)
			t.WantEqual("events of a session that is not redacted", 3, len(held))
		}
		_, err := erase.Redact(t.Ctx, other, session, []int64{3})
		t.wantHeld(session, err)
		t.WantEqual("lines since the hold", held, t.Lines(l, session))
	}
}

func testHoldTravels(t *env) {
	l := t.Main()
	for _, session := range []string{"a", "b", "c", "gone"} {
		t.Fill(l, session, 2)
	}
	dst := eventlog.Open(memory.New())
	defer dst.Close()
	convert := func(wantHeld bool) {
		t.Helper()
		held := false
		for r, err := range transfer.Convert(t.Ctx, dst, l, transfer.Options{ApplyRedactions: true}) {
			if err != nil {
				t.WantEqual("session that is not copied", "a", r.Session)
				t.wantHeld("a", err)
				held = true
			}
		}
		t.WantEqual("a hold is reported", wantHeld, held)
	}
	t.hold(l, "b")
	convert(false)
	_, err := erase.Redact(t.Ctx, dst, "b", []int64{1})
	t.wantHeld("b", err)

	t.hold(dst, "a") // from now on dst has notes of its own
	t.Must(erase.Remove(t.Ctx, l, "gone"))
	t.Must(erase.Release(t.Ctx, l, "b", "closed", "bob@host"))
	for _, session := range []string{"a", "c"} {
		_, err := erase.Redact(t.Ctx, l, session, []int64{1})
		t.Must(err)
	}
	before := t.Lines(dst, "a")
	for range 2 {
		convert(true)
		t.WantEqual("lines of the session on hold", before, t.Lines(dst, "a"))
	}
	t.WantEqual("lines of the other session", t.Lines(l, "c"), t.Lines(dst, "c"))
	_, err = erase.Redact(t.Ctx, dst, "b", []int64{1})
	t.Must(err)
	t.WantEqual("notes", 8, len(t.Lines(dst, engine.StoreSession)))
	t.Must(erase.Release(t.Ctx, dst, "a", "", ""))
	convert(false)
	t.WantVerified(dst, engine.StoreSession)
}

func testNotes(t *env) {
	l := t.Main()
	const private = "a-private-id"
	start := time.Now().Add(-time.Hour)
	t.Fill(l, private, 2)
	_, err := erase.Redact(t.Ctx, l, private, []int64{1}, erase.RedactOptions{Reason: "a password", By: "ann@host"})
	t.Must(err)
	for e, err := range l.Read(t.Ctx, private, eventlog.Last(1)) {
		t.Must(err)
		note, _, err := event.Decode[event.RedactionNote](&e)
		t.Must(err)
		t.WantEqual("redacted", [2]string{"ann@host", "a password"}, [2]string{note.By, note.Reason})
	}
	t.hold(l, private)
	t.Must(erase.Release(t.Ctx, l, private, "closed", "bob@host"))
	t.Must(erase.Remove(t.Ctx, l, private, erase.RemoveOptions{Reason: "too old", By: "cid@host"}))
	t.WantErr(eventlog.ErrNotFound, erase.Remove(t.Ctx, l, private))
	want := []string{"session_started", "erased  ", "held ann@host case 17", "released bob@host closed", "removed cid@host too old"}
	t.NowAndAfterReopen(func(l *eventlog.Log) {
		var got []string
		for e, err := range l.Read(t.Ctx, engine.StoreSession, eventlog.All()) {
			t.Must(err)
			text := string(e.Type)
			if note, ok, err := event.Decode[event.StoreNote](&e); ok {
				t.Must(err)
				text += " " + note.By + " " + note.Reason
			}
			if bytes.Contains(e.Line(), []byte(private)) || e.Timestamp.Before(start) {
				t.Errorf("the note %s has the id, or no time", e.Line())
			}
			got = append(got, text)
		}
		t.WantEqual("notes", want, got)
	})
}

func testNotesForged(t *env) {
	l := t.Main()
	t.Fill(l, "a", 2)
	t.hold(l, "a")
	note := event.New(event.StoreNote{Type: engine.Released, Holds: []ulid.ULID{event.NewID()}})
	t.WantAppendError(event.ErrInvalidType, l, "a", eventlog.Any(), note)
	t.WantAppendError(event.ErrInvalidType, l, engine.StoreSession, eventlog.Any(), event.UserMessage("hello"))
	t.WantAppendError(event.ErrInvalidType, l, engine.StoreSession, eventlog.Any(), event.New(event.HeadMove{To: 1}))
	if erase.Remove(t.Ctx, l, engine.StoreSession) == nil {
		t.Error("the notes were removed")
	}
	var export bytes.Buffer
	t.Must(transfer.Export(t.Ctx, l, &export, engine.StoreSession, "a"))
	dst := eventlog.Open(memory.New())
	defer dst.Close()
	for _, again := range []bool{false, true} {
		results, err := transfer.Import(t.Ctx, dst, bytes.NewReader(export.Bytes()), transfer.Options{Again: again})
		t.Must(err)
		for _, r := range results {
			t.WantEqual("left out: "+r.Session, r.Session == engine.StoreSession, r.LeftOut)
		}
	}
	t.WantMissing(dst, engine.StoreSession)
	_, err := erase.Redact(t.Ctx, dst, "a", []int64{1})
	t.Must(err)

	t.Fill(l, "b", 1)
	t.Must(erase.Remove(t.Ctx, l, "b", erase.RemoveOptions{Reason: "a private reason"}))
	_, err = erase.Redact(t.Ctx, l, engine.StoreSession, []int64{1, 2, 3})
	t.Must(err)
	t.NowAndAfterReopen(func(l *eventlog.Log) {
		_, err := erase.Redact(t.Ctx, l, "a", []int64{1})
		var held *erase.HeldError
		if !errors.As(err, &held) || held.Session != "a" || held.Reason != "" {
			t.Errorf("a hold without its reason: %v", err)
		}
	})
	t.WantVerified(t.Main(), engine.StoreSession)
}
