package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/folder"
	"github.com/convlog/convlog/internal/regular"
	"github.com/convlog/convlog/internal/sysfile"
)

// createFile creates an empty database file with mode 0600 unless the file exists. It
// never opens an existing file, because closing the file would drop SQLite's locks on
// it.
func createFile(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return writable(path)
	}
	if err := folder.Make(filepath.Dir(path)); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), folder.Sync(filepath.Dir(path)))
}

// checkFiles returns eventlog.ErrNotRegular if the database or a file of SQLite beside it is
// no regular file. SQLite would open a named pipe and wait.
func checkFiles(path string) error {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := regular.Check(path + suffix); err != nil {
			return err
		}
	}
	return nil
}

// writable returns an error unless the process may write the database and its folder,
// which has the write-ahead log. SQLite would open an unwritable database for reading,
// and SQLite's error does not name the cause.
func writable(path string) error {
	for _, name := range []string{path, filepath.Dir(path)} {
		if err := sysfile.CheckWritable(name); err != nil {
			return err
		}
	}
	return nil
}

// checkNames refuses to write to a database with several names (hard links). SQLite keeps
// a write-ahead log for each name, and two of them damage the database.
func checkNames(path string) error {
	info, err := sysfile.Stat(path)
	if err != nil {
		return err
	}
	if info.Links > 1 {
		return fmt.Errorf("%w: %s has %d names (hard links), and writing to one would damage the others: copy the file, or remove the other names",
			eventlog.ErrReadOnly, path, info.Links)
	}
	return nil
}

// stamp identifies one state of the database's files. It is read without opening the
// files.
type stamp struct {
	live    bool // the write-ahead log exists
	size    int64
	changed time.Time
	inode   uint64
}

// fileStamp returns a function that reads the stamp of the database at path.
func fileStamp(path string) func() (stamp, error) {
	return func() (stamp, error) {
		info, err := sysfile.Stat(path)
		if err != nil {
			return stamp{}, err
		}
		_, err = os.Stat(path + "-wal")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return stamp{}, err
		}
		return stamp{live: err == nil, size: info.Size, changed: info.ModTime, inode: info.Inode}, nil
	}
}

// dialReadOnly returns a function that opens a connection for reading only.
//
// A database without a write-ahead log is not in use. It is opened as immutable, so
// SQLite does not create an empty write-ahead log and its index. The pool compares the
// stamps before and after every use to notice a writer.
func (s *Store) dialReadOnly() func(stamp) (*conn, error) {
	return func(at stamp) (*conn, error) {
		parameters := "mode=ro"
		if !at.live {
			parameters += "&immutable=1"
		}
		c, err := dialReadable(s.path, parameters, "")
		if at.live && isCode(err, codeIndexSize) {
			// The disk is full, and the index of the log does not exist. An exclusive
			// connection needs no index on disk.
			alone, failed := dialReadable(s.path, "mode=rw", "PRAGMA locking_mode = EXCLUSIVE; PRAGMA query_only = ON")
			if isBusy(failed) {
				return nil, failed // another reader is done soon
			}
			if failed == nil {
				alone.exclusive = true
				return alone, nil
			}
		}
		return c, err
	}
}

// readOnlyCache is the size of the page cache of a connection of a read-only store, in KiB. A
// larger one made no command faster.
const readOnlyCache = 512

// dialReadable opens a connection, sets it up and checks the schema.
func dialReadable(path, parameters, setUp string) (*conn, error) {
	c, err := dial(path, parameters)
	if err != nil {
		return nil, err
	}
	if setUp != "" {
		err = c.run(setUp)
	}
	var kind fileKind
	if err == nil {
		kind, err = inspect(c)
	}
	if err == nil {
		err = kind.checkReadable()
	}
	if err == nil {
		err = c.run(fmt.Sprintf("PRAGMA cache_size = -%d", readOnlyCache))
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}
