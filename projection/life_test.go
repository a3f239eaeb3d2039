package projection_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/upkeep/erase"
)

// life is a garden in which agents work: it has every kind of event that the
// projections of this package fold.
type life struct {
	*garden
	turns   map[string]ulid.ULID
	effects []string
	copies  []string
}

// everything is a set of all projections of this package.
var everything = func() projection.Set {
	var parts []projection.Part
	for _, name := range projection.Names() {
		p, err := projection.ByName(name)
		if err != nil {
			panic(err)
		}
		parts = append(parts, p)
	}
	return projection.Of("everything", parts...)
}()

// lifeSets are what snapshots are taken of.
var lifeSets = []projection.Set{everything, projection.Session, projection.Of("", projection.Usage), projection.Of("", projection.Custom)}

type act struct{ do, session, a, b int }

var acts = []string{"turn", "turn", "end", "step", "answer", "answer", "piece", "part", "tool", "patch", "patch", "set", "artifact", "intend",
	"complete", "approve", "wait", "child", "claim", "title", "rewind", "recover", "fork", "copy", "compact", "snapshot", "snapshot", "redact", "say"}

var drawActs = rapid.SliceOfN(rapid.Custom(func(r *rapid.T) act {
	return act{
		do:      rapid.IntRange(0, len(acts)-1).Draw(r, "do"),
		session: rapid.IntRange(0, 2).Draw(r, "session"),
		a:       rapid.IntRange(0, 50).Draw(r, "a"),
		b:       rapid.IntRange(0, 5).Draw(r, "b"),
	}
}), 5, 40)

// onLives checks a law on random lives in each store.
func onLives(t *testing.T, law func(r *rapid.T, l *life)) {
	for name, open := range backends {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				log := eventlog.Open(open(t.TempDir()))
				defer func() { _ = log.Close() }()
				law(r, live(r, log, drawActs.Draw(r, "acts")))
			})
		})
	}
}

func live(t failer, log *eventlog.Log, script []act) *life {
	l := &life{garden: &garden{t: t, log: log, names: []string{"s0"}}, turns: map[string]ulid.ULID{}}
	l.append("s0", event.New(event.Session{Title: "first", Agent: "a0"}))
	for _, a := range script {
		l.act(a)
	}
	return l
}

func (l *life) act(a act) {
	l.t.Helper()
	name := l.names[a.session%len(l.names)]
	switch do := acts[a.do]; do {
	case "turn", "end", "step", "answer", "piece", "part", "tool", "say":
		l.talk(name, do, a)
	case "patch", "set", "artifact", "title":
		l.keep(name, do, a)
	case "intend", "complete", "approve", "wait", "child", "claim":
		l.work(name, do, a)
	default:
		l.grow(name, do, a)
	}
}

func (l *life) talk(name, do string, a act) {
	usage := event.Usage{InputTokens: int64(a.a), OutputTokens: int64(a.b)}
	switch do {
	case "say":
		l.append(name, event.UserMessage(fmt.Sprint("word ", a.a)))
	case "turn":
		turn := event.New(event.TurnStart{Index: a.a, Agent: fmt.Sprint("a", a.b%2)})
		l.turns[name] = turn.ID
		l.append(name, event.UserMessage("do it"), turn)
	case "end":
		status := []event.TurnStatus{event.TurnStatusCompleted, event.TurnStatusFailed}[a.b%2]
		l.append(name, event.New(event.TurnCompletion{TurnID: l.turns[name], Status: status, Usage: usage}))
	case "step":
		l.append(name, event.New(event.StepStart{Step: a.b, TurnID: l.turns[name], Model: "m1"}))
		if a.a%2 == 0 {
			l.append(name, event.New(event.StepCompletion{Step: a.b, TurnID: l.turns[name], Usage: usage}))
		}
	case "answer", "piece", "part":
		m := event.Message{Role: event.Assistant, Model: fmt.Sprint("m", a.b%2), Usage: usage, Parts: []event.Part{event.Text("so")}}
		if do == "piece" {
			m.Group = fmt.Sprint("g", a.a%3)
		} else if do == "part" {
			m.ResponseID = fmt.Sprint("r", a.a%3)
		}
		e := event.New(m)
		e.Cost = event.Cost(a.a * a.b)
		l.append(name, e)
	case "tool":
		id := fmt.Sprint("call", len(l.calls))
		l.calls = append(l.calls, id)
		part := event.ToolCall(id, "tool", nil)
		l.append(name, event.New(event.Message{Role: event.Assistant, Parts: []event.Part{part}}),
			event.New(event.ToolStart{CallID: id, Name: "tool", IdempotencyKey: "k" + id}))
		if a.b > 1 {
			l.append(name, event.New(event.ToolCompletion{CallID: id, Name: "tool", IsError: a.b > 3}))
		}
		if a.b > 2 {
			l.append(name, event.ToolOutput(id, "tool", []byte("done"), false))
		}
	}
}

