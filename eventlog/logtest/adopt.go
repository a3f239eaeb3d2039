package logtest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/transfer"
)

var adoptCases = []testCase{
	{
		Name:        "keeps lines",
		Explanation: "Adopt stores the lines of another store unchanged: ids, seqs, times and hashes are equal. Adopting them again stores nothing.",
		Run:         testAdopt,
	},
	{
		Name:        "accepts appends",
		Explanation: "An adopted session accepts appends. Adopting a longer copy adds only the new events. Adopting another history is a conflict.",
		Run:         testAdoptMore,
	},
	{
		Name:        "rejects damaged lines",
		Explanation: "A modified, reordered, missing or foreign line rejects the whole session, and nothing is stored.",
		Run:         testAdoptRefused,
	},
	{
		Name:        "unknown members",
		Explanation: "Lines with unknown types, unknown members and any number form are adopted byte for byte.",
		Run: func(t *env) {
			events := suite.ChainAfter("a", event.Head{}, suite.Line{Typ: "x:y/9", Data: `{"n":1E400,"a":-0}`,
				Members: `"metadata":{"z":1.0,"a":9007199254740993},"x-1":[1e+2],"y":{"data":1}`}, suite.Line{Data: `"\u00e9"`})
			_, err := transfer.Adopt(t.Ctx, t.Main(), "a", suite.Sequence(events))
			t.Must(err)
			t.WantEqual("lines", suite.LinesOf(events), t.Lines(t.Reopen(), "a"))
			t.WantVerified(t.Main(), "a")
		},
	},
	{
		Name:        "export and import",
		Explanation: "An export that is imported into another store has the same events, hashes, forks and bodies.",
		Needs:       []suite.Need{suite.Blobs},
		Run:         testExport,
	},
	{
		Name:        "import of a large append",
		Explanation: "An append that was spilled to stay within 4 MiB is spilled again when its export is imported.",
		Needs:       []suite.Need{suite.Blobs},
		Run: func(t *env) {
			src := t.OtherLog(memory.New())
			var events []event.Event
			for i := range 24 {
				events = append(events, suite.NewEvent("test:big", `"`+suite.Text(fmt.Sprint(i, " "), 200<<10)+`"`))
			}
			head := t.Append(src, "a", eventlog.New(), events...)
			var b bytes.Buffer
			t.Must(transfer.Export(t.Ctx, src, &b, "a"))
			_, err := transfer.Import(t.Ctx, t.Main(), &b)
			t.Must(err)
			l := t.Reopen()
			t.WantEqual("head", head, t.Head(l, "a"))
			t.WantEqual("bytes of lines within 4 MiB", true, len(strings.Join(t.Lines(l, "a"), "\n")) < 4<<20)
			t.WantVerified(l, "a")
		},
	},
	{
		Name:        "import of a broken export",
		Explanation: "An export with a flipped byte is rejected, and nothing is stored.",
		Needs:       []suite.Need{suite.Blobs},
		Run: func(t *env) {
			src := t.OtherLog(memory.New())
			t.Fill(src, "a", 20)
			var b bytes.Buffer
			t.Must(transfer.Export(t.Ctx, src, &b, "a"))
			for at := 30; at < b.Len(); at += 997 {
				broken := bytes.Clone(b.Bytes())
				broken[at] ^= 1
				if _, err := transfer.Import(t.Ctx, t.Main(), bytes.NewReader(broken)); err == nil {
					t.Errorf("an export with byte %d flipped was imported", at)
				}
				t.WantMissing(t.Main(), "a")
			}
		},
	},
	{
		Name:        "convert",
		Explanation: "Convert copies every line of a store and every blob that a line refers to, parents before their forks.",
		Needs:       []suite.Need{suite.Blobs},
		Run:         testConvert,
	},
}

// otherLog fills a log in memory.
func (t *env) otherLog() *eventlog.Log {
	t.Helper()
	l := t.OtherLog(memory.New(), eventlog.Options{SpillOver: 200})
	t.Append(l, "p", eventlog.New(), suite.User("hello"), suite.Calls("c1"))
	t.Append(l, "p", eventlog.Any(), suite.Result("c1"))
	t.Append(l, "p", eventlog.Any(), suite.NewEvent("test:big", `"`+suite.Text("big", 1000)+`"`), suite.Note(5))
	e, err := l.Event(t.Ctx, "p", 3)
	t.Must(err)
	t.Append(l, "f", eventlog.New(), suite.ForkOf("p", &e))
	t.Append(l, "f", eventlog.Any(), suite.Notes(3)...)
	ref, err := l.PutBlob(t.Ctx, suite.NewReader("an image"))
	t.Must(err)
	own := suite.Note(1)
	t.Must(own.AddBlobs(ref.Blob))
	t.Append(l, "f", eventlog.Any(), own)
	return l
}

func testAdopt(t *env) {
	src := t.OtherLog(memory.New())
	for n := range 30 {
		t.Append(src, "a", eventlog.Any(), suite.Notes(1+n%4)...)
	}
	want := t.Lines(src, "a")
	adopted, err := transfer.Adopt(t.Ctx, t.Main(), "a", src.Read(t.Ctx, "a", eventlog.All()))
	t.Must(err)
	t.WantEqual("report", transfer.Result{Session: "a", Read: int64(len(want)), Stored: int64(len(want)), Head: t.Head(src, "a")}, adopted)
	t.WantEqual("lines", want, t.Lines(t.Reopen(), "a"))
	t.WantVerified(t.Main(), "a")
	again, err := transfer.Adopt(t.Ctx, t.Main(), "a", src.Read(t.Ctx, "a", eventlog.All()))
	t.Must(err)
	t.WantEqual("stored the second time", int64(0), again.Stored)
	t.WantEqual("lines", want, t.Lines(t.Main(), "a"))
}

