package garden

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/upkeep/erase"
)

// Trace is the list of events that a projection received.
type Trace struct {
	Seen []string `json:"seen"`
}

var Bg = context.Background()

// TraceOf returns a projection whose state lists the folded events in order. It skips
// snapshots, because results must not depend on them.
func TraceOf(name string, scope event.Scope) projection.Projection[Trace] {
	return projection.Projection[Trace]{Name: name, Version: 1, Scope: scope, Apply: func(s *Trace, e *event.Event) error {
		if e.Type.Name() != event.ProjectionSnapshotted {
			s.Seen = append(s.Seen, traceLine(e))
		}
		return nil
	}}
}

// traceLine describes an event in one line. A copy of the event has the same line.
func traceLine(e *event.Event) string {
	name := event.Type(strings.TrimPrefix(string(e.Type.Name()), "copy:"))
	if e.Redacted() && e.Type.Spillable() {
		return fmt.Sprintf("%d gone", e.Seq)
	}
	if name == event.MessageAdded || name == event.CustomPatched || name == event.ExternalInput {
		return fmt.Sprintf("%d %s %s", e.Seq, name, e.Data)
	}
	return fmt.Sprintf("%d %s", e.Seq, name)
}

var (
	PathTrace    = TraceOf("test:path", event.PathScope)
	SessionTrace = TraceOf("test:session", event.SessionScope)
	// Tally sums the seqs of all events of the path, including snapshots.
	Tally = projection.Projection[int]{Name: "test:tally", Version: 1, Apply: func(n *int, e *event.Event) error {
		*n += int(e.Seq)
		return nil
	}}
	// Traces are the projection sets of a garden's snapshots.
	Traces = []projection.Set{
		projection.Of("test:all", PathTrace, SessionTrace, Tally),
		projection.Of("", PathTrace),
		projection.Of("", SessionTrace),
		projection.Of("test:both", SessionTrace, PathTrace),
	}
	AllTraces = Traces[0]
)

// action is an operation on a garden. Its numbers are used modulo the available
// choices.
type action struct{ Do, session, A, B int }

// The operations of an action.
const (
	doTalk = iota
	doCall
	doBatch
	doExternal
	doRewind
	doRecover
	doFork
	DoSnapshot
	doRedact
)

var drawAction = rapid.Custom(func(r *rapid.T) action {
	weights := []int{doTalk, doTalk, doTalk, doCall, doBatch, doExternal, doRewind, doRewind, doRecover, doFork, DoSnapshot, DoSnapshot, DoSnapshot, doRedact}
	return action{
		Do:      rapid.SampledFrom(weights).Draw(r, "do"),
		session: rapid.IntRange(0, 3).Draw(r, "session"),
		A:       rapid.IntRange(0, 40).Draw(r, "a"),
		B:       rapid.IntRange(0, 7).Draw(r, "b"),
	}
})

var DrawScript = rapid.SliceOfN(drawAction, 4, 30)

// Garden is a log that a random script has filled.
type Garden struct {
	T     Failer
	Log   *eventlog.Log
	Names []string
	calls []string
	ids   int
}

// Failer is the common part of testing.TB and rapid.T.
type Failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Plant runs a script on a log. It skips actions that the log rejects.
func Plant(t Failer, log *eventlog.Log, script []action) *Garden {
	t.Helper()
	g := &Garden{T: t, Log: log}
	g.Names = append(g.Names, "s0")
	g.Append("s0", event.UserMessage("begin"))
	for _, s := range script {
		g.Run(s)
	}
	return g
}

// Run runs one action.
func (g *Garden) Run(s action) {
	g.T.Helper()
	name := g.Names[s.session%len(g.Names)]
	head := g.Head(name)
	switch at := int64(s.A) % (head.Seq + 1); s.Do {
	case doTalk:
		g.Append(name, event.UserMessage(fmt.Sprint("words ", s.A)))
	case doCall:
		g.callTool(name, s)
	case doBatch:
		g.Append(name, event.UserMessage("first"), g.patch(s.A), event.UserMessage("last"))
	case doExternal:
		g.Append(name, event.New(event.External{Source: "clock", InputID: fmt.Sprint(s.A)}))
	case doRewind:
		g.Append(name, event.New(event.HeadMove{To: at}))
	case doRecover:
		_, err := fork.Recover(Bg, g.Log, name)
		g.Allow(err, fork.Error("nothing_orphaned"))
	case doFork:
		id := fmt.Sprint("s", len(g.Names))
		_, err := fork.At(Bg, g.Log, name, fork.AtSeq(at), fork.Options{ID: id, Force: true})
		if g.Allow(err, fork.Error("inside_append")); err == nil {
			g.Names = append(g.Names, id)
		}
	case DoSnapshot:
		g.Snapshot(name, Traces[s.B%len(Traces)], s.B >= len(Traces))
	case doRedact:
		_, err := erase.Redact(Bg, g.Log, name, []int64{at}, erase.RedactOptions{Reason: "test"})
		g.Allow(err, event.ErrInvalidType, event.ErrInvalidTree, eventlog.ErrEventNotFound)
	}
}

// callTool appends the result of a call that may be pending, or a new call.
func (g *Garden) callTool(name string, s action) {
	if s.B%2 == 1 && len(g.calls) > 0 {
		done := event.ToolOutput(g.calls[s.A%len(g.calls)], "tool", []byte("done"), false)
		_, err := g.Log.Append(Bg, name, eventlog.Any(), done)
		g.Allow(err, event.OrphanResult)
		return
	}
	g.calls = append(g.calls, fmt.Sprint("call", len(g.calls)))
	part := event.ToolCall(g.calls[len(g.calls)-1], "tool", nil)
	g.Append(name, event.New(event.Message{Role: event.Assistant, Parts: []event.Part{part}}))
}

