package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/search"
	"github.com/convlog/convlog/upkeep/erase"
)

func (a *app) gcCommand() *cobra.Command {
	var dry, anew bool
	var grace time.Duration
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Remove bodies that no event needs, and what killed writers left",
		Long: `Remove the blobs (big bodies, images, artifacts) that no event of any session
needs, and the temporary files of writers that were killed. Blobs younger than
--grace stay, as the event that is to need one may be still to come; those that
a saved torn tail or a kept copy names stay too.

When a session is damaged the blobs in use cannot be told, and none is removed.
Writers that need a blob wait meanwhile. A sqlite file does not shrink: what is
freed is overwritten and used again. The index that search uses there is brought
up to date, or made anew with --reindex.`,
		Example: "  logtool gc --dry-run\n  logtool gc --grace 1h",
		Args:    between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if grace < 0 {
				return usagef("--grace is not negative")
			}
			if dry && anew {
				return usagef("--reindex cannot be tried with --dry-run")
			}
			if dry {
				return a.reading(func(log *eventlog.Log) error { return a.gc(cmd.Context(), log, grace, dry) })
			}
			return a.changing(func(log *eventlog.Log) error {
				if err := a.gc(cmd.Context(), log, grace, dry); err != nil {
					return err
				}
				if err := index(cmd.Context(), log, anew); err != nil || !anew {
					return err
				}
				return a.reindexed()
			})
		},
	}
	cmd.Flags().BoolVarP(&dry, "dry-run", "n", false, "list what would go, and remove nothing")
	cmd.Flags().BoolVar(&anew, "reindex", false, "make the index anew that search uses (sqlite)")
	cmd.Flags().DurationVar(&grace, "grace", 24*time.Hour, "leave younger blobs alone; 0 leaves none")
	return cmd
}

// index brings an index up to date, if the store has one.
func index(ctx context.Context, log *eventlog.Log, anew bool) error {
	err := search.Index(ctx, log, anew)
	switch {
	case !errors.Is(err, eventlog.ErrUnsupported):
		return err
	case anew:
		return errors.New("a folder has no index to be made anew: search reads its files; --reindex is for sqlite")
	}
	return nil
}

// reindexed says that the index was made anew.
func (a *app) reindexed() error {
	p := a.printer()
	if a.json {
		return p.last(struct {
			Reindexed bool `json:"reindexed"`
		}{true})
	}
	p.printf("the index that search uses was made anew\n")
	return p.flush()
}

// gone is a blob or a file that gc removed, or would, as it prints it with
// --json.
type garbageRow struct {
	Blob  event.Digest `json:"blob,omitzero"`
	Path  string       `json:"path,omitzero"`
	Bytes int64        `json:"bytes"`
}

// collected sums up a run of gc.
type gcSum struct {
	Blobs  int64 `json:"blobs"`
	Files  int64 `json:"files"`
	Bytes  int64 `json:"bytes"`
	DryRun bool  `json:"dry_run,omitzero"`
}

func (a *app) gc(ctx context.Context, log *eventlog.Log, grace time.Duration, dry bool) error {
	opts := erase.CollectOptions{Grace: grace, DryRun: dry}
	if grace == 0 {
		opts.Grace = -1
	}
	garbage, err := erase.Collect(ctx, log, opts)
	p := a.printer()
	list := goneOf(&garbage)
	for _, g := range list {
		if a.json {
			if err := p.value(g); err != nil {
				return err
			}
		} else if dry {
			p.printf("would remove %s, %s\n", clean(string(g.Blob)+g.Path), size(g.Bytes))
		}
	}
	sum := gcSum{int64(len(garbage.Blobs)), int64(len(garbage.Leftovers)), garbage.Bytes(), dry}
	switch {
	case a.json:
		if err := p.value(sum); err != nil {
			return err
		}
	case err == nil || len(list) > 0:
		p.printf("%s\n", sum.text(grace))
	}
	if flushed := p.flush(); err == nil {
		err = flushed
	}
	return err
}

func goneOf(garbage *erase.Garbage) []garbageRow {
	var list []garbageRow
	for _, l := range garbage.Leftovers {
		list = append(list, garbageRow{Path: l.Path, Bytes: l.Bytes})
	}
	for _, b := range garbage.Blobs {
		list = append(list, garbageRow{Blob: b.Digest, Bytes: b.Bytes})
	}
	return list
}

func (c gcSum) text(grace time.Duration) string {
	verb := "removed"
	if c.DryRun {
		verb = "to remove"
	}
	text := fmt.Sprintf("%s and %s %s, %s", count(c.Blobs, "blob"), count(c.Files, "leftover file"), verb, size(c.Bytes))
	if c.Blobs == 0 && grace > 0 {
		text += fmt.Sprintf(" (blobs younger than %s are left alone: --grace)", span(grace))
	}
	return text
}

// span is a duration without the parts that are zero at its end.
func span(d time.Duration) string {
	text := d.String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}
