package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"iter"

	"github.com/convlog/convlog/internal/notify"
)

const (
	newestEvent = `SELECT max(key) FROM events`
	readErasure = `SELECT erasures FROM search_state`
	// changedSessions reads the newest events only, at most 1,000: their keys increase
	// in the order of the commits.
	changedSessions = `SELECT s.id, max(e.key) FROM (SELECT key, session FROM events WHERE key > ? ORDER BY key LIMIT 1000) e
		LEFT JOIN sessions s ON s.key = e.session GROUP BY e.session`
)

// Changes implements eventlog.Notifier. An append of another process is found by the
// keys of the newest events. After a rewrite or a removal by another process, any
// session may have changed.
func (s *Store) Changes(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := s.open(ctx); err != nil {
			yield("", err)
			return
		}
		s.changes.Changes(ctx, s.lifetime.Done())(yield)
	}
}

// changePoller finds the commits of other processes.
type changePoller struct {
	store    *Store
	publish  func(session string)
	started  bool
	newest   int64 // key of the newest event
	erasures int64 // number of rewrites and removals
}

func (s *Store) newPoller(publish func(session string)) notify.Poller {
	return &changePoller{store: s, publish: publish}
}

// Close implements notify.Poller. The connections belong to the store.
func (p *changePoller) Close() {}

// Poll implements notify.Poller.
func (p *changePoller) Poll(ctx context.Context) (notify.Pace, error) {
	var sessions []string
	next := *p
	err := p.store.read(ctx, func(c *conn) (err error) {
		next, sessions = *p, sessions[:0]
		sessions, err = next.read(c)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("find changes: %w", p.store.locate("", "events", 0, err))
	}
	*p = next
	p.started = true
	for _, session := range sessions {
		p.publish(session)
	}
	if len(sessions) > 0 {
		return notify.Busy, nil
	}
	return notify.Idle, nil
}

// read returns the sessions that have changed, and updates p.
func (p *changePoller) read(c *conn) (sessions []string, err error) {
	row := make([]driver.Value, 1)
	if _, err := c.first(row, readErasure); err != nil {
		return nil, err
	}
	if erasures, _ := row[0].(int64); erasures != p.erasures {
		p.erasures, sessions = erasures, append(sessions, "")
	}
	if !p.started {
		_, err := c.first(row, newestEvent)
		p.newest, _ = row[0].(int64)
		return nil, err
	}
	err = c.each(func(row []driver.Value) {
		if id, ok := row[0].(string); ok {
			sessions = append(sessions, id)
		}
		key, _ := row[1].(int64)
		p.newest = max(p.newest, key)
	}, 2, changedSessions, p.newest)
	return sessions, err
}
