package main

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
)

func (a *app) copyCommand() *cobra.Command {
	var id, to string
	cmd := &cobra.Command{
		Use:   "copy SESSION",
		Short: "Make a session of its own with all events of another, which it does not need",
		Long: `Make a session with all events of SESSION at their seqs, what it shares with its
parents and what was rewound included. Its events have ids of their own and
name their originals; their costs do not count again. Unlike a fork the copy
needs no other session, so a fork that was copied no longer keeps its parent
from being removed. Redacted events are lost events in it.

To move sessions as they are, with ids and hashes, see convert and export.`,
		Example: "  logtool copy order-42-again --as order-43\n  logtool copy order-42 --to other.db",
		Args:    between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkNewID(cmd, id); err != nil {
				return err
			}
			opts := fork.CopyOptions{ID: id}
			if to == "" {
				return a.changing(func(log *eventlog.Log) error { return a.copy(cmd.Context(), log, args[0], opts) })
			}
			return a.copyTo(cmd.Context(), args[0], to, opts)
		},
	}
	cmd.Flags().StringVar(&id, "as", "", "the id of the copy; a fresh one by default")
	cmd.Flags().StringVar(&to, "to", "", "make it in this store")
	return cmd
}

// copyTo copies into another store, which is made if need be.
func (a *app) copyTo(ctx context.Context, name, to string, opts fork.CopyOptions) error {
	src, err := a.place()
	if err != nil {
		return err
	}
	dst, err := parsePlace(to, isFile, isDir)
	if err != nil {
		return err
	}
	if filepath.Clean(src.path) == filepath.Clean(dst.path) {
		return a.changing(func(log *eventlog.Log) error { return a.copy(ctx, log, name, opts) })
	}
	dst.wait = a.wait
	return src.with(forReading, func(from *eventlog.Log) error {
		if _, err := resolve(ctx, from, name); err != nil {
			return err // before the other store is made
		}
		return dst.with(forWriting, func(log *eventlog.Log) error {
			opts.To = log
			return a.copy(ctx, from, name, opts)
		})
	})
}

// copied is a copy as copy prints it with --json.
type copyRow struct {
	headRow `json:",inline"`
	Source   string  `json:"source"`
	Erased   []int64 `json:"erased,omitzero"`
}

func (a *app) copy(ctx context.Context, log *eventlog.Log, name string, opts fork.CopyOptions) error {
	source, err := resolve(ctx, log, name)
	if err != nil {
		return err
	}
	c, err := fork.Copy(ctx, log, source, opts)
	if err != nil {
		return err
	}
	p := a.printer()
	if a.json {
		return p.last(copyRow{newHeadRow(c.ID, c.Head, int(c.Head.Seq)), c.Source, c.Erased})
	}
	note := "copy of " + clean(c.Source)
	if n := len(c.Erased); n > 0 {
		note += "; " + count(int64(n), "redacted event") + " lost in it"
	}
	p.head(c.ID, c.Head, note)
	return p.flush()
}
