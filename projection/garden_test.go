package projection_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
	"github.com/convlog/convlog/upkeep/erase"
)

// backends open a store in an empty folder.
var backends = map[string]func(dir string) eventlog.Store{
	"jsonl": func(dir string) eventlog.Store { return jsonl.New(dir, jsonl.Options{Sync: jsonl.Never}) },
	"sqlite": func(dir string) eventlog.Store {
		return sqlite.New(filepath.Join(dir, "s.db"), sqlite.Options{Synchronous: sqlite.Off})
	},
}

// trace is what a projection saw, event by event.
type trace struct {
	Seen []string `json:"seen"`
}

var bg = context.Background()

// traceOf makes a projection whose state says exactly which events were folded,
// in which order. Snapshots leave no trace: nothing may depend on them.
func traceOf(name string, scope event.Scope) projection.Projection[trace] {
	return projection.Projection[trace]{Name: name, Version: 1, Scope: scope, Apply: func(s *trace, e *event.Event) error {
		if e.Type.Name() != event.ProjectionSnapshotted {
			s.Seen = append(s.Seen, traceLine(e))
		}
		return nil
	}}
}

// traceLine tells events apart, by what a copy of them has too.
func traceLine(e *event.Event) string {
	name := event.Type(strings.TrimPrefix(string(e.Type.Name()), "copy:"))
	if e.Redacted() {
		return fmt.Sprintf("%d gone", e.Seq)
	}
	if name == event.MessageAdded || name == event.CustomPatched || name == event.ExternalInput {
		return fmt.Sprintf("%d %s %s", e.Seq, name, e.Data)
	}
	return fmt.Sprintf("%d %s", e.Seq, name)
}

var (
	pathTrace    = traceOf("path", event.PathScope)
	sessionTrace = traceOf("session", event.SessionScope)
	// tally counts every event of the path, snapshots too.
	tally = projection.Projection[int]{Name: "tally", Version: 1, Apply: func(n *int, e *event.Event) error {
		*n += int(e.Seq)
		return nil
	}}
	// traces are the sets that the snapshots of a garden are of.
	traces = []projection.Set{
		projection.Of("all", pathTrace, sessionTrace, tally),
		projection.Of("", pathTrace),
		projection.Of("", sessionTrace),
		projection.Of("both", sessionTrace, pathTrace),
	}
	allTraces = traces[0]
)

// deed is a thing to do to a garden; its numbers are taken modulo what there is.
type deed struct{ do, session, a, b int }

// The things to do.
const (
	doTalk = iota
	doCall
	doTogether
	doAside
	doRewind
	doComeBack
	doBranch
	doSnapshot
	doRedact
)

var drawDeed = rapid.Custom(func(r *rapid.T) deed {
	weights := []int{doTalk, doTalk, doTalk, doCall, doTogether, doAside, doRewind, doRewind, doComeBack, doBranch, doSnapshot, doSnapshot, doSnapshot, doRedact}
	return deed{
		do:      rapid.SampledFrom(weights).Draw(r, "do"),
		session: rapid.IntRange(0, 3).Draw(r, "session"),
		a:       rapid.IntRange(0, 40).Draw(r, "a"),
		b:       rapid.IntRange(0, 7).Draw(r, "b"),
	}
})

var drawScript = rapid.SliceOfN(drawDeed, 4, 30)

// garden is a log that scripts are run on.
type garden struct {
	t     failer
	log   *eventlog.Log
	names []string
	calls []string
	ids   int
}

// failer is what testing.TB and rapid.T have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// plant runs a script on a log. Whatever the log refuses is left out.
func plant(t failer, log *eventlog.Log, script []deed) *garden {
	t.Helper()
	g := &garden{t: t, log: log}
	g.names = append(g.names, "s0")
	g.append("s0", event.UserMessage("begin"))
	for _, s := range script {
		g.run(s)
	}
	return g
}

func (g *garden) run(s deed) {
	g.t.Helper()
	name := g.names[s.session%len(g.names)]
	head := g.head(name)
	switch at := int64(s.a) % (head.Seq + 1); s.do {
	case doTalk:
		g.append(name, event.UserMessage(fmt.Sprint("words ", s.a)))
	case doCall:
		g.callTool(name, s)
	case doTogether:
		g.append(name, event.UserMessage("first"), g.patch(s.a), event.UserMessage("last"))
	case doAside:
		g.append(name, event.New(event.External{Source: "clock", InputID: fmt.Sprint(s.a)}))
	case doRewind:
		g.append(name, event.New(event.HeadMove{To: at}))
	case doComeBack:
		_, err := fork.Recover(bg, g.log, name, fork.RewindOptions{})
		g.allow(err, fork.ErrNothingOrphaned)
	case doBranch:
		id := fmt.Sprint("s", len(g.names))
		_, err := fork.At(bg, g.log, name, fork.AtSeq(at), fork.Options{ID: id, Force: true})
		if g.allow(err, fork.ErrInsideAppend); err == nil {
			g.names = append(g.names, id)
		}
	case doSnapshot:
		g.snapshot(name, traces[s.b%len(traces)], s.b >= len(traces))
	case doRedact:
		_, err := erase.Redact(bg, g.log, name, []int64{at}, erase.RedactOptions{Reason: "test"})
		g.allow(err, event.ErrInvalidType, event.ErrInvalidTree, eventlog.ErrEventNotFound)
	}
}

