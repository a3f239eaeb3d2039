package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
)

// target is where a backup goes. Until it is complete and on disk it has
// another name.
type target struct {
	place
	partial string
}

// partialSuffix ends the name of a backup that is not complete.
const partialSuffix = ".partial"

// newTarget reads where a backup goes, and refuses what is in use.
func newTarget(src place, text string) (target, error) {
	at, err := parsePlace(text, isFile, isDir)
	if err != nil {
		return target{}, err
	}
	at.path = filepath.Clean(at.path)
	t := target{at, at.path + partialSuffix}
	if err := t.apart(src); err != nil {
		return t, err
	}
	return t, t.empty()
}

// apart refuses a target that is the source, or in its folder.
func (t target) apart(src place) error {
	from, err := realPath(src.path)
	if err != nil {
		return err
	}
	to, err := realPath(t.path)
	if err != nil {
		return err
	}
	below, err := filepath.Rel(from, to)
	if err != nil {
		return err
	}
	switch {
	case below == "." || from == to+partialSuffix:
		return usagef("the target is the store itself: %s", src)
	case src.kind == kindJSONL && below != ".." && !strings.HasPrefix(below, ".."+string(filepath.Separator)):
		return usagef("the target is in the folder of the store: %s", src)
	}
	return nil
}

// realPath is the absolute path behind symbolic links, as far as it exists.
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

// beside are the endings of what SQLite and the store keep beside a database.
// A log of changes that another database left there would be taken for one of
// the new one.
var sqliteSuffixes = []string{"-wal", "-journal", "-shm", "-lock", "-lock-next"}

// orphan is a file beside a database path that is there; empty if none is.
func (t target) orphan(path string) string {
	for _, suffix := range sqliteSuffixes[:2] {
		if _, err := os.Lstat(path + suffix); t.kind == kindSQLite && err == nil {
			return path + suffix
		}
	}
	return ""
}

// empty refuses a target that holds anything, and one that a backup cannot take
// the place of.
func (t target) empty() error {
	if orphan := t.orphan(t.path); orphan != "" {
		return usagef("%s is there, and belongs to another database: name another target", orphan)
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
		return usagef("%s is there already: a backup goes to a new folder or file", t.path)
	}
	entries, err := os.ReadDir(t.path)
	if err != nil {
		return fmt.Errorf("back up to %w", err)
	}
	if len(entries) > 0 {
		return usagef("%s is not empty: a backup goes to a new folder or file", t.path)
	}
	var here, above unix.Stat_t
	if unix.Stat(t.path, &here) == nil && unix.Stat(filepath.Dir(t.path), &above) == nil && here.Dev != above.Dev {
		return usagef("%s is the top of a file system: name a folder in it", t.path)
	}
	return nil
}

// create makes the unfinished target, which nobody else may be using.
func (t target) create() error {
	if _, err := os.Stat(filepath.Dir(t.path)); err != nil { // as of a disk that is not mounted
		return fmt.Errorf("back up to %s: %w", t.path, err)
	}
	if orphan := t.orphan(t.partial); orphan != "" {
		return t.inUse(orphan)
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
	return fmt.Errorf("%s is there: another backup is being made, or one was interrupted; if none is, remove %s* and try again", found, t.partial)
}

// fill runs f on a log in the unfinished target. It is synced when it is closed.
func (t target) fill(f func(*eventlog.Log) error) error {
	var store eventlog.Store = jsonl.New(t.partial, jsonl.Options{Sync: jsonl.Never})
	if t.kind == kindSQLite {
		store = sqlite.New(t.partial, sqlite.Options{Sync: sqlite.Never})
	}
	log := eventlog.Open(store)
	err := f(log)
	if closing := log.Close(); closing != nil && err == nil {
		err = fmt.Errorf("close %s: %w", t.partial, closing)
	}
	return err
}

// finish gives the target its name, once all of it is on disk.
func (t target) finish() error {
	err := t.settle()
	if err == nil {
		err = unix.Rename(t.partial, t.path) // which, unlike os.Rename, replaces an empty folder
	}
	if err == nil {
		err = syncPath(filepath.Dir(t.path))
	}
	if err != nil {
		return fmt.Errorf("all is copied to %s, which cannot become %s: %w", t.partial, t.path, err)
	}
	return nil
}

// settle brings the unfinished target to the disk, and drops what SQLite and
// the store keep beside a database that is open.
func (t target) settle() error {
	if t.kind == kindSQLite {
		if orphan := t.orphan(t.partial); orphan != "" {
			return fmt.Errorf("%s is still there: somebody has the file open", orphan)
		}
		for _, suffix := range sqliteSuffixes[2:] {
			if err := os.Remove(t.partial + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return syncPath(t.partial)
}

// discard removes the unfinished target.
func (t target) discard() error {
	err := os.RemoveAll(t.partial)
	if t.kind == kindSQLite {
		for _, suffix := range sqliteSuffixes {
			err = errors.Join(err, os.RemoveAll(t.partial+suffix))
		}
	}
	if err != nil {
		return fmt.Errorf("remove %s, which is no backup: %w", t.partial, err)
	}
	return nil
}

// syncPath makes a file, or the names in a folder, durable.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// writable reports whether a store's files may be changed by this process.
func (at place) writable() bool {
	if unix.Access(at.path, unix.W_OK) != nil {
		return false
	}
	return at.kind == kindJSONL || unix.Access(filepath.Dir(at.path), unix.W_OK) == nil
}
