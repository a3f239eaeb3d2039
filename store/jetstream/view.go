package jetstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/convlog/convlog/eventlog"
)

// view is a session as of one of its frames.
type view struct {
	stream  *stream
	session string
	tip     *frame
	lost    error // the messages after the tip
	index   *index
}

// view reads the last frame of a session, and its index. A missing session is
// ErrNotFound. A rewrite may erase an index before it is read, so an index is missing only
// if a current tip names it.
func (st *stream) view(ctx context.Context, session string) (*view, error) {
	t, err := st.tip(ctx, session)
	for err == nil {
		v, failed := st.viewOf(ctx, session, t)
		if !errors.Is(failed, errIndex) {
			return v, failed
		}
		index := t.frame.index
		t, err = st.currentTip(ctx, session)
		if err == nil && t.frame != nil && t.frame.index == index {
			return nil, failed
		}
	}
	return nil, err
}

// currentView is the view of a current tip.
func (st *stream) currentView(ctx context.Context, session string) (*view, error) {
	t, err := st.currentTip(ctx, session)
	if err != nil {
		return nil, err
	}
	return st.viewOf(ctx, session, t)
}

// viewOf is the view of a tip.
func (st *stream) viewOf(ctx context.Context, session string, t tip) (*view, error) {
	if t.err != nil {
		return nil, t.err
	}
	if t.frame == nil {
		return nil, cmp.Or(t.lost, eventlog.ErrNotFound)
	}
	if t.lost == nil {
		st.store.heads.put(session, t.frame)
	}
	ix, err := st.index(ctx, session, t.frame.index)
	return &view{stream: st, session: session, tip: t.frame, index: ix, lost: t.lost}, err
}

// first is the seq of the session's own first event.
func (v *view) first() int64 { return v.tip.beginning().first }

// refresh reads the session again after a message is missing. A session that was rewritten
// meanwhile has another index; otherwise the message is lost.
func (v *view) refresh(ctx context.Context, seq int64) error {
	now, err := v.stream.currentView(ctx, v.session)
	if err != nil {
		return err
	}
	switch {
	case now.index.base == v.index.base && now.tip.beginning() != v.tip.beginning():
		return fmt.Errorf("the session was removed during the read: %w", eventlog.ErrNotFound)
	case now.index.at == v.index.at:
		return &eventlog.CorruptError{Session: v.session, Path: "stream " + v.stream.name, Offset: -1, Seq: seq, Cause: errMissing}
	}
	v.index = now.index
	return nil
}

// frameAt reads an earlier frame. It is nil if the message is missing.
func (v *view) frameAt(ctx context.Context, p place) (*frame, error) {
	if i, replaced := v.index.old[p.at]; replaced {
		return v.replacing(ctx, &v.index.spans[i])
	}
	m, err := v.stream.at(ctx, p.at)
	if m == nil || err != nil {
		return nil, err
	}
	return v.stream.frameOf(v.session, p, m)
}

// frameOf decodes the message of a session's frame at a place.
func (st *stream) frameOf(session string, p place, m *message) (*frame, error) {
	f, removed, err := parseFrame(m)
	if err == nil && (removed || m.subject != st.of(session, framesSubject) || f.first != p.first) {
		err = errFrame
	}
	return f, st.damage(session, p.at, p.first, err)
}

// descend returns the place of a frame that begins at seq or earlier, by at most skipBase
// frames. It follows the places in the frames from f on.
func (v *view) descend(ctx context.Context, f *frame, seq int64) (place, error) {
	for {
		p, far := f.toward(seq)
		if !far {
			return p, nil
		}
		earlier, err := v.frameAt(ctx, p)
		if err != nil {
			return place{}, err
		}
		if earlier == nil {
			if err := v.refresh(ctx, p.first); err != nil {
				return place{}, err
			}
			continue
		}
		f = earlier
	}
}

// toward returns the place from which a reader of seq begins, or, if far is true, a place
// that is nearer to it.
func (f *frame) toward(seq int64) (p place, far bool) {
	p = f.place()
	if f.first <= seq {
		return p, false
	}
	if start := f.beginning(); start.first == seq {
		return start, false
	}
	for k, q := range f.back {
		if q.first <= seq {
			return choose(k <= 1, q, p)
		}
		p = q
	}
	return p, len(f.back) > 0
}

// choose returns the place before seq if it is near, or the place after seq.
func choose(near bool, before, after place) (place, bool) {
	if near {
		return before, false
	}
	return after, true
}
