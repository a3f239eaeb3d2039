package projection_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/transfer"
)

// onGardens checks a law on random logs of each backend.
func onGardens(t *testing.T, law func(r *rapid.T, g *garden)) {
	for name, open := range backends {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				log := eventlog.Open(open(t.TempDir()))
				defer func() { _ = log.Close() }()
				law(r, plant(r, log, drawScript.Draw(r, "script")))
			})
		})
	}
}

func same(t failer, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// Law 1: a snapshot and its tail are a full replay, at every event, and both are
// what stands in the log.
func TestSnapshotAndTailAreAFullReplay(t *testing.T) {
	onGardens(t, func(r *rapid.T, g *garden) {
		for _, name := range g.names {
			lineage := g.lineage(name)
			for at := int64(1); at <= int64(len(lineage)); at++ {
				want := g.expected(at, lineage)
				resumed, _ := g.load(name, projection.Options{At: at})
				same(r, fmt.Sprintf("%s at %d", name, at), want, resumed)
				replayed, _ := g.load(name, projection.Options{At: at, Replay: true})
				same(r, fmt.Sprintf("replay of %s at %d", name, at), want, replayed)
			}
		}
	})
}

// Each part of a set is what it is alone.
func TestAPartOfASetIsItselfAlone(t *testing.T) {
	onGardens(t, func(r *rapid.T, g *garden) {
		for _, name := range g.names {
			want, _ := g.load(name, projection.Options{})
			path, err := projection.Load(bg, g.log, name, pathTrace)
			g.allow(err)
			same(r, "path of "+name, want.Path, path.State.Seen)
			session, err := projection.Load(bg, g.log, name, sessionTrace)
			g.allow(err)
			same(r, "session of "+name, want.Session, session.State.Seen)
		}
	})
}

// Law 2: redacting the bodies of all snapshots changes no state, and is reported.
func TestNothingDependsOnBodies(t *testing.T) {
	onGardens(t, func(r *rapid.T, g *garden) {
		before := map[string][]view{}
		for _, name := range g.names {
			for at := range g.head(name).Seq {
				v, _ := g.load(name, projection.Options{At: at + 1})
				before[name] = append(before[name], v)
			}
		}
		for _, name := range g.names {
			if bodies := g.bodies(name); len(bodies) > 0 {
				_, err := erase.Redact(bg, g.log, name, bodies, erase.RedactOptions{Reason: "bodies"})
				g.allow(err)
			}
		}
		for _, name := range g.names {
			for i, want := range before[name] {
				got, explain := g.load(name, projection.Options{At: int64(i + 1)})
				same(r, fmt.Sprintf("%s at %d", name, i+1), want, got)
				for _, part := range explain.Parts {
					if !part.From.IsZero() {
						r.Fatalf("%s of %s at %d begins from %+v", part.Projection, name, i+1, part.From)
					}
				}
			}
			_, explain := g.load(name, projection.Options{})
			same(r, "passed over in "+name, g.erasedBodies(name), passed(explain, projection.ErrRedactedBody))
		}
	})
}

// Law 3: a snapshot of a snapshot is the same again.
func TestSnapshotOfASnapshotIsTheSame(t *testing.T) {
	onGardens(t, func(r *rapid.T, g *garden) {
		both := traces[3]
		for _, name := range g.names {
			before, _ := g.load(name, projection.Options{})
			first := g.snapshot(name, both, true)
			second := g.snapshot(name, both, true)
			same(r, "digest", first.StateDigest, second.StateDigest)
			same(r, "body", first.BodyDigest, second.BodyDigest)
			same(r, "parent", first.SnapshotID, second.ParentSnapshotID)
			after, explain := g.load(name, projection.Options{})
			same(r, "path", before.Path, after.Path)
			same(r, "session", before.Session, after.Session)
			if want := g.head(name).Seq; explain.Parts[0].From.Seq != want || explain.Parts[1].From.Seq != want {
				r.Fatalf("%s begins from %+v, not from %d", name, explain.Parts, want)
			}
		}
	})
}

// Law 4: the same history gives the same states on all stores.
func TestStoresAgree(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		script := drawScript.Draw(r, "script")
		var gardens []*garden
		for _, open := range backends {
			log := eventlog.Open(open(t.TempDir()))
			defer func() { _ = log.Close() }()
			gardens = append(gardens, plant(r, log, script))
		}
		a, b := gardens[0], gardens[1]
		same(r, "sessions", a.names, b.names)
		for _, name := range a.names {
			same(r, "head of "+name, a.head(name).Seq, b.head(name).Seq)
			for at := range a.head(name).Seq {
				va, xa := a.load(name, projection.Options{At: at + 1})
				vb, xb := b.load(name, projection.Options{At: at + 1})
				same(r, fmt.Sprintf("%s at %d", name, at+1), va, vb)
				same(r, "parts", xa.Parts, xb.Parts)
				same(r, "events read", xa.Events, xb.Events)
			}
		}
	})
}

