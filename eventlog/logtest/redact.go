package logtest

import (
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

var redactCases = []testCase{
	{
		Name:        "content",
		Explanation: "A redacted event keeps its seq, header and hash. No line has its content, the chain verifies, and a redacted event records the redaction.",
		Needs:       []suite.Need{suite.Eraser},
		Run:         testRedact,
	},
	{
		Name:        "files",
		Explanation: "After Close, the store's files do not have the erased bytes.",
		Needs:       []suite.Need{suite.Eraser},
		Run:         testRedactFiles,
	},
	{
		Name:        "twice",
		Explanation: "A second redaction of the same events changes nothing and is no error.",
		Needs:       []suite.Need{suite.Eraser},
		Run: func(t *env) {
			t.Append(t.Main(), "a", eventlog.New(), suite.User("secret"), suite.Note(1))
			_, err := erase.Redact(t.Ctx, t.Main(), "a", []int64{1}, erase.RedactOptions{Reason: "test"})
			t.Must(err)
			want := t.Lines(t.Main(), "a")
			report, err := erase.Redact(t.Ctx, t.Main(), "a", []int64{1}, erase.RedactOptions{Reason: "again"})
			t.Must(err)
			t.WantEqual("erased", 0, len(report.Erased))
			t.WantEqual("lines", want, t.Lines(t.Main(), "a"))
		},
	},
	{
		Name:        "rejected redactions",
		Explanation: "Lost events and missing seqs are rejected, and nothing changes.",
		Needs:       []suite.Need{suite.Eraser},
		Run:         testRedactRefused,
	},
	{
		Name:        "tree and control events",
		Explanation: "Redacted tree and control events lose people's words, and readers still find the parent, the path and the claims.",
		Needs:       []suite.Need{suite.Eraser},
		Run:         testRedactTree,
	},
	{
		Name:        "beside readers",
		Explanation: "While other handles read the session and a blob, a redaction erases the bytes, or says that they may still be in the files. Then Finish erases them.",
		Needs:       []suite.Need{suite.Eraser, suite.Blobs},
		Run:         testRedactBesideReaders,
	},
	{
		Name:        "structure",
		Explanation: "A redaction keeps the structural members of a type: a redacted call and its result still belong together.",
		Needs:       []suite.Need{suite.Eraser},
		Run:         testRedactKept,
	},
	{
		Name:        "blobs",
		Explanation: "A redaction removes the blobs that only redacted events refer to. Other blobs stay.",
		Needs:       []suite.Need{suite.Eraser, suite.Blobs},
		Run:         testRedactBlobs,
	},
	{
		Name:        "appends after a redaction",
		Explanation: "A redacted session accepts appends. Retries of redacted events are recognised by id and type, and old heads still conflict.",
		Needs:       []suite.Need{suite.Eraser},
		Run:         testRedactGoesOn,
	},
	{
		Name:        "concurrent appends",
		Explanation: "Concurrent redactions and appends lose nothing.",
		Needs:       []suite.Need{suite.Eraser},
		Run:         testRedactContended,
	},
}

const secret = "the-most-secret-words"

func testRedact(t *env) {
	l := t.Main()
	hidden := suite.User(secret)
	hidden.Metadata = []byte(`{"k":"` + secret + `"}`)
	t.Append(l, "a", eventlog.New(), suite.Note(1), hidden, suite.Note(3))
	before := t.Lines(l, "a")
	report, err := erase.Redact(t.Ctx, l, "a", []int64{2}, erase.RedactOptions{Reason: "asked for"})
	t.Must(err)
	t.WantEqual("erased", []erase.EventRef{{Session: "a", Seq: 2, Type: event.MessageAdded}}, report.Erased)
	t.NowAndAfterReopen(func(l *eventlog.Log) {
		after := t.Lines(l, "a")
		t.WantEqual("the other lines", []string{before[0], before[2]}, []string{after[0], after[2]})
		t.WantEqual("the content is still stored", false, strings.Contains(strings.Join(after, ""), secret))
		events := t.Read(l, "a", eventlog.All())
		t.WantEqual("redacted", true, events[1].Redacted())
		t.WantEqual("id", hidden.ID, events[1].ID)
		_, _, err := event.Decode[event.Message](&events[1])
		t.WantErr(event.ErrRedacted, err)
		t.WantEqual("type of the redaction event", event.Redacted, events[3].Type)
		kept := event.DigestOf(append(events[1].Kept(), '\n'))
		t.WantEqual("data of the redaction event", `{"seqs":[2],"reason":"asked for","kept":"`+string(kept)+`"}`, string(events[3].Data))
		t.WantVerified(l, "a")
	})
}

func testRedactFiles(t *env) {
	t.Append(t.Main(), "a", eventlog.New(), suite.Note(1), suite.User(secret), suite.Note(3))
	_, err := erase.Redact(t.Ctx, t.Main(), "a", []int64{2}, erase.RedactOptions{Reason: "asked for"})
	t.Must(err)
	t.Close()
	t.WantErased(secret)
}

func testRedactRefused(t *env) {
	l := t.Main()
	_, err := erase.Redact(t.Ctx, l, "a", []int64{1}, erase.RedactOptions{Reason: "test"})
	t.WantErr(eventlog.ErrNotFound, err)
	t.Append(l, "a", eventlog.New(), suite.User("secret"), suite.Note(2))
	t.Append(l, "a", eventlog.Any(), suite.NewEvent(event.Lost, `{"reason":"damage"}`))
	before := t.Lines(l, "a")
	_, err = erase.Redact(t.Ctx, l, "a", []int64{1, 3}, erase.RedactOptions{Reason: "test"})
	t.WantErr(event.ErrInvalidType, err)
	for _, seq := range []int64{0, 4, -1} {
		_, err := erase.Redact(t.Ctx, l, "a", []int64{1, seq}, erase.RedactOptions{Reason: "test"})
		t.WantErr(eventlog.ErrEventNotFound, err)
	}
	t.WantEqual("lines", before, t.Lines(l, "a"))
}

// testRedactTree redacts each kind of tree and control event, and the redacted event
// itself.
func testRedactTree(t *env) {
	l := t.Main()
	t.Append(l, "a", eventlog.New(), suite.Note(1), suite.Note(2))
	t.Append(l, "a", eventlog.Any(), suite.NewEvent(event.HeadMoved, `{"to":1,"label":"`+secret+`","reason":"`+secret+`","extra":{"x":"`+secret+`"}}`))
	t.Append(l, "a", eventlog.Any(), suite.NewEvent(event.RunClaimed, `{"epoch":7,"runner":"r","lease":"l","extra":{"x":"`+secret+`"}}`))
	t.Append(l, "a", eventlog.Any(), suite.NewEvent(event.RunReleased, `{"epoch":7,"reason":"`+secret+`"}`))
	t.Append(l, "a", eventlog.Any(), suite.NewEvent(event.AbortRequested, `{"by":"`+secret+`","reason":"`+secret+`"}`))
	at := t.Read(l, "a", eventlog.Between(2, 2))[0]
	t.Append(l, "b", eventlog.New(),
		suite.NewEvent(event.SessionForked, fmt.Sprintf(`{"parent":"a","seq":2,"event_id":"%s","hash":"%s","label":%q}`, at.ID, at.Hash(), secret)), suite.Note(4))
	_, err := erase.Redact(t.Ctx, l, "a", []int64{3, 4, 5, 6}, erase.RedactOptions{Reason: secret})
	t.Must(err)
	_, err = erase.Redact(t.Ctx, l, "a", []int64{7}, erase.RedactOptions{Reason: "a reason that tells"})
	t.Must(err)
	_, err = erase.Redact(t.Ctx, l, "b", []int64{3}, erase.RedactOptions{Reason: "a label that tells"})
	t.Must(err)
	t.NowAndAfterReopen(func(l *eventlog.Log) {
		t.WantEqual("the words are still stored", false, strings.Contains(strings.Join(append(t.Lines(l, "a"), t.Lines(l, "b")...), ""), secret))
		events := t.Read(l, "a", eventlog.All())
		move, _, err := event.Decode[event.HeadMove](&events[2])
		t.Must(err)
		t.WantEqual("move", event.HeadMove{To: 1}, move)
		claim, _, err := event.Decode[event.RunClaim](&events[3])
		t.Must(err)
		t.WantEqual("claim", event.RunClaim{Epoch: 7, Runner: "r", Lease: "l"}, claim)
		note, _, err := event.Decode[event.RedactionNote](&events[6])
		t.Must(err)
		t.WantEqual("the redaction's seqs", []int64{3, 4, 5, 6}, note.Seqs)
		path, err := l.Path(t.Ctx, "b", 0)
		t.Must(err)
		t.WantEqual("length of the fork's path", int64(5), path.Len())
		t.WantVerified(l, "a")
		t.WantVerified(l, "b")
	})
	t.Close()
	t.WantErased(secret)
}

func testRedactBesideReaders(t *env) {
	l := t.LogOver(t.Store(), eventlog.Options{SpillOver: 50})
	t.Append(l, "a", eventlog.New(), suite.Note(1), suite.User(suite.Text(secret, 1000)))
	t.Append(l, "a", eventlog.Any(), suite.Notes(3)...)
	for _, reader := range []*eventlog.Log{l, t.LogOver(t.Store(), eventlog.Options{})} {
		next, stop := iter.Pull2(reader.Store().Read(t.Ctx, "a", eventlog.Span{}))
		defer stop()
		_, err, _ := next()
		t.Must(err)
	}
	spilled, err := suite.Collect(l.Store().Read(t.Ctx, "a", eventlog.Span{From: 2, To: 2}))
	t.Must(err)
	body, err := l.OpenBlob(t.Ctx, spilled[0].Blobs()[0])
	t.Must(err)
	_, err = body.Read(make([]byte, 10))
	t.Must(err)
	_, err = erase.Redact(t.Ctx, l, "a", []int64{2}, erase.RedactOptions{Reason: "test"})
	if !errors.Is(err, erase.ErrUnfinished) {
		t.Must(err)
	}
	t.Must(body.Close())
	t.Must(erase.Finish(t.Ctx, l))
	defects, err := suite.Defects(verify.Store(t.Ctx, l))
	t.Must(err)
	t.WantEqual("defects", 0, len(defects))
	t.WantVerified(l, "a")
	t.Close()
	t.WantErased(secret)
}

func testRedactKept(t *env) {
	l := t.Main()
	t.Append(l, "a", eventlog.New(), suite.Calls("c1", "c2"), suite.Result("c1"), suite.User(secret))
	_, err := erase.Redact(t.Ctx, l, "a", []int64{1, 2, 3}, erase.RedactOptions{Reason: "test"})
	t.Must(err)
	l = t.Reopen()
	t.WantAppendError(event.OrphanResult, l, "a", eventlog.Any(), suite.Result("c1"))
	t.Append(l, "a", eventlog.Any(), suite.Result("c2"))
	events := t.Read(l, "a", eventlog.All())
	t.WantEqual("kept of the calls", `{"role":"assistant","calls":["c1","c2"]}`, string(events[0].Kept()))
	t.WantEqual("kept of the result", `{"role":"tool","results":["c1"]}`, string(events[1].Kept()))
	t.WantEqual("kept of the message", `{"role":"user"}`, string(events[2].Kept()))
	t.WantVerified(l, "a")
}

func testRedactBlobs(t *env) {
	l := t.LogOver(t.Store(), eventlog.Options{SpillOver: 50})
	shared, own := `"`+suite.Text("shared", 100)+`"`, `"`+suite.Text(secret, 100)+`"`
	t.Append(l, "a", eventlog.New(), suite.NewEvent("test:note", shared), suite.NewEvent("test:note", own))
	t.Append(l, "b", eventlog.New(), suite.NewEvent("test:note", shared))
	report, err := erase.Redact(t.Ctx, l, "a", []int64{1, 2}, erase.RedactOptions{Reason: "test"})
	t.Must(err)
	gone := event.DigestOf([]byte(own))
	t.WantEqual("removed blobs", []event.BlobRef{{Blob: gone, Bytes: int64(len(own))}}, report.Blobs)
	_, err = l.OpenBlob(t.Ctx, gone)
	t.WantErr(eventlog.ErrBlobNotFound, err)
	t.WantEqual("data of the other", shared, string(t.Read(t.Reopen(), "b", eventlog.All())[0].Data))
	t.WantVerified(t.Main(), "a")
	t.WantVerified(t.Main(), "b")
}

func testRedactGoesOn(t *env) {
	l := t.Main()
	events := []event.Event{suite.User(secret), suite.Note(2)}
	old := t.Append(l, "a", eventlog.New(), events...)
	_, err := erase.Redact(t.Ctx, l, "a", []int64{1}, erase.RedactOptions{Reason: "test"})
	t.Must(err)
	t.WantAppendError(eventlog.ErrConflict, l, "a", eventlog.At(old), suite.Note(3))
	t.WantEqual("head of the retry", old, t.Append(l, "a", eventlog.New(), events...))
	head := t.Append(l, "a", eventlog.At(t.Head(l, "a")), suite.Note(3))
	t.WantEqual("head of the retry after a reopen", old, t.Append(t.Reopen(), "a", eventlog.New(), events...))
	t.WantEqual("head", head, t.Head(t.Main(), "a"))
	t.WantEqual("seqs", between(1, 4), suite.SeqsOf(t.Read(t.Main(), "a", eventlog.All())))
	t.WantVerified(t.Main(), "a")
}

func testRedactContended(t *env) {
	l := t.Main()
	const n = 12
	for range n {
		t.Append(l, "a", eventlog.Any(), suite.User(secret))
	}
	errs := suite.Concurrently(4, func(i int) error {
		for k := range n {
			var err error
			if i == 0 {
				_, err = erase.Redact(t.Ctx, l, "a", []int64{int64(k + 1)}, erase.RedactOptions{Reason: "test"})
			} else {
				_, err = l.Append(t.Ctx, "a", eventlog.Any(), suite.Note(k))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	for _, err := range errs {
		t.Must(err)
	}
	lines := t.Lines(t.Reopen(), "a")
	t.WantEqual("events", 5*n, len(lines))
	t.WantEqual("the content is still stored", false, strings.Contains(strings.Join(lines, ""), secret))
	t.WantVerified(t.Main(), "a")
}
