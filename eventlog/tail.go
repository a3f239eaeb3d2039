package eventlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
)

// sessionState is what the leader of a session's appends knows and plans.
type sessionState struct {
	known  tail         // what is stored
	staged stagedEvents // the batch being written
	calls  openCalls    // tool calls without a result
}

// tail is what is known of the end of a session.
type tail struct {
	loaded bool
	fresh  bool // loaded by the current leader, not remembered from before
	head   event.Head
	cut    *event.Cut // a torn tail that the next append must name
	// orphan says that a fork's parent is missing, or ends before the fork point:
	// a session that cannot be read is not appended to.
	orphan error
	recent recentIDs
}

// forget drops what is known of the session, except a cut that is still to be
// named.
func (st *sessionState) forget() {
	*st = sessionState{known: tail{cut: st.known.cut}, staged: stagedEvents{events: st.staged.events[:0], ids: st.staged.ids, buf: st.staged.buf}}
}

// begin starts staging a batch after the head. alone says that it is one request.
func (st *sessionState) begin(alone bool) { st.staged.begin(st.known.head, alone) }

// unstage drops the events staged since a mark. What their evaluation found out
// about older calls is dropped with them.
func (st *sessionState) unstage(m stagedMark) {
	st.staged.reset(m)
	st.calls.restart(m.head.Seq)
}

// seqOf is the seq of the event with that id, near the tail or staged.
func (st *sessionState) seqOf(id ulid.ULID) (seq int64, ok bool) {
	if seq, ok = st.staged.ids[id]; !ok {
		seq, ok = st.known.recent.seqs[id]
	}
	return seq, ok
}

// tailEvents is how many events are read when a session becomes hot.
const tailEvents = 64

// load reads the session's tail, unless it is known.
func (l *Log) load(ctx context.Context, session string, st *sessionState) error {
	if st.known.loaded {
		return nil
	}
	st.forget()
	newest, err := l.readTail(ctx, session)
	if err != nil {
		return fmt.Errorf("read tail of session %q: %w", session, err)
	}
	for i := len(newest) - 1; i >= 0; i-- {
		st.known.recent.add(newest[i].ID, newest[i].Seq)
	}
	if len(newest) > 0 {
		st.known.head = newest[0].Head()
	}
	st.calls.restart(st.known.head.Seq)
	if st.known.orphan, err = l.checkParent(ctx, session, newest); err != nil {
		return fmt.Errorf("read tail of session %q: %w", session, err)
	}
	st.known.loaded, st.known.fresh = true, true
	return nil
}

// readTail reads the newest events, newest first; none of a missing session.
func (l *Log) readTail(ctx context.Context, session string) (newest []event.Event, err error) {
	for e, err := range l.store.Read(ctx, session, Span{Backward: true, Limit: tailEvents}) {
		if errors.Is(err, ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		newest = append(newest, e)
	}
	return newest, nil
}

// checkParent says why a fork cannot be read: its parent is missing or too short.
// newest are the newest events of the session.
func (l *Log) checkParent(ctx context.Context, session string, newest []event.Event) (orphan, err error) {
	if len(newest) == 0 {
		return nil, nil
	}
	first := newest[len(newest)-1]
	if len(newest) == tailEvents && first.Seq > 1 && first.Type != event.SessionForked {
		if first, err = l.firstEvent(ctx, session); err != nil {
			return nil, err
		}
	}
	f, forked, err := event.Decode[event.Fork](&first)
	if err != nil || !forked || f.Seq == 0 {
		return nil, err
	}
	parent, err := l.Head(ctx, f.Parent)
	switch {
	case errors.Is(err, ErrNotFound):
		return fmt.Errorf("parent of session %q: %w", session, err), nil
	case err == nil && parent.Seq < f.Seq:
		return missingEvent(f.Parent, f.Seq), nil
	}
	return nil, err
}

// recentIDs remembers the ids of the newest events.
type recentIDs struct {
	seqs  map[ulid.ULID]int64
	order []ulid.ULID // a ring once it is full
	next  int
}

// maxRecent is how many ids near the tail are compared with those of new events.
const maxRecent = 1024

func (r *recentIDs) add(id ulid.ULID, seq int64) {
	if r.seqs == nil {
		r.seqs = map[ulid.ULID]int64{}
	}
	if len(r.order) < maxRecent {
		r.order = append(r.order, id)
	} else {
		delete(r.seqs, r.order[r.next])
		r.order[r.next] = id
		r.next = (r.next + 1) % maxRecent
	}
	r.seqs[id] = seq
}
