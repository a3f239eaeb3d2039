package projection_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/transfer"
)

// Law 1: at every event, a snapshot and its tail equal a full replay, and both equal
// the traces of the log.
func TestSnapshotAndTailAreAFullReplay(t *testing.T) {
	garden.OnGardens(t, func(r *rapid.T, g *garden.Garden) {
		for _, name := range g.Names {
			lineage := g.Lineage(name)
			for at := int64(1); at <= int64(len(lineage)); at++ {
				want := g.Expected(at, lineage)
				resumed, _ := g.Load(name, projection.Options{At: at})
				garden.Same(r, fmt.Sprintf("%s at %d", name, at), want, resumed)
				replayed, _ := g.Load(name, projection.Options{At: at, Replay: true})
				garden.Same(r, fmt.Sprintf("replay of %s at %d", name, at), want, replayed)
			}
		}
	})
}

// A part of a set equals a load of the part alone.
func TestAPartOfASetEqualsAnOwnLoad(t *testing.T) {
	garden.OnGardens(t, func(r *rapid.T, g *garden.Garden) {
		for _, name := range g.Names {
			want, _ := g.Load(name, projection.Options{})
			path, err := projection.Load(garden.Bg, g.Log, name, garden.PathTrace)
			g.Allow(err)
			garden.Same(r, "path of "+name, want.Path, path.State.Seen)
			session, err := projection.Load(garden.Bg, g.Log, name, garden.SessionTrace)
			g.Allow(err)
			garden.Same(r, "session of "+name, want.Session, session.State.Seen)
		}
	})
}

// Law 2: redacting the bodies of all snapshots changes no state, and Explain reports
// it.
func TestStatesDoNotDependOnBodies(t *testing.T) {
	garden.OnGardens(t, func(r *rapid.T, g *garden.Garden) {
		before := map[string][]garden.View{}
		for _, name := range g.Names {
			for at := range g.Head(name).Seq {
				v, _ := g.Load(name, projection.Options{At: at + 1})
				before[name] = append(before[name], v)
			}
		}
		for _, name := range g.Names {
			if bodies := bodies(g, name); len(bodies) > 0 {
				_, err := erase.Redact(garden.Bg, g.Log, name, bodies, erase.RedactOptions{Reason: "bodies"})
				g.Allow(err)
			}
		}
		for _, name := range g.Names {
			for i, want := range before[name] {
				got, explain := g.Load(name, projection.Options{At: int64(i + 1)})
				garden.Same(r, fmt.Sprintf("%s at %d", name, i+1), want, got)
				for _, part := range explain.Parts {
					if !part.From.IsZero() {
						r.Fatalf("%s of %s at %d begins from %+v", part.Projection, name, i+1, part.From)
					}
				}
			}
			_, explain := g.Load(name, projection.Options{})
			garden.Same(r, "skipped in "+name, erasedBodies(g, name), skipped(explain, "redacted"))
		}
	})
}

// Law 3: a snapshot of a state from a snapshot equals that snapshot.
func TestSnapshotOfASnapshotIsTheSame(t *testing.T) {
	garden.OnGardens(t, func(r *rapid.T, g *garden.Garden) {
		both := garden.Traces[3]
		for _, name := range g.Names {
			before, _ := g.Load(name, projection.Options{})
			first := g.Snapshot(name, both, true)
			second := g.Snapshot(name, both, true)
			garden.Same(r, "digest", first.StateDigest, second.StateDigest)
			garden.Same(r, "body", first.BodyDigest, second.BodyDigest)
			garden.Same(r, "parent", first.SnapshotID, second.ParentSnapshotID)
			after, explain := g.Load(name, projection.Options{})
			garden.Same(r, "path", before.Path, after.Path)
			garden.Same(r, "session", before.Session, after.Session)
			if want := g.Head(name).Seq; explain.Parts[0].From.Seq != want || explain.Parts[1].From.Seq != want {
				r.Fatalf("%s begins from %+v, not from %d", name, explain.Parts, want)
			}
		}
	})
}

// Law 5: a fork has its parent's states at the fork point.
func TestAForkHasItsParentsStates(t *testing.T) {
	garden.OnGardens(t, func(r *rapid.T, g *garden.Garden) {
		for _, name := range g.Names {
			var parent eventlog.Ancestor
			for a, err := range g.Log.Ancestors(garden.Bg, name) {
				g.Allow(err)
				parent = a
				break
			}
			if parent.Through.Seq == 0 {
				continue
			}
			for at := range parent.Through.Seq {
				want, _ := g.Load(parent.Session, projection.Options{At: at + 1})
				got, _ := g.Load(name, projection.Options{At: at + 1})
				garden.Same(r, fmt.Sprintf("%s and its fork %s at %d", parent.Session, name, at+1), want, got)
			}
		}
	})
}

