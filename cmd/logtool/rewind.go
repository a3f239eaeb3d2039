package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
)

func (a *app) rewindCommand() *cobra.Command {
	var to pointFlags
	var branch branchFlags
	cmd := &cobra.Command{
		Use:   "rewind SESSION",
		Short: "Go back within a session; what is left behind stays and can be recovered",
		Long: `Go back to a place of SESSION: the next event goes on from there. What is behind
it is orphaned: it is no part of the conversation any more, stays in the log, is
marked where it is shown, and logtool recover returns to it. The place may be
inside a turn; calls that have no result there then count as interrupted.`,
		Example: `  logtool rewind order-42 --to 7
  logtool rewind order-42 --to-turn 3 --before --label "dead end"
  logtool recover order-42`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			point, err := to.point(cmd)
			if err != nil {
				return err
			}
			if !to.given(cmd) {
				return usagef("say where to go back to: --to SEQ, --to-turn N or --to-snapshot ID")
			}
			opts := fork.RewindOptions{Label: branch.label, Reason: branch.reason}
			return a.moving(cmd.Context(), args[0], func(log *eventlog.Log, session string) (fork.Moved, error) {
				return fork.Rewind(cmd.Context(), log, session, point, opts)
			})
		},
	}
	to.flags(cmd, "to")
	branch.flags(cmd, "what is left behind")
	return cmd
}

func (a *app) recoverCommand() *cobra.Command {
	var to string
	var branch branchFlags
	cmd := &cobra.Command{
		Use:   "recover SESSION",
		Short: "Return to what the newest rewind left behind, or to any other event",
		Long: `Return to where SESSION was before the newest rewind that still leaves events
orphaned, or to the event that --to names. What was appended since is orphaned
in its place, and can be recovered in turn; logtool tree SESSION shows what there
is.`,
		Example: "  logtool recover order-42\n  logtool recover order-42 --to 12",
		Args:    between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts := fork.RewindOptions{Label: branch.label, Reason: branch.reason}
			if !cmd.Flags().Changed("to") {
				return a.moving(cmd.Context(), args[0], func(log *eventlog.Log, session string) (fork.Moved, error) {
					return fork.Recover(cmd.Context(), log, session, opts)
				})
			}
			point, err := eventPoint("to", to)
			if err != nil {
				return err
			}
			return a.moving(cmd.Context(), args[0], func(log *eventlog.Log, session string) (fork.Moved, error) {
				e, err := fork.Resolve(cmd.Context(), log, session, point)
				if err != nil {
					return fork.Moved{}, fmt.Errorf("recover session %q: %w", session, err)
				}
				return fork.RecoverTo(cmd.Context(), log, session, e.Seq, opts)
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "the event to return to, by its seq or its id")
	branch.flags(cmd, "what is left behind")
	return cmd
}

// moved is a move as rewind and recover print it with --json.
type moveRow struct {
	headRow `json:",inline"`
	From     int64    `json:"from"`
	To       int64    `json:"to"`
	Open     []string `json:"open_calls,omitzero"` // without a result there
}

// moving moves the head of a session, and says between which events.
func (a *app) moving(ctx context.Context, name string, move func(log *eventlog.Log, session string) (fork.Moved, error)) error {
	return a.changing(func(log *eventlog.Log) error {
		session, err := resolve(ctx, log, name)
		if err != nil {
			return err
		}
		m, err := move(log, session)
		if err != nil {
			return err
		}
		var open []string
		for _, call := range m.Open {
			open = append(open, call.CallID)
			fmt.Fprintf(a.err, "note: call %s has no result there: the model sees it as interrupted\n", clean(call.String()))
		}
		p := a.printer()
		if a.json {
			return p.last(moveRow{newHeadRow(m.Session, m.Head, 1), m.From, m.To, open})
		}
		p.head(m.Session, m.Head, fmt.Sprintf("from %s to %s", at(m.From), at(m.To)))
		return p.flush()
	})
}
