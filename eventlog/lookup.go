package eventlog

import (
	"context"
	"iter"
	"strings"

	"github.com/convlog/convlog/event"
)

// Part selects sessions by their ids. The zero Part is all sessions.
type Part struct {
	// Prefix is the beginning of the ids.
	Prefix string
	// After is an id, of a stored session or not: only later ids are selected.
	After string
}

// Has reports whether the part has the session.
func (p Part) Has(session string) bool {
	return strings.HasPrefix(session, p.Prefix) && (p.After == "" || session > p.After)
}

// BlobUser is an event that lists a blob.
type BlobUser struct {
	Digest  event.Digest
	Session string
	Seq     int64
}

// List yields the sessions of a part as Sessions does, ordered by id. It does not read
// the other sessions if the store is a Lister.
func (l *Log) List(ctx context.Context, part Part) iter.Seq2[SessionInfo, error] {
	return func(yield func(SessionInfo, error) bool) {
		if err := l.usable(ctx); err != nil {
			yield(SessionInfo{}, err)
			return
		}
		if lister, ok := As[Lister](l.store); ok {
			lister.List(ctx, part)(yield)
			return
		}
		for info, err := range l.store.Sessions(ctx) {
			if err == nil && !part.Has(info.ID) {
				continue
			}
			if !yield(info, err) || err != nil {
				return
			}
		}
	}
}

// Related yields the rows of the sessions that may be forks, copies or runs of a session,
// or another state of it after a repair, ordered by id. The caller examines the first
// event of each row. Related yields all sessions if the store is no Relater.
func (l *Log) Related(ctx context.Context, session string) iter.Seq2[SessionInfo, error] {
	return func(yield func(SessionInfo, error) bool) {
		if err := l.readable(ctx, session); err != nil {
			yield(SessionInfo{}, err)
			return
		}
		relater, ok := As[Relater](l.store)
		if !ok {
			l.store.Sessions(ctx)(yield)
			return
		}
		relater.Related(ctx, session)(yield)
	}
}
