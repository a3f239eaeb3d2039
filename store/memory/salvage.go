package memory

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Fragments implements eventlog.Salvager. The fragments have no offsets.
func (s *Store) Fragments(ctx context.Context, session string) iter.Seq2[eventlog.Fragment, error] {
	return func(yield func(eventlog.Fragment, error) bool) {
		all, _, err := s.snapshot(ctx, session)
		if err != nil {
			yield(eventlog.Fragment{}, err)
			return
		}
		for _, line := range all {
			if err := s.usable(ctx); err != nil {
				yield(eventlog.Fragment{}, err)
				return
			}
			f := eventlog.Fragment{Path: "memory", Offset: -1, Bytes: int64(len(line)) + 1}
			f.Event, f.Err = event.Parse(line, "")
			if !yield(f, nil) {
				return
			}
		}
	}
}

// Replace implements eventlog.Salvager. Pass the returned path to Copy to read the
// replaced lines.
func (s *Store) Replace(ctx context.Context, session string, at uint64, events iter.Seq2[event.Event, error]) (copied string, err error) {
	if err := s.writable(ctx); err != nil {
		return "", err
	}
	if _, err := s.Version(ctx, session); err != nil {
		return "", err
	}
	var all []event.Event
	for e, err := range events {
		if err != nil {
			return "", fmt.Errorf("replace %q: %w", session, err)
		}
		all = append(all, e)
	}
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	found, ok := s.data.sessions[session]
	if !ok || found.version != at {
		return "", &eventlog.ConflictError{Session: session}
	}
	copied = fmt.Sprintf("memory:%d", len(s.data.copies)+1)
	s.data.copies[copied] = found.all
	found.all, found.first, found.birth = nil, all[0].Seq, all[0].ID
	s.data.lookup.remove(session)
	s.data.lookup.begin(&all[0])
	s.data.add(session, found, all)
	return copied, nil
}

// Copy returns the lines of the backup copy that Replace made at path, without
// newlines.
func (s *Store) Copy(path string) [][]byte {
	s.data.mu.RLock()
	defer s.data.mu.RUnlock()
	return slices.Clone(s.data.copies[path])
}

// Damage edits the stored lines of a session, including newlines, for tests of
// verification and repair.
func (s *Store) Damage(session string, edit func(lines []string) []string) error {
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	found, ok := s.data.sessions[session]
	if !ok {
		return fmt.Errorf("damage %q: %w", session, eventlog.ErrNotFound)
	}
	var before []string
	for _, line := range found.all {
		before = append(before, string(line)+"\n")
	}
	found.all = nil
	for _, line := range edit(before) {
		found.all = append(found.all, []byte(line[:max(len(line)-1, 0)]))
	}
	if len(found.all) == 0 {
		delete(s.data.sessions, session)
		s.data.lookup.remove(session)
	} else if last, err := event.Parse(found.all[len(found.all)-1], session); err == nil {
		found.head = last.Head()
	}
	s.data.version++
	found.version = s.data.version
	s.data.changes.Publish(session)
	return nil
}
