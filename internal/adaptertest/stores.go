// Package adaptertest has the helpers that the tests of all adapters share: logs on each store, and a
// process that is killed.
package adaptertest

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/natstest"
	"github.com/convlog/convlog/internal/pgtest"
	"github.com/convlog/convlog/internal/testkit"
	"github.com/convlog/convlog/store/jetstream"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/postgres"
	"github.com/convlog/convlog/store/sqlite"
)

// Opener opens the same store each time.
type Opener func() (eventlog.Store, error)

// Stores has a function for each kind of store: it makes a new store.
var Stores = map[string]func(t testing.TB) Opener{
	"jsonl":  func(t testing.TB) Opener { return at(t.TempDir()) },
	"sqlite": func(t testing.TB) Opener { return at(filepath.Join(t.TempDir(), "s.db")) },
	"postgres": func(t testing.TB) Opener {
		dsn := pgtest.DSN(t)
		return func() (eventlog.Store, error) { return postgres.New(dsn) }
	},
	"jetstream": func(t testing.TB) Opener {
		servers := natstest.Shared(t, false)
		options := jetstream.Options{Prefix: fmt.Sprint("log", logs.Add(1)), Replicas: 1, Synced: true, Connect: servers.Connect}
		return func() (eventlog.Store, error) { return jetstream.New("", options) }
	},
}

var logs atomic.Int64

// at opens the SQLite file or the folder of this name.
func at(place string) Opener {
	return func() (eventlog.Store, error) {
		if strings.HasSuffix(place, ".db") {
			return sqlite.New(place), nil
		}
		return jsonl.New(place), nil
	}
}

// EachStore runs a test on each kind of store. open opens the same log each time, as another process does.
func EachStore(t *testing.T, test func(t *testing.T, open func(testing.TB) *eventlog.Log)) {
	for name, store := range Stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newLog := store(t)
			test(t, func(t testing.TB) *eventlog.Log { return Open(t, newLog) })
		})
	}
}

// Open opens a log and closes it at the end of the test.
func Open(t testing.TB, open Opener) *eventlog.Log {
	t.Helper()
	store, err := open()
	if err != nil {
		t.Fatal(err)
	}
	return testkit.Open(t, store)
}

// Folder opens a log in a new folder.
func Folder(t testing.TB) *eventlog.Log { return Open(t, Stores["jsonl"](t)) }
