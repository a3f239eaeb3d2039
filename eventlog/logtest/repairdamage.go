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

// damages of a session of twelve events: 1–3 one append, 4–8 single, 9–10 one
// append, 11 and 12 single. Each says which seqs are lost.
var repairDamages = []struct {
	name string
	edit func(lines []string) []string
	lost []int64
}{
	{"a flip in the middle", onLine(5, flipped), []int64{6}},
	{"a flip in the first line", onLine(0, flipped), []int64{1}},
	{"flips next to each other", onLines(flipped, 4, 5, 6), []int64{5, 6, 7}},
	{"flips apart", onLines(flipped, 3, 6, 10), []int64{4, 7, 11}},
	{"a flip within an append", onLine(1, flipped), []int64{2}},
	{"a flip at the end of an append", onLine(9, flipped), []int64{10}},
	{"a line that is gone", func(l []string) []string { return slices.Delete(l, 5, 6) }, []int64{6}},
	{"the first line gone", func(l []string) []string { return l[1:] }, []int64{1}},
	{"many lines gone", func(l []string) []string { return slices.Delete(l, 2, 8) }, []int64{3, 4, 5, 6, 7, 8}},
	{"a line twice", func(l []string) []string { return slices.Insert(l, 5, l[2]) }, nil},
	{"lines in another order", func(l []string) []string { l[4], l[7] = l[7], l[4]; return l }, nil},
	{"all lines turned round", func(l []string) []string { slices.Reverse(l); return l }, nil},
	{"garbage in place of a line", onLine(6, func(string) string { return "garbage\n" }), []int64{7}},
	{"an empty line in place of a line", onLine(6, func(string) string { return "\n" }), []int64{7}},
}

