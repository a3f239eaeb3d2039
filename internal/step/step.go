// Package step compares the states of a session before and after each event.
package step

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/transcript"
	"github.com/convlog/convlog/projection"
)

// Row is an event with the values that it changed, and a line of logtool state replay --json.
type Row struct {
	Seq     int64            `json:"seq"`
	ID      ulid.ULID        `json:"id"`
	Type    event.Type       `json:"type"`
	Role    event.Role       `json:"role,omitzero"` // of a message
	Time    time.Time        `json:"time"`
	Session string           `json:"session"`
	Changes map[string]Range `json:"changes"`
	Patch   *Patch           `json:"patch,omitzero"`
	ChildID string           `json:"child_id,omitzero"` // of child_state in Changes

	// Values are all values, in their order, without the child's.
	Values []Value `json:"-"`
	// Child is the state of a child run before and after the event; nil if the event is of no child run.
	Child *Range `json:"-"`
}

// Range is a value before and after an event; null is no value.
type Range struct {
	From any `json:"from"`
	To   any `json:"to"`
}

// Value is a value of the states.
type Value struct {
	Name string
	Range
}

// Changed reports whether the event changed the value.
func (v *Value) Changed() bool { return v.From != v.To }

// Patch is a change of a custom state.
type Patch struct {
	Name string `json:"name,omitzero"`
	// Patch is the JSON Patch; it is missing if it was redacted.
	Patch   jsontext.Value `json:"patch,omitzero"`
	Applied bool           `json:"applied"`
}

// Replayer compares the states after each event of a session with the states before it. The zero
// Replayer begins before the first event.
type Replayer struct {
	before  []measure
	states  int            // the number of custom states
	skipped map[string]int // the patches of each custom state that did not apply

	children map[string]event.ChildState // by child id
}

// measure is a value that is compared. Its value is a number, a text, or nil.
type measure struct {
	key   string
	name  string
	value any
}

// At returns the values that an event changed, and the states of projection.Session after it, with a
// lean history (projection.Options.Lean). If the event is of a child run, it also reads all events
// before it.
func At(ctx context.Context, log *eventlog.Log, session string, seq int64) (Row, *projection.Loaded, error) {
	e, err := log.Event(ctx, session, seq)
	if err != nil {
		return Row{}, nil, err
	}
	load := func(at int64) (*projection.Loaded, error) {
		return projection.LoadSet(ctx, log, session, projection.Session(), projection.Options{At: at, Lean: true})
	}
	var r Replayer
	var states *projection.Loaded
	folded := false
	if seq > 1 {
		if states, err = load(seq - 1); err == nil {
			r.begin(states)
			folded, err = states.Next(&e)
		}
	}
	if err == nil && !folded {
		states, err = load(seq)
	}
	if err != nil {
		return Row{}, nil, err
	}
	if _, ok := e.Type.ChildState(); ok {
		for e, err := range log.Read(ctx, session, eventlog.Between(1, seq-1)) {
			if err != nil {
				return Row{}, nil, err
			}
			r.child(&e, &Row{Changes: map[string]Range{}})
		}
	}
	return r.Step(&projection.Step{Event: e, States: states}), states, nil
}

// begin makes r continue after some states.
func (r *Replayer) begin(before *projection.Loaded) {
	r.countStates(before)
	r.before = r.measures(newMeasured(before))
}

func (r *Replayer) countStates(l *projection.Loaded) {
	custom, _ := projection.State(l, projection.Custom())
	r.skipped, r.states = map[string]int{}, len(custom.Names())
	for _, name := range custom.Names() {
		r.skipped[name] = custom.Get(name).Skipped
	}
}

// Step compares the states after the next event.
func (r *Replayer) Step(s *projection.Step) Row {
	e := &s.Event
	row := Row{Seq: e.Seq, ID: e.ID, Type: e.Type, Time: e.Timestamp, Session: e.SessionID, Changes: map[string]Range{}}
	if o, ok, err := event.OutlineOf(e); ok && err == nil {
		row.Role = o.Role
	}
	if r.before == nil {
		r.before = r.measures(measuredStates{new(projection.HistoryState), new(projection.CallState), new(projection.ControlState),
			new(projection.ArtifactList), new(projection.BranchList), new(projection.UsageState), new(projection.SessionInfo)})
	}
	r.patch(s, &row)
	r.child(e, &row)
	after := r.measures(newMeasured(s.States))
	for i, m := range after {
		v := Value{m.name, Range{r.before[i].value, m.value}}
		row.Values = append(row.Values, v)
		if v.Changed() {
			row.Changes[m.key] = v.Range
		}
	}
	r.before = after
	return row
}