// Law 5: a fork has its parent's states at the fork point.
func TestAForkHasItsParentsStates(t *testing.T) {
	onGardens(t, func(r *rapid.T, g *garden) {
		for _, name := range g.names {
			parent, ok, err := fork.Parent(bg, g.log, name)
			if g.allow(err); !ok || parent.Seq == 0 {
				continue
			}
			for at := range parent.Seq {
				want, _ := g.load(parent.Session, projection.Options{At: at + 1})
				got, _ := g.load(name, projection.Options{At: at + 1})
				same(r, fmt.Sprintf("%s and its fork %s at %d", parent.Session, name, at+1), want, got)
			}
		}
	})
}

// Law 5: a copy has the states of its original, and uses none of its bodies.
func TestACopyHasItsOriginalsStates(t *testing.T) {
	onGardens(t, func(r *rapid.T, g *garden) {
		for _, name := range g.names {
			c, err := fork.Copy(bg, g.log, name, fork.CopyOptions{ID: "copy-" + name})
			g.allow(err)
			for at := range g.head(name).Seq {
				want, _ := g.load(name, projection.Options{At: at + 1})
				got, explain := g.load(c.ID, projection.Options{At: at + 1})
				same(r, fmt.Sprintf("copy of %s at %d", name, at+1), want, got)
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
	onGardens(t, func(r *rapid.T, g *garden) {
		var text bytes.Buffer
		g.allow(transfer.Export(bg, g.log, &text, g.names...))
		to := rapid.SampledFrom(slices.Sorted(maps.Keys(backends))).Draw(r, "to")
		log := eventlog.Open(backends[to](t.TempDir()))
		defer func() { _ = log.Close() }()
		_, err := transfer.Import(bg, log, &text)
		g.allow(err)
		there := &garden{t: r, log: log, names: g.names}
		for _, name := range g.names {
			same(r, "lineage of "+name, g.ancestors(name), there.ancestors(name))
			for at := range g.head(name).Seq {
				want, here := g.load(name, projection.Options{At: at + 1})
				got, explain := there.load(name, projection.Options{At: at + 1})
				same(r, fmt.Sprintf("%s at %d", name, at+1), want, got)
				same(r, "parts", here.Parts, explain.Parts)
			}
		}
	})
}

func (g *garden) ancestors(name string) []fork.Ancestor {
	g.t.Helper()
	list, err := fork.Lineage(bg, g.log, name)
	g.allow(err)
	return list
}

// bodies are the snapshots with a body that a session holds itself.
func (g *garden) bodies(name string) (seqs []int64) {
	g.t.Helper()
	for s, err := range projection.Snapshots(bg, g.log, name, true) {
		g.allow(err)
		if !s.Snapshot.IsMark() && s.Event.SessionID == name {
			seqs = append(seqs, s.Event.Seq)
		}
	}
	return seqs
}

// erasedBodies are the snapshots of a session that had a body before it was
// redacted, newest first.
func (g *garden) erasedBodies(name string) (seqs []int64) {
	g.t.Helper()
	for s, err := range projection.Snapshots(bg, g.log, name, true) {
		g.allow(err)
		if s.Event.Redacted() && s.Snapshot.BodyDigest != "" {
			seqs = append(seqs, s.Event.Seq)
		}
	}
	return seqs
}

// passed are the seqs of the snapshots that were passed over for a reason.
func passed(x projection.Explain, why error) (seqs []int64) {
	for _, p := range x.Passed {
		if errors.Is(p.Err, why) {
			seqs = append(seqs, p.Seq)
		}
	}
	return seqs
}
