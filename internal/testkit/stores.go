//go:build !js

package testkit

import (
	"path/filepath"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
)

// Stores has an opener for each kind of store with files in a directory. The stores
// never sync.
var Stores = map[string]func(dir string) eventlog.Store{
	"jsonl": func(dir string) eventlog.Store { return jsonl.New(dir, jsonl.Options{NoSync: true}) },
	"sqlite": func(dir string) eventlog.Store {
		return sqlite.New(filepath.Join(dir, "s.db"), sqlite.Options{NoSync: true})
	},
}
