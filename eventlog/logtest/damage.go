package logtest

import (
	"errors"
	"slices"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/witness"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/transfer"
	"github.com/convlog/convlog/upkeep/verify"
)

var damageCases = []testCase{
	{
		Name:        "is located",
		Explanation: "A read ends at a damaged line with a CorruptError that locates it, and returns only written events. Verify reports the damage. An append succeeds or fails with damage. Exports and copies report the damage. Other sessions do not change.",
		Needs:       []suite.Need{suite.Damage, suite.Blobs, suite.Eraser},
		Run:         testDamageLocated,
	},
	{
		Name:        "newer version",
		Explanation: "A line with a newer version of the envelope is a VersionError and not damage.",
		Needs:       []suite.Need{suite.Damage, suite.Blobs, suite.Eraser},
		Run: func(t *env) {
			f := t.examineDamage(witness.Main, replaceText(9, `"v":1`, `"v":2`))
			t.WantErr(event.ErrVersion, f.Forward.Err)
			t.WantEqual("seqs", between(1, 9), f.Forward.Seqs)
			t.WantEqual("damage", false, errors.Is(f.Forward.Err, eventlog.ErrCorrupt))
		},
	},
	{
		Name:        "another layout",
		Explanation: "A line with another member order, or with white space between members, has the same meaning.",
		Needs:       []suite.Need{suite.Damage, suite.Blobs, suite.Eraser},
		Run:         testDamageLayout,
	},
	{
		Name:        "forged lines",
		Explanation: "Verify reports a line that was changed and has a matching crc, because its hash does not match.",
		Needs:       []suite.Need{suite.Damage},
		Run:         testDamageForged,
	},
	{
		Name:        "heads",
		Explanation: "With heads that were kept elsewhere, verify names each session that lost its end, was replaced, begun anew or removed, also if the rest is consistent by itself.",
		Needs:       []suite.Need{suite.Damage, suite.Eraser},
		Run:         testDamageHeads,
	},
	{
		Name:        "newer payload",
		Explanation: "An event with a newer version of a payload is read, stored and copied. Decoding it is a VersionError, and Verify reports it.",
		Run:         testNewerPayload,
	},
}

// lineDamages are edits of the sample's main session. shown is the number of readable
// events before each damage.
var lineDamages = []struct {
	name  string
	edit  func(lines []string) []string
	shown int
}{
	{"a bit of a line", onLine(9, flipByte), 9},
	{"a bit of the first line", onLine(0, flipByte), 0},
	{"a bit within an append", onLine(5, flipByte), 5},
	{"the crc", onLine(9, func(l string) string { return l[:8] + "00000000" + l[16:] }), 9},
	{"half a line", onLine(9, func(l string) string { return l[:len(l)/2] + "\n" }), 9},
	{"two halves", onLine(9, func(l string) string { return l[:len(l)/2] + l }), 9},
	{"NULs", onLine(9, func(l string) string { return strings.Repeat("\x00", len(l)-1) + "\n" }), 9},
	{"an empty line", onLine(9, func(string) string { return "\n" }), 9},
	{"garbage", onLine(9, func(string) string { return "garbage\n" }), 9},
	{"a foreign line", onLine(9, func(string) string { return `{"type":"user"}` + "\n" }), 9},
	{"a value that is no object", onLine(9, func(string) string { return "[]\n" }), 9},
	{"no UTF-8", replaceText(10, "go on", "go \xff"), 10},
	{"a lost line", func(l []string) []string { return slices.Delete(l, 9, 10) }, 9},
	{"a lost first line", func(l []string) []string { return l[1:] }, 0},
	{"a lost append", func(l []string) []string { return slices.Delete(l, 4, 7) }, 4},
	{"a line twice", func(l []string) []string { return slices.Insert(l, 10, l[9]) }, 10},
	{"two exchanged lines", func(l []string) []string {
		l[9], l[10] = l[10], l[9]
		return l
	}, 9},
}

// replaceText replaces text of line i.
func replaceText(i int, old, fresh string) func([]string) []string {
	return onLine(i, func(l string) string {
		if !strings.Contains(l, old) {
			panic("the sample's line does not contain " + old)
		}
		return strings.Replace(l, old, fresh, 1)
	})
}

