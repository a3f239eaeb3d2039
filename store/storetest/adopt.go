package storetest

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/transfer"
)

var adoptCases = []testCase{
	{
		name:        "keeps lines",
		explanation: "Finished lines of another store are adopted as they are: ids, seqs, times and hashes are equal, and adopting again stores nothing.",
		run:         testAdopt,
	},
	{
		name:        "goes on",
		explanation: "An adopted session is appended to like any other; a longer copy of it adds only what is new; another history is a conflict.",
		run:         testAdoptMore,
	},
	{
		name:        "refuses what does not verify",
		explanation: "Tampered, reordered, missing or foreign lines refuse the whole session: nothing is stored.",
		run:         testAdoptRefused,
	},
	{
		name:        "unknown members",
		explanation: "Lines of unknown types with unknown members, in any number form, are adopted byte for byte.",
		run: func(t *env) {
			events := chainAfter("a", event.Head{}, line{typ: "x:y/9", data: `{"n":1E400,"a":-0}`,
				members: `"metadata":{"z":1.0,"a":9007199254740993},"x-1":[1e+2],"y":{"data":1}`}, line{data: `"\u00e9"`})
			_, err := t.log().Adopt(t.ctx, "a", sequence(events))
			t.must(err)
			t.same("lines", linesOf(events), t.lines(t.reopen(), "a"))
			t.sound(t.log(), "a")
		},
	},
	{
		name:        "export and import",
		explanation: "An export read back into another store gives the same events and hashes, forks and bodies with them.",
		needs:       []Need{Blobs},
		run:         testExport,
	},
	{
		name:        "import of a large append",
		explanation: "An append that took spilling to stay within 4 MiB does so again when an export of it is imported.",
		needs:       []Need{Blobs},
		run: func(t *env) {
			src := t.aside(memory.New())
			var events []event.Event
			for i := range 24 {
				events = append(events, newEvent("test:big", `"`+text(fmt.Sprint(i, " "), 200<<10)+`"`))
			}
			head := t.append(src, "a", eventlog.New(), events...)
			var b bytes.Buffer
			t.must(transfer.Export(t.ctx, src, &b, "a"))
			_, err := transfer.Import(t.ctx, t.log(), &b)
			t.must(err)
			l := t.reopen()
			t.same("head", head, t.head(l, "a"))
			t.same("bytes of lines within 4 MiB", true, len(strings.Join(t.lines(l, "a"), "\n")) < 4<<20)
			t.sound(l, "a")
		},
	},
	{
		name:        "import of a broken export",
		explanation: "An export with a flipped byte is refused and stores nothing.",
		needs:       []Need{Blobs},
		run: func(t *env) {
			src := t.aside(memory.New())
			t.fill(src, "a", 20)
			var b bytes.Buffer
			t.must(transfer.Export(t.ctx, src, &b, "a"))
			for at := 30; at < b.Len(); at += 997 {
				broken := bytes.Clone(b.Bytes())
				broken[at] ^= 1
				if _, err := transfer.Import(t.ctx, t.log(), bytes.NewReader(broken)); err == nil {
					t.Errorf("an export with byte %d flipped was imported", at)
				}
				t.missing(t.log(), "a")
			}
		},
	},
	{
		name:        "convert",
		explanation: "Converting a whole store copies every line and every blob that one needs, parents before their forks.",
		needs:       []Need{Blobs},
		run:         testConvert,
	},
}

// sequence yields events.
func sequence(events []event.Event) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for i := range events {
			if !yield(events[i], nil) {
				return
			}
		}
	}
}

// elsewhere fills a log in memory.
func (t *env) elsewhere() *eventlog.Log {
	t.Helper()
	l := t.aside(memory.New(), eventlog.Options{SpillOver: 200})
	t.append(l, "p", eventlog.New(), user("hello"), calls("c1"))
	t.append(l, "p", eventlog.Any(), result("c1"))
	t.append(l, "p", eventlog.Any(), newEvent("test:big", `"`+text("big", 1000)+`"`), note(5))
	e, err := l.Event(t.ctx, "p", 3)
	t.must(err)
	t.append(l, "f", eventlog.New(), forkOf("p", &e))
	t.append(l, "f", eventlog.Any(), notes(3)...)
	ref, err := l.PutBlob(t.ctx, newReader("an image"))
	t.must(err)
	own := note(1)
	t.must(own.AddBlobs(ref.Blob))
	t.append(l, "f", eventlog.Any(), own)
	return l
}

func testAdopt(t *env) {
	src := t.aside(memory.New())
	for n := range 30 {
		t.append(src, "a", eventlog.Any(), notes(1+n%4)...)
	}
	want := t.lines(src, "a")
	adopted, err := t.log().Adopt(t.ctx, "a", src.Read(t.ctx, "a", eventlog.All()))
	t.must(err)
	t.same("report", eventlog.Adopted{Session: "a", Read: int64(len(want)), Stored: int64(len(want)), Head: t.head(src, "a")}, adopted)
	t.same("lines", want, t.lines(t.reopen(), "a"))
	t.sound(t.log(), "a")
	again, err := t.log().Adopt(t.ctx, "a", src.Read(t.ctx, "a", eventlog.All()))
	t.must(err)
	t.same("stored the second time", int64(0), again.Stored)
	t.same("lines", want, t.lines(t.log(), "a"))
}

