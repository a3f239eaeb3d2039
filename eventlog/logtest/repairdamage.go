package logtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/repair"
	"github.com/convlog/convlog/upkeep/transfer"
)

// repairDamages are edits of a session with twelve events: 1–3 in one append, 4–8
// single, 9–10 in one append, 11 and 12 single. lost has the seqs of the lost events.
var repairDamages = []struct {
	name string
	edit func(lines []string) []string
	lost []int64
}{
	{"a flip in the middle", onLine(5, flipByte), []int64{6}},
	{"a flip in the first line", onLine(0, flipByte), []int64{1}},
	{"flips next to each other", onLines(flipByte, 4, 5, 6), []int64{5, 6, 7}},
	{"flips apart", onLines(flipByte, 3, 6, 10), []int64{4, 7, 11}},
	{"a flip within an append", onLine(1, flipByte), []int64{2}},
	{"a flip at the end of an append", onLine(9, flipByte), []int64{10}},
	{"a missing line", func(l []string) []string { return slices.Delete(l, 5, 6) }, []int64{6}},
	{"the first line missing", func(l []string) []string { return l[1:] }, []int64{1}},
	{"many lines missing", func(l []string) []string { return slices.Delete(l, 2, 8) }, []int64{3, 4, 5, 6, 7, 8}},
	{"a line twice", func(l []string) []string { return slices.Insert(l, 5, l[2]) }, nil},
	{"lines in another order", func(l []string) []string { l[4], l[7] = l[7], l[4]; return l }, nil},
	{"all lines reversed", func(l []string) []string { slices.Reverse(l); return l }, nil},
	{"garbage in place of a line", onLine(6, func(string) string { return "garbage\n" }), []int64{7}},
	{"an empty line in place of a line", onLine(6, func(string) string { return "\n" }), []int64{7}},
}

func flipByte(line string) string {
	b := []byte(line)
	b[len(b)/2] ^= 4
	return string(b)
}

func onLine(i int, change func(line string) string) func([]string) []string {
	return onLines(change, i)
}

func onLines(change func(line string) string, at ...int) func([]string) []string {
	return func(lines []string) []string {
		for _, i := range at {
			lines[i] = change(lines[i])
		}
		return lines
	}
}

// fillTwelve fills a session with the events of repairDamages.
func (t *env) fillTwelve(l *eventlog.Log, session string) []event.Event {
	t.Helper()
	t.Append(l, session, eventlog.New(), suite.NoteWithMetadata(1, `{"k":"v"}`), suite.Calls("c1"), suite.Result("c1"))
	for n := range 5 {
		e := suite.Note(4 + n)
		e.Cost = event.Cost(1_000_000 * (n + 1))
		t.Append(l, session, eventlog.Any(), e)
	}
	t.Append(l, session, eventlog.Any(), suite.User("nine"), suite.User("ten"))
	t.Append(l, session, eventlog.Any(), suite.HeadMove(8))
	t.Append(l, session, eventlog.Any(), suite.NewEvent("test:big", `"`+suite.Text("twelve ", 1000)+`"`))
	return t.Read(l, session, eventlog.All())
}

func testRepairDamage(t *env) {
	for i, d := range repairDamages {
		session := fmt.Sprintf("s%d", i)
		want := t.fillTwelve(t.Main(), session)
		t.Damage(session, d.edit)
		before := t.RawLines(session)
		l := t.Main()
		done := t.wantRepair(l, session, repair.Options{})
		t.WantEqual(d.name+": action", repair.Salvage, done.Action)
		t.WantEqual(d.name+": as", session+"-salvaged", done.As)
		t.WantEqual(d.name+": lost", d.lost, seqsLost(done))
		t.WantEqual(d.name+": kept", int64(12-len(d.lost)), done.Kept)
		t.WantEqual(d.name+": unmended", 0, len(done.Unmended))
		t.wantSurvivors(d.name, want, t.Read(l, done.As, eventlog.All()), d.lost)
		t.Append(l, done.As, eventlog.At(done.Head), suite.User("and on"))
		t.WantVerified(l, done.As)
		t.WantEqual(d.name+": the damaged lines", before, t.RawLines(session))
	}
}