// examineDamage writes a sample, damages a session and examines it.
func (t *env) examineDamage(session string, edit func(lines []string) []string) *witness.Findings {
	t.Helper()
	witness.WriteSample(t, t.Store())
	w := witness.New(t, t.Store())
	return w.Examine(t, t.Damage(session, edit).Store(), session)
}

func testDamageLocated(t *env) {
	witness.WriteSample(t, t.Store())
	w := witness.New(t, t.Store())
	undamaged := t.RawLines(witness.Main)
	for _, d := range lineDamages {
		restore := func([]string) []string { return d.edit(slices.Clone(undamaged)) }
		f := w.Inspect(t, t.Damage(witness.Main, restore).Store(), witness.Main)
		due := int64(d.shown + 1)
		t.WantEqual(d.name+": seqs", between(1, int64(d.shown)), append([]int64{}, f.Forward.Seqs...))
		for _, err := range []error{f.Forward.Err, f.Backward.Err} {
			var damage *eventlog.CorruptError
			if !errors.As(err, &damage) {
				t.Errorf("%s: a read ends with %v, want damage", d.name, err)
			}
		}
		if !slices.ContainsFunc(f.Report.Defects, func(d eventlog.Defect) bool { return d.Seq == 0 || d.Seq >= due }) {
			t.Errorf("%s: Verify reports no defect at seq %d or later: %v", d.name, due, f.Report.Defects)
		}
	}
	w.Examine(t, t.Store(), witness.Main)
}

func testDamageLayout(t *env) {
	f := t.examineDamage(witness.Main, func(l []string) []string {
		l[8] = "{" + strings.TrimSuffix(l[8][18:], "}\n") + "," + l[8][1:17] + "}\n"
		l[9] = strings.Replace(l[9], `,"seq":`, ` , "seq" : `, 1)
		l[21] = strings.Replace(l[21], `"data":{`, "\t\"data\":\t{ ", 1)
		return l
	})
	if err := errors.Join(f.Forward.Err, f.Backward.Err, f.VerifyErr, f.Append); err != nil || f.Detected() {
		t.Errorf("%v; Verify reports %v %v", err, f.Report.Defects, f.Report.Notes)
	}
	t.WantEqual("seqs", between(1, 22), f.Forward.Seqs)
}

func testDamageForged(t *env) {
	l := t.Main()
	t.Append(l, "a", eventlog.New(), suite.NoteWithMetadata(1, `{"k":"v"}`))
	t.Append(l, "a", eventlog.Any(), suite.Notes(2)...)
	t.Append(l, "a", eventlog.Any(), suite.Note(4))
	second := t.Read(l, "a", eventlog.All())[1]
	l = t.Damage("a", onLine(1, func(string) string {
		forged := suite.WithData(second, `{"n":7}`)
		return string(forged.Line()) + "\n"
	}))
	report, err := verify.Session(t.Ctx, l, "a")
	t.Must(err)
	if !slices.ContainsFunc(report.Defects, func(d eventlog.Defect) bool { return d.Rule == "chain" && d.Seq == 2 }) {
		t.Errorf("Verify does not report the forged event: %v", report.Defects)
	}
}

func testNewerPayload(t *env) {
	message := `{"role":"user","parts":[{"type":"text","text":"hello"}]}`
	t.AppendLines(t.Store(), event.Head{}, suite.ChainAfter("a", event.Head{}, suite.Line{Data: "1"}, suite.Line{Typ: "message_added/9", Data: message}))
	l := t.Main()
	events := t.Read(l, "a", eventlog.All())
	t.WantEqual("seqs", between(1, 2), suite.SeqsOf(events))
	t.WantEqual("data", message, string(events[1].Data))
	_, _, err := event.Decode[event.Message](&events[1])
	t.WantErr(event.ErrVersion, err)
	report, err := verify.Session(t.Ctx, l, "a")
	t.Must(err)
	if !slices.ContainsFunc(report.Defects, func(d eventlog.Defect) bool { return d.Rule == "version" && d.Seq == 2 }) {
		t.Errorf("Verify does not report the newer payload: %v", report.Defects)
	}
	dst := t.OtherLog(memory.New())
	for _, err := range transfer.Convert(t.Ctx, dst, l) {
		t.Must(err)
	}
	t.WantEqual("copied lines", t.Lines(l, "a"), t.Lines(dst, "a"))
}
