package logtest

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/transfer"
)

var travelCases = []testCase{
	{
		Name:        "convert",
		Explanation: "A conversion obeys the redactions of its source, with the bodies and with what only the destination's forks derive of the content.",
		Needs:       []suite.Need{suite.Eraser, suite.Blobs},
		Run:         testTravelConvert,
	},
	{
		Name:        "nothing comes back",
		Explanation: "No conversion, export or adoption from a log with the full content brings erased content or bodies back.",
		Needs:       []suite.Need{suite.Eraser, suite.Blobs},
		Run:         testTravelBack,
	},
	{
		Name:        "an export erases only when asked",
		Explanation: "An import of an export with redactions stores nothing and names the events, unless it is asked to apply them.",
		Needs:       []suite.Need{suite.Eraser, suite.Blobs},
		Run:         testTravelExport,
	},
	{
		Name:        "copies of erased events",
		Explanation: "An import or a conversion stores nothing of a copy, made in another store, of events that were erased here, and nothing of its forks; it names the events. It stores them when asked.",
		Needs:       []suite.Need{suite.Eraser, suite.Blobs},
		Run:         testTravelCopies,
	},
	{
		Name:        "histories that part",
		Explanation: "A session that has gone on is a conflict; the redactions of the other log can be repeated there.",
		Needs:       []suite.Need{suite.Eraser, suite.Blobs},
		Run:         testTravelParted,
	},
}

// confide fills a session with the secret in an event's data and in a body, and with
// harmless events.
func (t *env) confide(l *eventlog.Log) {
	t.Helper()
	ref, err := l.PutBlob(t.Ctx, suite.NewReader("a body with "+secret))
	t.Must(err)
	hidden := suite.User(secret)
	t.Must(hidden.AddBlobs(ref.Blob))
	big := suite.NewEvent("test:big", `"`+suite.Text(secret, 3000)+`"`)
	t.Append(l, "a", eventlog.New(), suite.Note(1), hidden, suite.Note(3))
	t.Append(l, "a", eventlog.Any(), big)
}

// copied is a log with the secret, and a copy of it under test.
func (t *env) copied() (src *eventlog.Log) {
	t.Helper()
	src = t.OtherLog(memory.New(), eventlog.Options{SpillOver: 200})
	t.confide(src)
	t.convert(t.Main(), src)
	return src
}

func (t *env) convert(dst, src *eventlog.Log) {
	t.Helper()
	for _, err := range transfer.Convert(t.Ctx, dst, src, transfer.Options{ApplyRedactions: true}) {
		t.Must(err)
	}
}

// redactSecret redacts the events with the secret.
func (t *env) redactSecret(l *eventlog.Log) {
	t.Helper()
	_, err := erase.Redact(t.Ctx, l, "a", []int64{2, 4}, erase.RedactOptions{Reason: "test"})
	t.Must(err)
}

// wantGone checks that the log under test has nothing of the secret.
func (t *env) wantGone(sessions ...string) {
	t.Helper()
	for _, session := range sessions {
		t.WantEqual("the secret is in "+session, false, strings.Contains(strings.Join(t.Lines(t.Main(), session), ""), secret))
		t.WantVerified(t.Main(), session)
	}
	_, err := t.Main().OpenBlob(t.Ctx, event.DigestOf([]byte("a body with "+secret)))
	t.WantErr(eventlog.ErrBlobNotFound, err)
	t.Close()
	t.WantErased(secret)
}

func testTravelConvert(t *env) {
	src := t.copied()
	fourth, err := t.Main().Event(t.Ctx, "a", 4)
	t.Must(err)
	t.Append(t.Main(), "fork", eventlog.New(), suite.ForkOf("a", &fourth), suite.NewEvent(event.ProjectionSnapshotted,
		`{"projection":"p","version":1,"snapshot_id":"0190a5a4-7d4c-7000-8000-000000000001","state_digest":"`+string(event.DigestOf([]byte("{}")))+
			`","index":0,"turn_index":0,"trigger":"manual","seq":5,"state":{"said":"`+secret+`"}}`))
	t.redactSecret(src)
	t.Append(src, "a", eventlog.Any(), suite.Note(6))
	t.Append(src, "z", eventlog.New(), suite.Note(1))
	lines := [][]string{t.Lines(t.Main(), "a"), t.Lines(t.Main(), "fork")}
	var failed []error
	for _, err := range transfer.Convert(t.Ctx, t.Main(), src) {
		if err != nil {
			failed = append(failed, err)
		}
	}
	var order *transfer.RedactionError
	if len(failed) != 1 || !errors.As(failed[0], &order) || order.Session != "a" {
		t.Fatalf("a conversion that is not asked to erase: %v", failed)
	}
	t.WantEqual("lines of a session that is left whole", lines, [][]string{t.Lines(t.Main(), "a"), t.Lines(t.Main(), "fork")})
	t.WantEqual("another session", 1, len(t.Lines(t.Main(), "z")))
	t.convert(t.Main(), src)
	t.WantEqual("lines", t.Lines(src, "a"), t.Lines(t.Main(), "a"))
	t.convert(t.Main(), src)
	t.wantGone("a", "fork")
}

