package projection_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

// verified verifies the snapshots of a session of a garden.
func verified(g *garden.Garden, name string) projection.SnapshotReport {
	g.T.Helper()
	report, err := projection.VerifySnapshots(garden.Bg, g.Log, name, garden.Traces...)
	g.Allow(err)
	return report
}

// truth is the body of the traces as of an event of a session, changed by spoil.
func truth(g *garden.Garden, name string, at int64, spoil func(v *garden.View)) jsontext.Value {
	g.T.Helper()
	v := g.Expected(at, g.Lineage(name))
	if spoil != nil {
		spoil(&v)
	}
	type part struct {
		Version int `json:"version"`
		State   any `json:"state"`
	}
	body, err := json.Marshal(map[string]part{
		"test:path": {1, garden.Trace{Seen: v.Path}}, "test:session": {1, garden.Trace{Seen: v.Session}}, "test:tally": {1, v.Tally},
	}, json.Deterministic(true))
	g.Allow(err)
	return body
}

// claim appends a snapshot of a session as of an event, changed by spoil.
func claim(g *garden.Garden, name string, at int64, spoil func(v *garden.View), more ...func(s *event.Snapshot)) int64 {
	g.T.Helper()
	body := truth(g, name, at, spoil)
	s := event.Snapshot{Projection: "test:all", Version: 1, SnapshotID: "by hand", Seq: at, State: body, BodyDigest: event.DigestOf(body)}
	if at > 0 {
		e, err := g.Log.Event(garden.Bg, name, at)
		g.Allow(err)
		s.Hash = e.Hash()
	}
	for _, change := range more {
		change(&s)
	}
	return g.Append(name, event.New(s)).Seq
}

// The changes to a body.
var (
	aboutPath    = func(v *garden.View) { v.Path = append(v.Path, "9 never") }
	aboutSession = func(v *garden.View) { v.Session = nil }
	aboutTally   = func(v *garden.View) { v.Tally++ }
)

// wrongState is an expected finding.
type wrongState struct {
	seq  int64
	part string
	why  string
}

// checkFindings verifies a session and compares the findings, in the order of seqs.
func checkFindings(g *garden.Garden, name string, want ...wrongState) projection.SnapshotReport {
	g.T.Helper()
	report := verified(g, name)
	slices.SortStableFunc(report.Findings, func(a, b projection.SnapshotProblem) int {
		return cmp.Compare(a.Snapshot.Seq, b.Snapshot.Seq)
	})
	if len(report.Findings) != len(want) {
		g.T.Fatalf("%s: found %v, want %v", name, report.Findings, want)
	}
	for i, f := range report.Findings {
		if f.Session != name || f.Snapshot.Seq != want[i].seq || f.Part != want[i].part || f.Reason != want[i].why || f.Err == nil {
			g.T.Fatalf("%s: found %+v, want %+v", name, f, want[i])
		}
	}
	return report
}

// The snapshots of random sessions equal a replay. A snapshot made by hand equals it
// if its states are right.
func TestSnapshotsEqualAReplay(t *testing.T) {
	garden.OnGardens(t, func(r *rapid.T, g *garden.Garden) {
		claims := map[string][]int64{}
		for _, name := range g.Names {
			onPath := g.Path(g.Lineage(name))
			at := rapid.Int64Range(1, g.Head(name).Seq).Draw(r, "at")
			if !onPath[at] {
				checkFindings(g, name)
				continue
			}
			lies := rapid.Bool().Draw(r, "lies")
			spoil := map[bool]func(*garden.View){true: aboutPath}[lies]
			if seq := claim(g, name, at, spoil); lies {
				claims[name] = append(claims[name], seq)
			}
		}
		for _, s := range garden.DrawScript.Draw(r, "later") {
			if s.Do != garden.DoSnapshot { // it would begin from a wrongState
				g.Run(s)
			}
		}
		for _, name := range g.Names {
			var want []wrongState
			for _, seq := range claims[name] {
				if e, err := g.Log.Event(garden.Bg, name, seq); err != nil || !e.Redacted() {
					want = append(want, wrongState{seq, "test:path", "other_state"})
				}
			}
			report := checkFindings(g, name, want...)
			if most := int64(len(bodies(g, name))); report.Checked < most {
				r.Fatalf("%s: checked %d of %d", name, report.Checked, most)
			}
		}
	})
}

