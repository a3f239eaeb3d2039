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
	var dry, rebuild bool
	var grace time.Duration
	cmd := a.command(&cobra.Command{
		Use:   "gc",
		Short: "Remove unreferenced blobs, and the leftovers of killed writers",
		Long: `Remove the blobs (big bodies, images, artifacts) that no event, saved torn tail or
backup copy refers to, and the temporary files of killed writers. Blobs younger than
--grace stay: a writer may be about to append an event that refers to one.

If a session is damaged, its blobs are unknown and no blob is removed. Writers that
need a blob wait for gc. A sqlite file does not shrink: its free pages are
overwritten and used again. gc also updates the search index of a sqlite file;
--reindex rebuilds it.`,
		Example: "  logtool store gc --grace 1h --dry-run",
		Args:    between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case grace < 0:
				return usagef("--grace is not negative")
			case dry && rebuild:
				return usagef("--reindex does not go with --dry-run")
			case dry:
				return a.reading(func(log *eventlog.Log) error { return a.gc(cmd.Context(), log, grace, dry) })
			}
			return a.changing(func(log *eventlog.Log) error {
				if err := a.gc(cmd.Context(), log, grace, dry); err != nil {
					return err
				}
				return a.index(cmd.Context(), log, rebuild)
			})
		},
	}, traits{verb: "collecting garbage"})
	cmd.Flags().BoolVar(&dry, "dry-run", false, "list the garbage, and remove nothing")
	cmd.Flags().BoolVar(&rebuild, "reindex", false, "rebuild the search index (sqlite)")
	cmd.Flags().DurationVar(&grace, "grace", 24*time.Hour, "keep younger blobs; 0 keeps none")
	return cmd
}

// index updates the search index, if the store has one, or rebuilds it.
func (a *app) index(ctx context.Context, log *eventlog.Log, rebuild bool) error {
	err := search.Index(ctx, log, rebuild)
	switch {
	case rebuild && errors.Is(err, eventlog.ErrUnsupported):
		return errors.New("a folder has no search index: search reads its files; --reindex is for sqlite")
	case errors.Is(err, eventlog.ErrUnsupported):
		return nil
	case err != nil || !rebuild:
		return err
	}
	done := map[string]bool{"reindexed": true}
	return a.answer(done, func(p *printer) { p.Printf("the search index was rebuilt\n") })
}

// garbageRow is a blob or a file that gc or redact removed, with --json.
type garbageRow struct {
	Blob  event.Digest `json:"blob,omitzero"`
	Path  string       `json:"path,omitzero"`
	Bytes int64        `json:"bytes"`
}

// gcSum is the sum of a run of gc.
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
	a.progress.ReadsAll()
	garbage, err := erase.Collect(ctx, log, opts)
	var rows []garbageRow
	for _, l := range garbage.Leftovers {
		rows = append(rows, garbageRow{Path: l.Path, Bytes: l.Bytes})
	}
	for _, b := range garbage.Blobs {
		rows = append(rows, garbageRow{Blob: b.Digest, Bytes: b.Bytes})
	}
	p := a.printer()
	for _, g := range rows {
		if a.json {
			if err := p.Value(g); err != nil {
				return err
			}
		} else if dry {
			p.Printf("would remove %s, %s\n", clean(string(g.Blob)+g.Path), size(g.Bytes))
		}
	}
	sum := gcSum{int64(len(garbage.Blobs)), int64(len(garbage.Leftovers)), garbage.Bytes(), dry}
	switch {
	case a.json:
		_ = p.Value(sum) // flush returns the error
	case err == nil || len(rows) > 0:
		p.Printf("%s\n", sum.text(grace))
	}
	if flushed := p.Flush(); err == nil {
		err = flushed
	}
	return err
}

func (c gcSum) text(grace time.Duration) string {
	verb := "removed"
	if c.DryRun {
		verb = "to remove"
	}
	text := amounts(amount{c.Blobs, "blob"}, amount{c.Files, "leftover file"}) + " " + verb
	if c.Blobs+c.Files > 0 {
		text += ", " + size(c.Bytes)
	}
	if c.Blobs == 0 && grace > 0 {
		span := grace.String() // without zeros at its end
		for _, zero := range []string{"m0s", "h0m"} {
			if short, ok := strings.CutSuffix(span, zero); ok {
				span = short + zero[:1]
			}
		}
		text += fmt.Sprintf(" (blobs younger than %s are left alone: --grace)", span)
	}
	return text
}
