package main

import (
	"context"
	"embed"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/htmlpage"
	"github.com/convlog/convlog/internal/listing"
)

// The name of the index of exported pages, and the ending of all of them.
const (
	indexName  = "index"
	pageSuffix = ".html"
)

//go:embed export_index.html
var indexTemplate embed.FS

// link is the address of the exported page of a session; empty if it has none.
func (x *exportOptions) link(session string) string {
	if !x.pages[session] {
		return ""
	}
	return url.PathEscape(fileName(session) + pageSuffix)
}

// indexPage is the list of exported sessions.
type indexPage struct {
	Rows []htmlpage.Session
}

// exportIndex writes the list of the pages, newest activity first, into the folder.
func (a *app) exportIndex(ctx context.Context, log *eventlog.Log, x *exportOptions) error {
	rows, err := a.sessionRows(ctx, log)
	if err != nil {
		return err
	}
	rows = slices.DeleteFunc(rows, func(row *listing.Row) bool { return !x.pages[row.ID] })
	listing.Sort(rows, listing.ByActivity)
	reader := a.reader(log, a.catalog(log, summaries(x.table)))
	defer reader.Catalog.Flush(ctx)
	if err := reader.Summaries(ctx, rows); err != nil {
		return err
	}
	var page indexPage
	for _, row := range rows {
		page.Rows = append(page.Rows, htmlpage.NewSession(row, x.link(row.ID)))
	}
	t, err := htmlpage.Templates(time.UTC, indexTemplate, "export_index.html")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(x.file, 0o700); err != nil {
		return err
	}
	return a.output(filepath.Join(x.file, indexName+pageSuffix), func(w io.Writer) error {
		return t.ExecuteTemplate(w, "layout", htmlpage.Layout{Title: "Sessions", Alone: true, Body: page})
	})
}