// patch describes the patch of a custom_patched event, and counts the custom states
// after an event that may change their number.
func (r *Replayer) patch(s *projection.Step, row *Row) {
	e := s.Event.Effective()
	switch e.Type.Name() {
	case event.HeadMoved: // back to the states at its target
		r.countStates(s.States)
	case event.CustomPatched:
		custom, _ := projection.State(s.States, projection.Custom())
		p, err := event.DecodeKept[event.CustomPatch](e)
		if err != nil {
			return
		}
		if r.skipped == nil {
			r.skipped = map[string]int{}
		}
		state := custom.Get(p.Name)
		row.Patch = &Patch{Name: p.Name, Patch: p.Patch, Applied: len(p.Patch) > 0 && state.Skipped <= r.skipped[p.Name]}
		r.skipped[p.Name] = state.Skipped
		r.states = len(custom.Names())
	}
}

// child describes the new state of a child run.
func (r *Replayer) child(e *event.Event, row *Row) {
	state, ok := e.Type.ChildState()
	if !ok {
		return
	}
	p, err := event.DecodeKept[event.Child](e.Effective())
	if err != nil {
		return
	}
	if r.children == nil {
		r.children = map[string]event.ChildState{}
	}
	row.Child = &Range{r.children[p.ChildID], state}
	row.ChildID = p.ChildID
	r.children[p.ChildID] = state
	if row.Child.From != row.Child.To {
		row.Changes["child_state"] = *row.Child
	}
}

// measuredStates are the states whose values are compared.
type measuredStates struct {
	history   *projection.HistoryState
	calls     *projection.CallState
	control   *projection.ControlState
	artifacts *projection.ArtifactList
	branches  *projection.BranchList
	usage     *projection.UsageState
	info      *projection.SessionInfo
}

func newMeasured(l *projection.Loaded) (s measuredStates) {
	s.history, _ = projection.State(l, projection.History())
	s.calls, _ = projection.State(l, projection.Calls())
	s.control, _ = projection.State(l, projection.Control())
	s.artifacts, _ = projection.State(l, projection.Artifacts())
	s.branches, _ = projection.State(l, projection.Branches())
	s.usage, _ = projection.State(l, projection.Usage())
	s.info, _ = projection.State(l, projection.Info())
	return s
}

// measures are the values of the states, always in the same order.
func (r *Replayer) measures(s measuredStates) []measure {
	var turn, runner, hibernation, resumption any
	if s.calls.Turn != nil {
		turn = s.calls.Turn.Index
		if s.calls.Turn.Hibernated != nil {
			hibernation = transcript.At(s.calls.Turn.Hibernated.Seq)
		}
	}
	if s.control.Claim != nil {
		runner = s.control.Claim.Runner
	}
	if n := len(s.control.Resumed); n > 0 {
		resumption = transcript.At(s.control.Resumed[n-1].Seq)
	}
	return []measure{
		{"history", "history", s.history.Len()},
		{"turn", "turn", turn},
		{"hibernation", "hibernation", hibernation},
		{"resumption", "resumption", resumption},
		{"calls", "open calls", len(s.calls.Calls)},
		{"waits", "waits", len(s.calls.Waits)},
		{"effects", "effects", len(s.control.Effects)},
		{"reviews", "reviews", len(s.control.Approvals)},
		{"inputs", "inputs", len(s.control.Inbox)},
		{"children", "child runs", len(s.control.Children)},
		{"custom_states", "custom states", r.states},
		{"artifacts", "artifacts", len(s.artifacts.Items)},
		{"orphaned_branches", "orphaned branches", len(s.branches.Orphaned)},
		{"cost", "cost", s.usage.Total.Cost},
		{"input_tokens", "input tokens", s.usage.Total.Usage.InputTokens},
		{"output_tokens", "output tokens", s.usage.Total.Usage.OutputTokens},
		{"answers", "answers", s.usage.Total.Responses},
		{"title", "title", s.info.Title},
		{"agent", "agent", s.info.Agent},
		{"runner", "runner", runner},
	}
}

// Text writes a value; - is none.
func Text(value any) string {
	switch v := value.(type) {
	case int:
		return transcript.Thousands(int64(v))
	case int64:
		return transcript.Thousands(v)
	case event.Cost:
		return "$" + v.String()
	case event.ChildState:
		return Text(string(v))
	case string:
		if v != "" {
			return v
		}
	}
	return "-"
}
