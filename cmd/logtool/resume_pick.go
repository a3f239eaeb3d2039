package main

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/convlog/convlog/cmd/logtool/internal/pick"
	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/internal/transcript"
)

// pick lets the user choose a session in a list on the terminal.
func (a *app) pick(ctx context.Context) (session string, err error) {
	if a.json || !a.onTerminal() || !term.IsTerminal(os.Stdin) {
		return "", usagef("name the session: without a terminal there is no list; logtool ls has the sessions")
	}
	err = a.reading(func(log *eventlog.Log) error {
		rows, err := a.sessionRows(ctx, log)
		if err != nil {
			return err
		}
		rows = slices.DeleteFunc(listing.WithoutState(rows), func(row *sessionRow) bool { return row.Err() != nil || row.Kind() == fork.KindRun })
		if err := a.reader(log, a.catalog(log, anySummary())).Names(ctx, rows); err != nil {
			return err
		}
		slices.SortStableFunc(rows, func(x, y *sessionRow) int { return y.Last().Compare(x.Last()) })
		items := make([]pick.Item, len(rows))
		for i, row := range rows {
			items[i] = pick.Item{Title: nameOf(row), About: ago(a.now().Sub(row.Last()), row.Last()), Words: row.ID}
			if row.Program != nil {
				items[i].Words = strings.Join([]string{row.ID, row.CWD, row.Source, row.Agent}, " ")
			}
		}
		a.progress.End() // the list has the terminal
		i, err := pick.One(ctx, os.Stdin, a.out, items, func(i int) string { return previewOf(ctx, log, rows[i].ID) })
		if err == nil {
			session = rows[i].ID
		}
		return err
	})
	return session, err
}

// previewOf is the text of the newest messages of a session.
func previewOf(ctx context.Context, log *eventlog.Log, session string) string {
	const newest, events = 20, 200
	var texts []string
	for e, err := range log.Read(ctx, session, eventlog.Last(events).OnPath().Backward()) {
		if err != nil {
			return err.Error()
		}
		x := transcript.NewEntry(&e, false)
		if text := strings.TrimSpace(x.Message.Text()); text != "" && !x.IsContext() {
			texts = append(texts, string(x.Message.Role)+": "+text)
		}
		if len(texts) == newest {
			break
		}
	}
	slices.Reverse(texts)
	return strings.Join(texts, "\n")
}
