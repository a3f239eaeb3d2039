package storetest

import (
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/repair"
)

var repairCases = []testCase{
	{
		name:        "replace",
		explanation: "Replacer: other lines stand in the place of the session's, what it held is kept, other sessions stay, and appends go on; readers and the version see the change.",
		needs:       []Need{Replacer, Versioner},
		run:         testReplace,
	},
	{
		name:        "replace compares the version",
		explanation: "Replacer: a session that changed is a ConflictError, a missing one ErrNotFound; when the new events end with an error nothing changes.",
		needs:       []Need{Replacer, Versioner},
		run:         testReplaceRefused,
	},
	{
		name:        "sound sessions",
		explanation: "Repairing a sound session does nothing, however it is asked for.",
		needs:       []Need{Salvager},
		run:         testRepairSound,
	},
	{
		name:        "damage",
		explanation: "All that can be read of a damaged session is salvaged at its seq, and a lost event stands for each that cannot; the damaged session is not touched.",
		needs:       []Need{Salvager, Damage},
		run:         testRepairDamage,
	},
	{
		name:        "again",
		explanation: "The same repair gives the same lines: one that was interrupted is finished, one that is done changes nothing, also after appends.",
		needs:       []Need{Salvager, Damage},
		run:         testRepairAgain,
	},
	{
		name:        "as",
		explanation: "A session that is there is not written to; without a name, one that is free is found.",
		needs:       []Need{Salvager, Damage},
		run:         testRepairAs,
	},
	{
		name:        "in place",
		explanation: "A session is replaced by its repaired self: lines before the damage stay byte for byte, and the next repair finds it sound.",
		needs:       []Need{Salvager, Damage, Replacer},
		run:         testRepairInPlace,
	},
	{
		name:        "in place with forks",
		explanation: "A repair in place does not change what forks share; before that it is possible.",
		needs:       []Need{Salvager, Damage, Replacer},
		run:         testRepairForked,
	},
	{
		name:        "into another store",
		explanation: "A repair into another store brings the blobs, and the parents of a fork; a fork names its repaired parent.",
		needs:       []Need{Salvager, Damage, Blobs},
		run:         testRepairInto,
	},
	{
		name:        "lost bodies",
		explanation: "An event whose data is gone is lost; one that lacks another blob stays, and the blob is reported.",
		needs:       []Need{Salvager, Blobs},
		run:         testRepairBodies,
	},
	{
		name:        "redacted events",
		explanation: "Redacted events stay redacted; where the event that explains them was lost, that is no defect.",
		needs:       []Need{Salvager, Damage, Rewriter},
		run:         testRepairRedacted,
	},
	{
		name:        "nothing to salvage",
		explanation: "A session of which nothing can be read, or that lacks more events than it can have had, is a RepairError, and nothing is written.",
		needs:       []Need{Salvager, Damage},
		run:         testRepairHopeless,
	},
	{
		name:        "random damage",
		explanation: "Whatever happens to the lines of a session, every line that is whole survives at its seq, everything else is lost, and the repaired session is sound and goes on.",
		needs:       []Need{Salvager, Damage, Blobs},
		run:         testRepairRandom,
	},
}

// damage changes the stored lines of a session while nothing is open.
func (t *env) damage(session string, edit func(lines []string) []string) *eventlog.Log {
	t.Helper()
	t.close()
	t.must(t.harness.Damage(session, edit))
	return t.log()
}

// stored are the raw lines of a session.
func (t *env) stored(session string) (lines []string) {
	t.Helper()
	t.close()
	t.must(t.harness.Damage(session, func(found []string) []string {
		lines = found
		return found
	}))
	return lines
}

// repaired repairs a session and makes sure that what it gives is sound.
func (t *env) repaired(l *eventlog.Log, session string, opts repair.Options) repair.Report {
	t.Helper()
	dry := opts
	dry.DryRun = true
	plan, err := repair.Session(t.ctx, l, session, dry)
	t.must(err)
	done, err := repair.Session(t.ctx, l, session, opts)
	t.must(err)
	t.same("action", plan.Action, done.Action)
	t.same("lost", plan.Lost, done.Lost)
	t.same("as", plan.As, done.As)
	if done.As == "" {
		return done
	}
	into := l
	if opts.Into != nil {
		into = opts.Into
	}
	t.sound(into, done.As)
	t.same("head", done.Head, t.head(into, done.As))
	return done
}

