package postgres

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// A standby that becomes the primary begins a new timeline. It may lack the newest
// commits of the old primary. The first connection to a new timeline looks up the newest
// heads that this process knows: the lost commits are the newest ones.
const (
	findTimeline = `SELECT CASE WHEN pg_is_in_recovery() THEN '' ELSE substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) END`
	findHeads    = `SELECT k.n, coalesce(s.head = k.seq AND s.hash = k.hash, false), ` + shortLine + `
		FROM unnest($1::bytea[], $2::bigint[], $3::bytea[]) WITH ORDINALITY k (id, seq, hash, n)
		LEFT JOIN sessions s ON s.id = k.id LEFT JOIN events e ON e.session = s.key AND e.seq = k.seq`
)

// history has the newest heads that the server has confirmed or returned to this process.
type history struct {
	mu       sync.Mutex
	timeline string // at the last check; "" if no primary was found yet
	appended ring
	read     ring

	lost atomic.Pointer[eventlog.RolledBackError] // ends all use of the store
}

// ring has the newest heads of one kind.
type ring struct {
	heads [64]knownHead
	last  int
}

type knownHead struct {
	session string
	head    event.Head
}

func (r *ring) add(k knownHead) {
	if r.heads[r.last].session != k.session {
		r.last = (r.last + 1) % len(r.heads)
	}
	r.heads[r.last] = k
}

// forget removes a session.
func (r *ring) forget(session string) {
	for i := range r.heads {
		if r.heads[i].session == session {
			r.heads[i] = knownHead{}
		}
	}
}

// noteAppended remembers the head of an acknowledged append.
func (h *history) noteAppended(session string, head event.Head) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.appended.add(knownHead{session, head})
}

// noteRead remembers a head that a reader got.
func (h *history) noteRead(session string, head event.Head) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.read.add(knownHead{session, head})
}

// forget forgets the heads of a session that this process removes or replaces.
func (h *history) forget(session string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.appended.forget(session)
	h.read.forget(session)
}

// known are the remembered heads, and the timeline of the last check.
func (h *history) known() (heads []knownHead, timeline string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range []*ring{&h.appended, &h.read} {
		for _, k := range r.heads {
			if k.session != "" {
				heads = append(heads, k)
			}
		}
	}
	return heads, h.timeline
}

// checkHistory checks a new connection: if the server is on a new timeline, it must have
// the known heads. Otherwise the store is used no more, so that no append continues
// after a lost event.
func (s *Store) checkHistory(ctx context.Context, conn *pgx.Conn) error {
	var timeline string
	if err := conn.QueryRow(ctx, findTimeline).Scan(&timeline); err != nil {
		return err
	}
	known, before := s.history.known()
	if timeline == "" || timeline == before {
		return nil
	}
	if before != "" && len(known) > 0 {
		lost, err := findLost(ctx, conn, known)
		if err != nil {
			return err
		}
		if lost != nil {
			s.history.lost.CompareAndSwap(nil, lost)
			return lost
		}
	}
	s.history.mu.Lock()
	s.history.timeline = timeline
	s.history.mu.Unlock()
	return nil
}

// findLost returns an error for a known head that is not stored; nil if all are stored.
func findLost(ctx context.Context, conn *pgx.Conn, known []knownHead) (*eventlog.RolledBackError, error) {
	ids, seqs, hashes := make([][]byte, len(known)), make([]int64, len(known)), make([][]byte, len(known))
	for i, k := range known {
		ids[i], seqs[i], hashes[i] = []byte(k.session), k.head.Seq, k.head.Hash[:]
	}
	rows, err := conn.Query(ctx, findHeads, ids, seqs, hashes)
	if err != nil {
		return nil, err
	}
	var lost *eventlog.RolledBackError
	var n int64
	var isHead bool
	var line []byte
	_, err = pgx.ForEachRow(rows, []any{&n, &isHead, &line}, func() error {
		if k := known[n-1]; !isHead && !k.isIn(line) {
			lost = &eventlog.RolledBackError{Session: k.session, Head: k.head}
		}
		return nil
	})
	return lost, err
}

// isIn reports whether a line is the line of the head. An unreadable line may be.
func (k *knownHead) isIn(line []byte) bool {
	if line == nil {
		return false
	}
	e, err := event.Parse(line, k.session)
	return err != nil || e.Head() == k.head
}