func (l *life) keep(name, do string, a act) {
	switch do {
	case "patch":
		ops := fmt.Sprintf(`[{"op":"add","path":"/k%d","value":%d}]`, a.b, a.a)
		if a.a%5 == 0 { // by a program that does not ask whether it applies
			l.append(name, event.New(event.CustomPatch{StateVersion: a.b, Patch: []byte(ops)}))
			return
		}
		_, _, err := projection.Patch(bg, l.log, name, event.CustomPatch{Patch: []byte(ops)})
		l.allow(err, projection.ErrNoTarget)
	case "set":
		_, _, err := projection.SetState(bg, l.log, name, "", a.b, map[string]int{"n": a.a})
		l.allow(err)
	case "artifact":
		names := []string{"", "report", "plan"}
		l.append(name, event.New(event.Artifact{ArtifactID: fmt.Sprint("art", a.a%4), Name: names[a.b%3], Kind: "file"}))
	case "title":
		text := fmt.Sprint(a.a)
		labels := event.Labels{fmt.Sprint("l", a.b%2): &text}
		if a.a%3 == 0 {
			labels["l0"] = nil
		}
		l.append(name, event.New(event.Session{State: event.SessionStateUpdated, Title: fmt.Sprint("title ", a.b), Labels: labels}))
	}
}

func (l *life) work(name, do string, a act) {
	cost := func(e event.Event) event.Event {
		e.Cost = event.Cost(a.a)
		return e
	}
	switch do {
	case "intend":
		key := fmt.Sprint("effect", len(l.effects))
		l.effects = append(l.effects, key)
		kind := []string{"model", "tool", "mail"}[a.b%3]
		l.append(name, event.New(event.EffectIntent{Key: key, TurnID: l.turns[name], Kind: kind, Class: event.EffectPure}))
	case "complete":
		if len(l.effects) > 0 {
			x := event.EffectCompletion{Key: l.effects[a.a%len(l.effects)], TurnID: l.turns[name], Usage: event.Usage{OutputTokens: int64(a.b)}}
			l.append(name, cost(event.New(x)))
		}
	case "approve":
		id := fmt.Sprint("i", a.a%3)
		if a.b%2 == 0 {
			l.append(name, event.New(event.ApprovalRequest{InterruptID: id, Name: "pay"}))
		} else {
			l.append(name, event.New(event.ApprovalResolution{InterruptID: id, Decision: event.Approved}))
		}
	case "wait":
		if id := fmt.Sprint("w", a.a%3); a.b%2 == 0 {
			l.append(name, event.New(event.Wait{WaitID: id}))
		} else {
			l.append(name, event.New(event.Wait{State: event.WaitStateResolved, WaitID: id}))
		}
	case "child":
		c := event.Child{ChildID: fmt.Sprint("c", a.a%3), Usage: event.Usage{InputTokens: int64(a.a)}}
		if a.b == 1 {
			c.ChildSessionID = fmt.Sprint("child", a.a%3)
		}
		c.State = []event.ChildState{event.ChildStateRequested, event.ChildStateStarted, event.ChildStateProgressed,
			event.ChildStateCompleted, event.ChildStateFailed, event.ChildStateMerged}[a.b]
		l.append(name, cost(event.New(c)))
	case "claim":
		if a.b == 0 {
			l.append(name, event.New(event.RunRelease{Epoch: int64(a.a) + 1}))
		} else {
			l.append(name, event.New(event.RunClaim{Epoch: int64(a.a) + 1, Runner: "r"}))
		}
	}
}

