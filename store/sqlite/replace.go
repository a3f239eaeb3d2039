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
)

const resetSession = `UPDATE sessions SET first = ?, head = ?, hash = ?, bytes = ?, revision = revision + 1 WHERE key = ?`

// Replace implements eventlog.Salvager: the session's lines are written to a
// file beside the database, then its rows are replaced in one transaction. A
// file whose pages are damaged is refused: nothing should be written to it.
func (s *Store) Replace(ctx context.Context, session string, at uint64, events iter.Seq2[event.Event, error]) (kept string, err error) {
	if s.options.ReadOnly {
		return "", fmt.Errorf("replace session %q: %w", session, eventlog.ErrReadOnly)
	}
	if err := s.open(ctx); err != nil {
		return "", err
	}
	if kept, err = s.keep(ctx, session); err != nil {
		return "", fmt.Errorf("keep a copy of session %q: %w", session, err)
	}
	op := &replacing{session: session, at: at, events: events}
	err = s.locate(session, "events", 0, s.write(ctx, op, true))
	var unknown *eventlog.UnknownOutcomeError
	if err != nil && !errors.As(err, &unknown) {
		return "", errors.Join(fmt.Errorf("replace session %q: %w", session, err), os.Remove(kept))
	}
	return kept, err
}

// replacing puts other events in the place of all that a session has.
type replacing struct {
	session string
	at      uint64
	events  iter.Seq2[event.Event, error]
}

func (r *replacing) unknown(cause error) error {
	return &eventlog.UnknownOutcomeError{Session: r.session, Cause: cause}
}

func (r *replacing) apply(w *writer) error {
	now, err := sessionVersion(w.conn, r.session)
	if err != nil {
		return err
	}
	key, head, err := w.head(r.session)
	if err != nil {
		return err
	}
	if now != r.at {
		return refused{&eventlog.ConflictError{Session: r.session, Actual: head}}
	}
	if err := w.resetIndex(); err != nil {
		return err
	}
	if _, err := w.conn.exec(deleteEvents, key); err != nil {
		return fmt.Errorf("delete events: %w", err)
	}
	first, size := int64(0), int64(0)
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
		}
		head, size = e.Head(), size+lineBytes(one)
	}
	if first == 0 {
		return errors.New("no event to put in the session's place")
	}
	_, err = w.conn.exec(resetSession, first, head.Seq, head.Hash[:], size, key)
	return wrap("reset session", err)
}

// keep writes the session's lines, whatever they hold, to a new file beside the
// database, durably.
func (s *Store) keep(ctx context.Context, session string) (path string, err error) {
	file, err := s.createKept(session)
	if err != nil {
		return "", err
	}
	out := bufio.NewWriterSize(file, 1<<20)
	err = s.dump(ctx, session, out)
	for _, step := range []func() error{out.Flush, file.Sync, func() error { return syncFolder(filepath.Dir(s.path)) }} {
		if err == nil {
			err = step()
		}
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), nil
}

// keptPrefix is how the paths of a session's kept copies begin.
func (s *Store) keptPrefix(session string) string {
	sum := sha256.Sum256([]byte(session))
	return s.path + keptInfix + hex.EncodeToString(sum[:8]) + "-"
}

// A kept copy is S.db.damaged-<16 hex>-<n>.jsonl.
const keptInfix, keptSuffix = ".damaged-", ".jsonl"

func (s *Store) createKept(session string) (*os.File, error) {
	for n := 1; ; n++ {
		path := s.keptPrefix(session) + strconv.Itoa(n) + keptSuffix
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return file, err
		}
	}
}

// dump writes the lines of a session's rows.
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
			_, _ = out.Write(r.line) // Flush tells
			_ = out.WriteByte('\n')
			rows.next = r.seq + 1
		}
	}
	return s.locate(session, "sessions", 0, rows.damage)
}

// removeKept removes the kept copies of a session.
func (s *Store) removeKept(session string) error {
	entries, err := os.ReadDir(filepath.Dir(s.path))
	if err != nil {
		return err
	}
	var errs []error
	prefix := filepath.Base(s.keptPrefix(session))
	for _, entry := range entries {
		number, ok := strings.CutPrefix(entry.Name(), prefix)
		number, ended := strings.CutSuffix(number, keptSuffix)
		if _, err := strconv.ParseUint(number, 10, 63); ok && ended && err == nil {
			errs = append(errs, os.Remove(filepath.Join(filepath.Dir(s.path), entry.Name())))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return errors.Join(append(errs, syncFolder(filepath.Dir(s.path)))...)
}
