package main

import (
	"context"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/prices"
	"github.com/convlog/convlog/runlog/stats"
)

// catalog gives the summaries of sessions for a command that reads a log.
func (a *app) catalog(log *eventlog.Log, opts stats.CatalogOptions) *stats.Catalog {
	opts.Writable = a.writable
	return stats.NewCatalog(log, opts)
}

// summaries is for columns with days, and estimates with a table; nil estimates nothing.
func summaries(table *prices.Table) stats.CatalogOptions {
	return stats.CatalogOptions{Options: stats.Options{Days: time.Local, Prices: table}}
}

// anySummary is for columns without days and estimates. Summaries that it adds to the
// catalog serve stats and cost too.
func anySummary() stats.CatalogOptions {
	o := summaries(prices.Builtin())
	o.AnyDays = true
	return o
}

// openTime bounds the wait of writable for another process that has locked the store.
const openTime = 100 * time.Millisecond

// writable opens the store for rows of the catalog: the command has opened it for reading.
// A store that cannot be written stays as it is. So do the files of another user:
// the owner could not change files that this user creates there.
func (a *app) writable(context.Context) (eventlog.Store, error) {
	at, err := a.place()
	if err != nil {
		return nil, err
	}
	if !at.owned() {
		return nil, eventlog.ErrReadOnly
	}
	at.wait, at.progress = openTime, nil
	return at.openStore(forRows)
}
