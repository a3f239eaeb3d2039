package projection

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// History is the effective history of a session: the messages that the model gets.
// Its state holds messages and contexts as they were appended, with compactions
// applied, and the points at which the history was rendered into a request. Messages
// renders it.
//
// A handoff or an external_input is no part of the history. To show one to the model,
// append a message or a context.
func History() Projection[HistoryState] {
	return Projection[HistoryState]{
		builtin: true, Name: "history", Version: 1,
		Apply:  (*HistoryState).apply,
		Encode: (*HistoryState).encode,
		Decode: decodeHistory,
		Digest: (*HistoryState).digest,
	}
}

// HistoryState is the state of History. Rendering does not change it. A copy of the
// struct is independent of the original.
type HistoryState struct {
	items itemList
	// freezes is the number of freezes among the items.
	freezes    int
	executions executions
	// cleared maps calls to a seq. Results of the call before that seq render without
	// content.
	cleared map[string]int64
	// files is the working set of the newest compaction that has one.
	files workingSet
	// usage is the payload of the newest step_completed since the newest compaction.
	usage jsontext.Value
	// since is the seq of the newest compaction.
	since int64
	// room limits the payloads that the items hold; nil is no limit.
	room *room

	chain chain
}

// itemKind is the kind of an item, as in a snapshot.
type itemKind byte

const (
	messageItem   itemKind = 'm' // a message_added
	contextItem   itemKind = 'c' // a context_added
	literalItem   itemKind = 'l' // a message in a compaction
	freezeItem    itemKind = 'f' // a step_started: a request was rendered from the items before it
	executionItem itemKind = 'x' // a tool_completed
)

// item is the payload of an event, or the members of it that redaction keeps.
type item struct {
	kind itemKind
	// redacted reports that data has the members that redaction keeps.
	redacted bool
	// size and sum are the size and a hash of a payload that is in the log and not in data.
	size uint32
	sum  uint64
	// seq is the seq of the event. Of a literal it is the seq of the compaction.
	seq  int64
	data jsontext.Value
	// covers is the range of events that a literal replaces.
	covers event.Stretch
}

// payloadOf returns the payload of an event, or the members of it that redaction keeps.
func payloadOf(e *event.Event) jsontext.Value {
	if e.Redacted() {
		return e.Kept()
	}
	return e.Data
}

// itemOf returns the item of an event, with the payload.
func itemOf(kind itemKind, e *event.Event) item {
	var unlimited *room
	return unlimited.itemOf(kind, e)
}

// largeData is the size of data that has a buffer of its own in a store.
const largeData = 256 << 10

// own copies data, unless it is large: the events of a read share a buffer, and the data
// would hold all of it.
func own(data jsontext.Value) jsontext.Value {
	if len(data) >= largeData {
		return data
	}
	return data.Clone()
}

// clone copies the state. The lists share memory: later events only append to the
// original's lists, or replace them.
func (h *HistoryState) clone() HistoryState {
	b := *h
	b.items, b.executions = h.items.clone(), h.executions.clone()
	return b
}

// Len is the number of messages and contexts in the state.
func (h *HistoryState) Len() int { return h.items.len() - h.freezes }

func (h *HistoryState) apply(e *event.Event) error {
	name := e.Type.Name()
	switch name {
	case event.MessageAdded, event.ContextAdded, event.ToolCompleted, event.StepStarted,
		event.StepCompleted, event.CompactionTriggered:
	default:
		return nil
	}
	if err := e.Type.CheckVersion(); err != nil {
		return err
	}
	switch name {
	case event.MessageAdded:
		h.items.add(h.room.itemOf(messageItem, e))
		return h.dropResults(e)
	case event.ContextAdded:
		h.items.add(h.room.itemOf(contextItem, e))
	case event.ToolCompleted:
		h.executions.add(itemOf(executionItem, e))
	case event.StepStarted:
		h.freeze(e.Seq)
	case event.StepCompleted:
		h.usage = own(payloadOf(e))
	case event.CompactionTriggered:
		return h.compacted(e)
	}
	return nil
}

// freeze marks that a request was rendered from the items before it.
func (h *HistoryState) freeze(seq int64) {
	last := h.items.last()
	if last != nil && last.kind != freezeItem || last == nil && !h.files.isZero() {
		h.items.add(item{kind: freezeItem, seq: seq})
		h.freezes++
		h.executions.freeze()
	}
}

// dropResults removes the executions whose results a message contains. An execution
// before the newest freeze stays: a request was rendered with it.
func (h *HistoryState) dropResults(e *event.Event) error {
	if len(h.executions.open) == 0 || !mayHaveResults(e) {
		return nil
	}
	o, _, err := event.OutlineOf(e)
	h.executions.answer(o.Results)
	return err
}

// mayHaveResults is false for most messages without a tool result. It does not decode
// the message.
func mayHaveResults(e *event.Event) bool {
	return e.Redacted() || bytes.Contains(e.Data, []byte(event.ToolResultPart)) || bytes.Contains(e.Data, []byte(`\u`))
}

// event reports whether the item is the payload of an event, not a literal message.
func (it *item) event() bool { return it.kind != literalItem }