// seqsLost returns the seqs of the lost events.
func seqsLost(r repair.Report) (seqs []int64) {
	for _, lost := range r.Lost {
		for seq := lost.From; seq <= lost.To; seq++ {
			seqs = append(seqs, seq)
		}
	}
	return seqs
}

// content is the part of an event that a repair keeps.
type content struct {
	ID, Type, Data, Metadata, Kept, Extras string
	Timestamp                              int64
	Cost                                   event.Cost
}

func contentOf(e *event.Event) content {
	return content{e.ID.String(), string(e.Type), string(e.Data), string(e.Metadata), string(e.Kept()), string(e.Extras()),
		e.Timestamp.UnixNano(), e.Cost}
}

// wantSurvivors checks that the repaired session has the same events at their seqs,
// except lost.
func (t *env) wantSurvivors(name string, want, got []event.Event, lost []int64) {
	t.Helper()
	if t.WantEqual(name+": seqs", suite.SeqsOf(want), suite.SeqsOf(got)); len(want) != len(got) {
		return
	}
	for i := range got {
		e := &got[i]
		if slices.Contains(lost, e.Seq) {
			t.WantEqual(fmt.Sprintf("%s: type of event %d", name, e.Seq), event.Lost, e.Type)
			continue
		}
		t.WantEqual(fmt.Sprintf("%s: event %d", name, e.Seq), contentOf(&want[i]), contentOf(e))
	}
}

func testRepairAgain(t *env) {
	t.fillTwelve(t.Main(), "a")
	t.Damage("a", onLines(flipByte, 2, 6))
	done := t.wantRepair(t.Main(), "a", repair.Options{})
	t.WantEqual("stored", int64(12), done.Stored)
	want := t.Lines(t.Main(), done.As)
	for range 2 {
		again := t.wantRepair(t.Reopen(), "a", repair.Options{})
		t.WantEqual("as", done.As, again.As)
		t.WantEqual("stored again", int64(0), again.Stored)
		t.WantEqual("lines", want, t.Lines(t.Main(), done.As))
	}
	t.Append(t.Main(), done.As, eventlog.At(done.Head), suite.Note(13))
	again, err := repair.Session(t.Ctx, t.Main(), "a", repair.Options{})
	t.Must(err)
	t.WantEqual("as after an append", done.As, again.As)
	t.WantEqual("stored after an append", int64(0), again.Stored)

	salvaged, err := suite.Collect(t.Main().Store().Read(t.Ctx, done.As, eventlog.Span{To: 5}))
	t.Must(err)
	other := t.OtherLog(memory.New())
	_, err = transfer.Adopt(t.Ctx, other, done.As, suite.Sequence(salvaged))
	t.Must(err)
	finished := t.wantRepair(t.Main(), "a", repair.Options{Into: other, As: done.As})
	t.WantEqual("stored of an interrupted one", int64(7), finished.Stored)
	t.WantEqual("lines of an interrupted one", want, t.Lines(other, done.As))
}

func testRepairAs(t *env) {
	t.fillTwelve(t.Main(), "a")
	t.fillTwelve(t.Main(), "other")
	other := t.Lines(t.Main(), "other")
	l := t.Damage("a", onLine(4, flipByte))
	for _, as := range []string{"other", "a"} {
		_, err := repair.Session(t.Ctx, l, "a", repair.Options{As: as})
		t.WantErr(eventlog.ErrExists, err)
	}
	t.WantEqual("lines of the other", other, t.Lines(l, "other"))
	done := t.wantRepair(l, "a", repair.Options{As: "b"})
	t.WantEqual("as", "b", done.As)
	t.Fill(l, "a-salvaged", 3)
	t.Fill(l, "a-salvaged-2", 3)
	done = t.wantRepair(l, "a", repair.Options{})
	t.WantEqual("the next name", "a-salvaged-3", done.As)

	long := strings.Repeat("ä", 100)
	t.fillTwelve(l, long)
	l = t.Damage(long, onLine(4, flipByte))
	done = t.wantRepair(l, long, repair.Options{})
	t.WantEqual("a truncated name", strings.Repeat("ä", 95)+"-salvaged", done.As)
	_, err := repair.Session(t.Ctx, l, "a", repair.Options{InPlace: true, As: "c"})
	t.WantErr(event.ErrInvalid, err)
}

