package main

import (
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/runlog/stats"
)

// reader reads the sessions of rows for a command, and shows its progress.
func (a *app) reader(log *eventlog.Log, catalog *stats.Catalog) *listing.Reader {
	return &listing.Reader{Log: log, Catalog: catalog, Progress: func(n int) (step, end func()) {
		return a.steps(n), func() { a.progress.Say(nil) }
	}}
}
