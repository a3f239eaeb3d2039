package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/sysfile"
	"github.com/convlog/convlog/interop"
)

// lookTime is the time between two looks at the files. After an import, the next look waits
// at least as long as the import took.
const lookTime = 500 * time.Millisecond

// watch finds the files that change, for import --follow.
type watch struct {
	run     *importRun
	formats []interop.Format
	opts    interop.Options
	paths   []string // files, folders and patterns
	seen    map[string]stamp
	rows    map[string]interop.Row // the last row of each file that was imported
}

// stamp tells whether a file has changed, or the write-ahead log of a database.
type stamp struct {
	size, walSize   int64
	mtime, walMtime time.Time
	inode           uint64
	index           [indexHeader]byte // of the write-ahead log
}

// A database with a write-ahead log has two files beside it. A commit is first written to
// the log, and readers see it when the header of the log's index has changed.
const (
	walSuffix   = "-wal"
	indexSuffix = "-shm"
	// indexHeader is the part of the index that changes with each commit: two copies of
	// 48 bytes (sqlite.org/walformat.html, chapter 2.1).
	indexHeader = 96
)

// watch remembers the files as they are before the first import.
func (x *importRun) watch(in *inputs, formats []interop.Format) (*watch, error) {
	switch {
	case x.dry:
		return nil, usagef("--dry-run imports nothing: leave out --follow")
	case len(in.own) > 0, len(in.opts.Sources) > 0:
		return nil, usagef("--follow is for transcripts in files and folders, not for exports of logtool or streams")
	}
	in.opts.Growing = true
	w := &watch{run: x, formats: formats, opts: interop.Options{Growing: true, Again: x.own.Again, EvenErased: x.own.EvenErased}, rows: map[string]interop.Row{}}
	for _, arg := range x.args {
		w.paths = append(w.paths, x.app.fromHome(arg))
	}
	w.seen = w.stamps()
	return w, nil
}

// follow imports the files that change, until ctx ends.
func (w *watch) follow(ctx context.Context, log *eventlog.Log) error {
	w.run.app.progress.End()
	pause := lookTime
	for {
		select {
		case <-ctx.Done():
			return w.rejected()
		case <-time.After(pause):
		}
		began := time.Now()
		if err := w.look(ctx, log); err != nil && ctx.Err() == nil {
			return err
		}
		pause = max(lookTime, time.Since(began))
	}
}

// look imports the files that have changed since the last look. It takes their stamps
// before it reads them: a change during the import is seen by the next look.
func (w *watch) look(ctx context.Context, log *eventlog.Log) error {
	now := w.stamps()
	opts := w.opts
	for _, path := range slices.Sorted(maps.Keys(now)) {
		if before, known := w.seen[path]; !known || before != now[path] {
			opts.Matched = append(opts.Matched, path)
		}
	}
	w.seen = now
	if len(opts.Matched) == 0 {
		return nil
	}
	found, err := interop.Find(ctx, w.formats, nil, opts)
	if err != nil {
		return err
	}
	t, _ := found.Import(ctx, log, opts) // the rows have the errors
	return w.print(t.Rows)
}

// print prints the files with new events.
func (w *watch) print(rows []interop.Row) error {
	p := w.run.app.printer()
	for i := range rows {
		row := &rows[i]
		w.report(row)
		w.rows[row.Path] = *row
		switch {
		case row.Events == 0:
		case w.run.app.json:
			if err := p.Value(newImportRow(row)); err != nil {
				return err
			}
		default:
			p.Printf("%s\n", p.Fit(p.clock(w.run.app.now())+"  +"+count(row.Events, "event")+"  "+clean(row.Path)))
		}
	}
	return p.Flush()
}

// report prints the error that stopped the import of a file, unless it did so before. The
// next look reads the file again, except a file with records that may be erased ones: it is
// read when it changes.
func (w *watch) report(row *interop.Row) {
	if row.Err == nil {
		return
	}
	if !errors.Is(row.Err, interop.ErrErased) {
		delete(w.seen, row.Path)
	}
	if before := w.rows[row.Path].Err; before == nil || before.Error() != row.Err.Error() {
		w.run.app.complain(fmt.Errorf("import %s: %w", row.Path, row.Err))
	}
}

// rejected reports the records that the newest look at each file rejected. A file that is
// missing now does not count: a program wrote it before it renamed it.
func (w *watch) rejected() error {
	var table interop.Table
	there := w.stamps()
	for _, path := range slices.Sorted(maps.Keys(w.rows)) {
		_, stored := there[path]
		if row := w.rows[path]; stored && len(row.Rejected) > 0 {
			row.Err = nil
			table.Rows = append(table.Rows, row)
		}
	}
	if len(table.Rows) == 0 {
		return nil
	}
	if err := w.run.app.printTable(&table, w.run.verbose); err != nil {
		return err
	}
	return importError(&table, nil)
}

// stamps are the stamps of all files of the paths.
func (w *watch) stamps() map[string]stamp {
	all := map[string]stamp{}
	for _, path := range w.paths {
		matches := []string{path}
		if _, err := os.Lstat(path); err != nil && isPattern(path) {
			matches, _ = glob(path) // the first import reported a bad pattern
		}
		for _, match := range matches {
			addStamps(all, match)
			addStamp(all, match+walSuffix)
		}
	}
	for path, wal := range all {
		name, isWAL := strings.CutSuffix(path, walSuffix)
		if s, stored := all[name]; isWAL && stored {
			s.walSize, s.walMtime = wal.size, wal.mtime
			s.index = indexOf(name)
			all[name] = s
			delete(all, path)
			delete(all, name+indexSuffix)
		}
	}
	return all
}

// indexOf reads the header of the index of a database's write-ahead log. It is zero if
// there is none. No import runs meanwhile: to close the file ends this process's locks on it.
func indexOf(database string) (header [indexHeader]byte) {
	if f, err := os.Open(database + indexSuffix); err == nil {
		_, _ = io.ReadFull(f, header[:]) // the index of an unused log is empty
		_ = f.Close()
	}
	return header
}

// addStamps adds the files at and below a path. Unreadable folders have none.
func addStamps(all map[string]stamp, root string) {
	root = filepath.Clean(root)
	info, err := os.Stat(root)
	if err != nil {
		return
	}
	if !info.IsDir() {
		addStamp(all, root)
		return
	}
	_ = filepath.WalkDir(root+string(filepath.Separator), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			addStamp(all, path)
		}
		return nil
	})
}

// addStamp adds a file, unless it is missing.
func addStamp(all map[string]stamp, path string) {
	if info, err := sysfile.Stat(path); err == nil {
		all[path] = stamp{size: info.Size, mtime: info.ModTime, inode: info.Inode}
	}
}