// Snapshot takes a snapshot of set, with a body or as a mark.
func (g *Garden) Snapshot(name string, set projection.Set, body bool) event.Snapshot {
	g.T.Helper()
	live, err := projection.Resume(Bg, g.Log, name, set, g.liveOptions())
	g.Allow(err)
	s, taken, err := live.Snapshot(Bg, projection.Request{Trigger: projection.Manual, Body: body})
	if !taken || err != nil {
		g.T.Fatalf("snapshot of %s: taken: %v, error: %v", name, taken, err)
	}
	return s
}

func (g *Garden) liveOptions() projection.LiveOptions {
	return projection.LiveOptions{Bodies: func(*projection.Opportunity) bool { return false }, NewID: func() string {
		g.ids++
		return fmt.Sprint("snapshot-", g.ids)
	}}
}

func (g *Garden) patch(n int) event.Event {
	patch := fmt.Sprintf(`[{"op":"add","path":"/n","value":%d}]`, n)
	return event.New(event.CustomPatch{Patch: []byte(patch)})
}

// Append appends events to a session.
func (g *Garden) Append(name string, events ...event.Event) event.Head {
	g.T.Helper()
	head, err := g.Log.Append(Bg, name, eventlog.Any(), events...)
	g.Allow(err)
	return head
}

// Head returns a session's head.
func (g *Garden) Head(name string) event.Head {
	g.T.Helper()
	head, err := g.Log.Head(Bg, name)
	g.Allow(err)
	return head
}

// Allow fails on an error that is not allowed.
func (g *Garden) Allow(err error, allowed ...error) {
	g.T.Helper()
	if err != nil && !slices.ContainsFunc(allowed, func(target error) bool { return errors.Is(err, target) }) {
		g.T.Fatalf("%v", err)
	}
}

// Lineage returns all events of a session.
func (g *Garden) Lineage(name string) (events []event.Event) {
	g.T.Helper()
	for e, err := range g.Log.Read(Bg, name, eventlog.All()) {
		g.Allow(err)
		events = append(events, e)
	}
	return events
}

// View has the states of the trace projections as of an event.
type View struct {
	Path, Session []string
	Tally         int
}

// Load returns the states of the trace projections and the explanation of the load.
func (g *Garden) Load(name string, opts projection.Options) (View, projection.Explain) {
	g.T.Helper()
	l, err := projection.LoadSet(Bg, g.Log, name, AllTraces, opts)
	if err != nil {
		g.T.Fatalf("load %s at %d: %v", name, opts.At, err)
	}
	return ViewOf(l), l.Explain
}

// ViewOf returns the states of loaded trace projections.
func ViewOf(l *projection.Loaded) View {
	path, _ := projection.State(l, PathTrace)
	session, _ := projection.State(l, SessionTrace)
	sum, _ := projection.State(l, Tally)
	return View{path.Seen, session.Seen, *sum}
}

// Expected computes the expected states as of an event from the events alone.
func (g *Garden) Expected(at int64, lineage []event.Event) (v View) {
	g.T.Helper()
	onPath := g.Path(lineage[:at])
	for i := range lineage[:at] {
		e := lineage[i].Effective()
		counts := e.Type.Scope() != event.SessionScope && onPath[e.Seq]
		if counts {
			v.Tally += int(e.Seq)
		}
		if e.Type.Name() == event.ProjectionSnapshotted {
			continue
		}
		v.Session = append(v.Session, traceLine(e))
		if counts {
			v.Path = append(v.Path, traceLine(e))
		}
	}
	return v
}

// Path returns the seqs of the active path.
func (g *Garden) Path(lineage []event.Event) map[int64]bool {
	g.T.Helper()
	path := map[int64]bool{}
	for at := int64(len(lineage)); at > 0; {
		path[at] = true
		move, moved, err := event.Decode[event.HeadMove](&lineage[at-1])
		g.Allow(err)
		if at--; moved {
			at = move.To
		}
	}
	return path
}

// OnStores runs a test on an empty log of each store.
func OnStores(t *testing.T, f func(t *testing.T, log *eventlog.Log)) {
	for name, store := range Stores(t) {
		t.Run(name, func(t *testing.T) {
			log := eventlog.Open(suite.Overwriting{Store: store(t.TempDir())})
			defer log.Close()
			f(t, log)
		})
	}
}

// Same checks that two values are equal.
func Same(t Failer, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// OnGardens checks a property on random logs of each store.
func OnGardens(t *testing.T, law func(r *rapid.T, g *Garden)) {
	for name, open := range Stores(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(r *rapid.T) {
				log := eventlog.Open(open(t.TempDir()))
				defer func() { _ = log.Close() }()
				law(r, Plant(r, log, DrawScript.Draw(r, "script")))
			})
		})
	}
}

// Stores are the stores of a test: all, or one of them in the smaller forms. The name of the
// test selects it, so that the tests of a package use all.
func Stores(t testing.TB) map[string]func(dir string) eventlog.Store {
	if testsize.Of() == testsize.Long {
		return Backends
	}
	names := slices.Sorted(maps.Keys(Backends))
	h := fnv.New32a()
	_, _ = h.Write([]byte(t.Name()))
	name := names[h.Sum32()%uint32(len(names))]
	return map[string]func(dir string) eventlog.Store{name: Backends[name]}
}

// OnGarden runs a test on a garden with an empty log of each store.
func OnGarden(t *testing.T, test func(t *testing.T, g *Garden)) {
	OnStores(t, func(t *testing.T, log *eventlog.Log) { test(t, &Garden{T: t, Log: log}) })
}
