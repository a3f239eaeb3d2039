package suite

import (
	"context"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
)

// keepsRows keeps the rows of the catalog, whatever happens to their sessions.
type keepsRows struct {
	*memory.Store
	rows map[string][]byte
}

func (s *keepsRows) CatalogRows(context.Context, []string) (map[string][]byte, error) {
	return s.rows, nil
}

func (s *keepsRows) PutCatalogRows(_ context.Context, rows []eventlog.CatalogRow) error {
	for _, row := range rows {
		s.rows[row.Session] = row.Data
	}
	return nil
}
