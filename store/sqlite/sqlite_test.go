package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/sqlite"
	"github.com/convlog/convlog/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t testing.TB) storetest.Harness {
		path := filepath.Join(t.TempDir(), "s.db")
		return storetest.Harness{
			Open:         func() (eventlog.Store, error) { return sqlite.New(path), nil },
			OpenReadOnly: func() (eventlog.Store, error) { return sqlite.New(path, sqlite.Options{ReadOnly: true}), nil },
			Path:         path,
		}
	})
}
