package storetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/repair"
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
	t.append(l, session, eventlog.New(), noted(1, `{"k":"v"}`), calls("c1"), result("c1"))
	for n := range 5 {
		e := note(4 + n)
		e.Cost = event.Cost(1_000_000 * (n + 1))
		t.append(l, session, eventlog.Any(), e)
	}
	t.append(l, session, eventlog.Any(), user("nine"), user("ten"))
	t.append(l, session, eventlog.Any(), moved(8))
	t.append(l, session, eventlog.Any(), newEvent("test:big", `"`+text("twelve ", 1000)+`"`))
	return t.read(l, session, eventlog.All())
}

func testRepairDamage(t *env) {
	for i, d := range repairDamages {
		session := fmt.Sprintf("s%d", i)
		want := t.twelve(t.log(), session)
		t.damage(session, d.edit)
		before := t.stored(session)
		l := t.log()
		done := t.repaired(l, session, repair.Options{})
		t.same(d.name+": action", repair.Salvage, done.Action)
		t.same(d.name+": as", session+"-salvaged", done.As)
		t.same(d.name+": lost", d.lost, seqsLost(done))
		t.same(d.name+": kept", int64(12-len(d.lost)), done.Kept)
		t.same(d.name+": unmended", 0, len(done.Unmended))
		t.survive(d.name, want, t.read(l, done.As, eventlog.All()), d.lost)
		t.append(l, done.As, eventlog.At(done.Head), user("and on"))
		t.sound(l, done.As)
		t.same(d.name+": the damaged lines", before, t.stored(session))
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
	t.same(name+": seqs", seqsIn(want), seqsIn(got))
	for i := range got {
		e := &got[i]
		if slices.Contains(lost, e.Seq) {
			t.same(fmt.Sprintf("%s: type of event %d", name, e.Seq), event.Lost, e.Type)
			continue
		}
		t.same(fmt.Sprintf("%s: event %d", name, e.Seq), contentOf(&want[i]), contentOf(e))
	}
}

func testRepairAgain(t *env) {
	t.twelve(t.log(), "a")
	t.damage("a", onLines(flipped, 2, 6))
	done := t.repaired(t.log(), "a", repair.Options{})
	t.same("stored", int64(12), done.Stored)
	want := t.lines(t.log(), done.As)
	for range 2 {
		again := t.repaired(t.reopen(), "a", repair.Options{})
		t.same("as", done.As, again.As)
		t.same("stored again", int64(0), again.Stored)
		t.same("lines", want, t.lines(t.log(), done.As))
	}
	t.append(t.log(), done.As, eventlog.At(done.Head), note(13))
	again, err := repair.Session(t.ctx, t.log(), "a", repair.Options{})
	t.must(err)
	t.same("as after an append", done.As, again.As)
	t.same("stored after an append", int64(0), again.Stored)

	salvaged, err := collect(t.log().Store().Read(t.ctx, done.As, eventlog.Span{To: 5}))
	t.must(err)
	other := t.aside(memory.New())
	_, err = other.Adopt(t.ctx, done.As, sequence(salvaged))
	t.must(err)
	finished := t.repaired(t.log(), "a", repair.Options{Into: other, As: done.As})
	t.same("stored of an interrupted one", int64(7), finished.Stored)
	t.same("lines of an interrupted one", want, t.lines(other, done.As))
}

func testRepairAs(t *env) {
	t.twelve(t.log(), "a")
	t.twelve(t.log(), "other")
	other := t.lines(t.log(), "other")
	l := t.damage("a", onLine(4, flipped))
	for _, as := range []string{"other", "a"} {
		_, err := repair.Session(t.ctx, l, "a", repair.Options{As: as})
		t.wantErr(eventlog.ErrExists, err)
	}
	t.same("lines of the other", other, t.lines(l, "other"))
	done := t.repaired(l, "a", repair.Options{As: "b"})
	t.same("as", "b", done.As)
	t.fill(l, "a-salvaged", 3)
	t.fill(l, "a-salvaged-2", 3)
	done = t.repaired(l, "a", repair.Options{})
	t.same("the next name", "a-salvaged-3", done.As)

	long := strings.Repeat("ä", 100)
	t.twelve(l, long)
	l = t.damage(long, onLine(4, flipped))
	done = t.repaired(l, long, repair.Options{})
	t.same("a name that is cut", strings.Repeat("ä", 95)+"-salvaged", done.As)
	_, err := repair.Session(t.ctx, l, "a", repair.Options{InPlace: true, As: "c"})
	t.wantErr(event.ErrInvalid, err)
}

func testRepairInPlace(t *env) {
	want := t.twelve(t.log(), "a")
	lines := t.lines(t.log(), "a")
	l := t.damage("a", onLines(flipped, 6, 8))
	plan, err := repair.Session(t.ctx, l, "a", repair.Options{InPlace: true, DryRun: true})
	t.must(err)
	t.same("resealed from", int64(7), plan.Resealed)
	done := t.repaired(l, "a", repair.Options{InPlace: true})
	t.same("as", "a", done.As)
	t.same("a copy is named", true, done.Copy != "")
	t.twice(func(l *eventlog.Log) {
		t.same("lines before", lines[:6], t.lines(l, "a")[:6])
		t.survive("in place", want, t.read(l, "a", eventlog.All()), []int64{7, 9})
	})
	again, err := repair.Session(t.ctx, t.log(), "a", repair.Options{InPlace: true})
	t.must(err)
	t.same("action", repair.None, again.Action)
	t.append(t.log(), "a", eventlog.At(done.Head), note(13))
	t.sound(t.log(), "a")
}

func testRepairForked(t *env) {
	events := t.twelve(t.log(), "a")
	t.append(t.log(), "early", eventlog.New(), forkOf("a", &events[3]))
	l := t.damage("a", onLine(6, flipped))
	t.repaired(l, "a", repair.Options{InPlace: true})
	t.sound(l, "early")
	point := t.read(l, "a", eventlog.All())[10]
	t.append(l, "late", eventlog.New(), forkOf("a", &point))
	t.damage("a", onLine(7, flipped))
	before := t.stored("a")
	_, err := repair.Session(t.ctx, t.log(), "a", repair.Options{InPlace: true})
	t.wantErr(eventlog.ErrInUse, err)
	t.same("lines", before, t.stored("a"))
}

func testRepairInto(t *env) {
	l := t.over(t.store(), eventlog.Options{SpillOver: 200})
	parent := t.twelve(l, "p")
	t.append(l, "f", eventlog.New(), forkOf("p", &parent[11]))
	ref, err := l.PutBlob(t.ctx, newReader("an image"))
	t.must(err)
	own := note(1)
	t.must(own.AddBlobs(ref.Blob))
	t.append(l, "f", eventlog.Any(), own)
	t.append(l, "f", eventlog.Any(), newEvent("test:big", `"`+text("big", 1000)+`"`))
	want := t.read(l, "f", eventlog.All())
	l = t.damage("p", onLine(4, flipped))

	other := t.aside(memory.New())
	done := t.repaired(l, "f", repair.Options{Into: other})
	t.same("as", "f", done.As)
	t.same("lost", 0, len(done.Lost))
	t.same("sound by itself", repair.None, t.repaired(l, "f", repair.Options{}).Action)
	got := t.read(other, "f", eventlog.All())
	t.same("type of event 5", event.Lost, got[4].Type)
	t.survive("the fork", want[13:], got[13:], nil)
	t.sound(other, "p")
	t.same("body", "an image", t.blob(other, ref.Blob))
	t.same("the parent again", int64(0), t.repaired(l, "p", repair.Options{Into: other}).Stored)
}

func testRepairBodies(t *env) {
	l := t.over(t.store(), eventlog.Options{SpillOver: 200})
	want := t.twelve(l, "a")
	ref, err := l.PutBlob(t.ctx, newReader("an image"))
	t.must(err)
	own := note(13)
	t.must(own.AddBlobs(ref.Blob))
	t.append(l, "a", eventlog.Any(), own)
	blobs := ability[eventlog.Blobs](t, l.Store())
	t.must(blobs.RemoveBlobs(t.ctx, []event.Digest{event.DigestOf(want[11].Data)}))
	t.must(blobs.RemoveBlobs(t.ctx, []event.Digest{ref.Blob}))
	done, err := repair.Session(t.ctx, l, "a", repair.Options{})
	t.must(err)
	t.same("lost", []int64{12}, seqsLost(done))
	if len(done.Unmended) != 1 || done.Unmended[0].Seq != 13 || done.Unmended[0].Rule != "blob" {
		t.Errorf("unmended: %v, want the blob of event 13", done.Unmended)
	}
	t.survive("bodies", append(want, t.read(l, "a", eventlog.From(13))...), t.read(l, done.As, eventlog.All()), []int64{12})
	t.same("again", int64(0), t.mustRepair(l, "a").Stored)
}

func (t *env) mustRepair(l *eventlog.Log, session string) repair.Report {
	t.Helper()
	done, err := repair.Session(t.ctx, l, session, repair.Options{})
	t.must(err)
	return done
}

func testRepairRedacted(t *env) {
	t.twelve(t.log(), "a")
	_, err := erase.Redact(t.ctx, t.log(), "a", []int64{4, 6}, erase.RedactOptions{Reason: "asked for"})
	t.must(err)
	want := t.read(t.log(), "a", eventlog.All())
	l := t.damage("a", onLine(2, flipped))
	done := t.repaired(l, "a", repair.Options{})
	t.survive("redacted", want, t.read(l, done.As, eventlog.All()), []int64{3})
	// The event that says so is lost, and so is one that it named.
	t.append(l, "a-salvaged", eventlog.Any(), note(14))
	want = t.read(l, "a-salvaged", eventlog.All())
	l = t.damage("a-salvaged", onLine(12, flipped))
	done = t.repaired(l, "a-salvaged", repair.Options{})
	t.survive("the note lost", want, t.read(l, done.As, eventlog.All()), []int64{3, 13})
	l = t.damage("a", onLine(3, flipped))
	done = t.repaired(l, "a", repair.Options{As: "b"})
	t.same("lost", []int64{3, 4}, seqsLost(done))
}

func testRepairHopeless(t *env) {
	t.twelve(t.log(), "a")
	t.twelve(t.log(), "b")
	l := t.damage("a", func(lines []string) []string { return slices.Repeat([]string{`{"not":"ours"}` + "\n"}, len(lines)) })
	_, err := repair.Session(t.ctx, l, "a", repair.Options{})
	t.wantErr(eventlog.ErrCorrupt, err)
	b := t.stored("b")
	l = t.damage("a", func([]string) []string { return b })
	_, err = repair.Session(t.ctx, l, "a", repair.Options{})
	t.wantErr(eventlog.ErrCorrupt, err)
	if err == nil || !strings.Contains(err.Error(), `events of session "b" and none of its own`) {
		t.Errorf("got %v, want the other session named", err)
	}
	far := chainAfter("b", event.Head{Seq: 5_000_000}, line{data: "1"})
	l = t.damage("b", func(lines []string) []string { return append(lines[:6], string(far[0].Line())+"\n") })
	_, err = repair.Session(t.ctx, l, "b", repair.Options{})
	t.wantErr(eventlog.ErrCorrupt, err)
	t.missing(l, "a-salvaged")
	t.missing(l, "b-salvaged")
}
