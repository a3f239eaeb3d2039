package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/eventlog"
)

// A watermark says how far a session was stored: it names the newest frame of the session at
// some time. It is a message of the control stream, so a loss of messages in a shard leaves
// it. A session only grows: its last message is never before its watermark, and the frame of
// the watermark is stored until a redaction, a repair or a removal replaces it. Anything else
// is a loss. The header of a frame has the sequence of the session's watermark, so a loss in
// the control stream is found too.
//
// The newest watermark of a shard is also a message of its own, without the name of the
// session: a shard that ends before it has lost messages.
//
// A shard has a message with the sequence of this newest watermark: a control stream without
// the watermark has lost messages.
const watermarkSubject = "watermark" // watermark.SHARD.SESSION, and watermark.SHARD; watermark in a shard

// watermark is a decoded watermark.
type watermark struct {
	number uint64 // its sequence in the control stream
	at     uint64 // the sequence of the frame in the shard
	id     string // of the frame
	seq    int64  // of the newest event
}

var errWatermark = errors.New("a watermark is malformed")

// watermarkOf is the subject of the newest watermark of the shard, or of the watermark of one
// session. token is the encoded session, or "*" for any session.
func (st *stream) watermarkOf(token ...string) string {
	shard := strings.TrimPrefix(st.name, st.store.streamName(""))
	return st.control.subject(append([]string{watermarkSubject, shard}, token...)...)
}

// countersign stores the sequence of the newest watermark of the shard in the shard. A
// failure leaves the one before.
func (st *stream) countersign(ctx context.Context, number uint64) {
	subject := st.subject(watermarkSubject)
	at, err := st.publish(ctx, &nats.Msg{Subject: subject, Data: strconv.AppendUint(nil, number, 10)})
	if err == nil {
		_ = st.purge(ctx, subject, at) // the next one purges more
	}
}

// lostControl is the damage of a control stream without the newest watermark of the shard that
// the shard knows; nil if it has one.
func (st *stream) lostControl(ctx context.Context) error {
	m, err := st.last(ctx, st.subject(watermarkSubject))
	if m == nil || err != nil {
		return err
	}
	number, err := strconv.ParseUint(string(m.body), 10, 64)
	if err != nil {
		return st.damage("", m.at, 0, errWatermark)
	}
	last, err := st.control.last(ctx, st.watermarkOf())
	if err != nil || last != nil && last.at >= number {
		return err
	}
	return st.control.lostStream("the stream has lost messages: message %d had the newest watermark of stream %s; the marks of removed sessions may be lost too", number, st.name)
}

// message renders the watermark as a message, which replaces the one with the sequence number.
func (w *watermark) message(subject string) *nats.Msg {
	m := &nats.Msg{Subject: subject, Header: nats.Header{"Nats-Rollup": []string{"sub"}}}
	m.Data = fmt.Appendf(nil, "v=%d at=%d id=%s seq=%d", formatVersion, w.at, w.id, w.seq)
	expectLast(m, w.number)
	return m
}

// parseWatermark decodes a watermark. Unknown fields are skipped.
func parseWatermark(m *message) (w watermark, err error) {
	w.number = m.at
	for field := range strings.SplitSeq(string(m.body), " ") {
		name, value, _ := strings.Cut(field, "=")
		var failed error
		switch name {
		case "at":
			w.at, failed = strconv.ParseUint(value, 10, 64)
		case "id":
			w.id = value
		case "seq":
			w.seq, failed = strconv.ParseInt(value, 10, 64)
		}
		err = errors.Join(err, failed)
	}
	if err != nil || w.at == 0 || w.id == "" || w.seq < 1 {
		return w, errWatermark
	}
	return w, nil
}