func testReplace(t *env) {
	s := t.store()
	events := chainAfter("a", event.Head{}, line{data: "1"}, line{data: "2"}, line{data: "3"})
	other := chainAfter("a", event.Head{}, line{data: "9"}, line{data: "8"})
	t.put(s, event.Head{}, events)
	t.fill(t.log(), "b", 2)
	b := t.lines(t.log(), "b")
	at, err := ability[eventlog.Versioner](t, s).Version(t.ctx, "a")
	t.must(err)
	kept, err := ability[eventlog.Salvager](t, s).Replace(t.ctx, "a", at, sequence(other))
	t.must(err)
	t.same("a copy is named", true, kept != "")
	now, err := ability[eventlog.Versioner](t, s).Version(t.ctx, "a")
	t.must(err)
	t.same("the version changed", true, now != at)
	t.twice(func(l *eventlog.Log) {
		t.same("lines", linesOf(other), t.lines(l, "a"))
		t.same("lines of the other", b, t.lines(l, "b"))
	})
	next := t.put(t.store(), headOf(other), batchAfter("a", headOf(other), 2))
	t.same("head", next, t.head(t.log(), "a"))
	t.contained()
}

func testReplaceRefused(t *env) {
	s := t.store()
	replacer, versioner := ability[eventlog.Salvager](t, s), ability[eventlog.Versioner](t, s)
	other := chainAfter("a", event.Head{}, line{data: "9"})
	_, err := replacer.Replace(t.ctx, "a", 0, sequence(other))
	t.wantErr(eventlog.ErrNotFound, err)
	head := t.fill(t.log(), "a", 3)
	at, err := versioner.Version(t.ctx, "a")
	t.must(err)
	t.put(s, head, batchAfter("a", head, 1))
	want := t.lines(t.log(), "a")
	_, err = replacer.Replace(t.ctx, "a", at, sequence(other))
	t.wantErr(eventlog.ErrConflict, err)
	at, err = versioner.Version(t.ctx, "a")
	t.must(err)
	_, err = replacer.Replace(t.ctx, "a", at, func(yield func(event.Event, error) bool) {
		if yield(other[0], nil) {
			yield(event.Event{}, errInjected)
		}
	})
	t.wantErr(errInjected, err)
	before := t.files()
	t.twice(func(l *eventlog.Log) { t.same("lines", want, t.lines(l, "a")) })
	for _, name := range before {
		t.same("a copy of what was not replaced: "+name, false, strings.Contains(name, "damaged"))
	}
	if t.harness.OpenReadOnly != nil {
		s := t.readOnly().Store()
		_, err := ability[eventlog.Salvager](t, s).Replace(t.ctx, "a", at, sequence(other))
		t.wantErr(eventlog.ErrReadOnly, err)
	}
}

func testRepairSound(t *env) {
	t.append(t.log(), "a", eventlog.New(), notes(3)...)
	head := t.fill(t.log(), "a", 5)
	before := t.lines(t.log(), "a")
	for _, opts := range []repair.Options{{}, {As: "b"}, {InPlace: true}, {Into: t.aside(memory.New())}} {
		done, err := repair.Session(t.ctx, t.log(), "a", opts)
		t.must(err)
		t.same("action", repair.None, done.Action)
		t.same("head", head, done.Head)
	}
	t.same("lines", before, t.lines(t.reopen(), "a"))
	infos, err := collect(t.log().Sessions(t.ctx))
	t.must(err)
	t.same("sessions", 1, len(infos))
	_, err = repair.Session(t.ctx, t.log(), "missing", repair.Options{})
	t.wantErr(eventlog.ErrNotFound, err)
	_, err = repair.Session(t.ctx, t.log(), "a", repair.Options{As: "bad\x00id"})
	t.wantErr(event.ErrInvalidSession, err)
}
