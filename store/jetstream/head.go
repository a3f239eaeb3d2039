package jetstream

import (
	"cmp"
	"context"
	"sync"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// tip is the last message of a session's frames.
type tip struct {
	at    uint64 // the sequence that the next message must expect; 0 if there is none
	frame *frame // nil if the session is missing
	err   error  // the damage of the message

	lost      error      // the session has lost messages before its watermark
	watermark *watermark // of a session that has lost messages
}

// head is the head of the session; zero if it is missing.
func (t tip) head() event.Head {
	if t.frame == nil {
		return event.Head{}
	}
	return t.frame.head()
}

// tip reads the last message of a session from the leader. It is not older than the last
// frame that this store knows. The tip of a session of which the store knows no frame is
// compared with the watermark of the session.
func (st *stream) tip(ctx context.Context, session string) (tip, error) {
	known := st.store.heads.last(session)
	if known == nil {
		return st.firstTip(ctx, session)
	}
	t, err := st.readTip(ctx, session)
	switch {
	case err != nil || t.at >= known.at:
		return t, err
	case !st.store.options.ReadOnly:
		return st.catchUp(ctx, session, known)
	case st.replicas > 1:
		return st.newestTip(ctx, session)
	}
	return t, nil
}

// firstTip reads the tip and the watermark of a session at the same time.
func (st *stream) firstTip(ctx context.Context, session string) (tip, error) {
	var w *watermark
	read := make(chan error, 1)
	go func() {
		var err error
		w, err = st.watermark(ctx, encodeName(session))
		read <- err
	}()
	m, err := st.last(ctx, st.of(session, framesSubject))
	if err = cmp.Or(err, <-read); err != nil {
		return tip{}, err
	}
	return st.compareWatermark(ctx, session, st.tipOf(session, m), w)
}

// readTip reads the last message of a session. The answer may come from an old state.
func (st *stream) readTip(ctx context.Context, session string) (tip, error) {
	m, err := st.get(ctx, getRequest{Last: st.of(session, framesSubject)})
	return st.tipOf(session, m), err
}

// newestTip reads the last message of a session from a state that has every message that
// this process knows.
func (st *stream) newestTip(ctx context.Context, session string) (tip, error) {
	newest, err := st.newest(ctx)
	if err != nil {
		return tip{}, err
	}
	subject := st.of(session, framesSubject)
	found, err := st.lastOf(ctx, []string{subject}, newest)
	return st.tipOf(session, found[subject]), err
}

// currentTip is a tip that lacks no message that this process knows. A caller needs it to
// report what the tip does not name as missing, or to erase it.
func (st *stream) currentTip(ctx context.Context, session string) (tip, error) {
	if st.replicas > 1 {
		t, err := st.newestTip(ctx, session)
		known := st.store.heads.last(session)
		if err == nil && known == nil {
			var w *watermark
			if w, err = st.watermark(ctx, encodeName(session)); err == nil {
				return st.compareWatermark(ctx, session, t, w)
			}
		}
		if err != nil || t.at >= known.at {
			return t, err
		}
	}
	return st.tip(ctx, session)
}

// tipOf decodes a tip. Without a message the session is missing.
func (st *stream) tipOf(session string, m *message) tip {
	if m == nil {
		return tip{}
	}
	f, removed, err := parseFrame(m)
	if removed {
		return tip{at: m.at}
	}
	return tip{at: m.at, frame: f, err: st.damage(session, m.at, 0, err)}
}

// damage is the error of a message that cannot be decoded.
func (st *stream) damage(session string, at uint64, seq int64, cause error) error {
	if cause == nil {
		return nil
	}
	return &eventlog.CorruptError{Session: session, Path: st.place(at), Offset: -1, Seq: seq, Cause: cause}
}

// heads remembers the last frames that this store has written or read, so that an append
// need not read the head first. A remembered head may be old: the server compares it.
type heads struct {
	mu sync.Mutex
	of map[string]*known
}

// known is what heads remembers of a session.
type known struct {
	frame *frame
	// passed are the places after the frames that were remembered before, so that a reader
	// of the newer events begins there.
	passed [4]place
}

// maxHeads bounds the remembered heads.
const maxHeads = 4096

// last returns the newest frame of a session that the store knows, or nil.
func (h *heads) last(session string) *frame {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k := h.of[session]; k != nil {
		return k.frame
	}
	return nil
}

// get returns the frame of a head, or nil.
func (h *heads) get(session string, head event.Head) *frame {
	if f := h.last(session); f != nil && f.head() == head {
		return f
	}
	return nil
}

// after returns the sequence after the frame that ends before seq, 0 if it is unknown, and
// the newest known frame. The sequence may be of a session that was removed since.
func (h *heads) after(session string, seq int64) (at uint64, newest *frame) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := h.of[session]
	if k == nil {
		return 0, nil
	}
	for _, p := range append(k.passed[:], place{k.frame.next(), k.frame.at + 1}) {
		if p.first == seq {
			return p.at, k.frame
		}
	}
	return 0, k.frame
}

// put remembers the last frame of a session, without its lines.
func (h *heads) put(session string, f *frame) {
	remembered := *f
	remembered.lines = nil
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil {
		h.of = make(map[string]*known)
	}
	if k := h.of[session]; k != nil {
		k.replace(&remembered)
		return
	}
	if len(h.of) >= maxHeads {
		for other := range h.of { // any one
			delete(h.of, other)
			break
		}
	}
	h.of[session] = &known{frame: &remembered}
}

// replace remembers a frame, unless it is older than the remembered one.
func (k *known) replace(f *frame) {
	if k.frame.at > f.at {
		return
	}
	if k.frame.at < f.at {
		copy(k.passed[1:], k.passed[:])
		k.passed[0] = place{k.frame.next(), k.frame.at + 1}
	}
	k.frame = f
}

// mark remembers the sequence of the watermark of a session.
func (h *heads) mark(session string, number uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k := h.of[session]; k != nil && k.frame.watermark < number {
		marked := *k.frame
		marked.watermark = number
		k.frame = &marked
	}
}

// forget drops the head of a removed session.
func (h *heads) forget(session string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.of, session)
}
