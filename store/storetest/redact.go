package storetest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/erase"
)

var redactCases = []testCase{
	{
		name:        "content is gone",
		explanation: "A redacted event keeps its place, header and hash; its content is gone from every line; the chain verifies; a redacted event says what was done.",
		needs:       []Need{Rewriter},
		run:         testRedact,
	},
	{
		name:        "gone from the files",
		explanation: "The erased bytes are not in the store's files any more once it is closed.",
		needs:       []Need{Rewriter},
		run:         testRedactFiles,
	},
	{
		name:        "twice",
		explanation: "Redacting again changes nothing and is no error.",
		needs:       []Need{Rewriter},
		run: func(t *env) {
			t.append(t.log(), "a", eventlog.New(), user("secret"), note(1))
			_, err := erase.Redact(t.ctx, t.log(), "a", []int64{1}, erase.RedactOptions{Reason: "test"})
			t.must(err)
			want := t.lines(t.log(), "a")
			report, err := erase.Redact(t.ctx, t.log(), "a", []int64{1}, erase.RedactOptions{Reason: "again"})
			t.must(err)
			t.same("erased", 0, len(report.Erased))
			t.same("lines", want, t.lines(t.log(), "a"))
		},
	},
	{
		name:        "what cannot be redacted",
		explanation: "Tree and control types are refused, and so are seqs that are not there; nothing changes.",
		needs:       []Need{Rewriter},
		run:         testRedactRefused,
	},
	{
		name:        "what is kept",
		explanation: "The structural members of the type stay: a redacted call and its result still belong together.",
		needs:       []Need{Rewriter},
		run:         testRedactKept,
	},
	{
		name:        "blobs",
		explanation: "Blobs that only redacted events need are gone; those that others need stay.",
		needs:       []Need{Rewriter, Blobs},
		run:         testRedactBlobs,
	},
	{
		name:        "goes on",
		explanation: "Appends go on behind a redaction, retries of what was redacted are recognised by id and type, and old heads still conflict.",
		needs:       []Need{Rewriter},
		run:         testRedactGoesOn,
	},
	{
		name:        "while others append",
		explanation: "Redactions and appends at the same time lose nothing of each other.",
		needs:       []Need{Rewriter},
		run:         testRedactContended,
	},
}

const secret = "the-most-secret-words"

func testRedact(t *env) {
	l := t.log()
	hidden := user(secret)
	hidden.Metadata = []byte(`{"k":"` + secret + `"}`)
	t.append(l, "a", eventlog.New(), note(1), hidden, note(3))
	before := t.lines(l, "a")
	report, err := erase.Redact(t.ctx, l, "a", []int64{2}, erase.RedactOptions{Reason: "asked for"})
	t.must(err)
	t.same("erased", []erase.EventRef{{Session: "a", Seq: 2, Type: event.MessageAdded}}, report.Erased)
	t.twice(func(l *eventlog.Log) {
		after := t.lines(l, "a")
		t.same("the other lines", []string{before[0], before[2]}, []string{after[0], after[2]})
		t.same("the content is found", false, strings.Contains(strings.Join(after, ""), secret))
		events := t.read(l, "a", eventlog.All())
		t.same("redacted", true, events[1].Redacted())
		t.same("id", hidden.ID, events[1].ID)
		_, _, err := event.Decode[event.Message](&events[1])
		t.wantErr(event.ErrRedacted, err)
		t.same("type of the note", event.Redacted, events[3].Type)
		t.same("data of the note", `{"seqs":[2],"reason":"asked for"}`, string(events[3].Data))
		t.sound(l, "a")
	})
}

func testRedactFiles(t *env) {
	t.append(t.log(), "a", eventlog.New(), note(1), user(secret), note(3))
	_, err := erase.Redact(t.ctx, t.log(), "a", []int64{2}, erase.RedactOptions{Reason: "asked for"})
	t.must(err)
	t.close()
	if t.harness.Path == "" {
		return
	}
	parent := filepath.Dir(t.harness.Path)
	t.must(filepath.WalkDir(parent, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		if strings.Contains(string(body), secret) {
			t.Errorf("the erased content is in %s", filepath.Base(path))
		}
		return err
	}))
}