// The same for all projections of this package, bodies and marks.
func TestBuiltinSnapshotsEqualAReplay(t *testing.T) {
	garden.OnLives(t, func(r *rapid.T, l *garden.Life) {
		for round := range 2 {
			for i, name := range l.Names {
				l.Snapshot(name, garden.LifeSets[(i+round)%len(garden.LifeSets)], false)
				l.Snapshot(name, garden.LifeSets[(i+round)%2], false)
			}
			for _, a := range garden.DrawActs.Draw(r, "later") {
				l.Act(a)
			}
		}
		for _, name := range l.Names {
			report, err := projection.VerifySnapshots(garden.Bg, l.Log, name, garden.Everything)
			l.Allow(err)
			if skipped := report.Skipped; len(report.Findings) > 0 || skipped["unknown"]+skipped["other_version"]+skipped["unfolded"] > 0 {
				r.Fatalf("%s: %+v", name, report)
			}
		}
	})
}

func TestSnapshotsThatContradictAReplay(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden.Garden, _ *counted) {
		bulk(g, "s", 5)
		claim(g, "s", 5, nil)
		path := claim(g, "s", 5, aboutPath)
		session := claim(g, "s", 7, aboutSession)
		sum := claim(g, "s", 3, aboutTally)
		all := claim(g, "s", 8, func(v *garden.View) { aboutPath(v); aboutSession(v); aboutTally(v) })
		claim(g, "s", 2, nil)
		report := checkFindings(g, "s", wrongState{path, "test:path", "other_state"}, wrongState{session, "test:session", "other_state"},
			wrongState{sum, "test:tally", "other_state"}, wrongState{all, "test:path", "other_state"},
			wrongState{all, "test:session", "other_state"}, wrongState{all, "test:tally", "other_state"})
		report.Findings = nil
		garden.Same(t, "counts", projection.SnapshotReport{Snapshots: 6, Checked: 18}, report)
	})
}

// A state can be right and its digest wrong, and the reverse.
func TestDigestsOfSnapshotsAreCompared(t *testing.T) {
	digest := func(d event.Digest) func(s *event.Snapshot) {
		return func(s *event.Snapshot) { s.StateDigest = d }
	}
	onCounted(t, func(t *testing.T, g *garden.Garden, _ *counted) {
		bulk(g, "s", 3)
		right := g.Snapshot("s", garden.AllTraces, true).StateDigest
		wrong := event.DigestOf([]byte("other"))
		claim(g, "s", 3, nil, digest(right))
		badDigest := claim(g, "s", 3, nil, digest(wrong))
		badState := claim(g, "s", 3, aboutPath, digest(right))
		both := claim(g, "s", 3, aboutPath, digest(wrong))
		mark := func(s *event.Snapshot) { s.State, s.BodyDigest = nil, "" }
		claim(g, "s", 3, nil, mark, digest(right))
		badMark := claim(g, "s", 3, nil, mark, digest(wrong))
		claim(g, "s", 3, nil, mark)
		report := checkFindings(g, "s", wrongState{badDigest, "", "other_digest"}, wrongState{badState, "test:path", "other_state"},
			wrongState{both, "test:path", "other_state"}, wrongState{badMark, "", "other_digest"})
		if last := report.Findings[3]; !last.Mark || report.Findings[0].Mark {
			t.Errorf("found %+v", report.Findings)
		}
		if report.Checked != 5*3+2 || report.Snapshots != 8 {
			t.Errorf("checked %d of %d snapshots", report.Checked, report.Snapshots)
		}
	})
}

