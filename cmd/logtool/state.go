package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/projection"
)

// asking is which state is asked for.
type asking struct {
	projection string
	options    projection.Options
	explain    bool
}

func (a *app) stateCommand() *cobra.Command {
	var x asking
	cmd := &cobra.Command{
		Use:   "state SESSION",
		Short: "Print the state of a projection, or how it came about",
		Long: `Print the state of a projection as JSON, read from the newest snapshot and what
came after it. --explain says instead which snapshot that was, which ones could
not be used and why, how much was read, and which branch was chosen among how
many.

Projections: ` + setNames() + `.`,
		Example: `  logtool state order-42 --projection usage
  logtool state order-42 --projection history --at 12
  logtool state order-42 --explain`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := setNamed(x.projection)
			if err != nil {
				return err
			}
			if x.options.At < 0 || x.options.At == 0 && cmd.Flags().Changed("at") {
				return usagef("--at is the seq of an event, from 1, not %d", x.options.At)
			}
			return a.reading(func(log *eventlog.Log) error { return a.state(cmd.Context(), log, args[0], set, x) })
		},
	}
	cmd.Flags().StringVar(&x.projection, "projection", projection.Session().Name, "the projection")
	cmd.Flags().Int64Var(&x.options.At, "at", 0, "as of this event, by its seq")
	cmd.Flags().BoolVar(&x.options.Replay, "replay", false, "use no snapshot, read everything")
	cmd.Flags().BoolVar(&x.explain, "explain", false, "say how the state came about instead")
	return cmd
}

func (a *app) state(ctx context.Context, log *eventlog.Log, name string, set projection.Set, x asking) error {
	session, err := resolve(ctx, log, name)
	if err != nil {
		return err
	}
	l, err := projection.LoadSet(ctx, log, session, set, x.options)
	if err != nil {
		return pastEnd(ctx, log, session, err)
	}
	p := a.printer()
	if x.explain {
		return a.explain(ctx, log, p, l, x)
	}
	state, err := stateOf(l, set)
	if err != nil {
		return err
	}
	if !a.json {
		if state, err = rawjson.Indent(state); err != nil {
			return fmt.Errorf("print JSON: %w", err)
		}
	}
	if err := p.raw(state); err != nil {
		return err
	}
	return p.flush()
}

// pastEnd adds to an error about an event that is not there where the session ends.
func pastEnd(ctx context.Context, log *eventlog.Log, session string, err error) error {
	if !errors.Is(err, eventlog.ErrEventNotFound) {
		return err
	}
	head, unread := log.Head(ctx, session)
	if unread != nil {
		return err
	}
	return fmt.Errorf("%w: the last one is %d", err, head.Seq)
}

// stateOf is the state of the set's one projection, or an object with those of
// all.
func stateOf(l *projection.Loaded, set projection.Set) (jsontext.Value, error) {
	states := map[string]jsontext.Value{}
	for _, part := range set.Parts {
		name := part.ProjectionName()
		state, err := projection.StateJSON(l, name)
		if err != nil || len(set.Parts) == 1 {
			return state, err
		}
		states[name] = state
	}
	return json.Marshal(states, json.Deterministic(true))
}

// explained is what --explain prints with --json.
type explained struct {
	Session string          `json:"session"`
	Seq     int64           `json:"seq"`
	Parts   []partJSON      `json:"parts"`
	Passed  []passedJSON    `json:"passed_over,omitzero"`
	Events  int64           `json:"events"`
	Bytes   int64           `json:"bytes"`
	Bodies  int64           `json:"body_bytes,omitzero"`
	Branch  explainedChoice `json:"branch"`
}

type partJSON struct {
	Projection string `json:"projection"`
	Version    int    `json:"version"`
	Snapshot   int64  `json:"snapshot,omitzero"`
	ID         string `json:"snapshot_id,omitzero"`
	Of         string `json:"of,omitzero"`
	Covers     int64  `json:"covers,omitzero"`
	Folded     int64  `json:"folded"`
}

