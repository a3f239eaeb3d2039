package projection_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

// verified verifies the snapshots of a session of a garden.
func (g *garden) verified(name string) projection.SnapshotReport {
	g.t.Helper()
	report, err := projection.VerifySnapshots(bg, g.log, name, traces...)
	g.allow(err)
	return report
}

// truth is the body that the traces have as of an event of a session, changed by
// spoil.
func (g *garden) truth(name string, at int64, spoil func(v *view)) jsontext.Value {
	g.t.Helper()
	v := g.expected(at, g.lineage(name))
	if spoil != nil {
		spoil(&v)
	}
	type part struct {
		Version int `json:"version"`
		State   any `json:"state"`
	}
	body, err := json.Marshal(map[string]part{
		"path": {1, trace{v.Path}}, "session": {1, trace{v.Session}}, "tally": {1, v.Tally},
	}, json.Deterministic(true))
	g.allow(err)
	return body
}

// claim appends a snapshot, made by hand, of what a session is as of an event.
func (g *garden) claim(name string, at int64, spoil func(v *view), more ...func(s *event.Snapshot)) int64 {
	g.t.Helper()
	body := g.truth(name, at, spoil)
	s := event.Snapshot{Projection: "all", Version: 1, SnapshotID: "by hand", Seq: at, State: body, BodyDigest: event.DigestOf(body)}
	if at > 0 {
		e, err := g.log.Event(bg, name, at)
		g.allow(err)
		s.Hash = e.Hash()
	}
	for _, change := range more {
		change(&s)
	}
	return g.append(name, event.New(s)).Seq
}

// The lies about a state.
var (
	aboutPath    = func(v *view) { v.Path = append(v.Path, "9 never") }
	aboutSession = func(v *view) { v.Session = nil }
	aboutTally   = func(v *view) { v.Tally++ }
)

// lie is what was found of a snapshot.
type lie struct {
	seq  int64
	part string
	why  error
}

// found checks what verifying a session finds, in the order of seqs.
func (g *garden) found(name string, want ...lie) projection.SnapshotReport {
	g.t.Helper()
	report := g.verified(name)
	slices.SortStableFunc(report.Findings, func(a, b projection.SnapshotFinding) int {
		return cmp.Compare(a.Snapshot.Seq, b.Snapshot.Seq)
	})
	if len(report.Findings) != len(want) {
		g.t.Fatalf("%s: found %v, want %v", name, report.Findings, want)
	}
	for i, f := range report.Findings {
		if f.Session != name || f.Snapshot.Seq != want[i].seq || f.Part != want[i].part || !errors.Is(f.Err, want[i].why) {
			g.t.Fatalf("%s: found %+v, want %+v", name, f, want[i])
		}
	}
	return report
}

// Whatever was done to a session, the snapshots that were taken of it are what a
// replay gives. One that was made by hand is if it says the truth.
func TestSnapshotsAreWhatAReplayGives(t *testing.T) {
	onGardens(t, func(r *rapid.T, g *garden) {
		claims := map[string][]int64{}
		for _, name := range g.names {
			onPath := g.path(g.lineage(name))
			at := rapid.Int64Range(1, g.head(name).Seq).Draw(r, "at")
			if !onPath[at] {
				g.found(name)
				continue
			}
			lies := rapid.Bool().Draw(r, "lies")
			spoil := map[bool]func(*view){true: aboutPath}[lies]
			if seq := g.claim(name, at, spoil); lies {
				claims[name] = append(claims[name], seq)
			}
		}
		for _, s := range drawScript.Draw(r, "later") {
			if s.do != doSnapshot { // it would begin from a lie
				g.run(s)
			}
		}
		for _, name := range g.names {
			var want []lie
			for _, seq := range claims[name] {
				if e, err := g.log.Event(bg, name, seq); err != nil || !e.Redacted() {
					want = append(want, lie{seq, "path", projection.ErrOtherState})
				}
			}
			report := g.found(name, want...)
			if most := int64(len(g.bodies(name))); report.Checked < most {
				r.Fatalf("%s: checked %d of %d", name, report.Checked, most)
			}
		}
	})
}

// So it is of all projections of this package, bodies and marks.
func TestBuiltinSnapshotsAreWhatAReplayGives(t *testing.T) {
	onLives(t, func(r *rapid.T, l *life) {
		for round := range 2 {
			for i, name := range l.names {
				l.snapshot(name, lifeSets[(i+round)%len(lifeSets)], false)
				l.snapshot(name, lifeSets[(i+round)%2], false)
			}
			for _, a := range drawActs.Draw(r, "later") {
				l.act(a)
			}
		}
		for _, name := range l.names {
			report, err := projection.VerifySnapshots(bg, l.log, name, everything)
			l.allow(err)
			if skipped := report.Skipped; len(report.Findings) > 0 || skipped.Unknown+skipped.OtherVersion+skipped.Unfolded > 0 {
				r.Fatalf("%s: %+v", name, report)
			}
		}
	})
}

