package listing

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/convlog/convlog/eventlog"
)

// newestLister is a store that finds the sessions with the newest activity without the others.
type newestLister interface {
	Recent(ctx context.Context) iter.Seq2[string, error]
}

// The bounds of Newest: a longer listing reads all sessions at once.
const (
	mostNewest  = 200
	mostSkipped = 200
)

// Newest answers a query for the newest sessions, and reads a bounded number of sessions. Choose
// returns the same rows when it gets all sessions. all includes the sessions with the state of a
// program. ids returns the ids of all sessions, sorted. ok is false if the query, the store or the
// newest sessions need a listing of all sessions.
func Newest(ctx context.Context, log *eventlog.Log, q *Query, all bool) (rows []*Row, ids func() ([]string, error), ok bool, err error) {
	store, ok := eventlog.As[newestLister](log.Store())
	since := Filter{Since: q.Since}
	if !ok || q.Sort != ByActivity || q.Limit <= 0 || q.Limit > mostNewest || q.Text != "" || q.Filter != since {
		return nil, nil, false, nil
	}
	skipped := 0
	for id, err := range store.Recent(ctx) {
		if errors.Is(err, eventlog.ErrCorrupt) {
			return nil, nil, false, nil
		}
		if err != nil {
			return nil, nil, false, err
		}
		row, err := ReadOne(ctx, log, id)
		if errors.Is(err, eventlog.ErrNotFound) {
			continue // removed since
		}
		if err != nil {
			return nil, nil, false, err
		}
		if row.Damage() != nil || row.Last().IsZero() { // the whole listing has them last
			return nil, nil, false, nil
		}
		// The store has the times to a microsecond, and rows to a nanosecond.
		last := row.Last().UnixMicro()
		if !q.Since.IsZero() && last < q.Since.UnixMicro() || len(rows) >= q.Limit && last < rows[q.Limit-1].Last().UnixMicro() {
			break
		}
		if len(rows)+skipped == q.Limit+mostSkipped {
			return nil, nil, false, nil
		}
		if row.State && !all || !q.Has(row.Last()) {
			skipped++
		} else {
			rows = append(rows, row)
		}
	}
	Sort(rows, q.Sort)
	rows = rows[:min(len(rows), q.Limit)]
	ids = func() (all []string, err error) {
		for id, err := range store.Recent(ctx) {
			if err != nil {
				return nil, err
			}
			all = append(all, id)
		}
		slices.Sort(all)
		return all, nil
	}
	return rows, ids, true, ctx.Err()
}
