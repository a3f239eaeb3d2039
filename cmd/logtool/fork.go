package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/answers"
)

func (a *app) forkCommand() *cobra.Command {
	var at pointFlags
	var branch branchFlags
	var opts fork.Options
	cmd := a.command(&cobra.Command{
		Use:   "fork SESSION",
		Short: "Begin a session that continues another one, at its head or before",
		Long: `Begin a new session that shares the events of SESSION up to its head, or up to the
place that --at, --at-turn or --at-snapshot names. Nothing is copied. Neither
session sees the later events of the other. fork prints the id and the head of the
new session.

A place inside an open turn is rejected without --force. With --force, the calls
without a result are interrupted in the fork.`,
		Example: "  logtool fork order-42 --at-turn 3 --before --as order-42-again --label \"other model\"",
		Args:    between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			point, err := at.point(cmd)
			if err != nil {
				return err
			}
			if err := checkNewID(cmd, opts.ID); err != nil {
				return err
			}
			opts.Label, opts.Reason = branch.label, branch.reason
			return a.session(cmd.Context(), forChanging, args[0], func(log *eventlog.Log, session string) error {
				return a.fork(cmd.Context(), log, session, point, opts)
			})
		},
	}, traits{section: secBranch, verb: "copying", args: []argument{sessionArg}})
	at.flags(cmd, "at")
	branch.flags(cmd, "the branch")
	newIDFlag(cmd, &opts.ID)
	cmd.Flags().BoolVar(&opts.Force, "force", false, "fork inside an open turn too")
	return cmd
}

func (a *app) fork(ctx context.Context, log *eventlog.Log, parent string, point fork.Point, opts fork.Options) error {
	child, err := fork.At(ctx, log, parent, point, opts)
	if err != nil {
		return err
	}
	return a.answer(answers.NewFork(child, opts), func(p *printer) {
		p.head(child.ID, child.Head, "fork of "+clean(child.Parent)+" at "+at(child.Seq))
	})
}

func (a *app) copyCommand() *cobra.Command {
	var id, into string
	cmd := a.command(&cobra.Command{
		Use:        "copy SESSION",
		SuggestFor: []string{"clone", "cp", "duplicate"},
		Short:      "Copy all events of a session into a new, independent session",
		Long: `Make a new session with all events of SESSION at their seqs, shared and orphaned
(rewound) events included. Each copied event has a new id and names its original;
its cost does not count again. Unlike a fork, the copy needs no other session: once
a fork is copied, its parent can be removed. Redacted events become lost events.

convert and export keep the ids and hashes of events; copy does not.`,
		Example: "  logtool copy order-42-again --as order-43",
		Args:    between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkNewID(cmd, id); err != nil {
				return err
			}
			return a.copyTo(cmd.Context(), args[0], into, fork.CopyOptions{ID: id})
		},
	}, traits{section: secBranch, verb: "copying", args: []argument{sessionArg}})
	newIDFlag(cmd, &id)
	intoFlag(cmd, &into)
	return cmd
}

// copyTo copies a session within the store, or into the store into. That store is
// created if it is missing.
func (a *app) copyTo(ctx context.Context, name, into string, opts fork.CopyOptions) error {
	src, err := a.place()
	if err != nil {
		return err
	}
	dst := src
	if into != "" {
		if dst, err = a.placeNamed(into); err != nil {
			return err
		}
	}
	if src.same(dst) {
		return a.session(ctx, forChanging, name, func(log *eventlog.Log, session string) error { return a.copy(ctx, log, session, opts) })
	}
	return a.session(ctx, forReading, name, func(from *eventlog.Log, session string) error {
		return dst.with(forWriting, func(log *eventlog.Log) error {
			opts.To = log
			return a.copy(ctx, from, session, opts)
		})
	})
}

// copyRow is a new copy with --json.
type copyRow struct {
	answers.Head `json:",inline"`
	Source       string  `json:"source"`
	Erased       []int64 `json:"erased,omitzero"`
}

func (a *app) copy(ctx context.Context, log *eventlog.Log, source string, opts fork.CopyOptions) error {
	c, err := fork.Copy(ctx, log, source, opts)
	if err != nil {
		return err
	}
	return a.answer(copyRow{answers.NewHead(c.ID, c.Head, int(c.Head.Seq)), c.Parent, c.Erased}, func(p *printer) {
		note := "copy of " + clean(c.Parent)
		if n := len(c.Erased); n > 0 {
			note += "; " + count(n, "redacted event") + " lost in it"
		}
		p.head(c.ID, c.Head, note)
	})
}

func (a *app) rewindCommand() *cobra.Command {
	var to pointFlags
	var branch branchFlags
	cmd := a.command(&cobra.Command{
		Use:        "rewind SESSION",
		SuggestFor: []string{"undo", "reset"},
		Short:      "Go back to an earlier place of a session; recover undoes it",
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
			opts := fork.Options{Label: branch.label, Reason: branch.reason}
			return a.move(cmd.Context(), args[0], func(log *eventlog.Log, session string) (fork.Moved, error) {
				return fork.Rewind(cmd.Context(), log, session, point, opts)
			})
		},
	}, traits{section: secBranch, args: []argument{sessionArg}})
	to.flags(cmd, "to")
	branch.flags(cmd, "the orphaned branch")
	return cmd
}

func (a *app) recoverCommand() *cobra.Command {
	var to eventFlag
	var branch branchFlags
	cmd := a.command(&cobra.Command{
		Use:   "recover SESSION",
		Short: "Return to the events that a rewind orphaned, or to any other event",
		Long: `Return to the head of SESSION before the newest rewind with events that are still
orphaned, or to the event that --to names. The newer events are orphaned then, and
can be recovered in turn. logtool tree SESSION shows all branches.`,
		Example: "  logtool recover order-42 --to 12",
		Args:    between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, opts := cmd.Context(), fork.Options{Label: branch.label, Reason: branch.reason}
			if err := to.check(); err != nil {
				return err
			}
			if !to.isSet() {
				return a.move(ctx, args[0], func(log *eventlog.Log, session string) (fork.Moved, error) {
					return fork.Recover(ctx, log, session, opts)
				})
			}
			opts.Force = true // any event
			return a.move(ctx, args[0], func(log *eventlog.Log, session string) (fork.Moved, error) {
				return fork.Rewind(ctx, log, session, to.point, opts)
			})
		},
	}, traits{section: secBranch, args: []argument{sessionArg}})
	to.flag(cmd, "to", "return to this `event`, a seq or an id")
	branch.flags(cmd, "the orphaned branch")
	return cmd
}

// move moves the head of a session, and prints the old and the new place.
func (a *app) move(ctx context.Context, name string, move func(log *eventlog.Log, session string) (fork.Moved, error)) error {
	return a.session(ctx, forChanging, name, func(log *eventlog.Log, session string) error {
		m, err := move(log, session)
		if err != nil {
			return err
		}
		for _, call := range m.Open {
			a.note("note: call %s has no result there: the model sees it as interrupted", clean(call.String()))
		}
		return a.answer(answers.NewMove(m), func(p *printer) {
			p.head(m.Session, m.Head, fmt.Sprintf("from %s to %s", at(m.From), at(m.To)))
		})
	})
}