func TestWhatAReplayContradicts(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden, _ *counted) {
		g.bulk("s", 5)
		g.claim("s", 5, nil)
		path := g.claim("s", 5, aboutPath)
		session := g.claim("s", 7, aboutSession)
		sum := g.claim("s", 3, aboutTally)
		all := g.claim("s", 8, func(v *view) { aboutPath(v); aboutSession(v); aboutTally(v) })
		g.claim("s", 2, nil)
		report := g.found("s", lie{path, "path", projection.ErrOtherState}, lie{session, "session", projection.ErrOtherState},
			lie{sum, "tally", projection.ErrOtherState}, lie{all, "path", projection.ErrOtherState},
			lie{all, "session", projection.ErrOtherState}, lie{all, "tally", projection.ErrOtherState})
		d := report.Findings[0].Defect()
		report.Findings = nil
		same(t, "counts", projection.SnapshotReport{Snapshots: 6, Checked: 18}, report)
		want := eventlog.Defect{Session: "s", Seq: path, Offset: -1, Rule: "snapshot",
			Detail: "path of all snapshot by hand to event 5: state is not that of a replay"}
		same(t, "defect", want, d)
	})
}

// A state may be right and its digest wrong, and the other way round.
func TestDigestsOfSnapshotsAreCompared(t *testing.T) {
	digest := func(d event.Digest) func(s *event.Snapshot) {
		return func(s *event.Snapshot) { s.StateDigest = d }
	}
	onCounted(t, func(t *testing.T, g *garden, _ *counted) {
		g.bulk("s", 3)
		right := g.snapshot("s", allTraces, true).StateDigest
		wrong := event.DigestOf([]byte("other"))
		g.claim("s", 3, nil, digest(right))
		badDigest := g.claim("s", 3, nil, digest(wrong))
		badState := g.claim("s", 3, aboutPath, digest(right))
		both := g.claim("s", 3, aboutPath, digest(wrong))
		mark := func(s *event.Snapshot) { s.State, s.BodyDigest = nil, "" }
		g.claim("s", 3, nil, mark, digest(right))
		badMark := g.claim("s", 3, nil, mark, digest(wrong))
		g.claim("s", 3, nil, mark)
		report := g.found("s", lie{badDigest, "", projection.ErrOtherDigest}, lie{badState, "path", projection.ErrOtherState},
			lie{both, "path", projection.ErrOtherState}, lie{badMark, "", projection.ErrOtherDigest})
		if last := report.Findings[3]; !last.Mark || report.Findings[0].Mark {
			t.Errorf("found %+v", report.Findings)
		}
		if report.Checked != 5*3+2 || report.Snapshots != 8 {
			t.Errorf("checked %d of %d snapshots", report.Checked, report.Snapshots)
		}
	})
}

// What keeps a body from being read is found, or is said to be skipped.
func TestUnusableSnapshotsAreFoundOrSkipped(t *testing.T) {
	skipped := map[string]projection.SkippedStates{
		"of another past":                {OtherPast: 1},
		"of an unknown past":             {OtherPast: 1},
		"of another past further back":   {OtherPast: 1},
		"of nothing, and says of what":   {OtherPast: 1},
		"redacted":                       {Redacted: 1},
		"of another version":             {OtherVersion: 2},
		"many parts, whose body is gone": {Unknown: 100},
	}
	parts := map[string][]string{
		"part without a state":                  {"path", "session"},
		"state of another shape":                {"path", "session"},
		"state with a member that nobody knows": {"path", "session"},
		"body is gone":                          {"path", "session"},
		"covers the future":                     {""},
		"covers itself":                         {""},
		"no object":                             {""},
		"parts of another form":                 {""},
		"digest of another body":                {""},
		"many parts, whose body is gone":        {"path", "session"},
	}
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			onCounted(t, func(t *testing.T, g *garden, _ *counted) {
				g.bulk("s", padded)
				g.snapshot("s", traces[3], true)
				g.bulk("s", 2)
				seq := d.do(g)
				var want []lie
				for _, part := range parts[d.name] {
					want = append(want, lie{seq, part, d.why})
				}
				if report := g.found("s", want...); report.Skipped != skipped[d.name] || len(want) == 0 && report.Skipped.Total() == 0 {
					t.Errorf("skipped %+v", report.Skipped)
				}
			})
		})
	}
}

