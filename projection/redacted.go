package projection

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/eventlog"
)

// keptSnapshot reads what redaction kept of a snapshot.
func keptSnapshot(e *eventlog.Event) (s eventlog.Snapshot, err error) {
	if err := json.Unmarshal(e.Kept(), &s); err != nil {
		return s, fmt.Errorf("%s %d of session %q: kept: %w", e.Type, e.Seq, e.SessionID, err)
	}
	return s, nil
}
