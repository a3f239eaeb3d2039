// Package ownstore is an own store: a map in memory. It passes storetest.
package ownstore

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Data is the stored lines of each session. Several stores may share one Data.
type Data struct {
	mu       sync.Mutex
	sessions map[string][][]byte
}

// Store is a store over Data. New opens it.
type Store struct {
	data   *Data
	closed atomic.Bool
}

func New(data *Data) *Store { return &Store{data: data} }

// Append writes the events' lines if the head of the session is expect.
func (s *Store) Append(ctx context.Context, session string, expect event.Head, events []event.Event, _ bool) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	stored, err := s.data.events(session)
	if err != nil {
		return err
	}
	var head event.Head
	if len(stored) > 0 {
		head = stored[len(stored)-1].Head()
	}
	if head != expect {
		return &eventlog.ConflictError{Session: session, Expected: expect, Actual: head}
	}
	if s.data.sessions == nil {
		s.data.sessions = map[string][][]byte{}
	}
	for i := range events {
		s.data.sessions[session] = append(s.data.sessions[session], bytes.Clone(events[i].Line()))
	}
	return nil
}

// events parses the lines of a session, which checks their crc.
func (d *Data) events(session string) (events []event.Event, err error) {
	for _, line := range d.sessions[session] {
		e, err := event.Parse(line, session)
		if err != nil {
			return events, &eventlog.CorruptError{Session: session, Offset: -1, Seq: int64(len(events)) + 1, Cause: err}
		}
		events = append(events, e)
	}
	return events, nil
}

// Read yields the events of a span.
func (s *Store) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		events, err := s.snapshot(ctx, session)
		if r.Backward {
			slices.Reverse(events)
		}
		n := 0
		for _, e := range events {
			if e.Seq < r.From || r.To > 0 && e.Seq > r.To {
				continue
			}
			if ended := s.usable(ctx); ended != nil {
				yield(event.Event{}, ended)
				return
			}
			if !yield(e, nil) {
				return
			}
			if n++; n == r.Limit {
				return
			}
		}
		if err != nil {
			yield(event.Event{}, err)
		}
	}
}

// snapshot is the events of a session at this moment.
func (s *Store) snapshot(ctx context.Context, session string) ([]event.Event, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	if _, ok := s.data.sessions[session]; !ok {
		return nil, fmt.Errorf("session %q: %w", session, eventlog.ErrNotFound)
	}
	return s.data.events(session)
}

// Sessions yields a row for each session, ordered by id.
func (s *Store) Sessions(ctx context.Context) iter.Seq2[eventlog.SessionInfo, error] {
	return func(yield func(eventlog.SessionInfo, error) bool) {
		s.data.mu.Lock()
		ids := slices.Sorted(maps.Keys(s.data.sessions))
		s.data.mu.Unlock()
		for _, id := range ids {
			info := eventlog.SessionInfo{ID: id}
			events, err := s.snapshot(ctx, id)
			if info.Err = err; len(events) > 0 && err == nil {
				info.First, info.Last = events[0], events[len(events)-1]
			}
			for _, e := range events {
				info.Bytes += int64(len(e.Line())) + 1
			}
			if ended := s.usable(ctx); ended != nil {
				yield(eventlog.SessionInfo{}, ended)
				return
			}
			if !yield(info, nil) {
				return
			}
		}
	}
}

func (s *Store) usable(ctx context.Context) error {
	if s.closed.Load() {
		return eventlog.ErrClosed
	}
	return ctx.Err()
}

// Close ends the store. The data stays.
func (s *Store) Close() error {
	s.closed.Store(true)
	return nil
}
