package main

import (
	"context"
	"errors"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/prices"
	"github.com/convlog/convlog/runlog"
)

// catalog gives the summaries of sessions for a command that reads a log.
func (a *app) catalog(log *eventlog.Log, opts runlog.CatalogOptions) *runlog.Catalog {
	opts.Put = a.putRows
	return runlog.NewCatalog(log, opts)
}

// anySummary is for columns without days and estimates. Summaries that it adds to the
// catalog serve stats and cost too.
func anySummary() runlog.CatalogOptions {
	return runlog.CatalogOptions{StatsOptions: runlog.StatsOptions{Days: time.Local, Prices: prices.Builtin()}, AnyDays: true}
}

// openTime bounds the wait of putRows for another process that has locked the store.
const openTime = 100 * time.Millisecond

// putRows stores rows in the catalog of the store, which the command has opened for
// reading. A store that cannot be written stays as it is. So do the files of another user:
// the owner could not change files that this user creates there.
func (a *app) putRows(ctx context.Context, rows []eventlog.CatalogRow) error {
	at, err := a.place()
	if err != nil {
		return err
	}
	if !at.owned() {
		return eventlog.ErrReadOnly
	}
	at.wait, at.progress = openTime, nil
	store, err := at.openStore(forRows)
	if err != nil {
		return err
	}
	return errors.Join(runlog.PutRows(ctx, store, rows), store.Close())
}
