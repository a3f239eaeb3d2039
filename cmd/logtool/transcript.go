package main

import (
	"github.com/convlog/convlog/eventlog"
)

// entry is an event as it is shown: a message with the results of its calls.
type entry struct {
	event   eventlog.Event
	message eventlog.Message // if isMessage
	// isMessage: the event is a message that can be read.
	isMessage bool
	results   map[string]result // of the message's calls, by call id
	moved     int               // result parts that are shown under their calls
	// orphaned: the event was rewound and is no part of the conversation.
	orphaned bool
	note     string // what else there is to say of it
}

// result is a tool result and where it stands.
type result struct {
	seq  int64
	part eventlog.Part
}

// empty reports whether nothing is left to show: a message whose parts are all
// shown under their calls.
func (x *entry) empty() bool { return x.isMessage && x.moved > 0 && x.moved == len(x.message.Parts) }

// transcript puts the results of tool calls under the calls. For that it holds
// events back, from the first message with an unanswered call on.
type transcript struct {
	show func(*entry) error
	// most is how many events are held at most; 0 holds none.
	most    int
	held    []*entry
	waiting map[string]*entry // by call id
}

func newTranscript(most int, show func(*entry) error) *transcript {
	return &transcript{show: show, most: most, waiting: map[string]*entry{}}
}

func (t *transcript) add(e eventlog.Event, orphaned bool) error {
	x := &entry{event: e, orphaned: orphaned}
	if message, ok, err := e.Message(); ok && err == nil {
		x.message, x.isMessage = message, true
	}
	return t.take(x)
}

func (t *transcript) take(x *entry) error {
	if x.isMessage {
		t.answer(x)
		t.wait(x)
	}
	t.held = append(t.held, x)
	return t.release(t.most)
}

// answer moves the results of x under the calls that wait for them.
func (t *transcript) answer(x *entry) {
	var rest []eventlog.Part
	for _, part := range x.message.Parts {
		caller := t.waiting[part.CallID]
		if part.Type != eventlog.ToolResultPart || caller == nil {
			rest = append(rest, part)
			continue
		}
		caller.results[part.CallID] = result{x.event.Seq, part}
		delete(t.waiting, part.CallID)
		x.moved++
	}
	if x.moved < len(x.message.Parts) {
		x.message.Parts, x.moved = rest, 0
	}
}

// wait notes the calls of x.
func (t *transcript) wait(x *entry) {
	for _, call := range x.message.ToolCalls() {
		if x.results == nil {
			x.results = map[string]result{}
		}
		t.waiting[call.CallID] = x
	}
}

// release shows the events that wait for nothing, and what is over the limit.
func (t *transcript) release(most int) error {
	for len(t.held) > 0 {
		first := t.held[0]
		if t.pending(first) && len(t.held) <= most {
			return nil
		}
		for _, call := range first.message.ToolCalls() {
			if t.waiting[call.CallID] == first {
				delete(t.waiting, call.CallID)
			}
		}
		t.held = t.held[1:]
		if first.empty() {
			continue
		}
		if err := t.show(first); err != nil {
			return err
		}
	}
	return nil
}

func (t *transcript) pending(x *entry) bool {
	for _, call := range x.message.ToolCalls() {
		if t.waiting[call.CallID] == x {
			return true
		}
	}
	return false
}

// flush shows all that is held.
func (t *transcript) flush() error { return t.release(0) }
