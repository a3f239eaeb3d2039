package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
)

func (a *app) replayCommand() *cobra.Command {
	var to pointFlags
	var x stateOptions
	cmd := a.command(&cobra.Command{
		Use:   "replay SESSION",
		Short: "Step through the states of a session, event by event",
		Long: `Print each event of a session with what it changed in the states: the length of the
history, open calls, waits and reviews, custom states, artifacts, the cost so far.
The states at an event are the states that state --at prints. A rewind goes back to
the states at its target. In a fork, the events that it shares with its parent come
first.

--to, --to-turn and --to-snapshot end there, and print the state as state
--at does. With --json each event is an object, with the values before and after
it; the state is the last line.`,
		Example: "  logtool state replay order-42\n  logtool state replay order-42 --to-turn 2 --projection history",
		Args:    between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := setNamed(x.projection)
			if err != nil {
				return err
			}
			point, err := to.point(cmd)
			if err != nil {
				return err
			}
			ends := to.count(cmd) > 0
			if !ends && cmd.Flags().Changed("projection") {
				return usagef("--projection is the state at the end: give --to, --to-turn or --to-snapshot too")
			}
			return a.session(cmd.Context(), forReading, args[0], func(log *eventlog.Log, session string) error {
				if !ends {
					return a.replay(cmd.Context(), log, session, 0)
				}
				last, err := fork.Resolve(cmd.Context(), log, session, point)
				if err != nil {
					return pastEnd(cmd.Context(), log, session, err)
				}
				if last.Seq == 0 {
					return usagef("--to: no event is before the first one")
				}
				if err := a.replay(cmd.Context(), log, session, last.Seq); err != nil {
					return err
				}
				x.options.At = last.Seq
				return a.state(cmd.Context(), log, session, set, x)
			})
		},
	}, traits{verb: "reading", paged: true, content: true, args: []argument{sessionArg}})
	to.flags(cmd, "to")
	projectionFlag(cmd, &x.projection, "the projection whose state is printed at the end")
	return cmd
}

// replay prints the events up to event through; 0 is the head.
func (a *app) replay(ctx context.Context, log *eventlog.Log, session string, through int64) error {
	p := a.printer()
	var r replayer
	for s, err := range projection.Steps(ctx, log, session, projection.Session(), through) {
		if err == nil {
			row := r.step(&s)
			if a.json {
				err = p.Value(row)
			} else {
				err = p.step(row)
			}
		}
		if err != nil {
			_ = p.Flush() // err came first
			return pastEnd(ctx, log, session, err)
		}
	}
	return p.Flush()
}

// stepRow is an event of replay with --json.
type stepRow struct {
	Seq     int64                 `json:"seq"`
	ID      ulid.ULID             `json:"id"`
	Type    event.Type            `json:"type"`
	Role    event.Role            `json:"role,omitzero"` // of a message
	Time    time.Time             `json:"time"`
	Session string                `json:"session"`
	Changes map[string]valueRange `json:"changes"`
	Patch   *patchRow             `json:"patch,omitzero"`
	ChildID string                `json:"child_id,omitzero"` // of child_state in Changes

	lines []string // the changes as text
}

// valueRange is a value before and after an event; null is no value.
type valueRange struct {
	From any `json:"from"`
	To   any `json:"to"`
}

// patchRow is a change of a custom state.
type patchRow struct {
	Name string `json:"name,omitzero"`
	// Patch is the JSON Patch; it is missing if it was redacted.
	Patch   jsontext.Value `json:"patch,omitzero"`
	Applied bool           `json:"applied"`
}

// replayer compares the states after an event with the states before it.
type replayer struct {
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

func (r *replayer) step(s *projection.Step) stepRow {
	e := &s.Event
	row := stepRow{Seq: e.Seq, ID: e.ID, Type: e.Type, Time: e.Timestamp, Session: e.SessionID, Changes: map[string]valueRange{}}
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
		if before := r.before[i].value; before != m.value {
			row.Changes[m.key] = valueRange{before, m.value}
			row.lines = append(row.lines, m.name+" "+measured(before)+" → "+measured(m.value))
		}
	}
	r.before = after
	return row
}

// patch describes the patch of a custom_patched event, and counts the custom states
// after an event that may change their number.
func (r *replayer) patch(s *projection.Step, row *stepRow) {
	e := s.Event.Effective()
	custom, _ := projection.State(s.States, projection.Custom())
	switch e.Type.Name() {
	default:
		return
	case event.HeadMoved: // back to the states at its target
		r.skipped = map[string]int{}
		for _, name := range custom.Names() {
			r.skipped[name] = custom.Get(name).Skipped
		}
	case event.CustomPatched:
		p, err := event.DecodeKept[event.CustomPatch](e)
		if err != nil {
			return
		}
		if r.skipped == nil {
			r.skipped = map[string]int{}
		}
		state := custom.Get(p.Name)
		row.Patch = &patchRow{Name: p.Name, Patch: p.Patch, Applied: len(p.Patch) > 0 && state.Skipped <= r.skipped[p.Name]}
		r.skipped[p.Name] = state.Skipped
		row.lines = append(row.lines, row.Patch.line())
	}
	r.states = len(custom.Names())
}

// child describes the new state of a child run.
func (r *replayer) child(e *event.Event, row *stepRow) {
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
	before, name := r.children[p.ChildID], "child run "+brief(p.ChildID, 40)
	r.children[p.ChildID], row.ChildID = state, p.ChildID
	if before == state {
		row.lines = append(row.lines, name+" "+string(state)+" again")
		return
	}
	row.Changes["child_state"] = valueRange{before, state}
	row.lines = append(row.lines, name+" "+measured(string(before))+" → "+string(state))
}

// line is the patch as text.
func (x *patchRow) line() string {
	name := strings.TrimSpace("state " + brief(x.Name, 40))
	switch {
	case len(x.Patch) == 0:
		return name + ": a redacted patch"
	case !x.Applied:
		return name + " does not change: " + brief(string(x.Patch), 80) + " does not apply"
	}
	return name + ": " + brief(string(x.Patch), 80)
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
func (r *replayer) measures(s measuredStates) []measure {
	var turn, runner, hibernation, resumption any
	if s.calls.Turn != nil {
		turn = s.calls.Turn.Index
		if s.calls.Turn.Hibernated != nil {
			hibernation = at(s.calls.Turn.Hibernated.Seq)
		}
	}
	if s.control.Claim != nil {
		runner = s.control.Claim.Runner
	}
	if n := len(s.control.Resumed); n > 0 {
		resumption = at(s.control.Resumed[n-1].Seq)
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

// measured writes a value; - is none.
func measured(value any) string {
	switch v := value.(type) {
	case int:
		return thousands(v)
	case int64:
		return thousands(v)
	case event.Cost:
		return "$" + v.String()
	case string:
		if v != "" {
			return brief(v, 40)
		}
	}
	return "-"
}

// step prints an event with its changes.
func (p *printer) step(row stepRow) error {
	name := clean(string(row.Type))
	if row.Role != "" {
		name += " " + string(row.Role)
	}
	changes := strings.Join(row.lines, " · ")
	if changes == "" {
		changes = p.Paint(term.Dim, "no change")
	}
	_, err := fmt.Fprintf(p, "%s %s  %s\n", p.Paint(term.Dim, at(row.Seq)), name, changes)
	return err
}
