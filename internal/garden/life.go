package garden

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/upkeep/erase"
)

// Life is a garden with agents. Its scripts write every kind of event that the
// projections fold.
type Life struct {
	*Garden
	turns   map[string]ulid.ULID
	effects []string
	Copies  []string
}

// Everything is a set of all built-in projections.
var Everything = func() projection.Set {
	var parts []projection.Part
	for _, name := range projection.Names() {
		p, err := projection.ByName(name)
		if err != nil {
			panic(err)
		}
		parts = append(parts, p)
	}
	return projection.Of("test:everything", parts...)
}()

// LifeSets are the projection sets of a life's snapshots.
var LifeSets = []projection.Set{Everything, projection.Session(), projection.Of("", projection.Usage()), projection.Of("", projection.Custom())}

type act struct{ do, session, a, b int }

var acts = []string{"turn", "turn", "end", "step", "answer", "answer", "piece", "part", "tool", "patch", "patch", "set", "artifact", "intend",
	"complete", "complete", "approve", "approve", "wait", "child", "claim", "claim", "hibernate", "post", "post", "abort", "title", "rewind", "recover", "fork", "copy", "compact", "snapshot", "snapshot", "redact", "say"}

var DrawActs = rapid.SliceOfN(rapid.Custom(func(r *rapid.T) act {
	return act{
		do:      rapid.IntRange(0, len(acts)-1).Draw(r, "do"),
		session: rapid.IntRange(0, 2).Draw(r, "session"),
		a:       rapid.IntRange(0, 50).Draw(r, "a"),
		b:       rapid.IntRange(0, 5).Draw(r, "b"),
	}
}), 5, 40)

// OnLives checks a property on random lives in each store.
func OnLives(t *testing.T, law func(r *rapid.T, l *Life)) {
	for name, open := range Stores(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(r *rapid.T) {
				log := eventlog.Open(open(t.TempDir()))
				defer func() { _ = log.Close() }()
				law(r, Live(r, log, DrawActs.Draw(r, "acts")))
			})
		})
	}
}

// Live runs a script on a log.
func Live(t Failer, log *eventlog.Log, script []act) *Life {
	l := &Life{Garden: &Garden{T: t, Log: log, Names: []string{"s0"}}, turns: map[string]ulid.ULID{}}
	l.Append("s0", event.New(event.Session{Title: "first", Agent: "a0"}))
	for _, a := range script {
		l.Act(a)
	}
	return l
}

// Act runs one act.
func (l *Life) Act(a act) {
	l.T.Helper()
	name := l.Names[a.session%len(l.Names)]
	switch do := acts[a.do]; do {
	case "turn", "end", "step", "answer", "piece", "part", "tool", "say":
		l.converse(name, do, a)
	case "patch", "set", "artifact", "title":
		l.changeState(name, do, a)
	case "intend", "complete", "wait", "child":
		l.work(name, do, a)
	case "approve", "claim", "hibernate", "post", "abort":
		l.control(name, do, a)
	default:
		l.changeTree(name, do, a)
	}
}