// An unreadable body is reported or counted as skipped.
func TestUnusableSnapshotsAreReportedOrSkipped(t *testing.T) {
	skipped := map[string]map[string]int64{
		"of another past":                {"other_events": 1},
		"of an unknown past":             {"other_events": 1},
		"of another past further back":   {"other_events": 1},
		"of nothing, and says of what":   {"other_events": 1},
		"redacted":                       {"redacted": 1},
		"of another version":             {"other_version": 2},
		"many parts, whose body is gone": {"unknown": 100},
	}
	parts := map[string][]string{
		"part without a state":                  {"test:path", "test:session"},
		"state of another shape":                {"test:path", "test:session"},
		"state with a member that nobody knows": {"test:path", "test:session"},
		"body is gone":                          {"test:path", "test:session"},
		"covers the future":                     {""},
		"covers itself":                         {""},
		"no object":                             {""},
		"parts of another form":                 {""},
		"digest of another body":                {""},
		"many parts, whose body is gone":        {"test:path", "test:session"},
	}
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			onCounted(t, func(t *testing.T, g *garden.Garden, _ *counted) {
				bulk(g, "s", padded)
				g.Snapshot("s", garden.Traces[3], true)
				bulk(g, "s", 2)
				seq := d.do(g)
				var want []wrongState
				for _, part := range parts[d.name] {
					want = append(want, wrongState{seq, part, d.why})
				}
				if report := checkFindings(g, "s", want...); !maps.Equal(report.Skipped, skipped[d.name]) || len(want) == 0 && len(report.Skipped) == 0 {
					t.Errorf("skipped %+v", report.Skipped)
				}
			})
		})
	}
}

// Snapshots of unknown sets have unknown formats. Their body digest is still checked.
func TestSnapshotsOfUnknownSetsAreSkipped(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden.Garden, _ *counted) {
		bulk(g, "s", 3)
		other := func(state string) func(s *event.Snapshot) {
			return func(s *event.Snapshot) {
				s.Projection, s.Version, s.State, s.BodyDigest = "weather", 7, jsontext.Value(state), event.DigestOf([]byte(state))
			}
		}
		claim(g, "s", 3, nil, other(`"sunny"`))
		claim(g, "s", 3, nil, other(`{"sunny":{"version":2,"state":1},"history":{"version":99,"state":1}}`))
		bad := claim(g, "s", 3, nil, other(`"rain"`), func(s *event.Snapshot) { s.BodyDigest = event.DigestOf(nil) })
		claim(g, "s", 3, nil, other(`"none"`), func(s *event.Snapshot) {
			s.State, s.BodyDigest, s.StateDigest = nil, "", event.DigestOf(nil)
		})
		report := checkFindings(g, "s", wrongState{bad, "", "bad_digest"})
		garden.Same(t, "skipped", map[string]int64{"unknown": 3, "other_version": 1}, report.Skipped)
		garden.Same(t, "checked", int64(0), report.Checked)
	})
}

// Snapshots are on orphaned branches, and on branches that the head returned to.
func TestSnapshotsOnAllBranchesAreCompared(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden.Garden, _ *counted) {
		bulk(g, "s", 4)
		move := func(to int64) { g.Append("s", event.New(event.HeadMove{To: to})) }
		var want []wrongState
		for i := range int64(3) {
			bulk(g, "s", 2)
			g.Snapshot("s", garden.AllTraces, true)
			left := claim(g, "s", g.Head("s").Seq, aboutPath)
			want = append(want, wrongState{left, "test:path", "other_state"})
			move(4 - 2*i)
		}
		move(want[1].seq - 1) // back to the second branch
		g.Snapshot("s", garden.AllTraces, true)
		want = append(want, wrongState{claim(g, "s", g.Head("s").Seq, aboutTally), "test:tally", "other_state"})
		off := claim(g, "s", want[0].seq, nil) // of another branch
		want = append(want, wrongState{off, "", "off_path"})
		claim(g, "s", 0, nil)
		checkFindings(g, "s", want...)
	})
}