func (l *life) grow(name, do string, a act) {
	at := int64(a.a) % (l.head(name).Seq + 1)
	switch do {
	case "rewind":
		l.append(name, event.New(event.HeadMove{To: at, Label: fmt.Sprint("left ", a.b)}))
	case "recover":
		_, err := fork.Recover(bg, l.log, name, fork.RewindOptions{})
		l.allow(err, fork.ErrNothingOrphaned)
	case "fork":
		id := fmt.Sprint("s", len(l.names))
		_, err := fork.At(bg, l.log, name, fork.AtSeq(at), fork.Options{ID: id, Force: true})
		if l.allow(err, fork.ErrInsideAppend); err == nil {
			l.names, l.turns[id] = append(l.names, id), l.turns[name]
		}
	case "copy":
		if len(l.names) < 5 {
			c, err := fork.Copy(bg, l.log, name, fork.CopyOptions{ID: fmt.Sprint("s", len(l.names))})
			l.allow(err)
			l.names, l.turns[c.ID] = append(l.names, c.ID), l.turns[name]
			l.copies = append(l.copies, c.ID)
		}
	case "compact":
		c := event.Compaction{Covers: event.Covers{From: max(at-int64(a.b), 1), To: max(at, 1)}, Summary: fmt.Sprint("summary ", a.a)}
		_, err := projection.Compact(bg, l.log, name, c)
		l.allow(err, projection.ErrSplitPair, projection.ErrNotInHistory)
	case "snapshot":
		l.snapshot(name, lifeSets[a.b%len(lifeSets)], true)
	case "redact":
		_, err := erase.Redact(bg, l.log, name, []int64{at}, erase.RedactOptions{Reason: "test"})
		l.allow(err, event.ErrInvalidType, event.ErrInvalidTree, eventlog.ErrEventNotFound)
	}
}

// states are all states of a session as of an event, as JSON.
func (l *life) states(name string, opts projection.Options) map[string]string {
	l.t.Helper()
	loaded, err := projection.LoadSet(bg, l.log, name, everything, opts)
	if err != nil {
		l.t.Fatalf("load %s at %d: %v", name, opts.At, err)
	}
	return l.statesOf(loaded)
}

func (l *life) statesOf(loaded *projection.Loaded) map[string]string {
	l.t.Helper()
	all := map[string]string{}
	for _, part := range projection.Names() {
		state, err := projection.StateJSON(loaded, part)
		l.allow(err)
		all[part] = string(state)
	}
	return all
}

func TestBuiltinSnapshotAndTailAreAFullReplay(t *testing.T) {
	onLives(t, func(r *rapid.T, l *life) {
		for _, name := range l.names {
			for at := range l.head(name).Seq {
				want := l.states(name, projection.Options{At: at + 1, Replay: true})
				same(r, fmt.Sprintf("%s at %d", name, at+1), want, l.states(name, projection.Options{At: at + 1}))
			}
		}
	})
}

func TestNoBuiltinDependsOnBodies(t *testing.T) {
	onLives(t, func(r *rapid.T, l *life) {
		before := map[string]map[string]string{}
		for _, name := range l.names {
			before[name] = l.states(name, projection.Options{})
		}
		for _, name := range l.names {
			if bodies := l.bodies(name); len(bodies) > 0 {
				_, err := erase.Redact(bg, l.log, name, bodies, erase.RedactOptions{Reason: "bodies"})
				l.allow(err)
			}
		}
		for _, name := range l.names {
			same(r, name, before[name], l.states(name, projection.Options{}))
		}
	})
}

