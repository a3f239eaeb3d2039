package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
)

// forking is what the fork command was told.
type forkOptions struct {
	point pointFlags
	opts  fork.Options
}

func (a *app) forkCommand() *cobra.Command {
	var x forkOptions
	var branch branchFlags
	cmd := &cobra.Command{
		Use:   "fork SESSION",
		Short: "Begin a session whose past is another one's, up to its head or an earlier place",
		Long: `Begin a session that shares the past of SESSION, up to its head or to the place
that --at, --at-turn or --at-snapshot names, and goes its own way from there.
Nothing is copied, and what either of the two appends the other never sees. The
id and the head are printed as append prints them.

A place inside an open turn is refused unless --force is given; calls without a
result then end in the fork as interrupted.`,
		Example: `  logtool fork order-42 --at-turn 3 --before --as order-42-again --label "other model"
  logtool append order-42-again "try the other address"
  logtool diff order-42 order-42-again`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			point, err := x.point.point(cmd)
			if err != nil {
				return err
			}
			if err := checkNewID(cmd, x.opts.ID); err != nil {
				return err
			}
			x.opts.Label, x.opts.Reason = branch.label, branch.reason
			return a.changing(func(log *eventlog.Log) error { return a.fork(cmd.Context(), log, args[0], point, x.opts) })
		},
	}
	x.point.flags(cmd, "at")
	branch.flags(cmd, "the branch")
	cmd.Flags().StringVar(&x.opts.ID, "as", "", "the id of the new session; a fresh one by default")
	cmd.Flags().BoolVar(&x.opts.Force, "force", false, "fork inside an open turn too")
	return cmd
}

// checkNewID refuses an --as that cannot be a session.
func checkNewID(cmd *cobra.Command, id string) error {
	if !cmd.Flags().Changed("as") {
		return nil
	}
	if err := event.CheckSessionID(id); err != nil {
		return usagef("--as: %v", err)
	}
	return nil
}

// forked is a fork as fork prints it with --json.
type forkRow struct {
	headRow `json:",inline"`
	Parent   string `json:"parent"`
	At       int64  `json:"at"`
	Label    string `json:"label,omitzero"`
	Reason   string `json:"reason,omitzero"`
}

func (a *app) fork(ctx context.Context, log *eventlog.Log, name string, point fork.Point, opts fork.Options) error {
	parent, err := resolve(ctx, log, name)
	if err != nil {
		return err
	}
	child, err := fork.At(ctx, log, parent, point, opts)
	if err != nil {
		return err
	}
	p := a.printer()
	if a.json {
		return p.last(forkRow{newHeadRow(child.ID, child.Head, 1), child.Parent, child.Seq, opts.Label, opts.Reason})
	}
	p.head(child.ID, child.Head, "fork of "+clean(child.Parent)+" at "+at(child.Seq))
	return p.flush()
}