// Snapshots of what nobody named are in forms of their own, and no business of
// ours; that a body is what its own digest says is.
func TestSnapshotsOfOthersAreSkipped(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden, _ *counted) {
		g.bulk("s", 3)
		other := func(state string) func(s *event.Snapshot) {
			return func(s *event.Snapshot) {
				s.Projection, s.Version, s.State, s.BodyDigest = "weather", 7, jsontext.Value(state), event.DigestOf([]byte(state))
			}
		}
		g.claim("s", 3, nil, other(`"sunny"`))
		g.claim("s", 3, nil, other(`{"sunny":{"version":2,"state":1},"history":{"version":99,"state":1}}`))
		bad := g.claim("s", 3, nil, other(`"rain"`), func(s *event.Snapshot) { s.BodyDigest = event.DigestOf(nil) })
		g.claim("s", 3, nil, other(`"none"`), func(s *event.Snapshot) {
			s.State, s.BodyDigest, s.StateDigest = nil, "", event.DigestOf(nil)
		})
		report := g.found("s", lie{bad, "", projection.ErrBadDigest})
		same(t, "skipped", projection.SkippedStates{Unknown: 3, OtherVersion: 1}, report.Skipped)
		same(t, "checked", int64(0), report.Checked)
	})
}

// Snapshots stand on branches that were left, and on those that were come back
// to.
func TestSnapshotsOnAllBranchesAreCompared(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden, _ *counted) {
		g.bulk("s", 4)
		move := func(to int64) { g.append("s", event.New(event.HeadMove{To: to})) }
		var want []lie
		for i := range int64(3) {
			g.bulk("s", 2)
			g.snapshot("s", allTraces, true)
			left := g.claim("s", g.head("s").Seq, aboutPath)
			want = append(want, lie{left, "path", projection.ErrOtherState})
			move(4 - 2*i)
		}
		move(want[1].seq - 1) // back to the second branch
		g.snapshot("s", allTraces, true)
		want = append(want, lie{g.claim("s", g.head("s").Seq, aboutTally), "tally", projection.ErrOtherState})
		off := g.claim("s", want[0].seq, nil) // of another branch
		want = append(want, lie{off, "", projection.ErrOffPath})
		g.claim("s", 0, nil)
		g.found("s", want...)
	})
}

// A fork's snapshots are compared with all of its past; those in its parent's
// part are the parent's.
func TestSnapshotsOfForksAreCompared(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden, _ *counted) {
		g.bulk("p", 3)
		g.append("p", event.New(event.HeadMove{To: 1}))
		inParent := g.claim("p", 4, aboutPath)
		g.bulk("p", 2)
		_, err := fork.At(bg, g.log, "p", fork.AtSeq(7), fork.Options{ID: "f", Force: true})
		g.allow(err)
		g.bulk("f", 2)
		g.claim("f", 10, nil)
		covers := g.claim("f", 5, aboutSession) // what it covers is the parent's
		g.append("f", event.New(event.HeadMove{To: 6}))
		back := g.claim("f", g.head("f").Seq, aboutPath)
		off := g.claim("f", 3, nil) // the parent left it
		g.found("p", lie{inParent, "path", projection.ErrOtherState})
		report := g.found("f", lie{covers, "session", projection.ErrOtherState}, lie{back, "path", projection.ErrOtherState},
			lie{off, "", projection.ErrOffPath})
		verified, err := verify.Session(bg, g.log, "f")
		g.allow(err)
		same(t, "snapshots", []int64{4, 4}, []int64{report.Snapshots, verified.Snapshots})
	})
}

// Of a copy the snapshots that came with it are left out, and so are those that
// were taken of other events than stand there now.
func TestSnapshotsOfAnotherPastAreSkipped(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden, _ *counted) {
		g.bulk("s", 3)
		g.claim("s", 3, aboutPath)
		_, err := fork.Copy(bg, g.log, "s", fork.CopyOptions{ID: "c"})
		g.allow(err)
		bad := g.claim("c", 4, aboutPath)
		report := g.found("c", lie{bad, "path", projection.ErrOtherState})
		same(t, "skipped", projection.SkippedStates{Copied: 1}, report.Skipped)

		other := func(s *event.Snapshot) { s.Hash[0]++ }
		mark := func(s *event.Snapshot) {
			s.Projection, s.State, s.BodyDigest, s.StateDigest = "path", nil, "", event.DigestOf(nil)
		}
		g.bulk("o", 2)
		g.claim("o", 2, aboutTally, other)
		g.claim("o", 1, aboutTally, other)
		g.claim("o", 4, nil, mark, other)
		bad = g.claim("o", 1, aboutTally)
		report = g.found("o", lie{bad, "tally", projection.ErrOtherState})
		same(t, "skipped", projection.SkippedStates{OtherPast: 3}, report.Skipped)
	})
}

