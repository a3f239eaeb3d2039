package main

import (
	"fmt"
	"slices"

	"github.com/convlog/convlog/interop"
)

// importRow is a file with --json.
type importRow struct {
	File     string      `json:"file"`
	Format   string      `json:"format"`
	Records  int         `json:"records"`
	Events   int         `json:"events"`
	Present  int         `json:"present"`
	Withheld int         `json:"withheld,omitzero"` // of Present
	Raw      int         `json:"raw"`
	Skipped  int         `json:"skipped"`
	Rejected []rejection `json:"rejected"`
	Sessions []string    `json:"sessions"`
	LeftOut  []string    `json:"left_out,omitempty"` // sessions that were removed from the log
	Error    string      `json:"error,omitzero"`
	// Cycle is a file that this file needs and that needs this file. It was imported
	// first.
	Cycle string `json:"cycle,omitzero"`
}

// rejection is a rejected record with --json.
type rejection struct {
	Line   int64  `json:"line"`
	Offset int64  `json:"offset"`
	Reason string `json:"reason"`
}

func newImportRow(row *interop.Row) importRow {
	out := importRow{
		File: row.Path, Format: row.Format, Records: row.Records, Events: row.Events, Present: row.Present,
		Withheld: row.Withheld, Raw: row.Raw, Skipped: row.Skipped, Rejected: []rejection{}, Sessions: row.Sessions, LeftOut: row.LeftOut, Cycle: row.Cycle,
	}
	for _, r := range row.Rejected {
		out.Rejected = append(out.Rejected, rejection(r))
	}
	if row.Err != nil {
		out.Error = row.Err.Error()
	}
	return out
}

func (a *app) printTable(table *interop.Table, verbose bool) error {
	for i := range table.Rows {
		if row := &table.Rows[i]; row.Err != nil && row.Events+row.Present == 0 {
			row.Sessions = nil // none was stored
		}
	}
	p := a.printer()
	if a.json {
		for i := range table.Rows {
			if err := p.Value(newImportRow(&table.Rows[i])); err != nil {
				return err
			}
		}
		return p.Flush()
	}
	(&importTable{p, withoutOnly(table), verbose}).print()
	return p.Flush()
}

// withoutOnly is the table without its only error: explain prints that error.
func withoutOnly(table *interop.Table) *interop.Table {
	stopped := 0
	short := *table
	short.Rows = slices.Clone(table.Rows)
	for i := range short.Rows {
		if short.Rows[i].Err != nil {
			short.Rows[i].Err = nil
			stopped++
		}
	}
	if stopped != 1 {
		return table
	}
	return &short
}

// preview lists the files to import.
func (x *importRun) preview(in *inputs, found *interop.Found) error {
	files := found.Files()
	for _, own := range in.own {
		files = append(files, own.candidate())
	}
	if len(files) == 0 {
		return importError(&interop.Table{Skipped: found.Skipped, Links: found.Links}, nil)
	}
	err := printRows(x.app, files, func(p *printer) { p.preview(files, found) })
	if err != nil || len(found.Unread) == 0 {
		return err
	}
	first := found.Unread[0].Err
	if n := len(found.Unread) - 1; n > 0 {
		return fmt.Errorf("%w; nor can %s be opened", first, count(n, "other"))
	}
	return first
}

func (p *printer) preview(files []interop.Candidate, found *interop.Found) {
	var cells [][]string
	var bytes int64
	for _, file := range files {
		bytes += file.Bytes
		cells = append(cells, []string{file.Format, size(file.Bytes), clean(file.Path)})
	}
	p.Table([]string{"FORMAT", "SIZE", "FILE"}, cells, 1)
	p.Printf("%s, %s: nothing was imported\n", count(len(files), "file"), size(bytes))
	if n := len(found.Skipped); n > 0 {
		p.Printf("%s in folders would be skipped\n", count(n, "other file"))
	}
	if n := len(found.Links); n > 0 {
		p.Printf("%s in folders would not be followed\n", count(n, "link"))
	}
}
