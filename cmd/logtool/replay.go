package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/step"
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
	var r step.Replayer
	for s, err := range projection.Steps(ctx, log, session, projection.Session(), through) {
		if err == nil {
			row := r.Step(&s)
			if a.json {
				err = p.Value(row)
			} else {
				err = p.step(&row)
			}
		}
		if err != nil {
			_ = p.Flush() // err came first
			return pastEnd(ctx, log, session, err)
		}
	}
	return p.Flush()
}

// stepLines are the changes of an event as text.
func stepLines(row *step.Row) (lines []string) {
	if row.Patch != nil {
		lines = append(lines, patchLine(row.Patch))
	}
	if row.Child != nil {
		name := "child run " + brief(row.ChildID, 40)
		if row.Child.From == row.Child.To {
			lines = append(lines, name+" "+step.Text(row.Child.To)+" again")
		} else {
			lines = append(lines, name+" "+step.Text(row.Child.From)+" → "+step.Text(row.Child.To))
		}
	}
	for _, v := range row.Values {
		if !v.Changed() {
			continue
		}
		lines = append(lines, v.Name+" "+brief(step.Text(v.From), 40)+" → "+brief(step.Text(v.To), 40))
	}
	return lines
}

// patchLine is the patch as text.
func patchLine(x *step.Patch) string {
	name := strings.TrimSpace("state " + brief(x.Name, 40))
	switch {
	case len(x.Patch) == 0:
		return name + ": a redacted patch"
	case !x.Applied:
		return name + " does not change: " + brief(string(x.Patch), 80) + " does not apply"
	}
	return name + ": " + brief(string(x.Patch), 80)
}

// step prints an event with its changes.
func (p *printer) step(row *step.Row) error {
	name := clean(string(row.Type))
	if row.Role != "" {
		name += " " + string(row.Role)
	}
	changes := strings.Join(stepLines(row), " · ")
	if changes == "" {
		changes = p.Paint(term.Dim, "no change")
	}
	_, err := fmt.Fprintf(p, "%s %s  %s\n", p.Paint(term.Dim, at(row.Seq)), name, changes)
	return err
}
