package main

import (
	"context"
	"errors"
	"sync"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/answers"
	"github.com/convlog/convlog/internal/transcript"
)

func (a *app) tailCommand() *cobra.Command {
	var follow bool
	var last int
	var s showOptions
	cmd := a.command(&cobra.Command{
		Use:   "tail SESSION...",
		Short: "Show the newest events of sessions, and with -f new ones",
		Long: `Show the newest events of sessions. -f then shows the events that any process
appends, as they come. With several sessions, a line with the name of the session
comes before its events.`,
		Example: "  logtool tail -f order-42 order-43",
		Args:    between(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if last < 0 {
				return usagef("--limit is a number of events, not %d", last)
			}
			if err := a.checkShow(s); err != nil {
				return err
			}
			return a.reading(func(log *eventlog.Log) error { return a.tail(cmd.Context(), log, args, last, follow, s) })
		},
	}, traits{section: secRead, content: true, args: []argument{sessionArg, more}})
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "show new events of any process, until interrupted")
	limitFlag(cmd, &last, 10, "begin with the newest `n` events of each session; 0 with none")
	s.flags(cmd)
	return cmd
}

func (a *app) tail(ctx context.Context, log *eventlog.Log, names []string, last int, follow bool, s showOptions) error {
	ids, err := a.sessions(ctx, log, names, false)
	if err != nil {
		return err
	}
	t := tail{log: log, headings: len(ids) > 1 && !s.raw && !a.json}
	for _, id := range ids {
		x := &tailSession{id: id, out: a.eventPrinter(s, transcript.Window)}
		if err := t.begin(ctx, x, last); err != nil {
			return err
		}
		t.sessions = append(t.sessions, x)
	}
	if !follow {
		return nil
	}
	err = t.follow(ctx)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // an interrupt ends -f
	}
	return err
}

// tail shows the ends of sessions.
type tail struct {
	log      *eventlog.Log
	sessions []*tailSession
	headings bool // print the name of a session before its events

	mu      sync.Mutex   // of the output
	printed *tailSession // the session of the newest output
}

// tailSession is one session of a tail.
type tailSession struct {
	id   string
	out  *eventPrinter
	next int64 // the seq of the next event to watch for
}

// begin shows the newest events of a session.
func (t *tail) begin(ctx context.Context, x *tailSession, last int) error {
	head, err := t.log.Head(ctx, x.id)
	if err != nil {
		return err
	}
	x.next, x.out.marker = head.Seq+1, &answers.PathMarker{Log: t.log, Session: x.id}
	t.heading(x)
	if last > 0 {
		for e, err := range t.log.Read(ctx, x.id, eventlog.Between(max(1, x.next-int64(last)), head.Seq)) {
			if err == nil {
				err = x.out.event(ctx, e)
			}
			if err != nil {
				return x.out.stop(err)
			}
		}
	}
	err = x.out.stop(nil)
	x.out.transcript.Window, x.out.marker = 0, nil // new events are on the path, and are shown at once
	return err
}

// heading names the session, unless the newest output is of the same session.
func (t *tail) heading(x *tailSession) {
	if !t.headings || t.printed == x {
		return
	}
	if t.printed != nil {
		x.out.Printf("\n")
	}
	t.printed = x
	x.out.Printf("%s\n", x.out.Paint(term.Bold, "==> "+clean(x.id)+" <=="))
	x.out.renderer.begun = false
}

// follow shows new events. The first failure ends it for all sessions.
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

func (t *tail) watch(ctx context.Context, x *tailSession) error {
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

// event shows one new event.
func (t *tail) event(ctx context.Context, x *tailSession, e event.Event) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heading(x)
	if err := x.out.event(ctx, e); err != nil {
		return err
	}
	return x.out.stop(nil)
}
