package memory

import (
	"context"
	"iter"
	"maps"
	"slices"
)

// PutRemovals implements eventlog.RemovalKeeper.
func (s *Store) PutRemovals(ctx context.Context, marks []string) error {
	if err := s.writable(ctx); err != nil {
		return err
	}
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	for _, mark := range marks {
		s.data.removals[mark] = true
	}
	return nil
}

// Removals implements eventlog.RemovalKeeper.
func (s *Store) Removals(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := s.usable(ctx); err != nil {
			yield("", err)
			return
		}
		s.data.mu.RLock()
		marks := slices.Sorted(maps.Keys(s.data.removals))
		s.data.mu.RUnlock()
		for _, mark := range marks {
			if !yield(mark, nil) {
				return
			}
		}
	}
}
