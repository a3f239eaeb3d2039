package flow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// turn is one execution of a turn function. It begins as a replay: while the log has
// records, effects return the recorded results. Then it is live: effects run and are recorded.
type turn struct {
	r      *runner
	rec    *records
	ctx    context.Context
	cancel context.CancelCauseFunc

	busy atomic.Bool // an effect runs

	// The fields below are guarded by r.mu.

	// view has the states of the session at the newest record that the replay has reached.
	// It is nil when the turn is live: then the runner has the states.
	view   *projection.Live
	folded int  // how many of rec.events are folded into view
	reload bool // the folded events change the state
	next   int  // the ordinal of the next effect
	point  point
	ids    int // made at point
	// pending are messages, artifacts and patch markers for the append of the next record.
	pending  []event.Event
	state    state
	patches  map[string]bool // answers of Patched
	steered  map[string]bool // inputs in pending
	lastStop string          // of the last answer of a model
	started  time.Time
	aborted  *event.Abort
	// halt ends the execution: each later effect returns it.
	halt       error
	stopReason string
	span       trace.Span
	end        *event.TurnCompletion // how the turn ended
}

// newTurn prepares the execution of an open turn. The caller holds r.mu.
func (r *runner) newTurn(ctx context.Context, rec *records) (*turn, error) {
	t := &turn{r: r, rec: rec, point: rec.point, patches: map[string]bool{}, steered: map[string]bool{}, started: r.now()}
	if len(rec.tops) > 0 {
		view, err := resume(ctx, r.log, r.session, replaySet, projection.LiveOptions{At: rec.seq})
		if err != nil {
			return nil, err
		}
		t.view = view
	}
	if err := t.loadState(); err != nil {
		return nil, err
	}
	ctx, t.span = r.startTurnSpan(ctx, rec)
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	return t, nil
}

// replaySet are the states that a turn function can ask for.
var replaySet = projection.Of("flow:replay", projection.History(), projection.Custom(), projection.Artifacts())

// states are the states at the newest record that the turn has reached.
func (t *turn) states() projection.States {
	if t.view != nil {
		return t.view
	}
	return t.r.live
}

// replaying reports whether the log has records that the turn has not reached. The
// caller holds r.mu.
func (t *turn) replaying() bool { return t.next < t.rec.steps }

// advance folds the recorded events up to seq, and drops the changes of the turn function
// since the last record: they are in the log.
func (t *turn) advance(ctx context.Context, seq int64) error {
	t.pending = nil
	if t.view == nil {
		return t.loadState()
	}
	if err := t.foldUpTo(ctx, seq); err != nil {
		return err
	}
	if t.reload {
		t.reload = false
		return t.loadState()
	}
	t.state.doc, t.state.target = t.state.loaded, t.r.stateVersion
	return nil
}

// foldUpTo folds the recorded events up to seq.
func (t *turn) foldUpTo(ctx context.Context, seq int64) error {
	first := t.folded
	for ; t.folded < len(t.rec.events) && t.rec.events[t.folded].Seq <= seq; t.folded++ {
		name := t.rec.events[t.folded].Type.Name()
		t.reload = t.reload || name == event.CustomPatched || name == event.HeadMoved || name == event.Redacted
	}
	return t.view.Fold(ctx, t.rec.events[first:t.folded]...)
}

// dropReplayed drops the changes of the turn function since the last record, if the log
// has them already with the next record.
func (t *turn) dropReplayed() {
	if t.replaying() {
		t.pending = nil
		t.state.doc, t.state.target = t.state.committed, t.state.version
	}
}

// goLive ends the replay.
func (t *turn) goLive() { t.view, t.rec.events, t.rec.index = nil, nil, nil }

// enter begins a call of the turn function that needs a record. It returns an error for
// nested and concurrent calls, and when the execution has ended.
func (t *turn) enter(ctx context.Context) error {
	if running, ok := runningOf(ctx); ok && running.turn == t {
		return t.stop(ErrNestedEffect)
	}
	if !t.busy.CompareAndSwap(false, true) {
		return t.stop(errConcurrentEffect)
	}
	err := t.alive(ctx)
	if err != nil {
		t.busy.Store(false)
	}
	return err
}

