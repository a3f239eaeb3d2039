package jsonl

import (
	"context"
	"errors"
	"fmt"

	"github.com/convlog/convlog/eventlog"
)

// settledLen is how many digits of its SHA-256 the name of a settled torn tail
// ends in.
const settledLen = 16

// ForgetCut implements eventlog.CutForgetter: the saved torn tail gets a name
// that is not read as a cut owed by the next append.
func (s *Store) ForgetCut(ctx context.Context, session string, expect eventlog.Head) error {
	h, err := s.begin(ctx, "settle the cut of session", session)
	if err != nil {
		return err
	}
	defer s.end(h)
	if err := h.lock(ctx, false); err != nil {
		if errors.Is(err, errAbsent) {
			return fmt.Errorf("session %q: %w", session, eventlog.ErrNotFound)
		}
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