func testAdoptMore(t *env) {
	src := t.OtherLog(memory.New())
	t.Append(src, "a", eventlog.Any(), suite.Notes(3)...)
	_, err := transfer.Adopt(t.Ctx, t.Main(), "a", src.Read(t.Ctx, "a", eventlog.All()))
	t.Must(err)
	t.Append(src, "a", eventlog.Any(), suite.Notes(2)...)
	adopted, err := transfer.Adopt(t.Ctx, t.Main(), "a", src.Read(t.Ctx, "a", eventlog.All()))
	t.Must(err)
	t.WantEqual("stored", int64(2), adopted.Stored)
	t.Append(t.Main(), "a", eventlog.At(adopted.Head), suite.Note(6))
	t.Fill(src, "a", 3)
	before := t.Lines(t.Main(), "a")
	_, err = transfer.Adopt(t.Ctx, t.Main(), "a", src.Read(t.Ctx, "a", eventlog.All()))
	t.WantErr(eventlog.ErrConflict, err)
	t.WantEqual("lines", before, t.Lines(t.Reopen(), "a"))
}

func testAdoptRefused(t *env) {
	good := suite.BatchAfter("a", event.Head{}, 1)
	for range 9 {
		good = append(good, suite.BatchAfter("a", suite.HeadOf(good), 1)...)
	}
	change := func(f func(events []event.Event) []event.Event) []event.Event { return f(slices.Clone(good)) }
	for name, bad := range map[string][]event.Event{
		"tampered":      change(func(e []event.Event) []event.Event { e[4] = suite.WithData(e[4], `{"n":5}`); return e }),
		"tampered last": change(func(e []event.Event) []event.Event { e[9] = suite.WithData(e[9], `{"n":5}`); return e }),
		"swapped":       change(func(e []event.Event) []event.Event { e[2], e[3] = e[3], e[2]; return e }),
		"missing":       slices.Delete(slices.Clone(good), 5, 6),
		"repeated":      slices.Insert(slices.Clone(good), 5, good[4]),
		"headless":      good[1:],
		"of another":    append(slices.Clone(good), suite.BatchAfter("b", suite.HeadOf(good), 1)...),
		"other chain":   append(slices.Clone(good), suite.BatchAfter("a", suite.HeadOf(good[:9]), 2)[1]),
		"unfinished":    append(slices.Clone(good), suite.BatchAfter("a", suite.HeadOf(good), 3)[:2]...),
		"new":           append(slices.Clone(good), suite.Note(1)),
	} {
		if _, err := transfer.Adopt(t.Ctx, t.Main(), "a", suite.Sequence(bad)); err == nil {
			t.Errorf("%s: adopted", name)
		}
		t.WantMissing(t.Main(), "a")
	}
	_, err := transfer.Adopt(t.Ctx, t.Main(), "a", suite.Sequence(good))
	t.Must(err)
}

// facts are the parts of an event that no copy changes.
type facts struct{ ID, Hash, Data string }

func factsOf(events []event.Event) []facts {
	all := make([]facts, len(events))
	for i := range events {
		all[i] = facts{events[i].ID.String(), events[i].Hash().String(), string(events[i].Data)}
	}
	return all
}

func testExport(t *env) {
	src := t.otherLog()
	var b bytes.Buffer
	t.Must(transfer.Export(t.Ctx, src, &b, "f"))
	_, err := transfer.Import(t.Ctx, t.Main(), bytes.NewReader(b.Bytes()))
	t.Must(err)
	t.wantCopyOf(src, t.Reopen())
	var again bytes.Buffer
	t.Must(transfer.Export(t.Ctx, t.Main(), &again, "f"))
	t.WantEqual("export of the import", b.String(), again.String())
	adopted, err := transfer.Import(t.Ctx, t.Main(), bytes.NewReader(b.Bytes()))
	t.Must(err)
	for _, a := range adopted {
		t.WantEqual("stored the second time", int64(0), a.Stored)
	}
}

// wantCopyOf checks that l has the sessions and bodies of src.
func (t *env) wantCopyOf(src, l *eventlog.Log) {
	t.Helper()
	for _, session := range []string{"p", "f"} {
		t.WantEqual("events of "+session, factsOf(t.Read(src, session, eventlog.All())), factsOf(t.Read(l, session, eventlog.All())))
		t.WantVerified(l, session)
	}
	t.WantEqual("body", "an image", t.Blob(l, event.DigestOf([]byte("an image"))))
}

func testConvert(t *env) {
	src := t.otherLog()
	_, err := suite.Collect(transfer.Convert(t.Ctx, t.Main(), src))
	t.Must(err)
	l := t.Reopen()
	t.wantCopyOf(src, l)
	for _, session := range []string{"p", "f"} {
		t.WantEqual("lines of "+session, t.Lines(src, session), t.Lines(l, session))
	}
	t.WantEqual("a body is on a line", false, strings.Contains(strings.Join(t.Lines(l, "p"), ""), "bigbig"))
	t.WantEqual("metadata", jsontext.Value(nil), t.Read(l, "p", eventlog.All())[0].Metadata)
}