func (t *turn) leave() { t.busy.Store(false) }

// alive returns the error that ended the execution, or the end of a context.
func (t *turn) alive(ctx context.Context) error {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	switch {
	case t.halt != nil:
		return t.halt
	case t.aborted != nil:
		return ErrAborted
	case t.ctx.Err() != nil:
		return t.stopLocked(context.Cause(t.ctx))
	}
	return ctx.Err()
}

// stop ends the execution with an error.
func (t *turn) stop(err error) error {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	return t.stopLocked(err)
}

func (t *turn) stopLocked(err error) error {
	if t.halt == nil {
		t.halt = err
	}
	return t.halt
}

// halted reports whether the execution has ended.
func (t *turn) halted() bool {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	return t.halt != nil
}

// abort cancels the turn. The caller holds r.mu.
func (t *turn) abort(p event.Abort) {
	if t.aborted == nil {
		t.aborted = &p
	}
	t.cancel(ErrAborted)
}

// flush returns the events that are appended before the next record: messages, artifacts
// and the change of the state. The caller holds r.mu.
func (t *turn) flush() ([]event.Event, error) {
	change, err := t.stateChange()
	return slices.Concat(t.pending, change), err
}

// flushed drops the events of flush after they were appended.
func (t *turn) flushed() {
	t.state.committed, t.state.version, t.pending = t.state.doc, t.r.stateVersion, nil
}

// record appends events durably, after the events of flush. The caller holds r.mu.
func (t *turn) record(ctx context.Context, build func() ([]event.Event, error)) error {
	t.goLive()
	first, err := t.flush()
	if err != nil {
		return err
	}
	err = t.r.append(ctx, func() ([]event.Event, error) {
		if t.aborted != nil {
			return nil, ErrAborted
		}
		events, err := build()
		return append(first[:len(first):len(first)], events...), err
	})
	if err != nil {
		return t.failed(err)
	}
	t.flushed()
	return nil
}

// failed ends the execution if the log refuses its appends.
func (t *turn) failed(err error) error {
	if errors.Is(err, event.ErrInvalid) {
		return err // the turn function made an invalid event
	}
	return t.stopLocked(err)
}

// come moves the turn to a record, for Now and NewID.
func (t *turn) come(p point) {
	if p.id != t.point.id {
		t.point, t.ids = p, 0
	}
}

// newID makes an id of the place and a counter.
func (t *turn) newID() string {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	t.ids++
	return uuid.NewSHA1(uuid.Nil, []byte(t.rec.turn.String()+"/"+t.point.id.String()+"/"+strconv.Itoa(t.ids))).String()
}

// key is the idempotency key of the effect at an ordinal, in this session.
func (t *turn) key(ordinal string) string {
	sum := sha256.Sum256([]byte(t.r.session + "\x00" + t.rec.turn.String() + "\x00" + ordinal))
	return hex.EncodeToString(sum[:])
}

// recorded returns the artifacts at the newest record that the turn has reached.
func (t *turn) recorded() []projection.RecordedArtifact {
	states, err := t.reachedStates()
	if err != nil {
		states = t.states() // the next effect has the error
	}
	list, _ := projection.State(states, projection.Artifacts())
	return list.Items
}

// reachedStates are the states at the newest record that the turn has reached, also if other
// writers have appended events since: an execution sees the same as the next one. The caller
// holds r.mu.
func (t *turn) reachedStates() (projection.States, error) {
	if t.view != nil || t.r.foreign <= t.point.seq {
		return t.states(), nil
	}
	l, err := projection.LoadSet(t.ctx, t.r.log, t.r.session, replaySet, projection.Options{At: t.point.seq})
	return l, err
}

// entries are the history for a call of a model: the newest states, with the messages that are
// not appended yet. The caller holds r.mu.
func (t *turn) entries() ([]projection.Entry, error) { return t.entriesIn(t.states()) }

