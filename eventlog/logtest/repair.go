package logtest

import (
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/repair"
)

var repairCases = []testCase{
	{
		Name:        "replace",
		Explanation: "Salvager: other lines stand in the place of the session's, what it held is kept, other sessions stay, and appends go on; readers and the version see the change.",
		Needs:       []suite.Need{suite.Salvager, suite.Versioner},
		Run:         testReplace,
	},
	{
		Name:        "replace compares the version",
		Explanation: "Salvager: a session that changed is a ConflictError, a missing one ErrNotFound; when the new events end with an error nothing changes.",
		Needs:       []suite.Need{suite.Salvager, suite.Versioner},
		Run:         testReplaceRefused,
	},
	{
		Name:        "sound sessions",
		Explanation: "Repairing a sound session does nothing, however it is asked for.",
		Needs:       []suite.Need{suite.Salvager},
		Run:         testRepairSound,
	},
	{
		Name:        "damage",
		Explanation: "All that can be read of a damaged session is salvaged at its seq, and a lost event stands for each that cannot; the damaged session is not touched.",
		Needs:       []suite.Need{suite.Salvager, suite.Damage},
		Run:         testRepairDamage,
	},
	{
		Name:        "again",
		Explanation: "The same repair gives the same lines: one that was interrupted is finished, one that is done changes nothing, also after appends.",
		Needs:       []suite.Need{suite.Salvager, suite.Damage},
		Run:         testRepairAgain,
	},
	{
		Name:        "as",
		Explanation: "A session that is there is not written to; without a name, one that is free is found.",
		Needs:       []suite.Need{suite.Salvager, suite.Damage},
		Run:         testRepairAs,
	},
	{
		Name:        "in place",
		Explanation: "A session is replaced by its repaired self: lines before the damage stay byte for byte, and the next repair finds it sound.",
		Needs:       []suite.Need{suite.Salvager, suite.Damage},
		Run:         testRepairInPlace,
	},
	{
		Name:        "in place with forks",
		Explanation: "A repair in place does not change what forks share; before that it is possible.",
		Needs:       []suite.Need{suite.Salvager, suite.Damage},
		Run:         testRepairForked,
	},
	{
		Name:        "into another store",
		Explanation: "A repair into another store brings the blobs, and the parents of a fork; a fork names its repaired parent.",
		Needs:       []suite.Need{suite.Salvager, suite.Damage, suite.Blobs},
		Run:         testRepairInto,
	},
	{
		Name:        "lost bodies",
		Explanation: "An event whose data is gone is lost; one that lacks another blob stays, and the blob is reported.",
		Needs:       []suite.Need{suite.Salvager, suite.Blobs},
		Run:         testRepairBodies,
	},
	{
		Name:        "redacted events",
		Explanation: "Redacted events stay redacted; where the event that explains them was lost, that is no defect.",
		Needs:       []suite.Need{suite.Salvager, suite.Damage, suite.Eraser},
		Run:         testRepairRedacted,
	},
	{
		Name:        "nothing to salvage",
		Explanation: "A session of which nothing can be read, or that lacks more events than it can have had, is a RepairError, and nothing is written.",
		Needs:       []suite.Need{suite.Salvager, suite.Damage},
		Run:         testRepairHopeless,
	},
	{
		Name:        "random damage",
		Explanation: "Whatever happens to the lines of a session, every line that is whole survives at its seq, everything else is lost, and the repaired session is sound and goes on.",
		Needs:       []suite.Need{suite.Salvager, suite.Damage, suite.Blobs},
		Run:         testRepairRandom,
	},
}

// repaired repairs a session and makes sure that what it gives is sound.
func (t *env) wantRepair(l *eventlog.Log, session string, opts repair.Options) repair.Report {
	t.Helper()
	dry := opts
	dry.DryRun = true
	plan, err := repair.Session(t.Ctx, l, session, dry)
	t.Must(err)
	done, err := repair.Session(t.Ctx, l, session, opts)
	t.Must(err)
	t.WantEqual("action", plan.Action, done.Action)
	t.WantEqual("lost", plan.Lost, done.Lost)
	t.WantEqual("as", plan.As, done.As)
	if done.As == "" {
		return done
	}
	into := l
	if opts.Into != nil {
		into = opts.Into
	}
	t.WantVerified(into, done.As)
	t.WantEqual("head", done.Head, t.Head(into, done.As))
	return done
}