func testTravelBack(t *env) {
	src := t.copied()
	t.redactSecret(t.Main())
	lines := t.Lines(t.Main(), "a")
	t.convert(t.Main(), src)
	var b bytes.Buffer
	t.Must(transfer.Export(t.Ctx, src, &b, "a"))
	_, err := transfer.Import(t.Ctx, t.Main(), &b)
	t.Must(err)
	_, err = transfer.Adopt(t.Ctx, t.Main(), "a", src.Store().Read(t.Ctx, "a", eventlog.Span{}))
	t.Must(err)
	t.WantEqual("lines", lines, t.Lines(t.Main(), "a"))
	t.wantGone("a")
}

func testTravelExport(t *env) {
	src := t.copied()
	lines := t.Lines(t.Main(), "a")
	t.redactSecret(src)
	var b bytes.Buffer
	t.Must(transfer.Export(t.Ctx, src, &b, "a"))
	_, err := transfer.Import(t.Ctx, t.Main(), bytes.NewReader(b.Bytes()))
	var order *transfer.RedactionError
	if !errors.As(err, &order) {
		t.Fatalf("the import of redactions: %v", err)
	}
	t.WantEqual("events in the error", []int64{2, 4}, order.Seqs)
	t.WantEqual("lines", lines, t.Lines(t.Main(), "a"))
	_, err = transfer.Import(t.Ctx, t.Main(), bytes.NewReader(b.Bytes()), transfer.Options{ApplyRedactions: true})
	t.Must(err)
	t.WantEqual("lines", t.Lines(src, "a"), t.Lines(t.Main(), "a"))
	t.wantGone("a")
}

// testTravelCopies imports and converts a copy that another store made before the erasure.
func testTravelCopies(t *env) {
	src := t.copied()
	_, err := fork.Copy(t.Ctx, src, "a", fork.CopyOptions{ID: "copy"})
	t.Must(err)
	head, err := src.Head(t.Ctx, "copy")
	t.Must(err)
	last, err := src.Event(t.Ctx, "copy", head.Seq)
	t.Must(err)
	t.Append(src, "copyfork", eventlog.New(), suite.ForkOf("copy", &last))
	t.Append(src, "z", eventlog.New(), suite.Note(1))
	t.redactSecret(t.Main())
	var b bytes.Buffer
	for _, session := range []string{"copyfork", "z"} { // with the parent
		t.Must(transfer.Export(t.Ctx, src, &b, session))
	}
	wantRefused := func(err error) {
		t.Helper()
		var order *transfer.RedactionError
		if !errors.As(err, &order) || order.Session != "copy" || order.Original != "a" || !slices.Equal(order.Seqs, []int64{2, 4}) {
			t.Errorf("a copy of erased events: %v", err)
		}
		for _, session := range []string{"copy", "copyfork"} {
			_, err := t.Main().Head(t.Ctx, session)
			t.WantErr(eventlog.ErrNotFound, err)
		}
		t.WantEqual("another session", 1, len(t.Lines(t.Main(), "z")))
		_, err = t.Main().OpenBlob(t.Ctx, event.DigestOf([]byte("a body with "+secret)))
		t.WantErr(eventlog.ErrBlobNotFound, err)
	}
	for _, opts := range []transfer.Options{{}, {ApplyRedactions: true}} {
		_, err = transfer.Import(t.Ctx, t.Main(), bytes.NewReader(b.Bytes()), opts)
		wantRefused(err)
		err = nil
		for _, failed := range transfer.Convert(t.Ctx, t.Main(), src, opts) {
			err = errors.Join(err, failed)
		}
		wantRefused(err)
	}
	_, err = transfer.Import(t.Ctx, t.Main(), bytes.NewReader(b.Bytes()), transfer.Options{EvenErased: true})
	t.Must(err)
	stored, err := t.Main().Head(t.Ctx, "copy")
	t.Must(err)
	t.WantEqual("head of the copy", head, stored)
	_, err = transfer.Import(t.Ctx, t.Main(), bytes.NewReader(b.Bytes()))
	t.Must(err) // nothing is new
}

func testTravelParted(t *env) {
	src := t.copied()
	t.Append(t.Main(), "a", eventlog.Any(), suite.Note(5))
	t.redactSecret(src)
	var failed error
	for _, err := range transfer.Convert(t.Ctx, t.Main(), src) {
		failed = errors.Join(failed, err)
	}
	t.WantErr(eventlog.ErrConflict, failed)
	done, err := erase.From(t.Ctx, t.Main(), src)
	t.Must(err)
	t.WantEqual("erased", []erase.EventRef{{Session: "a", Seq: 2, Type: event.MessageAdded}, {Session: "a", Seq: 4, Type: "test:big"}}, done.Erased)
	again, err := erase.From(t.Ctx, t.Main(), src)
	t.Must(err)
	t.WantEqual("erased again", 0, len(again.Erased))
	t.WantEqual("events", 6, len(t.Lines(t.Main(), "a")))
	t.wantGone("a")
}