func (t *turn) entriesIn(states projection.States) ([]projection.Entry, error) {
	h, _ := projection.State(states, projection.History())
	entries, err := t.r.rendering.Messages(h, t.r.options.Render)
	if err != nil {
		return nil, err
	}
	for i := range t.pending {
		switch e := &t.pending[i]; e.Type.Name() {
		case event.MessageAdded:
			m, _, err := event.Decode[event.Message](e)
			if err != nil {
				return nil, err
			}
			entries = append(entries, projection.Entry{Message: m})
		case event.CompactionTriggered:
			c, _, err := event.Decode[event.Compaction](e)
			if err != nil {
				return nil, err
			}
			entries = entriesOf(c)
		}
	}
	return paired(entries), nil
}

// paired moves the messages that other writers appended between a call and its result to after
// the result: models refuse them between the two.
func paired(entries []projection.Entry) []projection.Entry {
	var open []string // calls without a result so far
	var out, held []projection.Entry
	for i, x := range entries {
		between := len(open) > 0 && x.Message.Role != event.Tool && x.Message.Role != event.Assistant
		if between && out == nil {
			out = slices.Clone(entries[:i])
		}
		if between {
			held = append(held, x)
			continue
		}
		if x.Message.Role == event.Assistant {
			open = nil
			for _, c := range x.Message.ToolCalls() {
				open = append(open, c.CallID)
			}
		}
		for _, c := range x.Message.ToolResults() {
			open = slices.DeleteFunc(open, func(id string) bool { return id == c.CallID })
		}
		if out == nil {
			continue
		}
		if x.Message.Role == event.Assistant { // the calls before it have no result
			out, held = append(out, held...), nil
		}
		out = append(out, x)
		if len(open) == 0 {
			out, held = append(out, held...), nil
		}
	}
	if out == nil {
		return entries
	}
	return append(out, held...)
}

// entriesOf are the literal messages of a compaction that replaces the history.
func entriesOf(c event.Compaction) (entries []projection.Entry) {
	for _, x := range c.Entries {
		if x.Message != nil {
			entries = append(entries, projection.Entry{Message: *x.Message})
		}
	}
	return entries
}

// elapsed is how long the turn has run, without hibernations. The caller holds r.mu.
func (t *turn) elapsed() time.Duration { return t.rec.spent.busy + t.r.now().Sub(t.started) }

// checkLimits returns ErrLimit if the turn may not make another call. The caller holds
// r.mu.
func (t *turn) checkLimits(model bool) error {
	l, s := t.r.options.Limits, &t.rec.spent
	if l.Calls > 0 && model && s.calls >= l.Calls || l.Tokens > 0 && s.tokens() >= l.Tokens ||
		l.Cost > 0 && s.cost >= l.Cost || l.Time > 0 && t.elapsed() >= l.Time {
		return t.stopLocked(ErrLimit)
	}
	return nil
}

// openCalls are the calls without a result after some events that are not appended yet.
// The caller holds r.mu.
func (r *runner) openCalls(after []event.Event) []projection.OpenCall {
	state, _ := projection.State(r.live, projection.Calls())
	calls := slices.Clone(state.Calls)
	for i := range after {
		if after[i].Type.Name() != event.MessageAdded {
			continue
		}
		m, _, err := event.Decode[event.Message](&after[i])
		if err != nil {
			continue // the append refuses it
		}
		for _, p := range m.ToolCalls() {
			calls = append(calls, projection.OpenCall{CallID: p.CallID, Name: p.Name})
		}
		calls = unanswered(calls, &m)
	}
	return calls
}

// unanswered removes the calls that a message answers.
func unanswered(calls []projection.OpenCall, m *event.Message) []projection.OpenCall {
	for _, p := range m.ToolResults() {
		calls = slices.DeleteFunc(calls, func(c projection.OpenCall) bool { return c.CallID == p.CallID })
	}
	return calls
}

// interrupt makes the messages that close calls.
func interrupt(calls []projection.OpenCall) (events []event.Event) {
	for _, c := range calls {
		events = append(events, event.ToolMessage(event.Part{Type: event.ToolResultPart, CallID: c.CallID, Name: c.Name, IsError: true, Interrupted: true}))
	}
	return events
}

// publish gives a delta to the client and to other readers in this process.
func (t *turn) publish(d eventlog.Delta) {
	t.r.log.Publish(t.r.session, d)
	t.r.out.put(Chunk{Delta: &d, Attempt: d.Attempt})
}

var null = jsontext.Value("null")
