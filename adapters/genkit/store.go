package genkit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/firebase/genkit/go/ai/exp"
	"github.com/firebase/genkit/go/core/status"
	"github.com/google/uuid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Store is a session store over a log, for agents with custom state S. It may be used concurrently, and by several
// processes. The log belongs to the caller, who closes it.
type Store[S any] struct{ log *eventlog.Log }

var (
	_ exp.SessionStore[any]  = (*Store[any])(nil)
	_ exp.SnapshotSubscriber = (*Store[any])(nil)
)

// New returns a store over a log.
func New[S any](log *eventlog.Log) *Store[S] { return &Store[S]{log} }

// GetSnapshot returns the snapshot with the id, nil if there is none.
func (s *Store[S]) GetSnapshot(ctx context.Context, snapshotID string) (*exp.SessionSnapshot[S], error) {
	found, err := s.find(ctx, snapshotID)
	if err != nil {
		return nil, fmt.Errorf("get snapshot %q: %w", snapshotID, err)
	}
	return found.snapshot, nil
}

// GetLatestSnapshot returns the snapshot of the session with the greatest CreatedAt, of two equal ones the one with the greater
// id. It returns nil for a session without snapshots. A fork without a snapshot of its own has one of its newest event.
func (s *Store[S]) GetLatestSnapshot(ctx context.Context, sessionID string) (*exp.SessionSnapshot[S], error) {
	if sessionID == "" {
		return nil, errors.New("get the latest snapshot: the session id is empty")
	}
	latest, err := s.latest(ctx, sessionID)
	if err != nil {
		return nil, fmt.Errorf("get the latest snapshot of session %q: %w", sessionID, err)
	}
	return latest, nil
}

func (s *Store[S]) latest(ctx context.Context, sessionID string) (*exp.SessionSnapshot[S], error) {
	logID, err := s.locate(ctx, sessionID)
	if err != nil {
		return nil, err
	}
	all, head, err := loadRows(ctx, s.log, logID)
	if errors.Is(err, eventlog.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	newest, ok := all.newest()
	if !ok {
		return s.ofFork(ctx, logID, head.Seq)
	}
	found, err := s.read(ctx, logID, newest)
	return found.snapshot, err
}

// SaveSnapshot calls fn with the stored snapshot, nil if there is none, and stores the result. If another process changes the
// session meanwhile, it calls fn again.
func (s *Store[S]) SaveSnapshot(ctx context.Context, snapshotID string, fn func(existing *exp.SessionSnapshot[S]) (*exp.SessionSnapshot[S], error)) (*exp.SessionSnapshot[S], error) {
	if snapshotID == "" {
		snapshotID = uuid.NewString()
	}
	for {
		saved, err := s.save(ctx, snapshotID, fn)
		if errors.Is(err, eventlog.ErrConflict) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("save snapshot %q: %w", snapshotID, err)
		}
		return saved, nil
	}
}

func (s *Store[S]) save(ctx context.Context, id string, fn func(*exp.SessionSnapshot[S]) (*exp.SessionSnapshot[S], error)) (*exp.SessionSnapshot[S], error) {
	found, err := s.find(ctx, id)
	if err != nil {
		return nil, err
	}
	before, sessionID := []byte(nil), ""
	if found.snapshot != nil {
		sessionID = found.snapshot.SessionID
		if before, err = json.Marshal(found.snapshot.State); err != nil { // fn may change it
			return nil, err
		}
	}
	next, err := fn(found.snapshot)
	if err != nil || next == nil {
		return nil, err
	}
	next.SnapshotID = id
	if sessionID != "" {
		next.SessionID = sessionID
	}
	if next.SessionID == "" {
		return nil, status.Errorf(exp.ErrSessionIDRequired, "a snapshot needs a sessionId")
	}
	if !utf8.ValidString(id) || !utf8.ValidString(next.SessionID) {
		return nil, status.Errorf(status.ErrInvalidArgument, "the ids %q and %q must be UTF-8", id, next.SessionID)
	}
	if next.Status == "" {
		next.Status = exp.SnapshotStatusCompleted
	}
	after, err := json.Marshal(next.State)
	if err != nil {
		return nil, err
	}
	changed := found.snapshot == nil || !bytes.Equal(before, after)
	if found.snapshot == nil {
		if found.logID, found.head, err = s.begin(ctx, id, next.SessionID); err != nil {
			return nil, err
		}
	}
	store := func(ctx context.Context) error {
		return s.append(ctx, found.logID, found.head, row[S]{snapshot: next, state: found.state}, changed)
	}
	if changed && next.State != nil && hasBlobs(next.State.Messages) {
		return next, s.log.Hold(ctx, store)
	}
	return next, store(ctx)
}

// begin registers a new snapshot, and returns its session with the newest event. If another process stored the snapshot meanwhile, it
// is eventlog.ErrConflict.
func (s *Store[S]) begin(ctx context.Context, id, sessionID string) (logID string, head event.Head, err error) {
	if logID, err = s.locate(ctx, sessionID); err != nil {
		return "", head, err
	}
	if err := s.register(ctx, id, logID); err != nil {
		return "", head, err
	}
	all, head, err := loadRows(ctx, s.log, logID)
	if errors.Is(err, eventlog.ErrNotFound) {
		return logID, event.Head{}, nil
	}
	if _, stored := all[id]; err == nil && stored {
		err = eventlog.ErrConflict
	}
	return logID, head, err
}

// append appends the state of a row, if it is new, and the row.
func (s *Store[S]) append(ctx context.Context, logID string, head event.Head, r row[S], changed bool) error {
	var events []event.Event
	if head.IsZero() {
		started := event.New(event.Session{})
		started.Metadata = sessionMetadata(r.snapshot.SessionID)
		events = append(events, started)
	}
	if changed {
		r.state = 0
		if r.snapshot.State != nil {
			stated, err := s.encodeState(ctx, logID, head, r.snapshot.State)
			if err != nil {
				return err
			}
			events = append(events, stated...)
			r.state = ownEvent
		}
	}
	e, err := r.event()
	if err != nil {
		return err
	}
	events = append(events, e)
	var stored event.Head
	err = eventlog.UntilKnown(ctx, func() (err error) {
		stored, err = s.log.Append(ctx, logID, eventlog.At(head).Lenient(), events...)
		return err
	})
	if err == nil {
		snapshot(ctx, s.log, logID, states, head, stored)
	}
	return err
}

// OnSnapshotStatusChange returns a channel with the status of a snapshot, now and after each change by any process. A reader that
// is slow gets the newest status. The channel is closed when ctx ends, and at once if there is no such snapshot.
func (s *Store[S]) OnSnapshotStatusChange(ctx context.Context, snapshotID string) <-chan exp.SnapshotStatus {
	changes := make(chan exp.SnapshotStatus, 1)
	found, err := s.find(ctx, snapshotID)
	if err != nil || found.snapshot == nil {
		close(changes)
		return changes
	}
	last := found.snapshot.Status
	changes <- last
	go func() {
		defer close(changes)
		for e, err := range s.log.Watch(ctx, found.logID, found.head.Seq+1) {
			if err != nil {
				return
			}
			r, ok, err := decodeRow[S](&e)
			if err != nil || !ok || r.snapshot.SnapshotID != snapshotID || r.snapshot.Status == last {
				continue
			}
			last = r.snapshot.Status
			select {
			case <-changes:
			default:
			}
			changes <- last
		}
	}()
	return changes
}
