package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/eventlog"
)

func (a *app) tailCommand() *cobra.Command {
	var follow bool
	var last int
	var s showing
	cmd := &cobra.Command{
		Use:   "tail SESSION",
		Short: "Show the newest events of a session, and with -f those to come",
		Args:  between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if last < 0 {
				return usagef("-n is a number of events, not %d", last)
			}
			return a.reading(func(log *eventlog.Log) error { return a.tail(cmd.Context(), log, args[0], last, follow, s) })
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what is appended, by any process, until interrupted")
	cmd.Flags().IntVarP(&last, "last", "n", 10, "how many events to begin with")
	s.flags(cmd)
	return cmd
}

func (a *app) tail(ctx context.Context, log *eventlog.Log, name string, last int, follow bool, s showing) error {
	session, err := resolve(ctx, log, name)
	if err != nil {
		return err
	}
	head, err := log.Head(ctx, session)
	if err != nil {
		return err
	}
	show := a.shower(s, holdForShow)
	show.orphans = newOrphans(log, session)
	if last > 0 {
		from := max(1, head.Seq-int64(last)+1)
		for e, err := range log.Read(ctx, session, eventlog.Between(from, head.Seq)) {
			if err != nil {
				return err
			}
			if err := show.event(ctx, e); err != nil {
				return err
			}
		}
	}
	if err := show.stop(nil); err != nil || !follow {
		return err
	}
	show.transcript.most, show.orphans = holdNothing, nil // what comes is on the path
	return followed(ctx, a.follow(ctx, log, session, head.Seq+1, show))
}

// follow shows events as they come, each at once.
func (a *app) follow(ctx context.Context, log *eventlog.Log, session string, from int64, show *shower) error {
	for e, err := range log.Watch(ctx, session, from) {
		if err != nil {
			return err
		}
		if err := show.event(ctx, e); err != nil {
			return err
		}
		if err := show.stop(nil); err != nil {
			return err
		}
	}
	return nil
}

// followed: an interrupt is how following ends.
func followed(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
