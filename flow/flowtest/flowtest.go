package flowtest

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/replay/replaytest"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/transfer"
)

// ErrNotServed means that a recording cannot be replayed: it has something that the
// package comment excludes, or an erased result. Record another session.
var ErrNotServed = errors.New("the recording cannot be replayed")

// Options configure a replay. The zero value compares everything.
type Options struct {
	// Update writes the prompts of the requests to the file of prompts, and does not compare
	// them. Set it from a flag of the test: flag.Bool("update", false, "approve prompts").
	Update bool
	// Normalize is applied to both sides of a text before they are compared: to each line of
	// a request, to names, arguments and reviews. It removes what may change, for example a
	// date. nil changes nothing.
	Normalize func(text string) string
	// Compare configures the comparison of the final logs. Metadata is never compared.
	Compare replaytest.Options
	// Prompts is the file of prompts; if empty, the file of the recording with the ending
	// .prompts.json. A recording that is no file has no prompts by default.
	Prompts string
	// Children are the agents of children. Their recorded sessions are replayed after the
	// session; the sessions of other agents are not. The effect that ran a child has the
	// recorded result in any case.
	Children []Child

	approved *prompts // of the parent
	place    string   // of the effect that ran the child, with a slash
	parents  []string // the sessions of the parents
}

// Result describes a replay.
type Result struct {
	// Log has the session of the run, with the recorded id. Replay closes it at the end of
	// the test. The caller of Run closes it.
	Log     *eventlog.Log
	Session string
	// Turns is the number of turns that ran, with the turns of children.
	Turns int
	// Skipped are the sessions of children whose agents Options.Children does not have.
	Skipped []string
	// ByPosition reports that the recording has no effects, for example because it was
	// imported: answers were served by their position, and requests were not compared.
	ByPosition bool
	// Open reports that the recording ends inside a turn.
	Open bool
	// Unchecked is the number of requests whose prompts were not compared, since the
	// recording does not have them.
	Unchecked int
}

// Replay runs an agent against the recording in a file: an export of a session
// (transfer.Export, logtool export), with its children (transfer.ExportTree, logtool export
// --below) if Options.Children has their agents. Of several sessions it replays the last one
// that is not the session of a child. Replay reports a test error at the first divergence. It ends the test if the recording is
// unreadable, or cannot be replayed. The agent's Log is not used. Replay uses the first of
// several Options.
func Replay[S any](t testing.TB, agent *flow.Agent[S], path string, opts ...Options) Result {
	t.Helper()
	log := eventlog.Open(memory.New())
	defer func() { _ = log.Close() }()
	session, err := load(t.Context(), log, path)
	if err != nil {
		t.Fatalf("load the recording %s: %v (record it with Record)", path, err)
	}
	o := first(opts)
	if o.Prompts == "" {
		o.Prompts = promptsFile(path)
	}
	return report(t, agent, log, session, o, path)
}

func report[S any](t testing.TB, agent *flow.Agent[S], log *eventlog.Log, session string, o Options, path string) Result {
	t.Helper()
	r, err := Run(t.Context(), agent, log, session, o)
	if r.Log != nil {
		t.Cleanup(func() { _ = r.Log.Close() })
	}
	var d *DivergenceError
	switch {
	case errors.As(err, &d):
		if path != "" {
			d.File, d.Line = path, lineOf(t.Context(), log, d.Session, d.Seq, path)
		}
		t.Errorf("the agent differs from its recording: %v", d)
	case err != nil:
		t.Fatalf("session %q: %v", session, err)
	case r.ByPosition:
		t.Logf("session %q has no effects: its answers were served by position, and its requests were not compared", session)
	case r.Unchecked > 0:
		t.Logf("session %q: the prompts of %d requests were not compared: the recording does not have them", session, r.Unchecked)
	}
	return r
}

func first(opts []Options) Options {
	if len(opts) > 0 {
		return opts[0]
	}
	return Options{}
}

// Record runs an agent with its own models and tools, and writes the session to a file, and
// the prompts of its requests to the file of prompts. run sends the inputs and answers to the
// agent, which has a new log. A missing folder of the file is created. Then Record replays the recording. It ends the test if one of
// these steps fails.
func Record[S any](t testing.TB, agent *flow.Agent[S], path, session string, run func(ctx context.Context, agent *flow.Agent[S]) error, opts ...Options) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatalf("record %s: %v", path, err)
	}
	log := eventlog.Open(memory.New())
	defer func() { _ = log.Close() }()
	live := *agent
	live.Log, live.Options.Runner = log, cmp.Or(live.Options.Runner, "flowtest")
	if err := run(t.Context(), &live); err != nil {
		t.Fatalf("record %s: %v", path, err)
	}
	var text bytes.Buffer
	sessions, err := childSessions(t.Context(), log, session)
	if err == nil {
		err = transfer.Export(t.Context(), log, &text, append([]string{session}, sessions...)...)
	}
	if err == nil {
		err = os.WriteFile(path, text.Bytes(), 0o666)
	}
	if err != nil {
		t.Fatalf("record %s: %v", path, err)
	}
	o := first(opts)
	o.Update = true
	Replay(t, agent, path, o)
}

// load reads a recording into a log, and returns the id of the last session that is not the
// session of a child.
func load(ctx context.Context, log *eventlog.Log, path string) (session string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	sessions, err := transfer.Import(ctx, log, file)
	if err != nil {
		return "", err
	}
	var children []string
	for _, s := range sessions {
		more, err := childSessions(ctx, log, s.Session)
		if err != nil {
			return "", err
		}
		children = append(children, more...)
	}
	for _, s := range slices.Backward(sessions) {
		if !slices.Contains(children, s.Session) {
			return s.Session, nil
		}
	}
	return "", errors.New("it has no session")
}

// lineOf is the line of an event in a file, counted from 1; 0 if it is not found.
func lineOf(ctx context.Context, log *eventlog.Log, session string, seq int64, path string) int {
	e, err := log.Event(ctx, session, seq)
	if err != nil {
		return 0
	}
	file, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewReader(file)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		var at struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(line, &at) == nil && at.ID == e.ID.String() {
			return n
		}
		if err != nil {
			return 0
		}
	}
}

// Run replays a session of a log. The error is a *DivergenceError, ErrNotServed, an error of the
// log, or an error that ended the runner. Run uses the first of several Options.
func Run[S any](ctx context.Context, agent *flow.Agent[S], log *eventlog.Log, session string, opts ...Options) (Result, error) {
	r, err := play(ctx, agent, log, session, first(opts))
	if err != nil {
		err = fmt.Errorf("replay: %w", err)
	}
	return r, err
}

func play[S any](ctx context.Context, agent *flow.Agent[S], log *eventlog.Log, session string, o Options) (Result, error) {
	p, err := newPlayer(ctx, log, session, agent.Options.Render, o)
	if err != nil {
		return Result{}, err
	}
	r := Result{Session: session, ByPosition: p.tape.imported, Log: eventlog.Open(memory.New(), eventlog.Options{Now: p.clock})}
	err = p.begin(ctx, r.Log)
	if err == nil {
		err = run(ctx, agent, p, &r)
	}
	r.Turns, r.Unchecked = p.begun, p.unchecked
	if errors.Is(err, errOpen) {
		r.Open, err = true, nil
	}
	if err = p.firstDivergence(ctx, &r, err); err == nil {
		err = p.replayChildren(ctx, &r)
	}
	if err == nil && o.Update && o.approved == nil && o.Prompts != "" {
		err = p.prompts.write(o.Prompts)
	}
	return r, err
}
