package projection

import (
	"strings"

	"github.com/convlog/convlog/eventlog"
)

// childState is the state that a child_* type stands for.
func childState(t eventlog.Type) (eventlog.ChildState, bool) {
	name, ok := strings.CutPrefix(string(t.Name()), "child_")
	return eventlog.ChildState(name), ok && t.Known()
}
