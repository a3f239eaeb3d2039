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
		Short: "Go back to an earlier place of a session; logtool recover undoes it",
		Long: `Go back to a place of SESSION: the next event continues from there. The events
after the place are orphaned. They stay in the log, are marked in the output, and
are no part of the conversation. logtool recover returns to them. If the place is
inside a turn, its calls without a result count as interrupted.`,
		Example: "  logtool rewind order-42 --to-turn 3 --before --label \"dead end\"",
		Args:    between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			point, err := to.point(cmd)
			if err != nil {
				return err
			}
			if to.count(cmd) == 0 {
				return usagef("name the place to go back to: --to SEQ, --to-turn N or --to-snapshot ID")
			}
			opts := fork.RewindOptions{Label: branch.label, Reason: branch.reason}
			return a.move(cmd.Context(), args[0], func(log *eventlog.Log, session string) (fork.Moved, error) {
				return fork.Rewind(cmd.Context(), log, session, point, opts)
			})
		},
	}
	to.flags(cmd, "to")
	branch.flags(cmd, "the orphaned branch")
	return cmd
}

func (a *app) recoverCommand() *cobra.Command {
	var to string
	var branch branchFlags
	cmd := &cobra.Command{
		Use:   "recover SESSION",
		Short: "Return to the events that the newest rewind orphaned, or to any other event",
		Long: `Return to the head of SESSION before the newest rewind whose events are still
orphaned, or to the event that --to names. The newer events are orphaned then, and
can be recovered in turn. logtool tree SESSION shows all branches.`,
		Example: "  logtool recover order-42 --to 12",
		Args:    between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, opts := cmd.Context(), fork.RewindOptions{Label: branch.label, Reason: branch.reason}
			if !cmd.Flags().Changed("to") {
				return a.move(ctx, args[0], func(log *eventlog.Log, session string) (fork.Moved, error) {
					return fork.Recover(ctx, log, session, opts)
				})
			}
			point, err := eventPoint("to", to)
			if err != nil {
				return err
			}
			return a.move(ctx, args[0], func(log *eventlog.Log, session string) (fork.Moved, error) {
				e, err := fork.Resolve(ctx, log, session, point)
				if err != nil {
					return fork.Moved{}, fmt.Errorf("recover session %q: %w", session, err)
				}
				return fork.RecoverTo(ctx, log, session, e.Seq, opts)
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "the event to return to, by its seq or its id")
	branch.flags(cmd, "the orphaned branch")
	return cmd
}

// moveRow is a rewind or a recovery with --json.
type moveRow struct {
	headRow `json:",inline"`
	From    int64    `json:"from"`
	To      int64    `json:"to"`
	Open    []string `json:"open_calls,omitzero"` // calls without a result
}

// move moves the head of a session, and prints the old and the new place.
func (a *app) move(ctx context.Context, name string, move func(log *eventlog.Log, session string) (fork.Moved, error)) error {
	return a.session(ctx, forChanging, name, func(log *eventlog.Log, session string) error {
		m, err := move(log, session)
		if err != nil {
			return err
		}
		var open []string
		for _, call := range m.Open {
			open = append(open, call.CallID)
			fmt.Fprintf(a.err, "note: call %s has no result there: the model sees it as interrupted\n", clean(call.String()))
		}
		return a.answer(moveRow{newHeadRow(m.Session, m.Head, 1), m.From, m.To, open}, func(p *printer) {
			p.head(m.Session, m.Head, fmt.Sprintf("from %s to %s", at(m.From), at(m.To)))
		})
	})
}
