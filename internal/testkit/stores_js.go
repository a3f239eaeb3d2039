package testkit

import (
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
)

// Stores has an opener for the one kind of store that needs no files.
var Stores = map[string]func(dir string) eventlog.Store{
	"memory": func(string) eventlog.Store { return memory.New() },
}
