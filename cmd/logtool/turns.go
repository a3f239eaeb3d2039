package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
)

// turnRange is the flag --turn: some turns of the active path.
type turnRange struct {
	text     string // N or N-M; empty for all events
	from, to int
}

func (x *turnRange) flag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&x.text, "turn", "", "only turn `N`, or the turns N-M, counted from 0 as in runlog")
}

// check parses the flag.
func (x *turnRange) check() error {
	if x.text == "" {
		return nil
	}
	first, last, several := strings.Cut(x.text, "-")
	if !several {
		last = first
	}
	var err, other error
	x.from, err = strconv.Atoi(first)
	x.to, other = strconv.Atoi(last)
	if err != nil || other != nil || x.from < 0 {
		return usagef("--turn is a number from 0, or two with a dash, as in 2-4, not %q", x.text)
	}
	if x.to < x.from {
		return usagef("--turn %s ends before it begins", x.text)
	}
	return nil
}

// seqs are the first and the last event of the turns; zero for all events.
func (x *turnRange) seqs(ctx context.Context, log *eventlog.Log, session string) (from, to int64, err error) {
	if x.text == "" {
		return 0, 0, nil
	}
	before, err := fork.Resolve(ctx, log, session, fork.BeforeTurn(x.from))
	if err != nil {
		return 0, 0, err
	}
	last, err := fork.Resolve(ctx, log, session, fork.AtTurn(x.to))
	return before.Seq + 1, last.Seq, err
}

// entries are the messages of a history that begin in the turns. A made message, which no
// event has, belongs to the message before it.
func (x *turnRange) entries(ctx context.Context, log *eventlog.Log, session string, all history) (history, error) {
	from, to, err := x.seqs(ctx, log, session)
	if err != nil || to == 0 {
		return all, err
	}
	return func(yield func(projection.Entry, error) bool) {
		within := false
		for e, err := range all {
			if e.Seq > 0 {
				within = from <= e.Seq && e.Seq <= to
			}
			if (within || err != nil) && !yield(e, err) {
				return
			}
		}
	}, nil
}