// A mark's digest is of what was there, also where that was erased since.
func TestMarksOfWhatWasErasedAreSkipped(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden, _ *counted) {
		g.bulk("s", 3)
		g.snapshot("s", traces[1], false)
		before := g.head("s").Seq
		g.bulk("s", 1)
		g.snapshot("s", traces[1], false)
		g.snapshot("s", traces[1], true)
		_, err := erase.Redact(bg, g.log, "s", []int64{before + 1}, erase.RedactOptions{Reason: "a test"})
		g.allow(err)
		g.snapshot("s", traces[1], true)
		report := g.found("s")
		same(t, "report", projection.SnapshotReport{Snapshots: 4, Checked: 2, Skipped: projection.SkippedStates{Redacted: 2}}, report)
	})
}

// What cannot be folded keeps that projection from being compared, from there on
// and on that path only.
func TestStatesBehindWhatCannotBeFoldedAreSkipped(t *testing.T) {
	stumbles := func(name string, scope event.Scope) projection.Projection[int] {
		return projection.Projection[int]{Name: name, Version: 1, Scope: scope, Apply: func(n *int, e *event.Event) error {
			if strings.Contains(string(e.Data), "stumble") {
				return errors.New("stumbled")
			}
			*n++
			return nil
		}}
	}
	set := projection.Of("stumbling", stumbles("a", event.PathScope), stumbles("b", event.SessionScope))
	body := `{"a":{"version":1,"state":%d},"b":{"version":1,"state":%d}}`
	onCounted(t, func(t *testing.T, g *garden, _ *counted) {
		claim := func(at int64, a, b int) int64 {
			return g.claim("s", at, nil, func(s *event.Snapshot) {
				s.Projection, s.State, s.BodyDigest = set.Name, fmt.Appendf(nil, body, a, b), ""
				s.StateDigest = event.DigestOf(nil)
			})
		}
		g.bulk("s", 2)
		g.append("s", event.UserMessage("stumble"))
		claim(3, 7, 7)
		claim(1, 1, 1)
		g.append("s", event.New(event.HeadMove{To: 2})) // 6
		bad := claim(6, 4, 4)
		report, err := projection.VerifySnapshots(bg, g.log, "s", set)
		g.allow(err)
		want := []lie{{5, "", projection.ErrOtherDigest}, {bad, "a", projection.ErrOtherState}}
		if len(report.Findings) != 2 || report.Findings[0].Snapshot.Seq != want[0].seq || report.Findings[1].Part != want[1].part {
			t.Errorf("found %v", report.Findings)
		}
		same(t, "skipped", projection.SkippedStates{Unfolded: 3}, report.Skipped)
		same(t, "checked", int64(3), report.Checked)
	})
}

// Sessions without snapshots are read and not folded; others are folded once,
// however many snapshots they have, and however often they were rewound.
func TestVerifyingSnapshotsIsLinear(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden, reads *counted) {
		g.bulk("p", 50)
		_, err := fork.At(bg, g.log, "p", fork.Head(), fork.Options{ID: "s", Force: true})
		g.allow(err)
		g.bulk("s", 10)
		reads.reset()
		g.found("s")
		if reads.events > 11+2 {
			t.Errorf("read %d events of a session without snapshots", reads.events)
		}
		for i := range int64(60) {
			g.bulk("s", 5)
			g.snapshot("s", allTraces, true)
			g.append("s", event.New(event.HeadMove{To: 50 + i}))
		}
		reads.reset()
		g.found("s")
		if most := 2*g.head("s").Seq + 5*60 + 20; reads.events > most {
			t.Errorf("read %d events, more than %d", reads.events, most)
		}
	})
}

func TestVerifyingSnapshotsThatCannotBe(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden, _ *counted) {
		verify := func(ctx context.Context, session string, sets ...projection.Set) error {
			_, err := projection.VerifySnapshots(ctx, g.log, session, sets...)
			return err
		}
		g.bulk("s", padded)
		g.good()
		if err := verify(bg, "none"); !errors.Is(err, eventlog.ErrNotFound) {
			t.Errorf("missing: %v", err)
		}
		if err := verify(bg, "s", projection.Set{}); !errors.Is(err, projection.ErrInvalidSet) {
			t.Errorf("a set without parts: %v", err)
		}
		ctx, cancel := context.WithCancel(bg)
		cancel()
		if err := verify(ctx, "s"); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled: %v", err)
		}
		g.allow(g.log.Close())
		if err := verify(bg, "s"); !errors.Is(err, eventlog.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}