func testRepairInPlace(t *env) {
	want := t.fillTwelve(t.Main(), "a")
	lines := t.Lines(t.Main(), "a")
	l := t.Damage("a", onLines(flipByte, 6, 8))
	plan, err := repair.Session(t.Ctx, l, "a", repair.Options{InPlace: true, DryRun: true})
	t.Must(err)
	t.WantEqual("resealed from", int64(7), plan.Resealed)
	done := t.wantRepair(l, "a", repair.Options{InPlace: true})
	t.WantEqual("as", "a", done.As)
	t.WantEqual("a copy is named", true, done.Copy != "")
	t.NowAndAfterReopen(func(l *eventlog.Log) {
		t.WantEqual("lines before", lines[:6], t.Lines(l, "a")[:6])
		t.wantSurvivors("in place", want, t.Read(l, "a", eventlog.All()), []int64{7, 9})
	})
	again, err := repair.Session(t.Ctx, t.Main(), "a", repair.Options{InPlace: true})
	t.Must(err)
	t.WantEqual("action", repair.None, again.Action)
	t.Append(t.Main(), "a", eventlog.At(done.Head), suite.Note(13))
	t.WantVerified(t.Main(), "a")
}

func testRepairForked(t *env) {
	events := t.fillTwelve(t.Main(), "a")
	t.Append(t.Main(), "early", eventlog.New(), suite.ForkOf("a", &events[3]))
	l := t.Damage("a", onLine(6, flipByte))
	t.wantRepair(l, "a", repair.Options{InPlace: true})
	t.WantVerified(l, "early")
	point := t.Read(l, "a", eventlog.All())[10]
	t.Append(l, "late", eventlog.New(), suite.ForkOf("a", &point))
	t.Damage("a", onLine(7, flipByte))
	before := t.RawLines("a")
	_, err := repair.Session(t.Ctx, t.Main(), "a", repair.Options{InPlace: true})
	t.WantErr(eventlog.ErrInUse, err)
	t.WantEqual("lines", before, t.RawLines("a"))
}

func testRepairInto(t *env) {
	l := t.LogOver(t.Store(), eventlog.Options{SpillOver: 200})
	parent := t.fillTwelve(l, "p")
	t.Append(l, "f", eventlog.New(), suite.ForkOf("p", &parent[11]))
	ref, err := l.PutBlob(t.Ctx, suite.NewReader("an image"))
	t.Must(err)
	own := suite.Note(1)
	t.Must(own.AddBlobs(ref.Blob))
	t.Append(l, "f", eventlog.Any(), own)
	t.Append(l, "f", eventlog.Any(), suite.NewEvent("test:big", `"`+suite.Text("big", 1000)+`"`))
	want := t.Read(l, "f", eventlog.All())
	l = t.Damage("p", onLine(4, flipByte))

	other := t.OtherLog(memory.New())
	done := t.wantRepair(l, "f", repair.Options{Into: other})
	t.WantEqual("as", "f", done.As)
	t.WantEqual("lost", 0, len(done.Lost))
	t.WantEqual("undamaged by itself", repair.None, t.wantRepair(l, "f", repair.Options{}).Action)
	got := t.Read(other, "f", eventlog.All())
	t.WantEqual("type of event 5", event.Lost, got[4].Type)
	t.wantSurvivors("the fork", want[13:], got[13:], nil)
	t.WantVerified(other, "p")
	t.WantEqual("body", "an image", t.Blob(other, ref.Blob))
	t.WantEqual("the parent again", int64(0), t.wantRepair(l, "p", repair.Options{Into: other}).Stored)
}

