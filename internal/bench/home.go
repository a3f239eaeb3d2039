//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/claude"
	"github.com/convlog/convlog/runlog/stats"
	"github.com/convlog/convlog/search"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
)

// The home of a person who has used Claude Code for some months: 300 MB in 582 files.
const (
	homeFiles   = 582
	homeRecords = 360 // a file
)

// homeTrials have a row for each operation that a person waits for, over a home, and each store.
var homeTrials = []trial{
	homeTrial("jsonl", func(b *bench) eventlog.Store { return jsonl.New(b.path("")) }),
	homeTrial("sqlite", func(b *bench) eventlog.Store { return sqlite.New(b.path(".db")) }),
}

func homeTrial(kind string, open func(b *bench) eventlog.Store) trial {
	const files = "a home of 582 transcripts"
	of := func(name, measured, against string) row {
		return row{name: "home/" + name + "/" + kind, measured: measured, against: against, unit: nanoseconds}
	}
	return trial{
		named: true,
		rows: []row{
			of("import", "the first import of "+files, "a search of the files for a word that is nowhere"),
			of("again", "an import when nothing is new", "the same"),
			of("word", "a search for a word that is nowhere", "the same"),
			of("list", "a list with names and sums, in the catalog", "the same"),
		},
		measure: func(ctx context.Context, b *bench) ([]figure, error) { return measureHome(ctx, b, open(b)) },
	}
}

func measureHome(ctx context.Context, b *bench, store eventlog.Store) ([]figure, error) {
	dir, files, err := b.transcripts(homeFiles, homeRecords)
	if err != nil {
		return nil, err
	}
	log := b.open(store)
	again := func(ctx context.Context) error {
		_, err := interop.Import(ctx, log, []interop.Format{claude.Format{}}, []string{dir})
		return err
	}
	word := func(ctx context.Context) error {
		n, err := countHits(ctx, log, search.Query{Text: noWord})
		return errors.Join(err, expectCount(n, 0))
	}
	list := func(ctx context.Context) error { return listHome(ctx, log) }
	bare := func(context.Context) error {
		for _, file := range files {
			if bytes.Contains(file, []byte(noWord)) {
				return errors.New("the word is in a file")
			}
		}
		return nil
	}
	start := time.Now()
	if err := again(ctx); err != nil {
		return nil, err
	}
	first := float64(time.Since(start).Nanoseconds())
	if err := finishIndexing(ctx, log); err != nil {
		return nil, err
	}
	if err := list(ctx); err != nil { // makes the rows of the catalog
		return nil, err
	}
	var figures []figure
	for _, ours := range []func(context.Context) error{again, word, list} {
		all, err := compare(ctx, b.sizes.rounds, timed(ours), timed(bare), samples.times)
		if err != nil {
			return nil, err
		}
		figures = append(figures, all...)
	}
	theirs := figures[0].theirs
	return append([]figure{{ours: first, theirs: theirs, ratio: first / theirs}}, figures...), nil
}

// timed is a side whose figure is the time of f.
func timed(f func(context.Context) error) side {
	return func(ctx context.Context) (float64, error) {
		start := time.Now()
		err := f(ctx)
		return float64(time.Since(start).Nanoseconds()), err
	}
}

// listHome lists all sessions with their names and sums.
func listHome(ctx context.Context, log *eventlog.Log) error {
	catalog := stats.NewCatalog(log)
	rows, err := listing.Read(ctx, catalog, func(int) {}, listing.Known{})
	if err != nil {
		return err
	}
	var sum stats.Stats
	err = listing.EachSummary(ctx, catalog, rows, func() {}, func(_ *listing.Row, s *stats.Summary) { sum.Add(s.Stats) })
	catalog.Flush(ctx)
	return errors.Join(err, expectCount(sum.Total.Sessions, homeFiles))
}
