package jsonl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// TornTails implements eventlog.TailKeeper. It checks each torn tail a second time
// under the session's lock, so it does not report an append in progress. An unreadable
// file yields an error, and the sequence continues.
func (s *Store) TornTails(ctx context.Context, session string) iter.Seq2[eventlog.TornTail, error] {
	return func(yield func(eventlog.TornTail, error) bool) {
		if err := s.beginCall("list torn tails of", s.dir); err != nil {
			yield(eventlog.TornTail{}, err)
			return
		}
		defer s.endCall()
		rows := []sessionFile{{id: session, name: fileOf(session)}}
		if session == "" {
			var err error
			if rows, err = s.sessionFiles(); err != nil {
				yield(eventlog.TornTail{}, fmt.Errorf("list torn tails: %w", err))
				return
			}
		}
		for _, row := range rows {
			if err := s.alive(ctx); err != nil {
				yield(eventlog.TornTail{}, err)
				return
			}
			t, err := s.tornTail(ctx, row)
			if err == nil && t.Bytes == 0 {
				continue
			}
			if !yield(t, err) || ctx.Err() != nil {
				return
			}
		}
	}
}

// tornTail describes the torn tail of a file. It returns the zero value if there is
// none, or if the file is damaged: reads report that. It always scans for holes.
func (s *Store) tornTail(ctx context.Context, row sessionFile) (eventlog.TornTail, error) {
	r := s.tailReader(row)
	err := r.open()
	defer r.close()
	if err == nil {
		r.tail, err = r.scanTail(r.info.Size, 0, 0)
	}
	if errors.Is(err, eventlog.ErrNotFound) || err == nil && r.info.Size <= r.end {
		return eventlog.TornTail{}, nil
	}
	if err != nil {
		return eventlog.TornTail{Session: row.id}, fmt.Errorf("read tail of %s: %w", r.path, err)
	}
	return r.lockedTail(ctx)
}

// tailReader reads the torn tail of a file.
func (s *Store) tailReader(row sessionFile) *reader {
	return &reader{store: s, name: row.name, source: source{session: row.id, path: s.path(row.name)}}
}

// lockedTail is tornTail under the shared lock of the file.
func (r *reader) lockedTail(ctx context.Context) (t eventlog.TornTail, err error) {
	r.end = math.MaxInt64 // an append may have ended since the file was opened
	unlock, err := r.relock(ctx)
	if unlock != nil {
		defer unlock()
	}
	if errors.Is(err, eventlog.ErrNotFound) {
		return t, nil
	}
	if err == nil && (r.damage != nil || r.info.Size <= r.end) {
		return t, nil
	}
	t.Session = r.session
	bad, n := make([]byte, max(r.info.Size-r.end, 0)), 0
	if err == nil {
		n, err = readFull(r.file, bad, r.end)
	}
	if err != nil {
		return t, fmt.Errorf("read tail of %s: %w", r.path, err)
	}
	t.Path, t.Offset, t.Bytes, t.Whole = r.path, r.end, int64(n), r.looksWhole(bad[:n])
	return t, nil
}

// looksWhole reports whether a torn tail may contain acknowledged events. It does if
// it ends with a newline, and the last line is bad, or ends an append, or the tail has
// a NUL.
func (s *source) looksWhole(bad []byte) bool {
	body, ended := bytes.CutSuffix(bad, []byte("\n"))
	if !ended || len(bytes.TrimSpace(body)) == 0 {
		return false
	}
	last, err := s.parse(body[bytes.LastIndexByte(body, '\n')+1:])
	return err != nil || last.More() == 0 || bytes.IndexByte(bad, 0) >= 0
}

// retiredDigits is how many digits of its SHA-256 a retired torn tail has in its name.
const retiredDigits = 16

// ForgetCut implements eventlog.TailKeeper. It renames the saved torn tail, so that
// later appends need not name the cut.
func (s *Store) ForgetCut(ctx context.Context, session string, expect event.Head) error {
	h, err := s.beginWrite(ctx, "forget the cut of session", session)
	if err != nil {
		return err
	}
	defer s.endWrite(h)
	if err := h.lockFile(ctx); err != nil {
		return err
	}
	defer h.unlock()
	if _, err := h.recoverTail(); err != nil {
		return err
	}
	if h.head != expect {
		return &eventlog.ConflictError{Session: session, Expected: expect, Actual: h.head}
	}
	if h.pendingCut == nil {
		return nil
	}
	s.saved.forget()
	name := h.savedTail(h.size)
	if err := s.fs.Rename(name, name+"."+h.pendingCut.SHA256.String()[:retiredDigits]); err != nil {
		return fmt.Errorf("forget the cut of session %q: %w", session, err)
	}
	h.pendingCut = nil
	return s.fs.SyncDir(".")
}

// CutTail implements eventlog.TailKeeper. It saves the torn tail and truncates the
// file, without an append.
func (s *Store) CutTail(ctx context.Context, session string) (cut eventlog.TornTail, saved string, err error) {
	h, err := s.beginWrite(ctx, "truncate the torn tail of session", session)
	if err != nil {
		return cut, "", err
	}
	defer s.endWrite(h)
	if err := h.lockFile(ctx); err != nil {
		return cut, "", err
	}
	defer h.unlock()
	n, err := h.recoverTail()
	if err != nil || n == 0 {
		return cut, "", err
	}
	cut = eventlog.TornTail{Session: session, Path: h.path, Offset: h.size, Bytes: n}
	return cut, s.path(h.savedTail(h.size)), nil
}
