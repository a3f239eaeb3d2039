//go:build !js

package garden

import (
	"path/filepath"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
)

// Plain opens a store of one kind, for tests that need no other.
func Plain(dir string) eventlog.Store { return Backends["jsonl"](dir) }

// Backends has an opener for each kind of store, for an empty folder.
var Backends = map[string]func(dir string) eventlog.Store{
	"jsonl": func(dir string) eventlog.Store { return jsonl.New(dir, jsonl.Options{NoSync: true}) },
	"sqlite": func(dir string) eventlog.Store {
		return sqlite.New(filepath.Join(dir, "s.db"), sqlite.Options{NoSync: true})
	},
}
