package sessions

import (
	"context"
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/importrun"
	"github.com/convlog/convlog/internal/storenotes"
)

// removals is the key of the marks that the files of an import share.
type removals struct{ log *eventlog.Log }

// marksOf are the marks of removed sessions, or the error of their storage.
type marksOf struct {
	*storenotes.Notes
	err error
}

// isRemoved reports whether a session that the log lacks was removed from it, and the
// import must leave it out. An import of one file outside of interop.Import leaves nothing
// out, because it could not report it.
func (s *Session) isRemoved(ctx context.Context, id string) (bool, error) {
	if s.file == nil || s.file.Again {
		return false, nil
	}
	marks, err := removalsOf(ctx, s.log)
	if err != nil {
		return false, err
	}
	return marks.Removed(id), nil
}

// removalsOf returns the marks of a log's store, which the files of an import share.
func removalsOf(ctx context.Context, log *eventlog.Log) (*storenotes.Notes, error) {
	marks := importrun.Shared(ctx, removals{log}, func(ctx context.Context, key removals) marksOf {
		m, err := storenotes.Load(ctx, key.log)
		return marksOf{m, err}
	})
	return marks.Notes, marks.err
}

// Removed reports whether another session was removed from the log, and the import must leave
// out what this session has of it.
func (s *Session) Removed(ctx context.Context, id string) (bool, error) {
	if removed, err := s.isRemoved(ctx, id); !removed || err != nil {
		return false, err
	}
	_, err := s.log.Head(ctx, id)
	if errors.Is(err, eventlog.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		err = fmt.Errorf("import into session %q: %w", s.ID, err)
	}
	return false, err
}

// belowRemoved reports whether the parent of a new session was removed: a program may give
// a removed session new sub-agents.
func (s *Session) belowRemoved(ctx context.Context) (bool, error) {
	start, ok, err := event.Decode[event.Session](&s.pending[0][0])
	parent := start.Parent.SessionID
	if err != nil || !ok || parent == "" {
		return false, err
	}
	return s.Removed(ctx, parent)
}

// leaveOut drops the added events, and counts their records. The session keeps its seqs, as
// if they were written.
func (s *Session) leaveOut() {
	s.file.AddLeftOut(s.ID, recordsOf(s.pending))
	s.head.Seq += int64(s.count)
	clear(s.pending)
	s.pending, s.count, s.bytes = s.pending[:0], 0, 0
}
