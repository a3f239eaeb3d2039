package transcript

import (
	"context"
	"fmt"

	"github.com/convlog/convlog/eventlog"
)

// ReadPart returns the entries of the events from..to of a session, oldest first, as Read yields
// them. Results of their calls may come up to ahead events later. A turn has its number only if
// the part begins at the first event.
func ReadPart(ctx context.Context, log *eventlog.Log, session string, from, to, ahead int64) (all []*Entry, err error) {
	j := NewJoiner(func(x *Entry) error {
		all = append(all, x)
		return nil
	})
	j.Window, j.Fold, j.Completions = int(to-from+1), true, true
	for x, err := range entries(ctx, log, session, eventlog.Between(from, to+ahead)) {
		if err != nil {
			return nil, fmt.Errorf("read session %q: %w", session, err)
		}
		if x.Event.Seq > to {
			if !j.Open() {
				break
			}
			j.AddResults(x)
			continue
		}
		if err := j.Add(x); err != nil {
			return nil, err
		}
	}
	return all, j.Flush()
}