func testRepairBodies(t *env) {
	l := t.LogOver(t.Store(), eventlog.Options{SpillOver: 200})
	want := t.fillTwelve(l, "a")
	ref, err := l.PutBlob(t.Ctx, suite.NewReader("an image"))
	t.Must(err)
	own := suite.Note(13)
	t.Must(own.AddBlobs(ref.Blob))
	t.Append(l, "a", eventlog.Any(), own)
	blobs := suite.Ability[eventlog.Blobs](t, l.Store())
	t.Must(blobs.RemoveBlobs(t.Ctx, []event.Digest{event.DigestOf(want[11].Data)}))
	t.Must(blobs.RemoveBlobs(t.Ctx, []event.Digest{ref.Blob}))
	done, err := repair.Session(t.Ctx, l, "a", repair.Options{})
	t.Must(err)
	t.WantEqual("lost", []int64{12}, seqsLost(done))
	if len(done.Unmended) != 1 || done.Unmended[0].Seq != 13 || done.Unmended[0].Rule != "blob" {
		t.Errorf("unmended: %v, want the blob of event 13", done.Unmended)
	}
	t.wantSurvivors("bodies", append(want, t.Read(l, "a", eventlog.From(13))...), t.Read(l, done.As, eventlog.All()), []int64{12})
	t.WantEqual("again", int64(0), t.mustRepair(l, "a").Stored)
}

func (t *env) mustRepair(l *eventlog.Log, session string) repair.Report {
	t.Helper()
	done, err := repair.Session(t.Ctx, l, session, repair.Options{})
	t.Must(err)
	return done
}

func testRepairRedacted(t *env) {
	t.fillTwelve(t.Main(), "a")
	_, err := erase.Redact(t.Ctx, t.Main(), "a", []int64{4, 6}, erase.RedactOptions{Reason: "asked for"})
	t.Must(err)
	want := t.Read(t.Main(), "a", eventlog.All())
	l := t.Damage("a", onLine(2, flipByte))
	done := t.wantRepair(l, "a", repair.Options{})
	t.wantSurvivors("redacted", want, t.Read(l, done.As, eventlog.All()), []int64{3})
	// The redaction event and an event that it names are lost.
	t.Append(l, "a-salvaged", eventlog.Any(), suite.Note(14))
	want = t.Read(l, "a-salvaged", eventlog.All())
	l = t.Damage("a-salvaged", onLine(12, flipByte))
	done = t.wantRepair(l, "a-salvaged", repair.Options{})
	t.wantSurvivors("the redaction event lost", want, t.Read(l, done.As, eventlog.All()), []int64{3, 13})
	l = t.Damage("a", onLine(3, flipByte))
	done = t.wantRepair(l, "a", repair.Options{As: "b"})
	t.WantEqual("lost", []int64{3, 4}, seqsLost(done))
}

func testRepairHopeless(t *env) {
	t.fillTwelve(t.Main(), "a")
	t.fillTwelve(t.Main(), "b")
	l := t.Damage("a", func(lines []string) []string { return slices.Repeat([]string{`{"not":"ours"}` + "\n"}, len(lines)) })
	_, err := repair.Session(t.Ctx, l, "a", repair.Options{})
	t.WantErr(eventlog.ErrCorrupt, err)
	b := t.RawLines("b")
	l = t.Damage("a", func([]string) []string { return b })
	_, err = repair.Session(t.Ctx, l, "a", repair.Options{})
	t.WantErr(eventlog.ErrCorrupt, err)
	if err == nil || !strings.Contains(err.Error(), `events of session "b" and none of its own`) {
		t.Errorf("got %v, want the other session named", err)
	}
	far := suite.ChainAfter("b", event.Head{Seq: 5_000_000}, suite.Line{Data: "1"})
	l = t.Damage("b", func(lines []string) []string { return append(lines[:6], string(far[0].Line())+"\n") })
	_, err = repair.Session(t.Ctx, l, "b", repair.Options{})
	t.WantErr(eventlog.ErrCorrupt, err)
	t.WantMissing(l, "a-salvaged")
	t.WantMissing(l, "b-salvaged")
}
