package interop

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/convlog/convlog/eventlog"
)

// Options configure an Import. The zero value is ready for use.
type Options struct {
	// Progress, if set, is called after each file, by one goroutine at a time.
	Progress func(Row)
	// Bytes, if set, is called as files are read, by several goroutines: each byte
	// of a file is counted once.
	Bytes func(n int64)
	// Forced takes files that are named to be of the first of the formats, though
	// Detect does not know them.
	Forced bool
	// Matched are files and folders, too. Of these files, as of those in folders,
	// the ones that are no transcripts are skipped.
	Matched []string
	// Sources are imported as files that are named.
	Sources []Source
}

// Import imports files and folders. In a folder, and those below it, regular
// files of a known format are imported, other files are skipped and counted, and
// symbolic links are not followed, which the Table names; a link that is named is.
// A file that is named must be of a known format (ErrUnknownFormat). Nothing is
// imported unless all paths that are named can be read.
//
// Files are imported by rank (sub-agents after the sessions they belong to),
// those of one rank several at a time; where they write to one session, by path,
// but behind the others if they need them first (Later).
// A file whose import stops, or a file in a folder that cannot be read, does not
// stop the others: its row has the error, and Import returns all of them joined.
// The Table is valid in either case.
func Import(ctx context.Context, log *eventlog.Log, formats []Format, paths []string, opts Options) (Table, error) {
	f, err := Find(ctx, formats, paths, opts)
	if err != nil {
		return Table{}, err
	}
	return f.Import(ctx, log, opts)
}

// Import imports what was found. Of the options Progress and Bytes count.
func (f *Found) Import(ctx context.Context, log *eventlog.Log, opts Options) (Table, error) {
	t := Table{Skipped: f.Skipped, Links: f.Links}
	files := slices.Clone(f.files)
	for i := range files {
		files[i].src = counted(files[i].src, opts.Bytes)
	}
	err := importAll(ctx, log, files, &t, opts.Progress)
	for _, row := range f.Unread {
		t.Rows = append(t.Rows, row)
		err = errors.Join(err, fmt.Errorf("import %w", row.Err))
	}
	return t, err
}

// importAll imports the files, those of one rank together. Once ctx
// has ended, no more files are begun.
func importAll(ctx context.Context, log *eventlog.Log, files []found, t *Table, progress func(Row)) error {
	var failed []error
	for len(files) > 0 && ctx.Err() == nil {
		n := 1
		for n < len(files) && files[n].rank == files[0].rank {
			n++
		}
		rows := make([]*Row, n)
		together(ctx, log, files[:n], func(i int, row Row) {
			rows[i] = &row
			if progress != nil {
				progress(row)
			}
		})
		for _, row := range rows {
			if row == nil {
				continue
			}
			if row.Err != nil {
				failed = append(failed, fmt.Errorf("import %w", row.located()))
			}
			t.Rows = append(t.Rows, *row)
		}
		files = files[n:]
	}
	return errors.Join(append(failed, ctx.Err())...)
}
