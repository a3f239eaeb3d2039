package main

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/interop/formats"
)

// filter is the flags that narrow a command: a time, and the source, folder and models of
// sessions. Commands use the same flags.
type filter struct {
	since, until string // as they were given
	listing.Filter

	// Set by sessions: the ids of all sessions of the store, sorted, and, if byTree is
	// set, the root of each session's tree.
	ids    []string
	byTree bool
	roots  map[string]string
}

// sourceNames are the values of --source.
func sourceNames() []string { return append(foreignFormats(), listing.NoSource) }

// foreignFormats are the names of the formats of other programs.
func foreignFormats() (names []string) {
	for _, f := range formats.All() {
		names = append(names, f.Name())
	}
	return names
}

// flags adds the flags. what is the thing that --since and --until select, for example
// "sessions with activity", and models says what --model selects.
func (f *filter) flags(cmd *cobra.Command, what, models string) {
	flags := cmd.Flags()
	flags.StringVar(&f.since, "since", "", "only "+what+" since this day or time")
	flags.StringVar(&f.until, "until", "", "only "+what+" until this day or time, included")
	flags.StringVar(&f.Source, "source", "", "only sessions imported from this program; none: the others")
	completeFlag(cmd, "source", sourceNames()...)
	flags.StringVar(&f.CWD, "cwd", "", "only sessions that ran in this folder, or below it")
	flags.StringVar(&f.Model, "model", "", "only "+models+" with this text in the name")
}

// whenHelp explains the values of --since and --until.
const whenHelp = `--since and --until take a day (today, yesterday, monday, 2026-03-01),
a time (2026-03-01T09:30) in your time zone, or an age (90m, 12h, 7d, 2w).`

// check parses the flags.
func (f *filter) check(now time.Time) (err error) {
	if f.CWD != "" {
		if f.CWD, err = filepath.Abs(f.CWD); err != nil {
			return usagef("--cwd: %v", err)
		}
	}
	if f.Since, _, err = listing.ParseWhen(f.since, now); err != nil {
		return usagef("--since %v", err)
	}
	if _, f.Until, err = listing.ParseWhen(f.until, now); err != nil {
		return usagef("--until %v", err)
	}
	if !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until) {
		return usagef("--since %s is not before --until %s", f.since, f.until)
	}
	return nil
}

// isSet reports whether a flag narrows the command.
func (f *filter) isSet() bool {
	return f.since != "" || f.until != "" || f.Source != "" || f.CWD != "" || f.Model != ""
}

// stateFlag adds --all: lists have the sessions of programs too.
func stateFlag(cmd *cobra.Command, all *bool) {
	cmd.Flags().BoolVar(all, "all", false, "also sessions that only have the state of a program, or the notes of the store")
}

// modelFilter is HasModel, or nil if every model is selected.
func (f *filter) modelFilter() func(string) bool {
	if f.Model == "" {
		return nil
	}
	return f.HasModel
}

// sessionRows are all sessions of the log by id, with their sources, folders and parents.
func (a *app) sessionRows(ctx context.Context, log *eventlog.Log) ([]*sessionRow, error) {
	return listing.Read(ctx, a.catalog(log, anySummary()), a.bound, listing.Known{})
}

// sessions are the sessions with events that the filter selects; ids restricts them,
// unless it is nil. It does not look at the models. Unreadable sessions are among them.
func (f *filter) sessions(ctx context.Context, a *app, log *eventlog.Log, ids []string) ([]*sessionRow, error) {
	all, err := a.sessionRows(ctx, log)
	if err != nil {
		return nil, err
	}
	return f.selected(ctx, a, log, ids, all)
}

// selected is sessions for a caller that has listed all sessions.
func (f *filter) selected(ctx context.Context, a *app, log *eventlog.Log, ids []string, all []*sessionRow) (_ []*sessionRow, err error) {
	f.ids = listing.IDs(all)
	if f.byTree {
		f.roots = rootsOf(all)
	}
	if ids != nil {
		all = slices.DeleteFunc(all, func(row *sessionRow) bool { return !slices.Contains(ids, row.ID) })
	}
	rows := slices.DeleteFunc(slices.Clone(all), func(row *sessionRow) bool { return row.Err() == nil && !f.Overlaps(row) })
	if f.Source != "" {
		x := a.reader(log, a.catalog(log, anySummary()))
		err := x.Sources(ctx, rows)
		x.Catalog.Flush(ctx)
		if err != nil {
			return nil, err
		}
	}
	rows = slices.DeleteFunc(rows, func(row *sessionRow) bool { return row.Err() == nil && !f.HasOrigin(row) })
	if len(rows) == 0 && f.isSet() {
		return nil, f.nothing(len(all), all)
	}
	return rows, nil
}

// nothing is the error if none of n sessions fits; nil if n is 0. rows are the sessions,
// for --source.
func (f *filter) nothing(n int, rows []*sessionRow) error {
	if n == 0 {
		return nil
	}
	return &nothingError{sessions: n, sources: f.sources(rows)}
}

// sources lists the known sources for the error of --source.
func (f *filter) sources(rows []*sessionRow) string {
	if f.Source == "" || len(rows) == 0 {
		return ""
	}
	var all []string
	for _, row := range rows {
		all = append(all, cmp.Or(clean(row.Source), listing.NoSource))
	}
	slices.Sort(all)
	return "; sources: " + strings.Join(slices.Compact(all), ", ")
}

// nothingError reports that no session fits the flags.
type nothingError struct {
	sessions int
	sources  string
}

func (e *nothingError) Error() string {
	if e.sessions == 1 {
		return "the session does not fit the flags" + e.sources
	}
	return "none of " + count(e.sessions, "session") + " fits the flags" + e.sources + "; logtool ls lists them"
}
