package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/line/linetest"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/transfer"
	"github.com/convlog/convlog/upkeep/verify"
)

// threeMessages is a session of three messages, before and after the redaction of the
// second one, as exports.
func threeMessages(t *testing.T) (full, redacted []byte) {
	t.Helper()
	log := eventlog.Open(memory.New())
	defer log.Close()
	for _, text := range []string{"hello", "hunter2", "bye"} {
		if _, err := log.Append(t.Context(), "a", eventlog.Any(), event.UserMessage(text)); err != nil {
			t.Fatal(err)
		}
	}
	full = exported(t, log)
	if _, err := erase.Redact(t.Context(), log, "a", []int64{2}); err != nil {
		t.Fatal(err)
	}
	return full, exported(t, log)
}

func exported(t *testing.T, log *eventlog.Log) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := transfer.Export(t.Context(), log, &b, "a"); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// linesOf are some lines of a stream.
func linesOf(stream []byte, from, to int) []byte {
	return bytes.Join(bytes.SplitAfter(stream, []byte("\n"))[from:to], nil)
}

// A log that has gone on after the end of a stream with a redaction gets a redacted
// event of its own.
func TestRedactionOfAShorterStream(t *testing.T) {
	full, redacted := threeMessages(t)
	log := eventlog.Open(jsonl.New(t.TempDir()))
	defer log.Close()
	if _, err := transfer.Import(t.Context(), log, bytes.NewReader(full)); err != nil {
		t.Fatal(err)
	}
	short := linesOf(redacted, 0, 2)
	if _, err := transfer.Import(t.Context(), log, bytes.NewReader(short), transfer.Options{ApplyRedactions: true}); err != nil {
		t.Fatal(err)
	}
	if e, err := log.Event(t.Context(), "a", 2); err != nil || !e.Redacted() {
		t.Errorf("event 2 is in full: %v", err)
	}
	report, err := verify.Session(t.Context(), log, "a")
	if err != nil || len(report.Defects) > 0 || report.Events != 4 {
		t.Errorf("%+v, %v", report, err)
	}
}

// An import refuses a stream whose redactions would be damage in the log, and leaves the
// log as it was.
func TestImportOfForgedRedactions(t *testing.T) {
	full, redacted := threeMessages(t)
	forged := bytes.ReplaceAll(redacted, []byte(`"kept":{"role":"user"}`), []byte(`"kept":{"role":"assistant"}`))
	for name, stream := range map[string][]byte{
		"the redacted event is missing": linesOf(redacted, 0, 3),
		"the content is still there":    append(linesOf(full, 0, 3), linesOf(redacted, 3, 4)...),
		"kept members differ":           linetest.Rechain(forged),
	} {
		for _, apply := range []bool{false, true} {
			for _, before := range [][]byte{nil, full[:bytes.IndexByte(full, '\n')+1], full} {
				if name == "the redacted event is missing" && len(before) == len(full) {
					continue // the log appends an event of its own
				}
				log := eventlog.Open(memory.New())
				if _, err := transfer.Import(t.Context(), log, bytes.NewReader(before)); err != nil {
					t.Fatal(err)
				}
				_, err := transfer.Import(t.Context(), log, bytes.NewReader(stream), transfer.Options{ApplyRedactions: apply})
				var order *transfer.RedactionError
				if !errors.Is(err, eventlog.ErrCorrupt) && !errors.As(err, &order) {
					t.Errorf("%s, into %d bytes, obeyed %v: %v", name, len(before), apply, err)
				}
				if len(before) > 0 && !bytes.Equal(exported(t, log), before) {
					t.Errorf("%s, into %d bytes, obeyed %v: the log has changed", name, len(before), apply)
				}
				_ = log.Close()
			}
		}
	}
}

// An erasure was interrupted before it removed its blob. A conversion brings another
// redaction, and new events that need the blob: it stays.
func TestConvertAfterAnInterruptedErasure(t *testing.T) {
	ctx := context.Background()
	open := func() (*eventlog.Log, *jsonl.Store) {
		store := jsonl.New(t.TempDir())
		return eventlog.Open(store), store
	}
	src, _ := open()
	defer src.Close()
	dst, store := open()
	defer dst.Close()
	if _, err := src.Append(ctx, "a", eventlog.New(), event.UserMessage("hunter2")); err != nil {
		t.Fatal(err)
	}
	convertAll(t, dst, src)
	body, err := src.PutBlob(ctx, bytes.NewReader([]byte("a picture")))
	if err != nil {
		t.Fatal(err)
	}
	picture := event.New(event.Message{Role: event.User, Parts: []event.Part{{Type: event.ImagePart, MediaType: "image/png", Blob: body}}})
	if _, err := src.Append(ctx, "a", eventlog.Any(), picture); err != nil {
		t.Fatal(err)
	}
	if _, err := erase.Redact(ctx, src, "a", []int64{1}); err != nil {
		t.Fatal(err)
	}
	if err := store.SetErasing(ctx, []event.Digest{body.Blob}); err != nil {
		t.Fatal(err)
	}
	convertAll(t, dst, src)
	report, err := verify.Session(ctx, dst, "a")
	if err != nil || len(report.Defects) > 0 || report.Events != 3 {
		t.Errorf("%+v, %v", report, err)
	}
	if unfinished, err := store.Erasing(ctx); err != nil || !unfinished.Done() {
		t.Errorf("the erasure is not finished: %+v, %v", unfinished, err)
	}
}

// A session whose redactions are not obeyed does not stop the import of the sessions after it.
func TestImportGoesOnAfterRedactions(t *testing.T) {
	full, redacted := threeMessages(t)
	log, other := eventlog.Open(memory.New()), eventlog.Open(memory.New())
	defer log.Close()
	defer other.Close()
	if _, err := other.Append(t.Context(), "b", eventlog.New(), event.UserMessage("b")); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := transfer.Export(t.Context(), other, &b, "b"); err != nil {
		t.Fatal(err)
	}
	if _, err := transfer.Import(t.Context(), log, bytes.NewReader(full)); err != nil {
		t.Fatal(err)
	}
	done, err := transfer.Import(t.Context(), log, bytes.NewReader(append(redacted, b.Bytes()...)))
	var order *transfer.RedactionError
	if !errors.As(err, &order) || order.Session != "a" || len(done) != 1 || done[0].Session != "b" {
		t.Errorf("%+v, %v", done, err)
	}
	if head, err := log.Head(t.Context(), "a"); err != nil || head.Seq != 3 {
		t.Errorf("session a: %v, %v", head, err)
	}
}

func convertAll(t *testing.T, dst, src *eventlog.Log) {
	t.Helper()
	for _, err := range transfer.Convert(t.Context(), dst, src, transfer.Options{ApplyRedactions: true}) {
		if err != nil {
			t.Fatal(err)
		}
	}
}
