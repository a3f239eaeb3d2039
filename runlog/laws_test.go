package runlog_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog"
	"github.com/convlog/convlog/runlog/stats"
)

func TestCostsAddUp(t *testing.T) {
	garden.OnLives(t, func(r *rapid.T, l *garden.Life) {
		for _, name := range l.Names {
			c, err := stats.LoadCost(garden.Bg, l.Log, name)
			l.Allow(err)
			usage, err := projection.Load(garden.Bg, l.Log, name, projection.Usage())
			l.Allow(err)
			garden.Same(r, "total", usage.State.Total, c.Own)
			var own, path, shared event.Cost
			onPath, err := l.Log.Path(garden.Bg, name, 0)
			l.Allow(err)
			for _, e := range l.Lineage(name) {
				_, inherited := e.MetadataValue("inherited")
				inherited = inherited || e.SessionID != name
				if !inherited {
					own += e.Cost
				}
				if within(onPath, e.Seq) {
					path += e.Cost
					if inherited {
						shared += e.Cost
					}
				}
			}
			garden.Same(r, "costs of "+name, []event.Cost{own, path, shared, own - path + shared},
				[]event.Cost{c.Own.Cost, c.Path.Cost, c.Inherited.Cost, c.Orphaned.Cost})
			garden.Same(r, "by model", c.Own, sum(c.ByModel))
			garden.Same(r, "by agent", c.Own, sum(c.ByAgent))
			run, err := runlog.Load(garden.Bg, l.Log, name)
			l.Allow(err)
			garden.Same(r, "run of "+name, c.Own, run.Totals.Own)
			garden.Same(r, "accounting of "+name, c.Own, accounted(run))
			stats, err := stats.Load(garden.Bg, l.Log, name)
			l.Allow(err)
			garden.Same(r, "spent by "+name, c.Own, stats.Total.Spend)
			if l.Lineage(name)[0].SessionID == name && !slices.Contains(l.Copies, name) { // those may go on with a turn
				garden.Same(r, "turns of "+name, ownTurns(run), stats.Total.Turns)
			}
		}
		var all, trees projection.Spend
		for _, name := range l.Names {
			c, err := stats.LoadCost(garden.Bg, l.Log, name)
			l.Allow(err)
			all = all.Add(c.Own)
		}
		for _, root := range append([]string{"s0"}, l.Copies...) { // a copy is no fork
			tree, err := stats.LoadTreeCost(garden.Bg, l.Log, root)
			l.Allow(err)
			trees = trees.Add(tree.Total)
		}
		garden.Same(r, "trees", all, trees)
	})
}

// ownTurns counts the turns that a session began itself, and the exchanges without a
// turn.
func ownTurns(run *runlog.Run) (n int64) {
	taken := map[int64]bool{}
	for _, t := range run.Turns {
		taken[t.From] = taken[t.From] || !t.ID.IsZero()
	}
	for _, t := range run.Turns {
		if !t.Inherited && (!t.ID.IsZero() || !taken[t.From]) {
			n++
		}
	}
	return n
}

func sum(parts map[string]projection.Spend) (s projection.Spend) {
	for _, p := range parts {
		s = s.Add(p)
	}
	return s
}

// accounted is the sum of all entries of a run.
func accounted(run *runlog.Run) (s projection.Spend) {
	add := func(list []runlog.Accounting) {
		for _, a := range list {
			s = s.Add(a.Spend)
		}
	}
	ops := slices.Clone(run.Ops)
	add(run.Accounting)
	for _, t := range run.Turns {
		ops = append(ops, t.Ops...)
		add(t.Accounting)
	}
	for _, op := range ops {
		add(op.Accounting)
	}
	return s
}

func TestACopyHasTheContentOfItsOriginal(t *testing.T) {
	garden.OnLives(t, func(r *rapid.T, l *garden.Life) {
		for _, name := range l.Names {
			c, err := fork.Copy(garden.Bg, l.Log, name, fork.CopyOptions{ID: "copy-" + name})
			l.Allow(err)
			original, err := projection.LoadSet(garden.Bg, l.Log, name, projection.Session())
			l.Allow(err)
			copied, err := projection.LoadSet(garden.Bg, l.Log, c.ID, projection.Session())
			l.Allow(err)
			want, err := original.Digest()
			l.Allow(err)
			got, err := copied.Digest()
			l.Allow(err)
			garden.Same(r, "content of "+c.ID, want, got)
			for _, part := range []string{"branches", "calls"} {
				if part == "branches" {
					wantState, _ := projection.State(original, projection.Branches())
					gotState, _ := projection.State(copied, projection.Branches())
					garden.Same(r, part, wantState, gotState)
				}
			}
			garden.Same(r, "effects of "+name, l.EffectsOf(name), l.EffectsOf(c.ID))
			spentNothing(r, l, c.ID)
			l.RedactAll(c.ID)
			spentNothing(r, l, c.ID)
			again, err := fork.Copy(garden.Bg, l.Log, c.ID, fork.CopyOptions{ID: "again-" + name})
			l.Allow(err)
			spentNothing(r, l, again.ID)
			garden.Same(r, "effects of the copy's copy", l.EffectsOf(name), l.EffectsOf(again.ID))
		}
	})
}

// A redaction changes no cost.
func TestRedactionChangesNoCost(t *testing.T) {
	garden.OnLives(t, func(r *rapid.T, l *garden.Life) {
		for _, name := range l.Names {
			before, err := stats.LoadCost(garden.Bg, l.Log, name)
			l.Allow(err)
			l.RedactAll(name)
			after, err := stats.LoadCost(garden.Bg, l.Log, name)
			l.Allow(err)
			garden.Same(r, "own cost of "+name, before.Own, after.Own)
			garden.Same(r, "by model", before.ByModel, after.ByModel)
			garden.Same(r, "by agent", before.ByAgent, after.ByAgent)
		}
	})
}

// within reports whether a seq is in one of the stretches.
func within(path []event.Stretch, seq int64) bool {
	return slices.ContainsFunc(path, func(s event.Stretch) bool { return s.From <= seq && seq <= s.To })
}

func spentNothing(t garden.Failer, l *garden.Life, name string) {
	cost, err := stats.LoadCost(garden.Bg, l.Log, name)
	l.Allow(err)
	garden.Same(t, "own cost of "+name, projection.Spend{}, cost.Own)
}
