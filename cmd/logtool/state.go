package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/answers"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/projection"
)

// stateOptions choose a state.
type stateOptions struct {
	projection string
	options    projection.Options
	at         eventFlag
	explain    bool
}

func (a *app) stateCommand() *cobra.Command {
	var x stateOptions
	cmd := a.command(&cobra.Command{
		Use:   "show SESSION",
		Short: "Print the state of a projection, or explain how it was loaded",
		Long: `Print the state of a projection as JSON. state reads the newest snapshot and the
events after it. --explain prints the snapshot that was used, the snapshots that
could not be used and why, the number of events read, and the active branch.

Projections: ` + setNames() + `.`,
		Example: "  logtool state show order-42 --projection history --at 12",
		Args:    between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := setNamed(x.projection)
			if err != nil {
				return err
			}
			if err := x.at.check(); err != nil {
				return err
			}
			return a.session(cmd.Context(), forReading, args[0], func(log *eventlog.Log, session string) error {
				var err error
				if x.options.At, err = x.at.seq(cmd.Context(), log, session); err != nil {
					return err
				}
				return a.state(cmd.Context(), log, session, set, x)
			})
		},
	}, traits{verb: "reading", paged: true, content: true, args: []argument{sessionArg}})
	projectionFlag(cmd, &x.projection, "the projection")
	x.at.flag(cmd, "at", atUsage)
	cmd.Flags().BoolVar(&x.options.Replay, "replay", false, "use no snapshot, read everything")
	cmd.Flags().BoolVar(&x.explain, "explain", false, "explain how the state was loaded")
	return cmd
}

func (a *app) state(ctx context.Context, log *eventlog.Log, session string, set projection.Set, x stateOptions) error {
	l, err := projection.LoadSet(ctx, log, session, set, x.options)
	if err != nil {
		return pastEnd(ctx, log, session, err)
	}
	if x.explain {
		return a.explainState(ctx, log, l, x)
	}
	state, err := answers.State(l, set)
	if err == nil && !a.json {
		if state, err = rawjson.Indent(state); err != nil {
			err = fmt.Errorf("print JSON: %w", err)
		}
	}
	if err != nil {
		return err
	}
	p := a.printer()
	if err := p.Raw(state); err != nil {
		return err
	}
	return p.Flush()
}

// pastEnd adds the seq of the last event to an error about a missing event.
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

// explainRow is the output of --explain with --json.
type explainRow struct {
	Session string            `json:"session"`
	Seq     int64             `json:"seq"`
	Parts   []partJSON        `json:"parts"`
	Passed  []skippedSnapshot `json:"passed_over,omitzero"`
	Events  int64             `json:"events"`
	Bytes   int64             `json:"bytes"`
	Bodies  int64             `json:"body_bytes,omitzero"`
	Branch  branchChoice      `json:"branch"`
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

type skippedSnapshot struct {
	Seq        int64  `json:"seq"`
	ID         string `json:"snapshot_id,omitzero"`
	Projection string `json:"projection"`
	Reason     string `json:"reason"`
}

// branchChoice is the tip of the active branch, and the tips of the orphaned ones.
type branchChoice struct {
	Tip    int64   `json:"tip"`
	Others []int64 `json:"others,omitzero"`
}

func newExplainRow(x *projection.Explain, branches *projection.BranchList) explainRow {
	out := explainRow{Session: x.Session, Seq: x.Head.Seq, Events: x.Events, Bytes: x.Bytes, Bodies: x.BodyBytes}
	for _, part := range x.Parts {
		out.Parts = append(out.Parts, partJSON{Projection: part.Projection, Version: part.Version, Snapshot: part.From.Seq,
			ID: part.From.ID, Of: part.From.Projection, Covers: part.From.Covers, Folded: part.Folded})
	}
	for _, passed := range x.Skipped {
		out.Passed = append(out.Passed, skippedSnapshot{passed.Snapshot.Seq, passed.Snapshot.ID, passed.Snapshot.Projection, passed.Err.Error()})
	}
	out.Branch.Tip = branches.Tip
	for _, b := range branches.Orphaned {
		out.Branch.Others = append(out.Branch.Others, b.Tip)
	}
	return out
}

// explainState prints how a state was loaded. If the set has no branches, they are
// loaded apart, and not counted.
func (a *app) explainState(ctx context.Context, log *eventlog.Log, l *projection.Loaded, x stateOptions) error {
	branches, ok := projection.State(l, projection.Branches())
	if !ok {
		view, err := projection.Load(ctx, log, l.Session, projection.Branches(), x.options)
		if err != nil {
			return err
		}
		branches = &view.State
	}
	row := newExplainRow(&l.Explain, branches)
	return a.answer(row, func(p *printer) { p.explain(&row, x.projection) })
}

func (p *printer) explain(x *explainRow, name string) {
	p.Printf("%s of %s at %s\n", clean(name), clean(x.Session), at(x.Seq))
	for _, line := range x.from() {
		p.Printf("  %s\n", line)
	}
	for _, s := range x.Passed {
		p.Printf("  %s snapshot %s of %s: %s\n", p.Paint(term.Yellow, "passed over"), at(s.Seq), clean(s.Projection), clean(s.Reason))
	}
	read := count(x.Events, "event") + ", " + size(x.Bytes)
	if x.Bodies > 0 {
		read += ", and " + size(x.Bodies) + " of snapshots kept elsewhere"
	}
	p.Printf("  read %s\n  %s\n", read, x.Branch)
}

// from names the snapshots that the states began from, one line for each snapshot.
func (x *explainRow) from() (lines []string) {
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

// String names the active branch, and counts the others.
func (c branchChoice) String() string {
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
	return text + "; " + count(len(newest), "other") + ", orphaned, to " + strings.Join(tips, ", ")
}
