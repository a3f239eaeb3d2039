package main

import (
	"slices"

	"github.com/convlog/convlog/interop"
)

// imported is a row of the table as --json prints it.
type importRow struct {
	File     string    `json:"file"`
	Format   string    `json:"format"`
	Records  int       `json:"records"`
	Events   int       `json:"events"`
	Present  int       `json:"present"`
	Raw      int       `json:"raw"`
	Held     int       `json:"held"`
	Refused  []rejection `json:"refused"`
	Sessions []string  `json:"sessions"`
	Error    string    `json:"error,omitzero"`
}

// refused is a record that could not be read.
type rejection struct {
	Line   int64  `json:"line"`
	Offset int64  `json:"offset"`
	Reason string `json:"reason"`
}

func newImportRow(row *interop.Row) importRow {
	out := importRow{
		File: row.Path, Format: row.Format, Records: row.Records, Events: row.Events, Present: row.Present,
		Raw: row.Raw, Held: row.Held, Refused: []rejection{}, Sessions: row.Sessions,
	}
	for _, r := range row.Refused {
		out.Refused = append(out.Refused, rejection(r))
	}
	if row.Err != nil {
		out.Error = row.Err.Error()
	}
	return out
}

func (a *app) printTable(table *interop.Table, verbose bool) error {
	p := a.printer()
	if !a.json {
		print := withoutOnly(table).Print
		if verbose {
			print = withoutOnly(table).PrintAll
		}
		if err := print(p.w); err != nil {
			return err
		}
		return p.flush()
	}
	for i := range table.Rows {
		if err := p.value(newImportRow(&table.Rows[i])); err != nil {
			return err
		}
	}
	return p.flush()
}

// withoutOnly is the table without the error that is the only one: it is what the
// command ends with.
func withoutOnly(table *interop.Table) *interop.Table {
	stopped := 0
	short := interop.Table{Rows: slices.Clone(table.Rows), Skipped: table.Skipped, Links: table.Links}
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