// A fork's snapshots are compared with a replay of the whole lineage. The snapshots
// in the shared prefix belong to the parent.
func TestSnapshotsOfForksAreCompared(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden.Garden, _ *counted) {
		bulk(g, "p", 3)
		g.Append("p", event.New(event.HeadMove{To: 1}))
		inParent := claim(g, "p", 4, aboutPath)
		bulk(g, "p", 2)
		_, err := fork.At(garden.Bg, g.Log, "p", fork.AtSeq(7), fork.Options{ID: "f", Force: true})
		g.Allow(err)
		bulk(g, "f", 2)
		claim(g, "f", 10, nil)
		covers := claim(g, "f", 5, aboutSession) // what it covers is the parent's
		g.Append("f", event.New(event.HeadMove{To: 6}))
		back := claim(g, "f", g.Head("f").Seq, aboutPath)
		off := claim(g, "f", 3, nil) // the parent left it
		checkFindings(g, "p", wrongState{inParent, "test:path", "other_state"})
		report := checkFindings(g, "f", wrongState{covers, "test:session", "other_state"}, wrongState{back, "test:path", "other_state"},
			wrongState{off, "", "off_path"})
		verified, err := verify.Session(garden.Bg, g.Log, "f")
		g.Allow(err)
		garden.Same(t, "snapshots", []int64{4, 4}, []int64{report.Snapshots, verified.Snapshots})
	})
}

// Copied snapshots are skipped, and so are snapshots of other events than the stored
// ones.
func TestSnapshotsOfOtherEventsAreSkipped(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden.Garden, _ *counted) {
		bulk(g, "s", 3)
		claim(g, "s", 3, aboutPath)
		_, err := fork.Copy(garden.Bg, g.Log, "s", fork.CopyOptions{ID: "c"})
		g.Allow(err)
		bad := claim(g, "c", 4, aboutPath)
		report := checkFindings(g, "c", wrongState{bad, "test:path", "other_state"})
		garden.Same(t, "skipped", map[string]int64{"copied": 1}, report.Skipped)

		other := func(s *event.Snapshot) { s.Hash[0]++ }
		mark := func(s *event.Snapshot) {
			s.Projection, s.State, s.BodyDigest, s.StateDigest = "test:path", nil, "", event.DigestOf(nil)
		}
		bulk(g, "o", 2)
		claim(g, "o", 2, aboutTally, other)
		claim(g, "o", 1, aboutTally, other)
		claim(g, "o", 4, nil, mark, other)
		bad = claim(g, "o", 1, aboutTally)
		report = checkFindings(g, "o", wrongState{bad, "test:tally", "other_state"})
		garden.Same(t, "skipped", map[string]int64{"other_events": 3}, report.Skipped)
	})
}

// The digest of a mark covers events that may be erased since.
func TestMarksOfErasedEventsAreSkipped(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden.Garden, _ *counted) {
		bulk(g, "s", 3)
		g.Snapshot("s", garden.Traces[1], false)
		before := g.Head("s").Seq
		bulk(g, "s", 1)
		g.Snapshot("s", garden.Traces[1], false)
		g.Snapshot("s", garden.Traces[1], true)
		_, err := erase.Redact(garden.Bg, g.Log, "s", []int64{before + 1}, erase.RedactOptions{Reason: "a test"})
		g.Allow(err)
		g.Snapshot("s", garden.Traces[1], true)
		report := checkFindings(g, "s")
		garden.Same(t, "report", projection.SnapshotReport{Snapshots: 4, Checked: 2, Skipped: map[string]int64{"redacted": 2}}, report)
	})
}

