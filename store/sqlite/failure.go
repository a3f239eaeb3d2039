package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/regular"
	"github.com/convlog/convlog/internal/sysfile"
)

// handleRollback answers or requeues the jobs of a transaction that was rolled back
// because of err. culprit is the job that failed, or nil if the whole transaction
// failed. Damage, I/O errors and a full disk fail all jobs; another error fails
// culprit only. After a full disk each job gets one retry.
func (w *writer) handleRollback(culprit *job, others []*job, err error) {
	all := others
	if culprit != nil {
		all = append([]*job{culprit}, others...)
	}
	switch {
	case isCode(err, codeFull) && w.truncateWAL(all):
		w.requeue(all)
	case culprit == nil || isDamage(err) || isCode(err, codeFull, codeIO, codeReadOnly):
		w.answer(all, w.explain(err))
	default:
		w.answer(all[:1], w.explain(err))
		w.requeue(others)
	}
}

// answer returns err to the callers of jobs that changed nothing.
func (w *writer) answer(jobs []*job, err error) {
	for _, j := range jobs {
		j.done <- err
	}
}

// truncateWAL checkpoints and truncates the write-ahead log to free disk space. It
// reports false if it failed, or if one of the jobs was retried before.
func (w *writer) truncateWAL(jobs []*job) bool {
	if slices.ContainsFunc(jobs, func(j *job) bool { return j.retried }) {
		return false
	}
	for _, j := range jobs {
		j.retried = true
	}
	_, err := w.conn.values("PRAGMA wal_checkpoint(TRUNCATE)", 3)
	return err == nil
}

// explain converts an error of the writer's connection for callers. After an I/O error
// the next transaction uses a new connection.
func (w *writer) explain(err error) error {
	if isCode(err, codeReadOnly, codeIO, codeCannotOpen) {
		w.suspect = true
		if denied := writable(w.path); denied != nil {
			err = fmt.Errorf("%w: %w", denied, err)
		}
	}
	return explain(w.path, err)
}

// explain converts SQLite's error to one that callers can match: ENOSPC for a full
// disk, ErrReadOnly, a permission error, or a CorruptError.
func explain(path string, err error) error {
	switch {
	case isCode(err, codeFull), isCode(err, codeIndexSize) && diskFull(path):
		return fmt.Errorf("%w: %w", syscall.ENOSPC, err)
	case isCode(err, codeReadOnly):
		return fmt.Errorf("%w: %w", eventlog.ErrReadOnly, err)
	case isCode(err, codeCannotOpen):
		return openError(path, err)
	case isDamage(err) && !errors.Is(err, eventlog.ErrCorrupt):
		return &eventlog.CorruptError{Path: filepath.Base(path), Offset: -1, Cause: err}
	default:
		return err
	}
}

// openError returns the reason why SQLite cannot open the database, its write-ahead log or the
// log's index: no permission, or no free file descriptor. Otherwise it returns err.
func openError(path string, err error) error {
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		f, opening := regular.Open(name, os.O_RDONLY, 0)
		if errors.Is(opening, fs.ErrPermission) || errors.Is(opening, syscall.EMFILE) || errors.Is(opening, syscall.ENFILE) {
			return opening
		}
		if opening == nil {
			_ = f.Close() // nothing was written
		}
	}
	return err
}

// diskFull reports whether the disk has less than 32 KiB left. The index of the
// write-ahead log grows by 32 KiB at a time.
func diskFull(path string) bool {
	room, err := sysfile.Room(path)
	return err == nil && room < 32<<10
}

// reconnect replaces a connection that failed. A connection that was opened on an
// unwritable file stays read-only, even after the file is writable again.
func (w *writer) reconnect() error {
	if !w.suspect {
		return nil
	}
	if err := writable(w.path); err != nil {
		return err
	}
	c, err := dial(w.path, writerParameters)
	if err != nil {
		return err
	}
	if err := c.setUp(w.level); err != nil {
		_ = c.close()
		return err
	}
	_ = w.conn.close() // closing repeats the earlier error
	w.conn, w.suspect, w.place.wal = c, false, 0
	clear(w.keys)
	return nil
}