// callTool gives a result to a call that may be pending, or makes a call.
func (g *garden) callTool(name string, s deed) {
	if s.b%2 == 1 && len(g.calls) > 0 {
		done := event.ToolOutput(g.calls[s.a%len(g.calls)], "tool", []byte("done"), false)
		_, err := g.log.Append(bg, name, eventlog.Any(), done)
		g.allow(err, event.ErrInvalidResult)
		return
	}
	g.calls = append(g.calls, fmt.Sprint("call", len(g.calls)))
	part := event.ToolCall(g.calls[len(g.calls)-1], "tool", nil)
	g.append(name, event.New(event.Message{Role: event.Assistant, Parts: []event.Part{part}}))
}

// snapshot takes a mark, or a snapshot with a body.
func (g *garden) snapshot(name string, set projection.Set, body bool) event.Snapshot {
	g.t.Helper()
	live, err := projection.Resume(bg, g.log, name, set, g.liveOptions())
	g.allow(err)
	s, taken, err := live.Snapshot(bg, projection.Request{Trigger: projection.Manual, Body: body})
	if !taken || err != nil {
		g.t.Fatalf("snapshot of %s: taken %v, %v", name, taken, err)
	}
	return s
}

func (g *garden) liveOptions() projection.LiveOptions {
	return projection.LiveOptions{Bodies: projection.Never(), NewID: func() string {
		g.ids++
		return fmt.Sprint("snapshot-", g.ids)
	}}
}

func (g *garden) patch(n int) event.Event {
	patch := fmt.Sprintf(`[{"op":"add","path":"/n","value":%d}]`, n)
	return event.New(event.CustomPatch{Patch: []byte(patch)})
}

func (g *garden) append(name string, events ...event.Event) event.Head {
	g.t.Helper()
	head, err := g.log.Append(bg, name, eventlog.Any(), events...)
	g.allow(err)
	return head
}

func (g *garden) head(name string) event.Head {
	g.t.Helper()
	head, err := g.log.Head(bg, name)
	g.allow(err)
	return head
}

// allow fails for any other error.
func (g *garden) allow(err error, allowed ...error) {
	g.t.Helper()
	if err != nil && !slices.ContainsFunc(allowed, func(target error) bool { return errors.Is(err, target) }) {
		g.t.Fatalf("%v", err)
	}
}

// lineage are all events of a session.
func (g *garden) lineage(name string) (events []event.Event) {
	g.t.Helper()
	for e, err := range g.log.Read(bg, name, eventlog.All()) {
		g.allow(err)
		events = append(events, e)
	}
	return events
}

// view is the states of the traces as of an event.
type view struct {
	Path, Session []string
	Tally         int
}

// load gives the states of the traces, and how they came about.
func (g *garden) load(name string, opts projection.Options) (view, projection.Explain) {
	g.t.Helper()
	l, err := projection.LoadSet(bg, g.log, name, allTraces, opts)
	if err != nil {
		g.t.Fatalf("load %s at %d: %v", name, opts.At, err)
	}
	return viewOf(l), l.Explain
}

func viewOf(l *projection.Loaded) view {
	path, _ := projection.State(l, pathTrace)
	session, _ := projection.State(l, sessionTrace)
	sum, _ := projection.State(l, tally)
	return view{path.Seen, session.Seen, *sum}
}

// expected is what the traces must be as of an event, found without them.
func (g *garden) expected(at int64, lineage []event.Event) (v view) {
	g.t.Helper()
	onPath := g.path(lineage[:at])
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

// path are the seqs on the chain from the last of the events back to the start.
func (g *garden) path(lineage []event.Event) map[int64]bool {
	g.t.Helper()
	path := map[int64]bool{}
	for at := int64(len(lineage)); at > 0; {
		path[at] = true
		move, moved, err := event.Decode[event.HeadMove](&lineage[at-1])
		g.allow(err)
		if at--; moved {
			at = move.To
		}
	}
	return path
}