func testReplace(t *env) {
	s := t.Store()
	events := suite.ChainAfter("a", event.Head{}, suite.Line{Data: "1"}, suite.Line{Data: "2"}, suite.Line{Data: "3"})
	other := suite.ChainAfter("a", event.Head{}, suite.Line{Data: "9"}, suite.Line{Data: "8"})
	t.AppendLines(s, event.Head{}, events)
	t.Fill(t.Main(), "b", 2)
	b := t.Lines(t.Main(), "b")
	at, err := suite.Ability[eventlog.Versioner](t, s).Version(t.Ctx, "a")
	t.Must(err)
	kept, err := suite.Ability[eventlog.Salvager](t, s).Replace(t.Ctx, "a", at, suite.Sequence(other))
	t.Must(err)
	t.WantEqual("a copy is named", true, kept != "")
	now, err := suite.Ability[eventlog.Versioner](t, s).Version(t.Ctx, "a")
	t.Must(err)
	t.WantEqual("the version changed", true, now != at)
	t.NowAndAfterReopen(func(l *eventlog.Log) {
		t.WantEqual("lines", suite.LinesOf(other), t.Lines(l, "a"))
		t.WantEqual("lines of the other", b, t.Lines(l, "b"))
	})
	next := t.AppendLines(t.Store(), suite.HeadOf(other), suite.BatchAfter("a", suite.HeadOf(other), 2))
	t.WantEqual("head", next, t.Head(t.Main(), "a"))
	t.WantNoOtherFiles()
}

func testReplaceRefused(t *env) {
	s := t.Store()
	replacer, versioner := suite.Ability[eventlog.Salvager](t, s), suite.Ability[eventlog.Versioner](t, s)
	other := suite.ChainAfter("a", event.Head{}, suite.Line{Data: "9"})
	_, err := replacer.Replace(t.Ctx, "a", 0, suite.Sequence(other))
	t.WantErr(eventlog.ErrNotFound, err)
	head := t.Fill(t.Main(), "a", 3)
	at, err := versioner.Version(t.Ctx, "a")
	t.Must(err)
	t.AppendLines(s, head, suite.BatchAfter("a", head, 1))
	want := t.Lines(t.Main(), "a")
	_, err = replacer.Replace(t.Ctx, "a", at, suite.Sequence(other))
	t.WantErr(eventlog.ErrConflict, err)
	at, err = versioner.Version(t.Ctx, "a")
	t.Must(err)
	_, err = replacer.Replace(t.Ctx, "a", at, func(yield func(event.Event, error) bool) {
		if yield(other[0], nil) {
			yield(event.Event{}, suite.ErrInjected)
		}
	})
	t.WantErr(suite.ErrInjected, err)
	before := t.Files()
	t.NowAndAfterReopen(func(l *eventlog.Log) { t.WantEqual("lines", want, t.Lines(l, "a")) })
	for _, name := range before {
		t.WantEqual("a copy of what was not replaced: "+name, false, strings.Contains(name, "damaged"))
	}
	if t.Harness.OpenReadOnly != nil {
		s := t.ReadOnly().Store()
		_, err := suite.Ability[eventlog.Salvager](t, s).Replace(t.Ctx, "a", at, suite.Sequence(other))
		t.WantErr(eventlog.ErrReadOnly, err)
	}
}

func testRepairSound(t *env) {
	t.Append(t.Main(), "a", eventlog.New(), suite.Notes(3)...)
	head := t.Fill(t.Main(), "a", 5)
	before := t.Lines(t.Main(), "a")
	for _, opts := range []repair.Options{{}, {As: "b"}, {InPlace: true}, {Into: t.OtherLog(memory.New())}} {
		done, err := repair.Session(t.Ctx, t.Main(), "a", opts)
		t.Must(err)
		t.WantEqual("action", repair.None, done.Action)
		t.WantEqual("head", head, done.Head)
	}
	t.WantEqual("lines", before, t.Lines(t.Reopen(), "a"))
	infos, err := suite.Collect(t.Main().Sessions(t.Ctx))
	t.Must(err)
	t.WantEqual("sessions", 1, len(infos))
	_, err = repair.Session(t.Ctx, t.Main(), "missing", repair.Options{})
	t.WantErr(eventlog.ErrNotFound, err)
	_, err = repair.Session(t.Ctx, t.Main(), "a", repair.Options{As: "bad\x00id"})
	t.WantErr(event.ErrInvalidSession, err)
}
