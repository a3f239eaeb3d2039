package main

import (
	"context"
	"errors"
	"sync"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

func (a *app) tailCommand() *cobra.Command {
	var follow bool
	var last int
	var s showOptions
	cmd := &cobra.Command{
		Use:   "tail SESSION...",
		Short: "Show the newest events of sessions, and with -f those to come",
		Long: `Show the newest events of a session, and with -f those that any process appends,
as they come. With several sessions, a line names the one that the events below
it are of.`,
		Example: "  logtool tail order-42\n  logtool tail -f order-42 order-43",
		Args:    between(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if last < 0 {
				return usagef("-n is a number of events, not %d", last)
			}
			if err := a.checkShowing(s); err != nil {
				return err
			}
			return a.reading(func(log *eventlog.Log) error { return a.tail(cmd.Context(), log, args, last, follow, s) })
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what is appended, by any process, until interrupted")
	cmd.Flags().IntVarP(&last, "last", "n", 10, "how many events of each session to begin with")
	s.flags(cmd)
	return cmd
}

func (a *app) tail(ctx context.Context, log *eventlog.Log, names []string, last int, follow bool, s showOptions) error {
	ids, err := a.sessions(ctx, log, names, false)
	if err != nil {
		return err
	}
	t := tail{log: log, named: len(ids) > 1 && !s.raw && !a.json}
	for _, id := range ids {
		show := a.shower(s, holdForShow)
		show.orphans = newOrphans(log, id)
		t.sessions = append(t.sessions, &tailed{id: id, show: show})
	}
	for _, x := range t.sessions {
		if err := t.begin(ctx, x, last); err != nil {
			return err
		}
	}
	if !follow {
		return nil
	}
	return followed(ctx, t.follow(ctx))
}

// tail shows the ends of sessions, one event at a time.
type tail struct {
	log      *eventlog.Log
	sessions []*tailed
	// named: a line names the session whenever another one's events come.
	named bool

	mu     sync.Mutex // of whoever shows
	latest *tailed    // whose events were shown last
}

// tailed is a session whose end is shown.
type tailed struct {
	id   string
	show *eventPrinter
	next int64 // the seq to go on from
}

// begin shows the newest events of a session.
func (t *tail) begin(ctx context.Context, x *tailed, last int) error {
	head, err := t.log.Head(ctx, x.id)
	if err != nil {
		return err
	}
	x.next = head.Seq + 1
	t.turn(x)
	if last > 0 {
		from := max(1, head.Seq-int64(last)+1)
		for e, err := range t.log.Read(ctx, x.id, eventlog.Between(from, head.Seq)) {
			if err == nil {
				err = x.show.event(ctx, e)
			}
			if err != nil {
				return x.show.stop(err)
			}
		}
	}
	err = x.show.stop(nil)
	x.show.transcript.Window, x.show.orphans = holdNothing, nil // what comes is on the path
	return err
}

// turn names the session, unless the events shown last were its own.
func (t *tail) turn(x *tailed) {
	if !t.named || t.latest == x {
		return
	}
	if t.latest != nil {
		x.show.printf("\n")
	}
	t.latest = x
	x.show.printf("%s\n", x.show.paint(bold, "==> "+clean(x.id)+" <=="))
	x.show.renderer.begun = false
}

// follow shows events as they come. The first failure ends it for all sessions.
func (t *tail) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, x := range t.sessions {
		all.Go(func() { cancel(t.watch(ctx, x)) })
	}
	all.Wait()
	return context.Cause(ctx)
}

func (t *tail) watch(ctx context.Context, x *tailed) error {
	for e, err := range t.log.Watch(ctx, x.id, x.next) {
		if err == nil {
			err = t.event(ctx, x, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// event shows one event, at once.
func (t *tail) event(ctx context.Context, x *tailed, e event.Event) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn(x)
	if err := x.show.event(ctx, e); err != nil {
		return err
	}
	return x.show.stop(nil)
}

// followed: an interrupt is how following ends.
func followed(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