func testAdoptMore(t *env) {
	src := t.aside(memory.New())
	t.append(src, "a", eventlog.Any(), notes(3)...)
	_, err := t.log().Adopt(t.ctx, "a", src.Read(t.ctx, "a", eventlog.All()))
	t.must(err)
	t.append(src, "a", eventlog.Any(), notes(2)...)
	adopted, err := t.log().Adopt(t.ctx, "a", src.Read(t.ctx, "a", eventlog.All()))
	t.must(err)
	t.same("stored", int64(2), adopted.Stored)
	t.append(t.log(), "a", eventlog.At(adopted.Head), note(6))
	t.fill(src, "a", 3)
	before := t.lines(t.log(), "a")
	_, err = t.log().Adopt(t.ctx, "a", src.Read(t.ctx, "a", eventlog.All()))
	t.wantErr(eventlog.ErrConflict, err)
	t.same("lines", before, t.lines(t.reopen(), "a"))
}

func testAdoptRefused(t *env) {
	good := batchAfter("a", event.Head{}, 1)
	for range 9 {
		good = append(good, batchAfter("a", headOf(good), 1)...)
	}
	change := func(f func(events []event.Event) []event.Event) []event.Event { return f(slices.Clone(good)) }
	for name, bad := range map[string][]event.Event{
		"tampered":      change(func(e []event.Event) []event.Event { e[4] = tampered(e[4], `{"n":5}`); return e }),
		"tampered last": change(func(e []event.Event) []event.Event { e[9] = tampered(e[9], `{"n":5}`); return e }),
		"swapped":       change(func(e []event.Event) []event.Event { e[2], e[3] = e[3], e[2]; return e }),
		"missing":       slices.Delete(slices.Clone(good), 5, 6),
		"repeated":      slices.Insert(slices.Clone(good), 5, good[4]),
		"headless":      good[1:],
		"of another":    append(slices.Clone(good), batchAfter("b", headOf(good), 1)...),
		"other chain":   append(slices.Clone(good), batchAfter("a", headOf(good[:9]), 2)[1]),
		"unfinished":    append(slices.Clone(good), batchAfter("a", headOf(good), 3)[:2]...),
		"new":           append(slices.Clone(good), note(1)),
	} {
		if _, err := t.log().Adopt(t.ctx, "a", sequence(bad)); err == nil {
			t.Errorf("%s: adopted", name)
		}
		t.missing(t.log(), "a")
	}
	_, err := t.log().Adopt(t.ctx, "a", sequence(good))
	t.must(err)
}

// facts of an event that no way of moving it changes.
type facts struct{ ID, Hash, Data string }

func factsOf(events []event.Event) []facts {
	all := make([]facts, len(events))
	for i := range events {
		all[i] = facts{events[i].ID.String(), events[i].Hash().String(), string(events[i].Data)}
	}
	return all
}

func testExport(t *env) {
	src := t.elsewhere()
	var b bytes.Buffer
	t.must(transfer.Export(t.ctx, src, &b, "f"))
	_, err := transfer.Import(t.ctx, t.log(), bytes.NewReader(b.Bytes()))
	t.must(err)
	t.alike(src, t.reopen())
	var again bytes.Buffer
	t.must(transfer.Export(t.ctx, t.log(), &again, "f"))
	t.same("export of the import", b.String(), again.String())
	adopted, err := transfer.Import(t.ctx, t.log(), bytes.NewReader(b.Bytes()))
	t.must(err)
	for _, a := range adopted {
		t.same("stored the second time", int64(0), a.Stored)
	}
}

// alike makes sure that the log has the sessions and bodies of elsewhere.
func (t *env) alike(src, l *eventlog.Log) {
	t.Helper()
	for _, session := range []string{"p", "f"} {
		t.same("events of "+session, factsOf(t.read(src, session, eventlog.All())), factsOf(t.read(l, session, eventlog.All())))
		t.sound(l, session)
	}
	t.same("body", "an image", t.blob(l, event.DigestOf([]byte("an image"))))
}

func testConvert(t *env) {
	src := t.elsewhere()
	_, err := collect(transfer.Convert(t.ctx, t.log(), src))
	t.must(err)
	l := t.reopen()
	t.alike(src, l)
	for _, session := range []string{"p", "f"} {
		t.same("lines of "+session, t.lines(src, session), t.lines(l, session))
	}
	t.same("a body is on a line", false, strings.Contains(strings.Join(t.lines(l, "p"), ""), "bigbig"))
	t.same("metadata", jsontext.Value(nil), t.read(l, "p", eventlog.All())[0].Metadata)
}
