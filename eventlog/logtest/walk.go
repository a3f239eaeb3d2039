package logtest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
)

var modelCases = []testCase{
	{
		Name: "any history",
		Explanation: "Random appends, retries, moves, forks, redactions, removals, exports and watches give the same result as a simple model in memory, " +
			"also with two handles, the second one with a low spill threshold and a small cache.",
		Needs: []suite.Need{suite.Blobs, suite.Eraser},
		Run:   (*env).walk,
	},
}

// walk checks random histories, each on a new store. The form of the tests sets their number;
// the flags -rapid.checks and -rapid.steps set their number and length. A failure prints its seed and the shortest
// failing history.
func (t *env) walk() {
	rapid.Check(t.TB, func(r *rapid.T) {
		ctx, cancel := context.WithTimeout(t.Ctx, t.Limit)
		defer cancel()
		e := &suite.Env{TB: rapidTest{t.TB, r}, Ctx: ctx, Harness: t.Opener(t.TB), Opener: t.Opener, Limit: t.Limit}
		defer e.Close()
		two := !t.Harness.OneHandle && rapid.Bool().Draw(r, "two handles")
		w := &walk{env: newEnv(e), r: r, two: two, sessions: map[string]*modelSession{}}
		w.openLogs()
		r.Repeat(w.actions())
		w.compareAll()
	})
}

// rapidTest is a test that reports its failures to a check of rapid.
type rapidTest struct {
	testing.TB
	r *rapid.T
}

func (d rapidTest) Helper()                           { d.r.Helper() }
func (d rapidTest) Logf(format string, args ...any)   { d.r.Logf(format, args...) }
func (d rapidTest) Errorf(format string, args ...any) { d.r.Errorf(format, args...) }
func (d rapidTest) Fatalf(format string, args ...any) { d.r.Fatalf(format, args...) }
func (d rapidTest) Failed() bool                      { return d.r.Failed() }
func (d rapidTest) Cleanup(f func())                  { d.r.Cleanup(f) }

// walk is a random walk over the logs of one store, and the model of the store.
type walk struct {
	*env
	r        *rapid.T
	two      bool // logs on two handles
	logs     []*eventlog.Log
	sessions map[string]*modelSession
	made     int
}

func (w *walk) openLogs() {
	w.Helper()
	w.logs = []*eventlog.Log{w.env.Main()}
	if w.two {
		w.logs = append(w.logs, w.LogOver(w.Open(), eventlog.Options{SpillOver: 150, HotSessions: 2}))
	}
}

func (w *walk) actions() map[string]func(*rapid.T) {
	of := func(act func(s *modelSession)) func(*rapid.T) {
		return func(r *rapid.T) {
			s := w.drawSession()
			act(s)
			w.compareHeads()
			w.compareLines(s)
		}
	}
	return map[string]func(*rapid.T){
		"create":        func(*rapid.T) { w.append(&modelSession{id: w.newID()}); w.compareHeads() },
		"append":        of(w.append),
		"append more":   of(w.append),
		"append again":  of(w.append),
		"retry":         of(w.retry),
		"fork":          of(w.fork),
		"redact":        of(w.redact),
		"remove":        of(w.remove),
		"compare":       of(w.compare),
		"watch":         of(w.watch),
		"export":        of(w.export),
		"convert":       of(w.convert),
		"reopen":        func(*rapid.T) { w.Reopen(); w.openLogs(); w.compareHeads() },
		"absent parent": func(*rapid.T) { w.forkOfNothing(); w.compareHeads() },
	}
}

// drawBelow draws a number from 0 to n-1. Shrinking makes the number smaller.
func (w *walk) drawBelow(n int, what string) int { return rapid.IntRange(0, n-1).Draw(w.r, what) }

// seq draws a number from least to most.
func (w *walk) seq(least, most int64, what string) int64 {
	return rapid.Int64Range(least, most).Draw(w.r, what)
}

func (w *walk) log() *eventlog.Log {
	if len(w.logs) == 1 {
		return w.logs[0]
	}
	return w.logs[w.drawBelow(len(w.logs), "handle")]
}

func (w *walk) newID() string {
	w.made++
	return fmt.Sprintf("s%d", w.made)
}

// drawSession draws a session. Without sessions, rapid skips the action.
func (w *walk) drawSession() *modelSession {
	ids := w.ids()
	if len(ids) == 0 {
		w.r.SkipNow()
	}
	return w.sessions[ids[w.drawBelow(len(ids), "session")]]
}

func (w *walk) ids() (ids []string) {
	for id := range w.sessions {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// drawEvent draws an event, which may break a rule.
func (w *walk) drawEvent(last int64) *modelEvent {
	id := func() string { return fmt.Sprintf("c%d", w.drawBelow(4, "call")) }
	switch w.drawBelow(8, "kind") {
	case 0, 1:
		return &modelEvent{Event: suite.NoteWithMetadata(w.drawBelow(100, "n"), `{"m":1}`), move: -1}
	case 2, 3:
		id := id()
		return &modelEvent{Event: suite.Calls(id), calls: []string{id}, move: -1}
	case 4, 5:
		id := id()
		return &modelEvent{Event: suite.Result(id), results: []string{id}, move: -1}
	case 6:
		return &modelEvent{Event: suite.NewEvent("test:big", `"`+suite.Text(fmt.Sprint(w.drawBelow(5, "body")), 300)+`"`), move: -1}
	default:
		to := w.seq(0, last+1, "to")
		return &modelEvent{Event: suite.HeadMove(to), move: to}
	}
}
