package jetstream

import (
	"context"
	"errors"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// newer are the frames that were appended after a frame that this store knew. A watcher,
// and a log that lost a head, ask for little else.
type newer struct {
	stream  *stream
	session string
	frames  []*frame
}

// maxNewer bounds the frames of newer.
const maxNewer = firstPage

// newer reads the frames from a seq on in one request. It returns nil if a reader must ask
// for the tip first: the place of the event is unknown, the session was rewritten or begun
// again, the server lost a known frame, or there are too many frames.
func (st *stream) newer(ctx context.Context, session string, from int64) (*newer, error) {
	at, known := st.store.heads.after(session, from)
	if at == 0 || st.replicas > 1 || known.next()-from > maxNewer/2 {
		return nil, nil
	}
	n := &newer{stream: st, session: session}
	r := getRequest{Seq: at, Next: st.of(session, framesSubject), Batch: maxNewer, MaxBytes: batchBytes}
	end, err := st.batch(ctx, r, maxNewer, func(m *message) error { return n.add(m, at-1, from) })
	switch {
	case errors.Is(err, errStop):
		return nil, nil
	case err != nil:
		return nil, err
	case end.more || len(n.frames) == 0 || n.last().at < known.at:
		return nil, nil
	}
	st.store.heads.put(session, n.last())
	return n, nil
}

// last is the newest frame.
func (n *newer) last() *frame { return n.frames[len(n.frames)-1] }

// add adds the next frame. The first one has the event from, and follows the message before.
func (n *newer) add(m *message, before uint64, from int64) error {
	f, removed, err := parseFrame(m)
	switch {
	case removed || err != nil:
		return errStop
	case len(n.frames) == 0 && (f.first != from || !f.follows(before)):
		return errStop
	case len(n.frames) > 0 && (f.first != n.last().next() || f.index != n.last().index):
		return errStop
	}
	n.frames = append(n.frames, f)
	return nil
}

// pass passes the events of a span to yield.
func (n *newer) pass(ctx context.Context, r eventlog.Span, yield func(event.Event, error) bool) error {
	c := cursor{view: &view{stream: n.stream, session: n.session}}
	from, to := restrict(r, n.frames[0].first, n.last().head().Seq)
	var err error
	if r.Backward {
		_, err = c.down(ctx, n.frames, to, from, yield)
	} else {
		_, err = c.up(ctx, n.frames, from, to, yield)
	}
	return err
}
