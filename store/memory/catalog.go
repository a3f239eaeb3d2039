package memory

import (
	"context"
	"slices"

	"github.com/convlog/convlog/eventlog"
)

// CatalogRows implements eventlog.Cataloger.
func (s *Store) CatalogRows(ctx context.Context, sessions []string) (map[string][]byte, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	s.data.mu.RLock()
	defer s.data.mu.RUnlock()
	rows := make(map[string][]byte, len(sessions))
	for _, session := range sessions {
		if row, ok := s.data.catalog[session]; ok {
			rows[session] = slices.Clone(row)
		}
	}
	return rows, nil
}

// PutCatalogRows implements eventlog.Cataloger.
func (s *Store) PutCatalogRows(ctx context.Context, rows []eventlog.CatalogRow) error {
	if err := s.writable(ctx); err != nil {
		return err
	}
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	for _, row := range rows {
		if found, ok := s.data.sessions[row.Session]; ok && found.version == row.At {
			s.data.catalog[row.Session] = slices.Clone(row.Data)
		}
	}
	return nil
}
