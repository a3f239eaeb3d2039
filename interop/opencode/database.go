package opencode

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/records"
)

// databaseHead begins every SQLite database.
const databaseHead = "SQLite format 3\x00"

// lockWait is the time to wait for a database that another program locks.
var lockWait = 5 * time.Second

// isDatabase reports whether a file is a database of OpenCode: by its name, or by its
// tables. The tables of a running OpenCode may be in the write-ahead log only.
func isDatabase(name string, begin []byte) bool {
	if !bytes.HasPrefix(begin, []byte(databaseHead)) {
		return false
	}
	named, _ := filepath.Match("opencode*.db", filepath.Base(name)) // the pattern is valid
	return named || bytes.Contains(begin, []byte("CREATE TABLE `session`")) && bytes.Contains(begin, []byte("CREATE TABLE `part`"))
}

// database reads a database of OpenCode. It never writes to it, also while OpenCode runs.
type database struct {
	path string
	db   *sql.DB
	// copied says that the database is a copy of a stream, to remove.
	copied bool
	// fixed says that no process had the database open: it is read without locks. stamp
	// tells whether that is still so.
	fixed bool
	stamp os.FileInfo
}

// openDatabase opens the database in a source. A source that is no file is copied to one.
func openDatabase(src interop.Source) (*database, error) {
	d := &database{path: src.Name}
	if _, err := os.Stat(src.Name); errors.Is(err, os.ErrNotExist) {
		if err := d.copy(src); err != nil {
			return nil, err
		}
	}
	return d, d.open()
}

// copy copies a stream to a temporary file.
func (d *database) copy(src interop.Source) error {
	r, in, err := src.Reader()
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.CreateTemp("", "opencode-*.db")
	if err != nil {
		return err
	}
	d.path, d.copied = out.Name(), true
	_, err = io.Copy(out, r)
	return errors.Join(err, out.Close())
}

// open opens the database. Without a write-ahead log no process writes to it, and reading
// leaves no files beside it.
func (d *database) open() (err error) {
	path, err := filepath.Abs(d.path)
	if err != nil {
		return err
	}
	if d.stamp, err = os.Stat(path); err != nil {
		return err
	}
	parameters := fmt.Sprintf("mode=ro&_pragma=query_only(1)&_pragma=busy_timeout(%d)", lockWait.Milliseconds())
	if _, err := os.Stat(path + "-wal"); err != nil {
		d.fixed = true
		parameters += "&immutable=1"
	}
	name := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: parameters}
	if filepath.VolumeName(path) != "" {
		name.Path = "/" + name.Path // file:///C:/…
	}
	d.db, err = sql.Open("sqlite", name.String())
	return err
}

// close closes the database.
func (d *database) close() error {
	err := d.db.Close()
	if d.copied {
		err = errors.Join(err, os.Remove(d.path))
	}
	return err
}

// reopen opens a database anew, with locks, that a process began to write to. ok is false
// if none did.
func (d *database) reopen() (ok bool, err error) {
	if !d.fixed {
		return false, nil
	}
	now, err := os.Stat(d.path)
	if err != nil {
		return false, err
	}
	_, logged := os.Stat(d.path + "-wal")
	if logged != nil && now.Size() == d.stamp.Size() && now.ModTime().Equal(d.stamp.ModTime()) {
		return false, nil
	}
	d.fixed = false
	return true, errors.Join(d.db.Close(), d.open())
}

// ids are the ids of the sessions, parents first.
func (d *database) ids(ctx context.Context) (all []string, err error) {
	rows, err := d.db.QueryContext(ctx, "SELECT id FROM session ORDER BY time_created, id")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		all = append(all, id)
	}
	return all, rows.Err()
}

// records yields a document for each session, in the layout of an exported session.
func (d *database) records(ctx context.Context, src interop.Source) iter.Seq2[records.Record, error] {
	return func(yield func(records.Record, error) bool) {
		rec := records.Record{Source: src.Name, Line: 1}
		ids, err := d.ids(ctx)
		if err != nil {
			yield(rec, d.failure(ctx, &rec, "the table session", err))
			return
		}
		for _, id := range ids {
			rejected, err := d.session(ctx, id, &rec)
			for _, cause := range rejected {
				if !yield(rec, rec.Reject(cause)) {
					return
				}
			}
			if err != nil {
				err = d.failure(ctx, &rec, "session "+id, err)
			}
			if rec.Value == nil && err == nil {
				continue
			}
			if !yield(rec, err) || ctx.Err() != nil {
				return
			}
		}
	}
}

// failure rejects unreadable rows. A canceled context stops the import, and so does an
// error that may not recur: a locked database, or a failing disk.
func (d *database) failure(ctx context.Context, rec *records.Record, what string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	err = fmt.Errorf("%s: %w", what, err)
	if isTransient(err) {
		return err
	}
	return rec.Reject(err)
}

func isTransient(err error) bool {
	var failed *sqlite.Error
	if !errors.As(err, &failed) {
		return false
	}
	switch failed.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM:
		return true
	}
	return false
}

// session sets the value of rec to the document of a session; nil if the session is gone.
// It returns the causes that reject rows.
func (d *database) session(ctx context.Context, id string, rec *records.Record) (rejected []error, err error) {
	for {
		r := rowReader{limit: interop.MaxRecord}
		rec.Value, err = r.session(ctx, d.db, id)
		again, failed := d.reopen()
		if failed != nil {
			return nil, failed
		}
		if !again {
			rec.Digest, rec.Size = event.DigestOf(rec.Value), int64(len(rec.Value))
			return r.rejected, err
		}
	}
}
