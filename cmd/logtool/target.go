package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/folder"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/internal/sysfile"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
)

// backupTarget is the store that a backup writes.
type backupTarget interface {
	fmt.Stringer
	// create makes the partial target. It fails if another backup uses the target.
	create(ctx context.Context) error
	// fill runs f on a log in the partial target.
	fill(f func(*eventlog.Log) error) error
	// finish gives the complete target its name.
	finish(ctx context.Context) error
	// discard removes the partial target.
	discard(ctx context.Context) error
}

// newTarget parses the target of a backup, and rejects a target in use.
func newTarget(src place, text string) (backupTarget, error) {
	at, err := parsePlace(text, isFile, isDir)
	if err != nil {
		return nil, err
	}
	switch at.kind {
	case kindPostgres:
		return newServerTarget(src, at)
	case kindJetStream:
		return nil, usagef("a backup does not go to JetStream: copy the log with logtool store convert")
	}
	return newFileTarget(src, at)
}

// target is a folder or a file that a backup writes. It has another name until it is
// complete and on disk.
type target struct {
	place
	partial string
}

// partialSuffix ends the name of an incomplete backup.
const partialSuffix = ".partial"

// newFileTarget rejects a target in use.
func newFileTarget(src, at place) (target, error) {
	at.path = filepath.Clean(at.path)
	t := target{at, at.path + partialSuffix}
	if err := t.checkApart(src); err != nil {
		return t, err
	}
	return t, t.checkEmpty()
}

// checkApart rejects a target that is the source, or in the folder of the source.
func (t target) checkApart(src place) error {
	if src.onServer() {
		return nil
	}
	from, err := realPath(src.path)
	if err != nil {
		return err
	}
	to, err := realPath(t.path)
	if err != nil {
		return err
	}
	switch {
	case from == to || from == to+partialSuffix:
		return usagef("the target is the store itself: %s", src)
	case src.kind == kindJSONL && listing.IsBelow(to, from):
		return usagef("the target is in the folder of the store: %s", src)
	}
	return nil
}

// realPath is the absolute path without symbolic links. The end of the path may be
// missing.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(path) == path {
		return real, err
	}
	dir, err := realPath(filepath.Dir(path))
	return filepath.Join(dir, filepath.Base(path)), err
}

// sqliteSuffixes are the endings of the files beside a database. SQLite would read
// the -wal or -journal file of an older database into the new one.
var sqliteSuffixes = []string{"-wal", "-journal", "-shm", "-lock", "-lock-next"}

// strayLog is the -wal or -journal file beside a database path; else empty.
func (t target) strayLog(path string) string {
	for _, suffix := range sqliteSuffixes[:2] {
		if _, err := os.Lstat(path + suffix); t.kind == kindSQLite && err == nil {
			return path + suffix
		}
	}
	return ""
}

// checkEmpty rejects a target that is not empty, or that a backup cannot replace.
func (t target) checkEmpty() error {
	if stray := t.strayLog(t.path); stray != "" {
		return usagef("%s exists, and belongs to another database: name another target", stray)
	}
	info, err := os.Lstat(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("back up to %w", err)
	}
	switch {
	case t.kind == kindSQLite && info.Mode().IsRegular() && info.Size() == 0:
		return nil
	case t.kind == kindJSONL && info.IsDir():
	case t.kind == kindJSONL && info.Mode().IsRegular():
		return usagef("%s is a file: a backup goes to a new folder, or to a new sqlite file", t.path)
	default:
		return usagef("%s exists already: a backup goes to a new folder or file", t.path)
	}
	entries, err := os.ReadDir(t.path)
	if err != nil {
		return fmt.Errorf("back up to %w", err)
	}
	if len(entries) > 0 {
		return usagef("%s is not empty: a backup goes to a new folder or file", t.path)
	}
	here, err := sysfile.Stat(t.path)
	above, failed := sysfile.Stat(filepath.Dir(t.path))
	if err == nil && failed == nil && here.Device != above.Device {
		return usagef("%s is the top of a file system: name a folder in it", t.path)
	}
	return nil
}

// create makes the partial target. It fails if another backup uses the target.
func (t target) create(context.Context) error {
	if _, err := os.Stat(filepath.Dir(t.path)); err != nil { // perhaps the disk is not mounted
		return fmt.Errorf("back up to %s: %w", t.path, err)
	}
	if stray := t.strayLog(t.partial); stray != "" {
		return t.inUse(stray)
	}
	var err error
	if t.kind == kindJSONL {
		err = os.Mkdir(t.partial, 0o700)
	} else {
		var f *os.File
		if f, err = os.OpenFile(t.partial, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
			err = f.Close()
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return t.inUse(t.partial)
	}
	if err != nil {
		return fmt.Errorf("back up to %s: %w", t.path, err)
	}
	return nil
}

func (t target) inUse(found string) error {
	return fmt.Errorf("%s exists: another backup is running, or was interrupted; if none is running, remove %s* and try again", found, t.partial)
}

// fill runs f on a log in the partial target, without syncs: finish syncs.
func (t target) fill(f func(*eventlog.Log) error) error {
	var store eventlog.Store = jsonl.New(t.partial, jsonl.Options{NoSync: true})
	if t.kind == kindSQLite {
		store = sqlite.New(t.partial, sqlite.Options{NoSync: true})
	}
	log := eventlog.Open(store)
	err := f(log)
	if closing := log.Close(); closing != nil && err == nil {
		err = fmt.Errorf("close %s: %w", t.partial, closing)
	}
	return err
}

// finish syncs the target and gives it its name.
func (t target) finish(context.Context) error {
	err := t.sync()
	if err == nil {
		err = t.makeRoom()
	}
	if err == nil {
		err = os.Rename(t.partial, t.path)
	}
	if err == nil {
		err = folder.Sync(filepath.Dir(t.path))
	}
	if err != nil {
		return fmt.Errorf("all is copied to %s, which cannot become %s: %w", t.partial, t.path, err)
	}
	return nil
}

// makeRoom removes an empty folder that has the name of the target: os.Rename replaces no
// folder.
func (t target) makeRoom() error {
	if info, err := os.Lstat(t.path); err != nil || !info.IsDir() {
		return nil
	}
	return os.Remove(t.path)
}

// sync syncs the partial target, and removes the files beside its database.
func (t target) sync() error {
	if t.kind == kindSQLite {
		if stray := t.strayLog(t.partial); stray != "" {
			return fmt.Errorf("%s still exists: another process has the file open", stray)
		}
		for _, suffix := range sqliteSuffixes[2:] {
			if err := os.Remove(t.partial + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return folder.Sync(t.partial)
}

// discard removes the partial target.
func (t target) discard(context.Context) error {
	err := os.RemoveAll(t.partial)
	if t.kind == kindSQLite {
		for _, suffix := range sqliteSuffixes {
			err = errors.Join(err, os.RemoveAll(t.partial+suffix))
		}
	}
	if err != nil {
		return fmt.Errorf("remove the incomplete backup %s: %w", t.partial, err)
	}
	return nil
}

// owned reports whether the files of a store belong to the user of this process. A server
// has users of its own.
func (at place) owned() bool {
	return at.onServer() || sysfile.Owned(at.path)
}

// writable reports whether this process may change the files of a store.
func (at place) writable() bool {
	if at.onServer() {
		return false // the server knows
	}
	if sysfile.CheckWritable(at.path) != nil {
		return false
	}
	return at.kind == kindJSONL || sysfile.CheckWritable(filepath.Dir(at.path)) == nil
}