func testRedactRefused(t *env) {
	l := t.log()
	_, err := erase.Redact(t.ctx, l, "a", []int64{1}, erase.RedactOptions{Reason: "test"})
	t.wantErr(eventlog.ErrNotFound, err)
	t.append(l, "a", eventlog.New(), user("secret"), note(2))
	t.append(l, "a", eventlog.Any(), moved(1))
	t.append(l, "a", eventlog.Any(), newEvent(event.RunClaimed, `{"epoch":1,"runner":"r"}`))
	before := t.lines(l, "a")
	for _, seq := range []int64{3, 4} {
		_, err := erase.Redact(t.ctx, l, "a", []int64{1, seq}, erase.RedactOptions{Reason: "test"})
		t.wantErr(event.ErrInvalidType, err)
	}
	for _, seq := range []int64{0, 5, -1} {
		_, err := erase.Redact(t.ctx, l, "a", []int64{1, seq}, erase.RedactOptions{Reason: "test"})
		t.wantErr(eventlog.ErrEventNotFound, err)
	}
	t.same("lines", before, t.lines(l, "a"))
	_, err = erase.Redact(t.ctx, l, "a", []int64{1}, erase.RedactOptions{Reason: "test"})
	t.must(err)
	_, err = erase.Redact(t.ctx, l, "a", []int64{5}, erase.RedactOptions{Reason: "test"})
	t.wantErr(event.ErrInvalidType, err)
}

func testRedactKept(t *env) {
	l := t.log()
	t.append(l, "a", eventlog.New(), calls("c1", "c2"), result("c1"), user(secret))
	_, err := erase.Redact(t.ctx, l, "a", []int64{1, 2, 3}, erase.RedactOptions{Reason: "test"})
	t.must(err)
	l = t.reopen()
	t.refused(event.ErrInvalidResult, l, "a", eventlog.Any(), result("c1"))
	t.append(l, "a", eventlog.Any(), result("c2"))
	events := t.read(l, "a", eventlog.All())
	t.same("kept of the calls", `{"role":"assistant","calls":["c1","c2"]}`, string(events[0].Kept()))
	t.same("kept of the result", `{"role":"tool","results":["c1"]}`, string(events[1].Kept()))
	t.same("kept of the message", `{"role":"user"}`, string(events[2].Kept()))
	t.sound(l, "a")
}

func testRedactBlobs(t *env) {
	l := t.over(t.store(), eventlog.Options{SpillOver: 50})
	shared, own := `"`+text("shared", 100)+`"`, `"`+text(secret, 100)+`"`
	t.append(l, "a", eventlog.New(), newEvent("test:note", shared), newEvent("test:note", own))
	t.append(l, "b", eventlog.New(), newEvent("test:note", shared))
	report, err := erase.Redact(t.ctx, l, "a", []int64{1, 2}, erase.RedactOptions{Reason: "test"})
	t.must(err)
	gone := event.DigestOf([]byte(own))
	t.same("blobs that are gone", []event.BlobRef{{Blob: gone, Bytes: int64(len(own))}}, report.Blobs)
	_, err = l.OpenBlob(t.ctx, gone)
	t.wantErr(eventlog.ErrBlobNotFound, err)
	t.same("data of the other", shared, string(t.read(t.reopen(), "b", eventlog.All())[0].Data))
	t.sound(t.log(), "a")
	t.sound(t.log(), "b")
}

func testRedactGoesOn(t *env) {
	l := t.log()
	events := []event.Event{user(secret), note(2)}
	old := t.append(l, "a", eventlog.New(), events...)
	_, err := erase.Redact(t.ctx, l, "a", []int64{1}, erase.RedactOptions{Reason: "test"})
	t.must(err)
	t.refused(eventlog.ErrConflict, l, "a", eventlog.At(old), note(3))
	t.same("head of the retry", old, t.append(l, "a", eventlog.New(), events...))
	head := t.append(l, "a", eventlog.At(t.head(l, "a")), note(3))
	t.same("head of the retry after a reopen", old, t.append(t.reopen(), "a", eventlog.New(), events...))
	t.same("head", head, t.head(t.log(), "a"))
	t.same("seqs", between(1, 4), seqsIn(t.read(t.log(), "a", eventlog.All())))
	t.sound(t.log(), "a")
}

func testRedactContended(t *env) {
	l := t.log()
	const n = 12
	for range n {
		t.append(l, "a", eventlog.Any(), user(secret))
	}
	errs := together(4, func(i int) error {
		for k := range n {
			var err error
			if i == 0 {
				_, err = erase.Redact(t.ctx, l, "a", []int64{int64(k + 1)}, erase.RedactOptions{Reason: "test"})
			} else {
				_, err = l.Append(t.ctx, "a", eventlog.Any(), note(k))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	for _, err := range errs {
		t.must(err)
	}
	lines := t.lines(t.reopen(), "a")
	t.same("events", 5*n, len(lines))
	t.same("the content is found", false, strings.Contains(strings.Join(lines, ""), secret))
	t.sound(t.log(), "a")
}
