package sqlite

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/folder"
)

const resetSession = `UPDATE sessions SET first = ?, head = ?, hash = ?, bytes = ?, active = ?, revision = revision + 1 WHERE key = ?`

// Replace implements eventlog.Salvager. It writes the session's lines to a backup copy
// beside the database and then replaces the rows in one transaction. If pages of the
// file are damaged, Replace returns a CorruptError and writes nothing: copy the
// sessions to another store instead.
func (s *Store) Replace(ctx context.Context, session string, at uint64, events iter.Seq2[event.Event, error]) (backup string, err error) {
	if s.options.ReadOnly {
		return "", fmt.Errorf("replace session %q: %w", session, eventlog.ErrReadOnly)
	}
	if err := s.open(ctx); err != nil {
		return "", err
	}
	if backup, err = s.saveCopy(ctx, session); err != nil {
		return "", fmt.Errorf("back up session %q: %w", session, err)
	}
	defer s.changes.Publish(session)
	op := &replaceOp{session: session, at: at, events: events}
	err = s.locate(session, "events", 0, s.write(ctx, op, true))
	var unknown *eventlog.UnknownOutcomeError
	if err != nil && !errors.As(err, &unknown) {
		return "", errors.Join(fmt.Errorf("replace session %q: %w", session, err), os.Remove(backup))
	}
	return backup, err
}

// replaceOp replaces all events of a session.
type replaceOp struct {
	session string
	at      uint64
	events  iter.Seq2[event.Event, error]
}

func (r *replaceOp) unknown(cause error) error {
	return &eventlog.UnknownOutcomeError{Session: r.session, Cause: cause}
}

func (r *replaceOp) apply(w *writer) error {
	now, err := sessionVersion(w.conn, r.session)
	if err != nil {
		return err
	}
	key, head, err := w.head(r.session)
	if err != nil {
		return err
	}
	if now != r.at {
		return rejection{&eventlog.ConflictError{Session: r.session, Actual: head}}
	}
	if err := errors.Join(w.resetIndex(), w.uncatalog(key)); err != nil {
		return err
	}
	if _, err := w.conn.exec(deleteEvents, key); err != nil {
		return fmt.Errorf("delete events: %w", err)
	}
	if err := w.forgetLookup(key); err != nil {
		return err
	}
	first, size, active := int64(0), int64(0), int64(0)
	for e, err := range r.events {
		if err != nil {
			return err
		}
		one := []event.Event{e}
		if err := w.insert(key, one); err != nil {
			return err
		}
		if first == 0 {
			first = e.Seq
			if err := w.relate(key, &e); err != nil {
				return err
			}
		}
		head, size, active = e.Head(), size+lineBytes(one), e.Timestamp.UnixMicro()
	}
	if first == 0 {
		return errors.New("the replacement has no events")
	}
	_, err = w.conn.exec(resetSession, first, head.Seq, head.Hash[:], size, active, key)
	return wrap("reset session", err)
}

// saveCopy writes all lines of the session, readable or not, to a new file beside the
// database and syncs the file.
func (s *Store) saveCopy(ctx context.Context, session string) (path string, err error) {
	file, err := s.createCopy(session)
	if err != nil {
		return "", err
	}
	out := bufio.NewWriterSize(file, 1<<20)
	err = s.dump(ctx, session, out)
	for _, step := range []func() error{out.Flush, file.Sync, func() error { return folder.Sync(filepath.Dir(s.path)) }} {
		if err == nil {
			err = step()
		}
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), nil
}

// copyPrefix returns the path of the session's backup copies up to the number.
func (s *Store) copyPrefix(session string) string {
	sum := sha256.Sum256([]byte(session))
	return s.path + copyInfix + hex.EncodeToString(sum[:8]) + "-"
}

// A backup copy is S.db.damaged-<16 hex>-<n>.jsonl.
const copyInfix, copySuffix = ".damaged-", ".jsonl"

func (s *Store) createCopy(session string) (*os.File, error) {
	for n := 1; ; n++ {
		path := s.copyPrefix(session) + strconv.Itoa(n) + copySuffix
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return file, err
		}
	}
}

// dump writes the lines of the session's rows.
func (s *Store) dump(ctx context.Context, session string, out *bufio.Writer) error {
	rows := salvage{store: s, session: session}
	if err := rows.open(ctx); err != nil {
		return err
	}
	for more := rows.damage == nil; more; {
		var page []record
		var err error
		if page, more, err = rows.page(ctx); err != nil {
			return s.locate(session, "events", rows.next, err)
		}
		for _, r := range page {
			_, _ = out.Write(r.line) // Flush reports the error
			_ = out.WriteByte('\n')
			rows.next = r.seq + 1
		}
	}
	return s.locate(session, "sessions", 0, rows.damage)
}

// removeCopies removes the backup copies of a session.
func (s *Store) removeCopies(session string) error {
	entries, err := os.ReadDir(filepath.Dir(s.path))
	if err != nil {
		return err
	}
	var errs []error
	prefix := filepath.Base(s.copyPrefix(session))
	for _, entry := range entries {
		number, ok := strings.CutPrefix(entry.Name(), prefix)
		number, ended := strings.CutSuffix(number, copySuffix)
		if _, err := strconv.ParseUint(number, 10, 63); ok && ended && err == nil {
			errs = append(errs, os.Remove(filepath.Join(filepath.Dir(s.path), entry.Name())))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return errors.Join(append(errs, folder.Sync(filepath.Dir(s.path)))...)
}
