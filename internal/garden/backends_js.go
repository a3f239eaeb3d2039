package garden

import (
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
)

// Plain opens a store of one kind, for tests that need no other.
func Plain(dir string) eventlog.Store { return Backends["memory"](dir) }

// Backends has an opener for the one kind of store that needs no files.
var Backends = map[string]func(dir string) eventlog.Store{
	"memory": func(string) eventlog.Store { return memory.New() },
}