type passedJSON struct {
	Seq        int64  `json:"seq"`
	ID         string `json:"snapshot_id,omitzero"`
	Projection string `json:"projection"`
	Reason     string `json:"reason"`
}

// explainedChoice is the branch that was chosen, and the others.
type explainedChoice struct {
	Tip    int64   `json:"tip"`
	Others []int64 `json:"others,omitzero"`
}

func newExplained(x *projection.Explain, branches *projection.BranchList) explained {
	out := explained{Session: x.Session, Seq: x.Head.Seq, Events: x.Events, Bytes: x.Bytes, Bodies: x.BodyBytes}
	for _, part := range x.Parts {
		out.Parts = append(out.Parts, partJSON{Projection: part.Projection, Version: part.Version, Snapshot: part.From.Seq,
			ID: part.From.ID, Of: part.From.Projection, Covers: part.From.Covers, Folded: part.Folded})
	}
	for _, passed := range x.Skipped {
		out.Passed = append(out.Passed, passedJSON{passed.Seq, passed.ID, passed.Projection, passed.Err.Error()})
	}
	out.Branch.Tip = branches.Tip
	for _, b := range branches.Orphaned {
		out.Branch.Others = append(out.Branch.Others, b.Tip)
	}
	return out
}

// explain says how a state came about. What the set does not know of branches is
// loaded besides, and not counted.
func (a *app) explain(ctx context.Context, log *eventlog.Log, p *printer, l *projection.Loaded, x asking) error {
	branches, ok := projection.State(l, projection.Branches())
	if !ok {
		view, err := projection.Load(ctx, log, l.Session, projection.Branches(), x.options)
		if err != nil {
			return err
		}
		branches = &view.State
	}
	out := newExplained(&l.Explain, branches)
	if a.json {
		return p.last(out)
	}
	p.printf("%s of %s at %s\n", clean(x.projection), clean(out.Session), at(out.Seq))
	for _, line := range out.from() {
		p.printf("  %s\n", line)
	}
	for _, passed := range out.Passed {
		p.printf("  %s snapshot %s of %s: %s\n", p.paint(yellow, "passed over"), at(passed.Seq), clean(passed.Projection), clean(passed.Reason))
	}
	read := count(out.Events, "event") + ", " + size(out.Bytes)
	if out.Bodies > 0 {
		read += ", and " + size(out.Bodies) + " of snapshots kept elsewhere"
	}
	p.printf("  read %s\n  %s\n", read, out.Branch)
	return p.flush()
}

// from says what the states began from, projections that did alike on one line.
func (x *explained) from() (lines []string) {
	names := map[string][]string{}
	for _, part := range x.Parts {
		line := "from the start"
		if part.Snapshot > 0 {
			line = fmt.Sprintf("from the snapshot %s of %s, which covers all to %s", at(part.Snapshot), clean(part.Of), at(part.Covers))
		}
		line += ", " + count(part.Folded, "event") + " folded"
		if names[line] == nil {
			lines = append(lines, line)
		}
		names[line] = append(names[line], part.Projection)
	}
	if len(lines) == 1 {
		return lines
	}
	for i, line := range lines {
		lines[i] = strings.Join(names[line], ", ") + ": " + line
	}
	return lines
}

// String says which branch was chosen, and how many others there are.
func (c explainedChoice) String() string {
	const most = 5
	text := "on the branch that ends at " + at(c.Tip)
	if len(c.Others) == 0 {
		return text + ", the only one"
	}
	newest := slices.Clone(c.Others)
	slices.Reverse(newest)
	var tips []string
	for _, tip := range newest[:min(len(newest), most)] {
		tips = append(tips, at(tip))
	}
	if len(newest) > most {
		tips = append(tips, "…")
	}
	return text + "; " + count(int64(len(newest)), "other") + ", orphaned, to " + strings.Join(tips, ", ")
}
