package interop

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/importrun"
)

// Options configure Find and Import. The zero value is ready for use.
type Options struct {
	// Progress, if set, is called after each file, by one goroutine at a time.
	Progress func(Row)
	// Bytes, if set, is called while files are read, by several goroutines. It
	// counts each byte of a file once.
	Bytes func(n int64)
	// Again also imports sessions that were removed from the log (erase.Remove). Without
	// it they are left out, see Result.LeftOut.
	Again bool
	// EvenErased stores records that may be erased ones (ErrErased).
	EvenErased bool
	// Forced reads a named file in the first of the formats if Detect of no format
	// accepts it.
	Forced bool
	// Growing says that programs write the files meanwhile. Of a file of lines (*.jsonl,
	// *.ndjson), a last line without an end waits for a later import, unless it is a whole
	// JSON object. Find uses it.
	Growing bool
	// Log is the log that Find finds files for. A file in a folder that has not changed since its
	// import into this log is not read again, if the store keeps what it needs to know that
	// (store/jsonl, store/sqlite). Import sets it. Again and EvenErased read all files.
	Log *eventlog.Log
	// Whole reads all files, also those that have not changed.
	Whole bool
	// Matched are more files and folders. A matched file that is no transcript is
	// skipped, like a file in a folder.
	Matched []string
	// Sources are imported like named files.
	Sources []Source
}

// option is the one Options of a call. At most one is used.
func option(opts []Options) Options {
	if len(opts) > 0 {
		return opts[0]
	}
	return Options{}
}

var (
	errNoContext = errors.New("import: the context is nil; pass context.Background()")
	errNoFound   = errors.New("import: nothing was found; call Find first")
)

// Import imports files and folders. In a folder and its subfolders it imports the
// regular files of known formats, skips other files and counts them, and lists
// symbolic links without following them. It follows a link that is named. A named
// file must be of a known format (FormatError). Import imports nothing unless
// it can read all named paths.
//
// A file is imported after the files that own the ids it needs (see Declarer): a
// sub-agent after the session that called it, a fork after its parent. Files that
// own one id are imported one after the other, by path. All others are imported
// several at a time. If files need each other, Row.Cycle says which came first.
//
// A file whose import stops, or an unreadable file in a folder, does not stop the
// others. Its row has the error, and Import returns all errors joined. The Table is
// valid in either case.
func Import(ctx context.Context, log *eventlog.Log, formats []Format, paths []string, opts ...Options) (Table, error) {
	if err := usable(ctx, log); err != nil {
		return Table{}, err
	}
	o := option(opts)
	o.Log = log
	f, err := Find(ctx, formats, paths, o)
	if err != nil {
		return Table{}, err
	}
	return f.Import(ctx, log, o)
}

// usable reports a context or a log that is nil.
func usable(ctx context.Context, log *eventlog.Log) error {
	if ctx == nil {
		return errNoContext
	}
	if log == nil {
		return fmt.Errorf("import: the log is nil; open one with eventlog.Open: %w", eventlog.ErrClosed)
	}
	return nil
}

// Import imports the files that Find found. It uses the options Progress, Bytes, Again and EvenErased.
func (f *Found) Import(ctx context.Context, log *eventlog.Log, opts ...Options) (Table, error) {
	if err := usable(ctx, log); err != nil {
		return Table{}, err
	}
	if f == nil {
		return Table{}, errNoFound
	}
	o := option(opts)
	files := slices.Clone(f.files)
	for i := range files {
		files[i].src = counted(files[i].src, o.Bytes)
	}
	rows := make([]*Row, len(files))
	importAll(importrun.WithShared(ctx), log, files, o, func(i int, row Row) {
		rows[i] = &row
		if files[i].known == nil {
			f.cursors.imported(&files[i], &row)
		}
		if o.Progress != nil {
			o.Progress(row)
		}
	})
	f.cursors.save(ctx)
	return f.table(rows, ctx.Err())
}

// table makes the table of an import. The row of a file that was not begun is nil.
func (f *Found) table(rows []*Row, canceled error) (Table, error) {
	t := Table{Skipped: f.Skipped, Links: f.Links}
	var failed []error
	for _, row := range rows {
		if row == nil {
			continue
		}
		if row.Err != nil {
			failed = append(failed, fmt.Errorf("import %w", row.Located()))
		}
		t.Rows = append(t.Rows, *row)
	}
	failed = append(failed, canceled)
	for _, row := range f.Unread {
		t.Rows = append(t.Rows, row)
		failed = append(failed, fmt.Errorf("import %w", row.Err))
	}
	return t, errors.Join(failed...)
}

// importAll imports files in their order, several at a time, and calls done with
// the row of each. A file starts after the files that it waits for. When ctx ends,
// no other file starts.
func importAll(ctx context.Context, log *eventlog.Log, files []found, o Options, done func(file int, row Row)) {
	type result struct {
		file int
		row  Row
	}
	q := newQueue(files)
	results := make(chan result)
	for running := 0; ; {
		for running < runtime.GOMAXPROCS(0) && len(q.ready) > 0 && ctx.Err() == nil {
			i := q.next()
			running++
			go func() { results <- result{i, files[i].importInto(ctx, log, o)} }()
		}
		if running == 0 {
			return
		}
		r := <-results
		running--
		done(r.file, r.row)
		q.finish(r.file)
	}
}

// importInto imports a file.
func (f *found) importInto(ctx context.Context, log *eventlog.Log, o Options) Row {
	row := Row{Path: f.src.Name, Format: f.format.Name(), Cycle: f.cycle}
	if f.known != nil {
		row.Result = f.known.result()
		if o.Bytes != nil {
			o.Bytes(f.src.Size)
		}
		return row
	}
	file := &importrun.File{Again: o.Again, EvenErased: o.EvenErased, Growing: o.Growing}
	src, err := withoutBegun(ctx, log, row.Format, f.src)
	if err != nil {
		row.Err = err
		return row
	}
	row.Result, row.Err = f.format.Import(importrun.WithFile(ctx, file), log, src)
	row.correct(file.Present())
	row.lose(file.Lost())
	row.leaveOut(file.LeftOut())
	return row
}

// queue says which files can start.
type queue struct {
	ready     []int   // in order
	waits     []int   // how many files each file still waits for
	followers [][]int // the files that wait for each file
}

func newQueue(files []found) *queue {
	q := &queue{waits: make([]int, len(files)), followers: make([][]int, len(files))}
	for i := range files {
		q.waits[i] = len(files[i].waits)
		if q.waits[i] == 0 {
			q.ready = append(q.ready, i)
		}
		for _, before := range files[i].waits {
			q.followers[before] = append(q.followers[before], i)
		}
	}
	return q
}

// next removes the first file that is ready.
func (q *queue) next() int {
	first := q.ready[0]
	q.ready = q.ready[1:]
	return first
}

// finish makes the files ready that waited for this file only.
func (q *queue) finish(file int) {
	for _, i := range q.followers[file] {
		q.waits[i]--
		if q.waits[i] == 0 {
			at, _ := slices.BinarySearch(q.ready, i)
			q.ready = slices.Insert(q.ready, at, i)
		}
	}
}
