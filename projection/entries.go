package projection

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Entries yields the messages of Load and HistoryState.Messages one by one, for a long
// history. It holds some hundred bytes of each message, and reads the payloads from the log
// again: once, or twice for more than 1,024 messages or 8 MiB without a step_started. It also
// holds the messages between a call and its result, those between the pieces of a group, and
// up to about 1,000 others.
//
// The first error ends the sequence. The errors are the errors of Load and of Messages. If a
// message is redacted during the iteration, Entries yields it as it was before or without its
// content. If the session or a body is removed, the sequence may end with an error that matches
// eventlog.ErrNotFound or eventlog.ErrBlobNotFound.
func Entries(ctx context.Context, log *eventlog.Log, session string, render RenderOptions, opts ...Options) iter.Seq2[Entry, error] {
	return entriesOf(ctx, log, session, windowBytes, decodeWindow, optionsOf([]RenderOptions{render}), opts...)
}

// entriesOf is Entries with other limits: the bytes of payloads that the state holds, and the
// number of items that are decoded at a time.
func entriesOf(ctx context.Context, log *eventlog.Log, session string, held, window int, render RenderOptions, opts ...Options) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		view, err := Load(ctx, log, session, leanHistory(held), opts...)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		r := newRendering(&view.State, render)
		r.stored = &storedItems{read: func(items []item) error { return readPayloads(ctx, log, session, items) }}
		r.entries(window)(yield)
	}
}

// entries lays out the whole history, and yields an entry as soon as no later item changes
// it.
func (r *Rendering) entries(window int) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		r.frozen.window = window
		r.frozen.yield = func(e Entry) bool { return yield(e, nil) }
		if err := r.all(); err != nil && !errors.Is(err, errStopped) {
			yield(Entry{}, err)
		}
	}
}

// errStopped means that the caller of Entries ended its loop.
var errStopped = errors.New("stopped")

// leanHistory is History with a state that holds so many bytes of payloads and leaves the
// other payloads in the log.
func leanHistory(held int) Projection[HistoryState] {
	p := History()
	p.New = func() HistoryState { return HistoryState{room: &room{held}} }
	p.Decode = func(body jsontext.Value) (HistoryState, error) { return p.stream(bytes.NewReader(body)) }
	p.stream = func(body io.Reader) (HistoryState, error) { return readLeanHistory(body, &room{held}) }
	return p
}

// room is the bytes of payloads that a history can hold. A nil room has no limit.
type room struct{ left int }

// itemOf returns the item of an event. It leaves the payload in the log if the room has no
// space for it.
func (r *room) itemOf(kind itemKind, e *event.Event) item {
	it := item{kind: kind, redacted: e.Redacted(), seq: e.Seq, data: payloadOf(e)}
	r.hold(&it)
	it.data = own(it.data)
	return it
}

// hold leaves the payload of the item in the log if the room has no space for it. These
// payloads need no space: literal messages, which are no events; redacted items, which are
// small; executions, whose results become messages soon; and contexts of placement prefix,
// which are rendered before all other items.
func (r *room) hold(it *item) {
	switch {
	case r == nil || it.redacted || it.kind != messageItem && it.kind != contextItem || it.isPrefix():
	case len(it.data) <= r.left:
		r.left -= len(it.data)
	default:
		it.leave()
	}
}

// readLeanHistory decodes a state as decodeHistory does. It reads one item after the other.
func readLeanHistory(body io.Reader, r *room) (HistoryState, error) {
	var b historyBody
	dec := jsontext.NewDecoder(body)
	if dec.PeekKind() != '{' {
		return HistoryState{}, fmt.Errorf("%w: it is no object", errBadState)
	}
	items := json.UnmarshalFromFunc(func(dec *jsontext.Decoder, it *item) error {
		defer r.hold(it)
		return it.UnmarshalJSONFrom(dec)
	})
	if err := json.UnmarshalDecode(dec, &b, json.RejectUnknownMembers(true), json.WithUnmarshalers(items)); err != nil {
		return HistoryState{}, err
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return HistoryState{}, cmp.Or(err, fmt.Errorf("%w: it is more than one object", errBadState))
	}
	h, err := b.state()
	h.room, h.items = r, packedList(b.Items)
	return h, err
}