func (l *Life) converse(name, do string, a act) {
	usage := event.Usage{InputTokens: int64(a.a), OutputTokens: int64(a.b)}
	switch do {
	case "say":
		l.Append(name, event.UserMessage(fmt.Sprint("word ", a.a)))
	case "turn":
		turn := event.New(event.TurnStart{Index: a.a, Agent: fmt.Sprint("a", a.b%2), InputID: inputID(a.b)})
		l.turns[name] = turn.ID
		l.Append(name, event.UserMessage("do it"), turn)
	case "end":
		status := []event.TurnStatus{event.TurnStatusCompleted, event.TurnStatusFailed, event.TurnStatusInterrupted}[a.b%3]
		end := event.TurnCompletion{TurnID: l.turns[name], Status: status, Usage: usage}
		if a.a%4 == 0 {
			end.TurnID = ulid.ULID{}
		}
		l.Append(name, event.New(end))
	case "step":
		l.Append(name, event.New(event.StepStart{Step: a.b, TurnID: l.turns[name], Model: "m1"}))
		if a.a%2 == 0 {
			l.Append(name, event.New(event.StepCompletion{Step: a.b, TurnID: l.turns[name], Usage: usage}))
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
		l.Append(name, e)
	case "tool":
		id := fmt.Sprint("call", len(l.calls))
		l.calls = append(l.calls, id)
		part := event.ToolCall(id, "tool", nil)
		l.Append(name, event.New(event.Message{Role: event.Assistant, Parts: []event.Part{part}}),
			event.New(event.ToolStart{CallID: id, Name: "tool", IdempotencyKey: "k" + id}))
		if a.b > 1 {
			l.Append(name, event.New(event.ToolCompletion{CallID: id, Name: "tool", IsError: a.b > 3}))
		}
		if a.b > 2 {
			l.Append(name, event.ToolOutput(id, "tool", []byte("done"), false))
		}
	}
}

func (l *Life) changeState(name, do string, a act) {
	switch do {
	case "patch":
		ops := fmt.Sprintf(`[{"op":"add","path":"/k%d","value":%d}]`, a.b, a.a)
		if a.a%5 == 0 { // without a check that the patch applies
			l.Append(name, event.New(event.CustomPatch{StateVersion: a.b, Patch: []byte(ops)}))
			return
		}
		_, _, err := projection.Patch(Bg, l.Log, name, event.CustomPatch{Patch: []byte(ops)})
		if refused := (*projection.PatchError)(nil); !errors.As(err, &refused) || refused.Reason != "nothing is there" {
			l.Allow(err)
		}
	case "set":
		_, _, err := projection.SetState(Bg, l.Log, name, "", a.b, map[string]int{"n": a.a})
		l.Allow(err)
	case "artifact":
		names := []string{"", "report", "plan"}
		l.Append(name, event.New(event.Artifact{ArtifactID: fmt.Sprint("art", a.a%4), Name: names[a.b%3], Kind: "file"}))
	case "title":
		text := fmt.Sprint(a.a)
		labels := map[string]*string{fmt.Sprint("l", a.b%2): &text}
		if a.a%3 == 0 {
			labels["l0"] = nil
		}
		l.Append(name, event.New(event.Session{Updated: true, Title: fmt.Sprint("title ", a.b), Labels: labels}))
	}
}

func (l *Life) work(name, do string, a act) {
	cost := func(e event.Event) event.Event {
		e.Cost = event.Cost(a.a)
		return e
	}
	switch do {
	case "intend":
		if len(l.effects) == 0 || a.a%3 > 0 { // else it tries an older one again
			l.effects = append(l.effects, fmt.Sprint("effect", len(l.effects)))
		}
		n := len(l.effects) - 1
		kind := []string{"model", "tool", "mail"}[a.b%3]
		l.Append(name, event.New(event.EffectIntent{Key: l.effects[n], TurnID: l.turns[name], Ordinal: ordinal(n), Kind: kind, Attempt: a.a % 3, Class: event.EffectPure}))
	case "complete":
		if len(l.effects) > 0 {
			n := a.a % len(l.effects)
			x := event.EffectCompletion{Key: l.effects[n], TurnID: l.turns[name], Ordinal: ordinal(n), Attempt: a.b % 3, Usage: event.Usage{OutputTokens: int64(a.b)}}
			if a.b > 2 {
				x.RetryAt = time.Unix(int64(a.a), 0)
			}
			l.Append(name, cost(event.New(x)))
		}
	case "wait":
		if id := fmt.Sprint("w", a.a%3); a.b%2 == 0 {
			l.Append(name, event.New(event.Wait{WaitID: id, TurnID: l.turns[name], CursorID: "x"}))
		} else {
			l.Append(name, event.New(event.Wait{Resolved: true, WaitID: id}))
		}
	case "child":
		c := event.Child{ChildID: fmt.Sprint("c", a.a%3), Usage: event.Usage{InputTokens: int64(a.a)}}
		if a.b == 1 {
			c.ChildSessionID = fmt.Sprint("child", a.a%3)
		}
		c.State = []event.ChildState{event.ChildRequested, event.ChildStarted, event.ChildProgressed,
			event.ChildCompleted, event.ChildFailed, event.ChildMerged}[a.b]
		l.Append(name, cost(event.New(c)))
	}
}

// ordinal is the place of effect n. Every fourth effect has none.
func ordinal(n int) string {
	if n%4 == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// inputID is one of five ids, or none.
func inputID(n int) string {
	if n %= 6; n > 0 {
		return fmt.Sprint("in", n)
	}
	return ""
}

// control appends what runners and people decide: in any order, and several times.
func (l *Life) control(name, do string, a act) {
	turn := l.turns[name]
	switch do {
	case "approve":
		id := fmt.Sprint("i", a.a%3)
		switch a.b {
		case 0, 1:
			l.Append(name, event.New(event.ApprovalRequest{InterruptID: id, Name: "pay", TurnID: turn, CursorID: "x"}))
		case 2:
			l.Append(name, event.New(event.ApprovalRequest{InterruptID: id, Name: "pay"}))
		case 3:
			l.Append(name, event.New(event.ApprovalCancelation{InterruptID: id}))
		default:
			decision := []event.Decision{event.Approved, event.Denied}[a.b%2]
			l.Append(name, event.New(event.ApprovalResolution{InterruptID: id, Decision: decision}))
		}
	case "claim":
		epoch := int64(a.a%4) + 1 // mostly not the next one
		if a.b == 0 {
			l.Append(name, event.New(event.RunRelease{Epoch: epoch}))
		} else {
			l.Append(name, event.New(event.RunClaim{Epoch: epoch, Runner: "r"}))
		}
	case "hibernate":
		switch id := []string{"x", "y"}[a.a%2]; {
		case turn.IsZero():
		case a.b < 3:
			l.Append(name, event.New(event.TurnHibernation{TurnID: turn, Cursor: event.Cursor{ID: id, Kind: "review"}}))
		default:
			l.Append(name, event.New(event.TurnResumption{TurnID: turn, CursorID: id}))
		}
	case "post":
		message := event.Message{Role: event.User, InputID: inputID(a.a), Parts: []event.Part{event.Text("posted")}}
		if a.b < 4 {
			l.Append(name, event.New(event.External{InputID: inputID(a.a), Steer: a.b == 0, Messages: []event.Message{message}}))
		} else {
			l.Append(name, event.New(message))
		}
	case "abort":
		p := event.Abort{By: "a person"}
		if a.b%2 == 0 {
			p.TurnID = turn
		}
		l.Append(name, event.New(p))
	}
}

func (l *Life) changeTree(name, do string, a act) {
	at := int64(a.a) % (l.Head(name).Seq + 1)
	switch do {
	case "rewind":
		l.Append(name, event.New(event.HeadMove{To: at, Label: fmt.Sprint("left ", a.b)}))
	case "recover":
		_, err := fork.Recover(Bg, l.Log, name)
		l.Allow(err, fork.Error("nothing_orphaned"))
	case "fork":
		id := fmt.Sprint("s", len(l.Names))
		_, err := fork.At(Bg, l.Log, name, fork.AtSeq(at), fork.Options{ID: id, Force: true})
		if l.Allow(err, fork.Error("inside_append")); err == nil {
			l.Names, l.turns[id] = append(l.Names, id), l.turns[name]
		}
	case "copy":
		if len(l.Names) < 5 {
			c, err := fork.Copy(Bg, l.Log, name, fork.CopyOptions{ID: fmt.Sprint("s", len(l.Names))})
			l.Allow(err)
			l.Names, l.turns[c.ID] = append(l.Names, c.ID), l.turns[name]
			l.Copies = append(l.Copies, c.ID)
		}
	case "compact":
		c := event.Compaction{Covers: event.Stretch{From: max(at-int64(a.b), 1), To: max(at, 1)}, Summary: fmt.Sprint("summary ", a.a)}
		_, err := projection.Compact(Bg, l.Log, name, c)
		if refused := (*projection.CompactionError)(nil); !errors.As(err, &refused) || refused.Reason == "empty" {
			l.Allow(err)
		}
	case "snapshot":
		l.Snapshot(name, LifeSets[a.b%len(LifeSets)], true)
	case "redact":
		_, err := erase.Redact(Bg, l.Log, name, []int64{at}, erase.RedactOptions{Reason: "test"})
		l.Allow(err, event.ErrInvalidType, event.ErrInvalidTree, eventlog.ErrEventNotFound)
	}
}

// States returns all states of a session as of an event, as JSON.
func (l *Life) States(name string, opts projection.Options) map[string]string {
	l.T.Helper()
	loaded, err := projection.LoadSet(Bg, l.Log, name, Everything, opts)
	if err != nil {
		l.T.Fatalf("load %s at %d: %v", name, opts.At, err)
	}
	return l.StatesOf(loaded)
}

// StatesOf returns all loaded states as JSON.
func (l *Life) StatesOf(loaded *projection.Loaded) map[string]string {
	l.T.Helper()
	all := map[string]string{}
	for _, part := range projection.Names() {
		state, err := projection.StateJSON(loaded, part)
		l.Allow(err)
		all[part] = string(state)
	}
	return all
}

// EffectsOf returns the keys of a session's open effects and of its completed effects,
// by seq. A copy of the session has the same keys.
func (l *Life) EffectsOf(name string) [2]map[int64]string {
	l.T.Helper()
	v, err := projection.Load(Bg, l.Log, name, projection.Control())
	l.Allow(err)
	open, done := map[int64]string{}, map[int64]string{}
	for _, o := range v.State.Effects {
		open[o.Seq] = o.Key
	}
	for _, d := range v.State.Done {
		done[d.Completed] = d.Key
	}
	return [2]map[int64]string{open, done}
}

// RedactAll redacts all own events of a session that can be redacted.
func (l *Life) RedactAll(name string) {
	l.T.Helper()
	for _, e := range l.Lineage(name) {
		if e.SessionID == name && !e.Redacted() {
			_, err := erase.Redact(Bg, l.Log, name, []int64{e.Seq}, erase.RedactOptions{Reason: "test"})
			l.Allow(err, event.ErrInvalidType)
		}
	}
}