func flipped(line string) string {
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

// twelve fills a session as repairDamages has it.
func (t *env) twelve(l *eventlog.Log, session string) []event.Event {
	t.Helper()
	t.Append(l, session, eventlog.New(), suite.Noted(1, `{"k":"v"}`), suite.Calls("c1"), suite.Result("c1"))
	for n := range 5 {
		e := suite.Note(4 + n)
		e.Cost = event.Cost(1_000_000 * (n + 1))
		t.Append(l, session, eventlog.Any(), e)
	}
	t.Append(l, session, eventlog.Any(), suite.User("nine"), suite.User("ten"))
	t.Append(l, session, eventlog.Any(), suite.Moved(8))
	t.Append(l, session, eventlog.Any(), suite.NewEvent("test:big", `"`+suite.Text("twelve ", 1000)+`"`))
	return t.Read(l, session, eventlog.All())
}

func testRepairDamage(t *env) {
	for i, d := range repairDamages {
		session := fmt.Sprintf("s%d", i)
		want := t.twelve(t.Main(), session)
		t.Damage(session, d.edit)
		before := t.Stored(session)
		l := t.Main()
		done := t.repaired(l, session, repair.Options{})
		t.Same(d.name+": action", repair.Salvage, done.Action)
		t.Same(d.name+": as", session+"-salvaged", done.As)
		t.Same(d.name+": lost", d.lost, seqsLost(done))
		t.Same(d.name+": kept", int64(12-len(d.lost)), done.Kept)
		t.Same(d.name+": unmended", 0, len(done.Unmended))
		t.survive(d.name, want, t.Read(l, done.As, eventlog.All()), d.lost)
		t.Append(l, done.As, eventlog.At(done.Head), suite.User("and on"))
		t.Sound(l, done.As)
		t.Same(d.name+": the damaged lines", before, t.Stored(session))
	}
}

// seqsLost are the seqs that a repair lost.
func seqsLost(r repair.Report) (seqs []int64) {
	for _, lost := range r.Lost {
		for seq := lost.From; seq <= lost.To; seq++ {
			seqs = append(seqs, seq)
		}
	}
	return seqs
}

// content is what a repair leaves of an event as it was.
type content struct {
	ID, Type, Data, Metadata, Kept, Extras string
	Timestamp                              int64
	Cost                                   event.Cost
}

func contentOf(e *event.Event) content {
	return content{e.ID.String(), string(e.Type), string(e.Data), string(e.Metadata), string(e.Kept()), string(e.Extras()),
		e.Timestamp.UnixNano(), e.Cost}
}

// survive compares what a repair gave with what was: the same events at their
// seqs, but for those lost.
func (t *env) survive(name string, want, got []event.Event, lost []int64) {
	t.Helper()
	if t.Same(name+": seqs", suite.SeqsIn(want), suite.SeqsIn(got)); len(want) != len(got) {
		return
	}
	for i := range got {
		e := &got[i]
		if slices.Contains(lost, e.Seq) {
			t.Same(fmt.Sprintf("%s: type of event %d", name, e.Seq), event.Lost, e.Type)
			continue
		}
		t.Same(fmt.Sprintf("%s: event %d", name, e.Seq), contentOf(&want[i]), contentOf(e))
	}
}

func testRepairAgain(t *env) {
	t.twelve(t.Main(), "a")
	t.Damage("a", onLines(flipped, 2, 6))
	done := t.repaired(t.Main(), "a", repair.Options{})
	t.Same("stored", int64(12), done.Stored)
	want := t.Lines(t.Main(), done.As)
	for range 2 {
		again := t.repaired(t.Reopen(), "a", repair.Options{})
		t.Same("as", done.As, again.As)
		t.Same("stored again", int64(0), again.Stored)
		t.Same("lines", want, t.Lines(t.Main(), done.As))
	}
	t.Append(t.Main(), done.As, eventlog.At(done.Head), suite.Note(13))
	again, err := repair.Session(t.Ctx, t.Main(), "a", repair.Options{})
	t.Must(err)
	t.Same("as after an append", done.As, again.As)
	t.Same("stored after an append", int64(0), again.Stored)

	salvaged, err := suite.Collect(t.Main().Store().Read(t.Ctx, done.As, eventlog.Span{To: 5}))
	t.Must(err)
	other := t.Aside(memory.New())
	_, err = transfer.Adopt(t.Ctx, other, done.As, suite.Sequence(salvaged))
	t.Must(err)
	finished := t.repaired(t.Main(), "a", repair.Options{Into: other, As: done.As})
	t.Same("stored of an interrupted one", int64(7), finished.Stored)
	t.Same("lines of an interrupted one", want, t.Lines(other, done.As))
}

func testRepairAs(t *env) {
	t.twelve(t.Main(), "a")
	t.twelve(t.Main(), "other")
	other := t.Lines(t.Main(), "other")
	l := t.Damage("a", onLine(4, flipped))
	for _, as := range []string{"other", "a"} {
		_, err := repair.Session(t.Ctx, l, "a", repair.Options{As: as})
		t.WantErr(eventlog.ErrExists, err)
	}
	t.Same("lines of the other", other, t.Lines(l, "other"))
	done := t.repaired(l, "a", repair.Options{As: "b"})
	t.Same("as", "b", done.As)
	t.Fill(l, "a-salvaged", 3)
	t.Fill(l, "a-salvaged-2", 3)
	done = t.repaired(l, "a", repair.Options{})
	t.Same("the next name", "a-salvaged-3", done.As)

	long := strings.Repeat("ä", 100)
	t.twelve(l, long)
	l = t.Damage(long, onLine(4, flipped))
	done = t.repaired(l, long, repair.Options{})
	t.Same("a name that is cut", strings.Repeat("ä", 95)+"-salvaged", done.As)
	_, err := repair.Session(t.Ctx, l, "a", repair.Options{InPlace: true, As: "c"})
	t.WantErr(event.ErrInvalid, err)
}

func testRepairInPlace(t *env) {
	want := t.twelve(t.Main(), "a")
	lines := t.Lines(t.Main(), "a")
	l := t.Damage("a", onLines(flipped, 6, 8))
	plan, err := repair.Session(t.Ctx, l, "a", repair.Options{InPlace: true, DryRun: true})
	t.Must(err)
	t.Same("resealed from", int64(7), plan.Resealed)
	done := t.repaired(l, "a", repair.Options{InPlace: true})
	t.Same("as", "a", done.As)
	t.Same("a copy is named", true, done.Copy != "")
	t.Twice(func(l *eventlog.Log) {
		t.Same("lines before", lines[:6], t.Lines(l, "a")[:6])
		t.survive("in place", want, t.Read(l, "a", eventlog.All()), []int64{7, 9})
	})
	again, err := repair.Session(t.Ctx, t.Main(), "a", repair.Options{InPlace: true})
	t.Must(err)
	t.Same("action", repair.None, again.Action)
	t.Append(t.Main(), "a", eventlog.At(done.Head), suite.Note(13))
	t.Sound(t.Main(), "a")
}

func testRepairForked(t *env) {
	events := t.twelve(t.Main(), "a")
	t.Append(t.Main(), "early", eventlog.New(), suite.ForkOf("a", &events[3]))
	l := t.Damage("a", onLine(6, flipped))
	t.repaired(l, "a", repair.Options{InPlace: true})
	t.Sound(l, "early")
	point := t.Read(l, "a", eventlog.All())[10]
	t.Append(l, "late", eventlog.New(), suite.ForkOf("a", &point))
	t.Damage("a", onLine(7, flipped))
	before := t.Stored("a")
	_, err := repair.Session(t.Ctx, t.Main(), "a", repair.Options{InPlace: true})
	t.WantErr(eventlog.ErrInUse, err)
	t.Same("lines", before, t.Stored("a"))
}

func testRepairInto(t *env) {
	l := t.Over(t.Store(), eventlog.Options{SpillOver: 200})
	parent := t.twelve(l, "p")
	t.Append(l, "f", eventlog.New(), suite.ForkOf("p", &parent[11]))
	ref, err := l.PutBlob(t.Ctx, suite.NewReader("an image"))
	t.Must(err)
	own := suite.Note(1)
	t.Must(own.AddBlobs(ref.Blob))
	t.Append(l, "f", eventlog.Any(), own)
	t.Append(l, "f", eventlog.Any(), suite.NewEvent("test:big", `"`+suite.Text("big", 1000)+`"`))
	want := t.Read(l, "f", eventlog.All())
	l = t.Damage("p", onLine(4, flipped))

	other := t.Aside(memory.New())
	done := t.repaired(l, "f", repair.Options{Into: other})
	t.Same("as", "f", done.As)
	t.Same("lost", 0, len(done.Lost))
	t.Same("sound by itself", repair.None, t.repaired(l, "f", repair.Options{}).Action)
	got := t.Read(other, "f", eventlog.All())
	t.Same("type of event 5", event.Lost, got[4].Type)
	t.survive("the fork", want[13:], got[13:], nil)
	t.Sound(other, "p")
	t.Same("body", "an image", t.Blob(other, ref.Blob))
	t.Same("the parent again", int64(0), t.repaired(l, "p", repair.Options{Into: other}).Stored)
}

func testRepairBodies(t *env) {
	l := t.Over(t.Store(), eventlog.Options{SpillOver: 200})
	want := t.twelve(l, "a")
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
	t.Same("lost", []int64{12}, seqsLost(done))
	if len(done.Unmended) != 1 || done.Unmended[0].Seq != 13 || done.Unmended[0].Rule != "blob" {
		t.Errorf("unmended: %v, want the blob of event 13", done.Unmended)
	}
	t.survive("bodies", append(want, t.Read(l, "a", eventlog.From(13))...), t.Read(l, done.As, eventlog.All()), []int64{12})
	t.Same("again", int64(0), t.mustRepair(l, "a").Stored)
}

func (t *env) mustRepair(l *eventlog.Log, session string) repair.Report {
	t.Helper()
	done, err := repair.Session(t.Ctx, l, session, repair.Options{})
	t.Must(err)
	return done
}

func testRepairRedacted(t *env) {
	t.twelve(t.Main(), "a")
	_, err := erase.Redact(t.Ctx, t.Main(), "a", []int64{4, 6}, erase.RedactOptions{Reason: "asked for"})
	t.Must(err)
	want := t.Read(t.Main(), "a", eventlog.All())
	l := t.Damage("a", onLine(2, flipped))
	done := t.repaired(l, "a", repair.Options{})
	t.survive("redacted", want, t.Read(l, done.As, eventlog.All()), []int64{3})
	// The event that says so is lost, and so is one that it named.
	t.Append(l, "a-salvaged", eventlog.Any(), suite.Note(14))
	want = t.Read(l, "a-salvaged", eventlog.All())
	l = t.Damage("a-salvaged", onLine(12, flipped))
	done = t.repaired(l, "a-salvaged", repair.Options{})
	t.survive("the note lost", want, t.Read(l, done.As, eventlog.All()), []int64{3, 13})
	l = t.Damage("a", onLine(3, flipped))
	done = t.repaired(l, "a", repair.Options{As: "b"})
	t.Same("lost", []int64{3, 4}, seqsLost(done))
}

func testRepairHopeless(t *env) {
	t.twelve(t.Main(), "a")
	t.twelve(t.Main(), "b")
	l := t.Damage("a", func(lines []string) []string { return slices.Repeat([]string{`{"not":"ours"}` + "\n"}, len(lines)) })
	_, err := repair.Session(t.Ctx, l, "a", repair.Options{})
	t.WantErr(eventlog.ErrCorrupt, err)
	b := t.Stored("b")
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
	t.Missing(l, "a-salvaged")
	t.Missing(l, "b-salvaged")
}
