package jsonl

import (
	"context"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// settledLen is how many digits of its SHA-256 the name of a settled torn tail
// ends in.
const settledLen = 16

// ForgetCut implements eventlog.TailKeeper: the saved torn tail gets a name
// that is not read as a cut owed by the next append.
func (s *Store) ForgetCut(ctx context.Context, session string, expect event.Head) error {
	h, err := s.begin(ctx, "settle the cut of session", session)
	if err != nil {
		return err
	}
	defer s.end(h)
	if err := h.lockPresent(ctx); err != nil {
		return err
	}
	defer h.unlock()
	if err := h.refresh(); err != nil {
		return err
	}
	if h.head != expect {
		return &eventlog.ConflictError{Session: session, Expected: expect, Actual: h.head}
	}
	if h.cut == nil {
		return nil
	}
	name := h.torn(h.size)
	if err := s.fs.Rename(name, name+"."+h.cut.SHA256.String()[:settledLen]); err != nil {
		return fmt.Errorf("settle the cut of session %q: %w", session, err)
	}
	h.cut = nil
	return s.fs.SyncDir(".")
}

// CutTail implements eventlog.TailKeeper.
func (s *Store) CutTail(ctx context.Context, session string) (cut eventlog.TornTail, saved string, err error) {
	h, err := s.begin(ctx, "cut the torn tail of session", session)
	if err != nil {
		return cut, "", err
	}
	defer s.end(h)
	if err := h.lockPresent(ctx); err != nil {
		return cut, "", err
	}
	defer h.unlock()
	n, err := h.recover()
	if err != nil || n == 0 {
		return cut, "", err
	}
	cut = eventlog.TornTail{Session: session, Path: h.path, Offset: h.size, Bytes: n}
	return cut, s.path(h.torn(h.size)), nil
}
