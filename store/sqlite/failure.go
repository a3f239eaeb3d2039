package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/convlog/convlog/eventlog"
)

// setBack deals with the jobs of a transaction that was rolled back because
// of err: culprit failed, or all did if it is nil. What concerns all is said
// to all; else the others are queued again. A full disk gets a second try.
func (w *writer) setBack(culprit *job, others []*job, err error) {
	all := others
	if culprit != nil {
		all = append([]*job{culprit}, others...)
	}
	switch {
	case isCode(err, codeFull) && w.makeRoom(all):
		w.requeue(all)
	case culprit == nil || isDamage(err) || isCode(err, codeFull, codeIO, codeReadOnly):
		w.refuse(all, w.explain(err))
	default:
		w.refuse(all[:1], w.explain(err))
		w.requeue(others)
	}
}

// refuse answers jobs that have changed nothing.
func (w *writer) refuse(jobs []*job, err error) {
	for _, j := range jobs {
		j.done <- err
	}
}

// makeRoom folds the write-ahead log into the database and truncates it, which
// may give back more space than the folding needs. It does so once for a job.
func (w *writer) makeRoom(jobs []*job) bool {
	if slices.ContainsFunc(jobs, func(j *job) bool { return j.tried }) {
		return false
	}
	for _, j := range jobs {
		j.tried = true
	}
	_, err := w.conn.values("PRAGMA wal_checkpoint(TRUNCATE)", 3)
	return err == nil
}

// explain is explain for an error of the writer's connection, which is
// replaced where that may help.
func (w *writer) explain(err error) error {
	if isCode(err, codeReadOnly, codeIO, codeCannotOpen) {
		w.suspect = true
		if denied := writable(w.path); denied != nil {
			err = fmt.Errorf("%w: %w", denied, err)
		}
	}
	return explain(w.path, err)
}

// explain makes an error match what callers look for: a full disk, a database
// that cannot be written, and one that is damaged.
func explain(path string, err error) error {
	switch {
	case isCode(err, codeFull), isCode(err, codeIndexSize) && full(path):
		return fmt.Errorf("%w: %w", syscall.ENOSPC, err)
	case isCode(err, codeReadOnly):
		return fmt.Errorf("%w: %w", eventlog.ErrReadOnly, err)
	case isCode(err, codeCannotOpen):
		return notAllowed(path, err)
	case isDamage(err) && !errors.Is(err, eventlog.ErrCorrupt):
		return &eventlog.CorruptError{Path: filepath.Base(path), Offset: -1, Cause: err}
	default:
		return err
	}
}

// notAllowed says what keeps SQLite from opening the file: that, or the write-ahead
// log and its index beside it, which readers need too.
func notAllowed(path string, err error) error {
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		f, opening := os.Open(name)
		if errors.Is(opening, fs.ErrPermission) {
			return opening
		}
		if opening == nil {
			_ = f.Close() // only opened
		}
	}
	return err
}

// full reports whether the disk has no room for a step of the index of the
// write-ahead log, which is 32 KiB.
func full(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && int64(st.Bavail)*int64(st.Bsize) < 32<<10
}

// reconnect replaces a connection that failed by a new one, if there can be
// one: a file that could not be written stays so for the old one even when it
// can be again.
func (w *writer) reconnect() error {
	if !w.suspect {
		return nil
	}
	if err := writable(w.path); err != nil {
		return err
	}
	c, err := dial(w.path, writing)
	if err != nil {
		return err
	}
	if err := c.setUp(w.level); err != nil {
		_ = c.close()
		return err
	}
	_ = w.conn.close() // it says again what it failed of
	w.conn, w.suspect = c, false
	clear(w.keys)
	return nil
}
