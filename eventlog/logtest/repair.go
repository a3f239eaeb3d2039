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
		Explanation: "Salvager: Replace replaces the session's lines and makes a backup copy. Other sessions do not change, the session accepts appends, and readers and the version see the change.",
		Needs:       []suite.Need{suite.Salvager, suite.Versioner},
		Run:         testReplace,
	},
	{
		Name:        "replace compares the version",
		Explanation: "Salvager: if the session changed, Replace returns a ConflictError; a missing session is ErrNotFound. If the new events end with an error, nothing changes.",
		Needs:       []suite.Need{suite.Salvager, suite.Versioner},
		Run:         testReplaceRefused,
	},
	{
		Name:        "undamaged sessions",
		Explanation: "Repairing an undamaged session does nothing, with any options.",
		Needs:       []suite.Need{suite.Salvager},
		Run:         testRepairSound,
	},
	{
		Name:        "damage",
		Explanation: "A repair keeps every readable event at its seq and writes a lost event for every unreadable one. The damaged session does not change.",
		Needs:       []suite.Need{suite.Salvager, suite.Damage},
		Run:         testRepairDamage,
	},
	{
		Name:        "repeated",
		Explanation: "Repeating a repair gives the same lines. An interrupted repair is finished; a finished repair changes nothing, also after appends.",
		Needs:       []suite.Need{suite.Salvager, suite.Damage},
		Run:         testRepairAgain,
	},
	{
		Name:        "session names",
		Explanation: "A repair never writes to an existing session. Without a name it finds a free name.",
		Needs:       []suite.Need{suite.Salvager, suite.Damage},
		Run:         testRepairAs,
	},
	{
		Name:        "in place",
		Explanation: "A repair in place replaces the session. Lines before the damage do not change, and the next repair finds no damage.",
		Needs:       []suite.Need{suite.Salvager, suite.Damage},
		Run:         testRepairInPlace,
	},
	{
		Name:        "in place with forks",
		Explanation: "A repair in place does not change events that forks share. It may change events after the fork points.",
		Needs:       []suite.Need{suite.Salvager, suite.Damage},
		Run:         testRepairForked,
	},
	{
		Name:        "into another store",
		Explanation: "A repair into another store copies the blobs and the parents of a fork. The fork names its repaired parent.",
		Needs:       []suite.Need{suite.Salvager, suite.Damage, suite.Blobs},
		Run:         testRepairInto,
	},
	{
		Name:        "missing bodies",
		Explanation: "An event whose spilled data is missing is lost. An event with another missing blob stays, and the report lists the blob.",
		Needs:       []suite.Need{suite.Salvager, suite.Blobs},
		Run:         testRepairBodies,
	},
	{
		Name:        "redacted events",
		Explanation: "Redacted events stay redacted. A lost redaction event is no defect.",
		Needs:       []suite.Need{suite.Salvager, suite.Damage, suite.Eraser},
		Run:         testRepairRedacted,
	},
	{
		Name:        "not repairable",
		Explanation: "A session without readable events, or with more missing events than possible, is a RepairError, and nothing is written.",
		Needs:       []suite.Need{suite.Salvager, suite.Damage},
		Run:         testRepairHopeless,
	},
	{
		Name:        "random damage",
		Explanation: "After random damage, every undamaged line is kept at its seq, every other event is lost, and the repaired session verifies and accepts appends.",
		Needs:       []suite.Need{suite.Salvager, suite.Damage, suite.Blobs},
		Run:         testRepairRandom,
	},
}

// wantRepair repairs a session and checks that the result verifies.
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
	backup, err := suite.Ability[eventlog.Salvager](t, s).Replace(t.Ctx, "a", at, suite.Sequence(other))
	t.Must(err)
	t.WantEqual("the path of the copy is returned", true, backup != "")
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
		t.WantEqual("a copy is left of a failed Replace:  "+name, false, strings.Contains(name, "damaged"))
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
