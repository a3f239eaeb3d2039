package projection

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// History is the effective history of a session: what the model sees. Its state
// holds messages and contexts as they were said, what compactions left of them,
// and where they were frozen; Messages renders it.
//
// A handoff and an external_input are no part of it: who wants the model to see
// one appends a message or a context for it.
func History() Projection[HistoryState] {
	return Projection[HistoryState]{
		builtin: true, Name: "history", Version: 1,
		Apply:  (*HistoryState).apply,
		Encode: (*HistoryState).encode,
		Decode: decodeHistory,
		Digest: (*HistoryState).digest,
	}
}

// HistoryState is the state of History. Rendering does not change it, and a copy
// stays as it is while the original moves on.
type HistoryState struct {
	items []item
	// executions are the tool_completed whose result no message told yet.
	executions []item
	// cleared are the calls whose results before a seq are shown no more.
	cleared map[string]int64
	// files is the working set of the newest compaction that has one.
	files workingSet
	// usage is the payload of the newest step_completed since the compaction.
	usage jsontext.Value
	// since is the seq of the newest compaction.
	since int64

	chain chain
}

// itemKind says what an item is. Redacted ones are in capitals, so that the
// letter says all in a snapshot.
type itemKind byte

const (
	saidItem      itemKind = 'm' // a message_added
	contextItem   itemKind = 'c' // a context_added
	literalItem   itemKind = 'l' // a message that a compaction holds
	freezeItem    itemKind = 'f' // a step_started: what stands before it was rendered into a request
	executionItem itemKind = 'x' // a tool_completed

	redactedBit = 'm' - 'M'
)

func (k itemKind) redacted() itemKind { return k &^ redactedBit }
func (k itemKind) plain() itemKind    { return k | redactedBit }
func (k itemKind) isRedacted() bool   { return k&redactedBit == 0 }

// item is a payload as it stands in its event, or what redaction kept of it.
type item struct {
	kind itemKind
	// seq is that of the event; of a literal, of the compaction.
	seq  int64
	data jsontext.Value
	// stands is, of a literal, what it stands for.
	stands event.Covers
}

// itemOf is the item of an event.
func itemOf(kind itemKind, e *event.Event) item {
	if e.Redacted() {
		return item{kind: kind.redacted(), seq: e.Seq, data: e.Kept()}
	}
	return item{kind: kind, seq: e.Seq, data: e.Data}
}

// branch relies on nothing but the ends of lists being changed in place.
func (h *HistoryState) branch() HistoryState {
	b := *h
	b.items, b.executions = slices.Clip(h.items), slices.Clip(h.executions)
	return b
}

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
		h.items = append(h.items, itemOf(saidItem, e))
		return h.told(e)
	case event.ContextAdded:
		h.items = append(h.items, itemOf(contextItem, e))
	case event.ToolCompleted:
		h.executions = append(h.executions, itemOf(executionItem, e))
	case event.StepStarted:
		h.freeze(e.Seq)
	case event.StepCompleted:
		h.usage = itemOf(0, e).data
	case event.CompactionTriggered:
		return h.compacted(e)
	}
	return nil
}

// freeze notes that what there is was rendered into a request.
func (h *HistoryState) freeze(seq int64) {
	n := len(h.items)
	if n > 0 && h.items[n-1].kind != freezeItem || n == 0 && !h.files.isZero() {
		h.items = append(h.items, item{kind: freezeItem, seq: seq})
	}
}

// frozen is the seq of the newest freeze; 0 if there is none.
func (h *HistoryState) frozen() int64 {
	for _, it := range slices.Backward(h.items) {
		if it.kind == freezeItem {
			return it.seq
		}
	}
	return 0
}

// told drops the executions whose results a message carries, unless they were
// frozen without it.
func (h *HistoryState) told(e *event.Event) error {
	if len(h.executions) == 0 {
		return nil
	}
	o, _, err := event.OutlineOf(e)
	if err != nil || len(o.Results) == 0 {
		return err
	}
	frozen := h.frozen()
	h.executions = slices.DeleteFunc(slices.Clone(h.executions), func(x item) bool {
		id, _ := executedCall(x.data)
		return x.seq > frozen && slices.Contains(o.Results, id)
	})
	return nil
}

// event reports whether the item is an event's payload, and no literal message.
func (it *item) event() bool { return it.kind.plain() != literalItem }
