package main

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/answers"
	"github.com/convlog/convlog/internal/httpapi"
	"github.com/convlog/convlog/internal/transcript"
	"github.com/convlog/convlog/prices"
)

func (a *app) diffCommand() *cobra.Command {
	var s showOptions
	var prices priceFlag
	cmd := a.command(&cobra.Command{
		Use:   "diff A B",
		Short: "Compare two branches, or two attempts at one task",
		Long: `Compare the paths of two sessions that have a common ancestor: their last common
event, then the other events of each path, one line per event. SESSION@SEQ is the
path that ends with that event. Both paths may be in one session, to compare an
orphaned branch with the active one. --full prints the events in full.

Two sessions without a common event are compared as two attempts at one task: turns,
calls, tokens, cost, the first call that differs, and the files that they changed. The
folders of the sessions count as equal.`,
		Example: "  logtool diff order-42@8 order-42\n  logtool diff order-42 order-43",
		Args:    between(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.checkShow(s); err != nil {
				return err
			}
			if err := prices.read(); err != nil {
				return err
			}
			return a.reading(func(log *eventlog.Log) error { return a.diff(cmd.Context(), log, args[0], args[1], s, prices.table) })
		},
	}, traits{section: secRead, verb: "comparing", paged: true, content: true, args: []argument{sessionArg, sessionArg}})
	s.flags(cmd)
	prices.flag(cmd)
	return cmd
}

// tipNamed parses SESSION or SESSION@SEQ. It looks for a session with the whole
// name first.
func tipNamed(ctx context.Context, log *eventlog.Log, text string) (fork.Tip, error) {
	session, err := resolve(ctx, log, text)
	if err == nil {
		return fork.Tip{Session: session}, nil
	}
	i := strings.LastIndexByte(text, '@')
	if i < 0 {
		return fork.Tip{}, err
	}
	seq, bad := strconv.ParseInt(text[i+1:], 10, 64)
	if bad != nil || seq < 1 {
		return fork.Tip{}, err
	}
	session, err = resolve(ctx, log, text[:i])
	return fork.Tip{Session: session, Seq: seq}, err
}

func (a *app) diff(ctx context.Context, log *eventlog.Log, left, right string, s showOptions, table *prices.Table) error {
	x, err := tipNamed(ctx, log, left)
	if err != nil {
		return err
	}
	y, err := tipNamed(ctx, log, right)
	if err != nil {
		return err
	}
	d, err := fork.Diff(ctx, log, x, y)
	if errors.Is(err, fork.Error("unrelated")) && x.Seq == 0 && y.Seq == 0 {
		return a.diffAttempts(ctx, log, x.Session, y.Session, table)
	}
	if err != nil {
		return err
	}
	if a.json {
		return a.diffJSON(ctx, &d)
	}
	p := a.printer()
	if err := p.ancestor(ctx, log, d.Ancestor); err != nil {
		return err
	}
	for _, side := range []*fork.Side{&d.A, &d.B} {
		p.Printf("\n%s has %s of its own\n", p.Paint(term.Bold, clean(side.Tip.Session)+" to "+at(side.Tip.Seq)), count(side.Len(), "event"))
		if err := p.Flush(); err != nil {
			return err
		}
		if err := a.side(ctx, p, side, s); err != nil {
			return err
		}
	}
	return p.Flush()
}

// ancestor prints the last common event.
func (p *printer) ancestor(ctx context.Context, log *eventlog.Log, t fork.Tip) error {
	if t.Seq == 0 {
		p.Printf("nothing in common\n")
		return nil
	}
	e, err := log.Event(ctx, t.Session, t.Seq)
	if err != nil {
		return err
	}
	p.Printf("common up to %s of %s\n%s %s\n", at(t.Seq), p.Paint(term.Bold, clean(t.Session)), p.Paint(term.Dim, at(t.Seq)), gist(p, &e))
	return nil
}

// side prints the events of one side, in full or a line for each.
func (a *app) side(ctx context.Context, p *printer, side *fork.Side, s showOptions) error {
	whole := a.eventPrinter(s, transcript.Window)
	for e, err := range side.Events(ctx) {
		switch {
		case err != nil:
			return err
		case s.full || s.raw:
			err = whole.event(ctx, e)
		default:
			p.Printf("%s %s\n", p.Paint(term.Dim, at(e.Seq)), gist(p, &e))
		}
		if err != nil {
			return err
		}
	}
	return whole.stop(p.Flush())
}

func (a *app) diffJSON(ctx context.Context, d *fork.Difference) error {
	p := a.printer()
	if err := p.Value(answers.NewDifference(d)); err != nil {
		return err
	}
	for i, side := range []*fork.Side{&d.A, &d.B} {
		for e, err := range side.Events(ctx) {
			if err == nil {
				err = p.Value(answers.SideEvent{Side: "ab"[i : i+1], Event: httpapi.NewEvent(&e)})
			}
			if err != nil {
				return err
			}
		}
	}
	return p.Flush()
}
