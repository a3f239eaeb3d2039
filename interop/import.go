package interop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/convlog/convlog/eventlog"
)

// Options configure an Import. The zero value is ready for use.
type Options struct {
	// Progress, if set, is called after each file, by one goroutine at a time.
	Progress func(Row)
}

// Import imports files and folders. In a folder, and those below it, regular
// files of a known format are imported and other files are skipped and
// counted; a file that is named must be of a known format (ErrUnknownFormat).
// Nothing is imported unless all paths can be read.
//
// Files are imported by rank (sub-agents after the sessions they belong to),
// those of one rank several at a time; where they write to one session, by path. A file whose import stops does not stop the others: its row
// has the error, and Import returns all of them joined. The Table is valid
// in either case.
func Import(ctx context.Context, log *eventlog.Log, formats []Format, paths []string, opts Options) (Table, error) {
	f := finder{formats: formats, seen: map[string]bool{}}
	for _, path := range paths {
		if err := f.path(ctx, filepath.Clean(path)); err != nil {
			return Table{}, err
		}
	}
	f.sort()
	t := Table{Skipped: f.skipped}
	err := importAll(ctx, log, f.files, &t, opts.Progress)
	return t, err
}

// found is a file to import.
type found struct {
	src    Source
	format Format
	rank   int
}

// finder collects the files to import.
type finder struct {
	formats []Format
	files   []found
	skipped []string
	seen    map[string]bool
}

func (f *finder) path(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	if !info.IsDir() {
		ok, err := f.file(path)
		if err == nil && !ok {
			err = &FormatError{Path: path}
		}
		return err
	}
	return filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return fmt.Errorf("import: %w", err)
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		ok, err := f.file(path)
		if err == nil && !ok {
			f.skipped = append(f.skipped, path)
		}
		return err
	})
}

// file takes a file if it is of a known format and has not been taken yet.
func (f *finder) file(path string) (ok bool, err error) {
	if f.seen[path] {
		return true, nil
	}
	src, err := File(path)
	if err != nil {
		return false, fmt.Errorf("import: %w", err)
	}
	head, err := src.head()
	if err != nil {
		return false, fmt.Errorf("import: %w", err)
	}
	for _, format := range f.formats {
		if !format.Detect(path, head) {
			continue
		}
		rank := 0
		if r, ok := format.(Ranker); ok {
			rank = r.Rank(path, head)
		}
		f.seen[path] = true
		f.files = append(f.files, found{src, format, rank})
		return true, nil
	}
	return false, nil
}

func (f *finder) sort() {
	slices.SortStableFunc(f.files, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.src.Name, b.src.Name))
	})
	slices.Sort(f.skipped)
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