// watermark reads the newest watermark of the shard, or the watermark of one session.
// It is nil if there is none. Check reports a malformed one, which counts as missing.
func (st *stream) watermark(ctx context.Context, token ...string) (*watermark, error) {
	m, err := st.control.get(ctx, getRequest{Last: st.watermarkOf(token...)})
	if m == nil || err != nil {
		return nil, err
	}
	if w, err := parseWatermark(m); err == nil {
		return &w, nil
	}
	return nil, nil
}

// lostError is the damage of a session that has lost messages before its watermark.
func (st *stream) lostError(session string, t tip, w *watermark) error {
	has := "the servers have lost all its messages"
	if t.frame != nil {
		has = fmt.Sprintf("it has event %d without them", t.head().Seq)
	}
	cause := fmt.Errorf("messages were lost: the session had event %d in message %d, and %s: restore the stream, copy the session from a backup, or accept the loss with repair (rm, if nothing is left)", w.seq, w.at, has)
	return &eventlog.CorruptError{Session: session, Path: st.place(w.at), Offset: -1, Seq: w.seq, Cause: cause}
}

// compareWatermark compares a tip with the watermark of the session. It reads a tip that
// seems to have lost messages again, from a current state, until the answers agree.
func (st *stream) compareWatermark(ctx context.Context, session string, t tip, w *watermark) (tip, error) {
	for {
		if w == nil {
			return t, nil
		}
		lost, err := st.isLost(ctx, session, t, w)
		if err != nil {
			return t, err
		}
		if !lost {
			if t.frame != nil {
				t.frame.watermark = max(t.frame.watermark, w.number)
			}
			return t, nil
		}
		before, number := t.at, w.number
		if w, err = st.watermark(ctx, encodeName(session)); err != nil {
			return t, err
		}
		if t, err = st.newestTip(ctx, session); err != nil {
			return t, err
		}
		if w != nil && t.at == before && w.number == number {
			t.lost, t.watermark = st.lostError(session, t, w), w
			return t, nil
		}
	}
}

// isLost reports whether a session with a tip lacks the frame of its watermark for no good
// reason. Damage of a message is not a loss: whoever reads the message reports it.
func (st *stream) isLost(ctx context.Context, session string, t tip, w *watermark) (bool, error) {
	switch {
	case t.at < w.at:
		return true, nil
	case t.err != nil:
		return false, nil
	case t.at == w.at:
		return t.frame == nil || t.frame.id != w.id, nil
	case t.frame == nil:
		return false, nil // it was removed since
	}
	m, err := st.at(ctx, w.at)
	if err != nil {
		return false, err
	}
	if m != nil && st.isFrame(session, m, &frame{id: w.id}) {
		return false, nil
	}
	ix, err := st.anyIndex(ctx, session, t)
	if err != nil || ix.hides(w.at) {
		return false, err
	}
	if t.frame.beginning().at < w.at {
		return true, nil
	}
	removed, err := st.wasRemoved(ctx, session, w.at, t.frame.beginning().at)
	return !removed, err
}

// wasRemoved reports whether a message between two sequences removes the session.
func (st *stream) wasRemoved(ctx context.Context, session string, from, to uint64) (removed bool, err error) {
	err = st.each(ctx, st.of(session, framesSubject), from, func(m *message) error {
		if m.at >= to {
			return errStop
		}
		_, tombstone, _ := parseFrame(m)
		removed = removed || tombstone
		return nil
	})
	if errors.Is(err, errStop) {
		err = nil
	}
	return removed, err
}

// dropWatermark erases the watermark of a session, if its frame is before a sequence.
func (st *stream) dropWatermark(ctx context.Context, session string, before uint64) error {
	subject := st.watermarkOf(encodeName(session))
	m, err := st.control.last(ctx, subject)
	if m == nil || err != nil {
		return err
	}
	if w, err := parseWatermark(m); err == nil && w.at >= before {
		return nil
	}
	return st.control.eraseSubject(ctx, subject, m.at+1)
}

// ending is the watermark of the frame.
func (f *frame) ending() watermark {
	return watermark{at: f.at, id: f.id, seq: f.head().Seq}
}