// A fold error stops the comparison of its projection, from the event on and on its
// path only.
func TestStatesAfterAFoldErrorAreSkipped(t *testing.T) {
	stumbles := func(name string, scope event.Scope) projection.Projection[int] {
		return projection.Projection[int]{Name: name, Version: 1, Scope: scope, Apply: func(n *int, e *event.Event) error {
			if strings.Contains(string(e.Data), "stumble") {
				return errors.New("stumbled")
			}
			*n++
			return nil
		}}
	}
	set := projection.Of("test:stumbling", stumbles("test:a", event.PathScope), stumbles("test:b", event.SessionScope))
	body := `{"test:a":{"version":1,"state":%d},"test:b":{"version":1,"state":%d}}`
	onCounted(t, func(t *testing.T, g *garden.Garden, _ *counted) {
		claim := func(at int64, a, b int) int64 {
			return claim(g, "s", at, nil, func(s *event.Snapshot) {
				s.Projection, s.State, s.BodyDigest = set.Name, fmt.Appendf(nil, body, a, b), ""
				s.StateDigest = event.DigestOf(nil)
			})
		}
		bulk(g, "s", 2)
		g.Append("s", event.UserMessage("stumble"))
		claim(3, 7, 7)
		claim(1, 1, 1)
		g.Append("s", event.New(event.HeadMove{To: 2})) // 6
		bad := claim(6, 4, 4)
		report, err := projection.VerifySnapshots(garden.Bg, g.Log, "s", set)
		g.Allow(err)
		want := []wrongState{{5, "", "other_digest"}, {bad, "test:a", "other_state"}}
		if len(report.Findings) != 2 || report.Findings[0].Snapshot.Seq != want[0].seq || report.Findings[1].Part != want[1].part {
			t.Errorf("found %v", report.Findings)
		}
		garden.Same(t, "skipped", map[string]int64{"unfolded": 3}, report.Skipped)
		garden.Same(t, "checked", int64(3), report.Checked)
	})
}

// Sessions without snapshots are read and not folded. Other sessions are folded once,
// with any number of snapshots and rewinds.
func TestVerifyingSnapshotsIsLinear(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden.Garden, reads *counted) {
		bulk(g, "p", 50)
		_, err := fork.At(garden.Bg, g.Log, "p", fork.Head(), fork.Options{ID: "s", Force: true})
		g.Allow(err)
		bulk(g, "s", 10)
		reads.reset()
		checkFindings(g, "s")
		if reads.events > 11+2 {
			t.Errorf("read %d events of a session without snapshots", reads.events)
		}
		rounds := testsize.Pick[int64](20, 20, 60)
		for i := range rounds {
			bulk(g, "s", 5)
			g.Snapshot("s", garden.AllTraces, true)
			g.Append("s", event.New(event.HeadMove{To: 50 + i}))
		}
		reads.reset()
		checkFindings(g, "s")
		if most := 2*g.Head("s").Seq + 5*rounds + 20; reads.events > most {
			t.Errorf("read %d events, more than %d", reads.events, most)
		}
	})
}

func TestVerifySnapshotsErrors(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden.Garden, _ *counted) {
		verify := func(ctx context.Context, session string, sets ...projection.Set) error {
			_, err := projection.VerifySnapshots(ctx, g.Log, session, sets...)
			return err
		}
		bulk(g, "s", padded)
		good(g)
		if err := verify(garden.Bg, "none"); !errors.Is(err, eventlog.ErrNotFound) {
			t.Errorf("missing: %v", err)
		}
		if err := verify(garden.Bg, "s", projection.Set{}); !errors.Is(err, projection.ErrInvalidSet) {
			t.Errorf("a set without parts: %v", err)
		}
		ctx, cancel := context.WithCancel(garden.Bg)
		cancel()
		if err := verify(ctx, "s"); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled: %v", err)
		}
		g.Allow(g.Log.Close())
		if err := verify(garden.Bg, "s"); !errors.Is(err, eventlog.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}