func TestCostsAddUp(t *testing.T) {
	onLives(t, func(r *rapid.T, l *life) {
		for _, name := range l.names {
			c, err := projection.LoadCost(bg, l.log, name)
			l.allow(err)
			usage, err := projection.Load(bg, l.log, name, projection.Usage)
			l.allow(err)
			same(r, "total", usage.State.Total, c.Own)
			var own, path, shared event.Cost
			onPath, err := l.log.Path(bg, name)
			l.allow(err)
			for _, e := range l.lineage(name) {
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
			same(r, "costs of "+name, []event.Cost{own, path, shared, own - path + shared},
				[]event.Cost{c.Own.Cost, c.Path.Cost, c.Inherited.Cost, c.Orphaned.Cost})
			same(r, "by model", c.Own, sum(c.ByModel))
			same(r, "by agent", c.Own, sum(c.ByAgent))
			run, err := projection.LoadRuns(bg, l.log, name)
			l.allow(err)
			same(r, "run of "+name, c.Own, run.Totals.Own)
			same(r, "accounting of "+name, c.Own, accounted(run))
			stats, err := projection.LoadStats(bg, l.log, name, nil)
			l.allow(err)
			same(r, "spent by "+name, c.Own, stats.Total.Spend)
			if l.lineage(name)[0].SessionID == name && !slices.Contains(l.copies, name) { // those may go on with a turn
				same(r, "turns of "+name, begun(run), stats.Total.Turns)
			}
		}
		var all, trees projection.Spend
		for _, name := range l.names {
			c, err := projection.LoadCost(bg, l.log, name)
			l.allow(err)
			all = all.Add(c.Own)
		}
		for _, root := range append([]string{"s0"}, l.copies...) { // a copy is no fork
			tree, err := projection.LoadTreeCost(bg, l.log, root)
			l.allow(err)
			trees = trees.Add(tree.Total)
		}
		same(r, "trees", all, trees)
	})
}

// begun counts the turns that a session began itself, and the exchanges that
// none of them took over.
func begun(run *projection.Run) (n int64) {
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
func accounted(run *projection.Run) (s projection.Spend) {
	add := func(list []projection.Accounting) {
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
	onLives(t, func(r *rapid.T, l *life) {
		for _, name := range l.names {
			c, err := fork.Copy(bg, l.log, name, fork.CopyOptions{ID: "copy-" + name})
			l.allow(err)
			original, err := projection.LoadSet(bg, l.log, name, projection.Session)
			l.allow(err)
			copied, err := projection.LoadSet(bg, l.log, c.ID, projection.Session)
			l.allow(err)
			want, err := original.Digest()
			l.allow(err)
			got, err := copied.Digest()
			l.allow(err)
			same(r, "content of "+c.ID, want, got)
			for _, part := range []string{"branches", "calls"} {
				if part == "branches" {
					wantState, _ := projection.State(original, projection.Branches)
					gotState, _ := projection.State(copied, projection.Branches)
					same(r, part, wantState, gotState)
				}
			}
			same(r, "effects of "+name, l.effectsOf(name), l.effectsOf(c.ID))
			l.spentNothing(r, c.ID)
			l.redactAll(c.ID)
			l.spentNothing(r, c.ID)
			again, err := fork.Copy(bg, l.log, c.ID, fork.CopyOptions{ID: "again-" + name})
			l.allow(err)
			l.spentNothing(r, again.ID)
			same(r, "effects of the copy's copy", l.effectsOf(name), l.effectsOf(again.ID))
		}
	})
}

func (l *life) spentNothing(t failer, name string) {
	cost, err := projection.LoadCost(bg, l.log, name)
	l.allow(err)
	same(t, "own cost of "+name, projection.Spend{}, cost.Own)
}

// effectsOf are the effects of a session without result, then those with one, by
// what a copy has too.
func (l *life) effectsOf(name string) [2]map[int64]string {
	l.t.Helper()
	v, err := projection.Load(bg, l.log, name, projection.Control)
	l.allow(err)
	open, done := map[int64]string{}, map[int64]string{}
	for _, o := range v.State.Effects {
		open[o.Seq] = o.Key
	}
	for _, d := range v.State.Done {
		done[d.Completed] = d.Key
	}
	return [2]map[int64]string{open, done}
}

// redactAll redacts what a session has that can be.
func (l *life) redactAll(name string) {
	l.t.Helper()
	for _, e := range l.lineage(name) {
		if e.SessionID == name && !e.Redacted() {
			_, err := erase.Redact(bg, l.log, name, []int64{e.Seq}, erase.RedactOptions{Reason: "test"})
			l.allow(err, event.ErrInvalidType)
		}
	}
}

// What was spent stays so when what it was spent on is redacted.
func TestRedactionChangesNoCost(t *testing.T) {
	onLives(t, func(r *rapid.T, l *life) {
		for _, name := range l.names {
			before, err := projection.LoadCost(bg, l.log, name)
			l.allow(err)
			l.redactAll(name)
			after, err := projection.LoadCost(bg, l.log, name)
			l.allow(err)
			same(r, "own cost of "+name, before.Own, after.Own)
			same(r, "by model", before.ByModel, after.ByModel)
			same(r, "by agent", before.ByAgent, after.ByAgent)
		}
	})
}

// within reports whether a seq is in one of the stretches.
func within(path []event.Stretch, seq int64) bool {
	return slices.ContainsFunc(path, func(s event.Stretch) bool { return s.From <= seq && seq <= s.To })
}