// Law 5: a copy has the states of its original, and uses none of its bodies.
func TestACopyHasItsOriginalsStates(t *testing.T) {
	garden.OnGardens(t, func(r *rapid.T, g *garden.Garden) {
		for _, name := range g.Names {
			c, err := fork.Copy(garden.Bg, g.Log, name, fork.CopyOptions{ID: "copy-" + name})
			g.Allow(err)
			for at := range g.Head(name).Seq {
				want, _ := g.Load(name, projection.Options{At: at + 1})
				got, explain := g.Load(c.ID, projection.Options{At: at + 1})
				garden.Same(r, fmt.Sprintf("copy of %s at %d", name, at+1), want, got)
				for _, part := range explain.Parts {
					if !part.From.IsZero() {
						r.Fatalf("the copy of %s uses a body of its original: %+v", name, part)
					}
				}
			}
		}
	})
}

// Law 5: a tree that was exported and imported has its states and its lineage.
func TestAnImportedTreeHasItsStates(t *testing.T) {
	garden.OnGardens(t, func(r *rapid.T, g *garden.Garden) {
		var text bytes.Buffer
		g.Allow(transfer.Export(garden.Bg, g.Log, &text, g.Names...))
		to := rapid.SampledFrom(slices.Sorted(maps.Keys(garden.Backends))).Draw(r, "to")
		log := eventlog.Open(garden.Backends[to](t.TempDir()))
		defer func() { _ = log.Close() }()
		_, err := transfer.Import(garden.Bg, log, &text)
		g.Allow(err)
		there := &garden.Garden{T: r, Log: log, Names: g.Names}
		for _, name := range g.Names {
			garden.Same(r, "lineage of "+name, ancestors(g, name), ancestors(there, name))
			for at := range g.Head(name).Seq {
				want, here := g.Load(name, projection.Options{At: at + 1})
				got, explain := there.Load(name, projection.Options{At: at + 1})
				garden.Same(r, fmt.Sprintf("%s at %d", name, at+1), want, got)
				garden.Same(r, "parts", here.Parts, explain.Parts)
			}
		}
	})
}

// Snapshots yields the snapshots that a walk through all events finds, whatever rewinds, forks and
// redactions there are.
func TestSnapshotsAreTheSnapshotsOfAWalk(t *testing.T) {
	garden.OnGardens(t, func(r *rapid.T, g *garden.Garden) {
		for _, name := range g.Names {
			path, err := g.Log.Path(garden.Bg, name, 0)
			g.Allow(err)
			var all, active []int64
			for e, err := range g.Log.Read(garden.Bg, name, eventlog.All().Backward()) {
				g.Allow(err)
				if e.Type.Name() != event.ProjectionSnapshotted {
					continue
				}
				all = append(all, e.Seq)
				if path.Has(e.Seq) {
					active = append(active, e.Seq)
				}
			}
			for orphaned, want := range map[bool][]int64{true: all, false: active} {
				var got []int64
				for s, err := range projection.Snapshots(garden.Bg, g.Log, name, orphaned) {
					g.Allow(err)
					got = append(got, s.Event.Seq)
					garden.Same(r, "orphaned", !path.Has(s.Event.Seq), s.Orphaned)
				}
				garden.Same(r, "snapshots of "+name, want, got)
			}
		}
	})
}

func ancestors(g *garden.Garden, name string) (list []eventlog.Ancestor) {
	g.T.Helper()
	for a, err := range g.Log.Ancestors(garden.Bg, name) {
		g.Allow(err)
		list = append(list, a)
	}
	return list
}

// bodies returns the session's own snapshots with a body.
func bodies(g *garden.Garden, name string) (seqs []int64) {
	g.T.Helper()
	for s, err := range projection.Snapshots(garden.Bg, g.Log, name, true) {
		g.Allow(err)
		if !s.Snapshot.IsMark() && s.Event.SessionID == name {
			seqs = append(seqs, s.Event.Seq)
		}
	}
	return seqs
}

// erasedBodies returns the snapshots of a session whose body was redacted, newest
// first.
func erasedBodies(g *garden.Garden, name string) (seqs []int64) {
	g.T.Helper()
	for s, err := range projection.Snapshots(garden.Bg, g.Log, name, true) {
		g.Allow(err)
		if s.Event.Redacted() {
			seqs = append(seqs, s.Event.Seq)
		}
	}
	return seqs
}

// skipped returns the seqs of the snapshots that were skipped for a reason.
func skipped(x projection.Explain, reason string) (seqs []int64) {
	for _, p := range x.Skipped {
		if p.Reason == reason {
			seqs = append(seqs, p.Snapshot.Seq)
		}
	}
	return seqs
}
