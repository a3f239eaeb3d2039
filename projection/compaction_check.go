package projection

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Reasons of a CompactionError.
const (
	reasonEmpty  = "empty"
	reasonSplit  = "split"
	reasonAbsent = "absent"
)

var compactionReasons = map[string]string{
	reasonEmpty:  "nothing replaces the compacted events",
	reasonSplit:  "a call and its result are split",
	reasonAbsent: "not in the history",
}

// CompactionError refuses a compaction, for its Reason: empty (give a summary, or keep
// fewer turns), split (wait for the result, or cover call and result), or absent (load
// the history again).
type CompactionError struct {
	// Reason is "empty" if the compaction has neither entries nor a summary for the events
	// it covers, or covers and clears nothing; "split" if a call would stay without its
	// result, or a result without its call; and "absent" if the compaction names an event
	// or a result that is not in the history.
	Reason  string
	Session string
	// Seq is the event with the problem, CallID the call; either may be zero.
	Seq    int64
	CallID string
}

func (e *CompactionError) Error() string {
	text := fmt.Sprintf("compact session %q: %s", e.Session, compactionReasons[e.Reason])
	if e.Seq > 0 {
		text += fmt.Sprintf(": event %d", e.Seq)
	}
	if e.CallID != "" {
		text += fmt.Sprintf(": call %q", e.CallID)
	}
	return text
}

// Compact checks c against the history at the session's head and appends it. It returns
// a *CompactionError if c covers a pending call or a call without its result, if the
// entries contain one without the other, if c names an event that is not in the
// history, or if c has nothing to replace the events it covers.
//
// If another writer appends meanwhile, Compact
// checks c again and appends it after the new events. If c replaces the whole
// history, the error is eventlog.ErrConflict instead.
func Compact(ctx context.Context, log *eventlog.Log, session string, c event.Compaction) (event.Head, error) {
	for {
		head, e, err := checkCompaction(ctx, log, session, c)
		if err != nil {
			return event.Head{}, err
		}
		after, err := log.Append(ctx, session, eventlog.At(head), e)
		if err == nil {
			return after, nil
		}
		if c.Replace || !errors.Is(err, eventlog.ErrConflict) {
			return event.Head{}, fmt.Errorf("compact session %q: %w", session, err)
		}
	}
}

func checkCompaction(ctx context.Context, log *eventlog.Log, session string, c event.Compaction) (event.Head, event.Event, error) {
	e := event.New(c)
	v, err := Load(ctx, log, session, History())
	if err != nil {
		return event.Head{}, e, err
	}
	if err := v.State.check(&c, e, v.Head.Seq); err != nil {
		var refused *CompactionError
		if errors.As(err, &refused) {
			refused.Session = session
		}
		return event.Head{}, e, err
	}
	return v.Head, e, nil
}

// check compacts a copy of the history and compares the two.
func (h *HistoryState) check(c *event.Compaction, e event.Event, head int64) error {
	switch {
	case len(c.Entries) == 0 && c.Summary == "" && (len(c.Cleared) == 0 || c.Replace || c.Covers != (event.Stretch{})):
		return &CompactionError{Reason: reasonEmpty}
	case c.Covers.To > head:
		return &CompactionError{Reason: reasonAbsent, Seq: c.Covers.To}
	}
	for _, entry := range c.Entries {
		if entry.Seq > 0 && !h.has(entry.Seq) {
			return &CompactionError{Reason: reasonAbsent, Seq: entry.Seq}
		}
	}
	before, err := pairsOf(&h.items)
	if err != nil {
		return err
	}
	for _, id := range c.Cleared {
		if !before.results[id] {
			return &CompactionError{Reason: reasonAbsent, CallID: id}
		}
	}
	compacted := *h
	e.Seq = head + 1
	if err := compacted.compacted(&e); err != nil {
		return err
	}
	after, err := pairsOf(&compacted.items)
	if err != nil {
		return err
	}
	return before.compare(after, &compacted)
}

// has reports whether the event is part of the history.
func (h *HistoryState) has(seq int64) bool {
	for it := range h.items.each() {
		if it.seq == seq && it.event() && it.kind != freezeItem {
			return true
		}
	}
	return false
}

// pairs are the calls and results of a history that have no counterpart.
type pairs struct {
	pending, orphans []half
	results          map[string]bool
}

// half is a call without a result, or a result without a call.
type half struct {
	callID  string
	seq     int64
	literal bool
}

// pairsOf pairs the calls and results of the items.
func pairsOf(items *itemList) (p pairs, err error) {
	p.results = map[string]bool{}
	for it := range items.each() {
		if it.kind == freezeItem || it.kind == contextItem {
			continue
		}
		o, err := it.outline()
		if err != nil {
			return p, err
		}
		for _, id := range o.Results {
			p.results[id] = true
			p.result(half{callID: id, seq: it.seq, literal: !it.event()})
		}
		for _, c := range o.Calls {
			p.pending = append(p.pending, half{callID: c.ID, seq: it.seq, literal: !it.event()})
		}
	}
	return p, nil
}

// result removes the newest pending call with the id of the result.
func (p *pairs) result(r half) {
	for i, c := range slices.Backward(p.pending) {
		if c.callID == r.callID {
			p.pending = slices.Delete(p.pending, i, i+1)
			return
		}
	}
	p.orphans = append(p.orphans, r)
}

// compare refuses a compaction that splits a pair, or that covers a pending call: its
// result can still come.
func (p *pairs) compare(after pairs, h *HistoryState) error {
	split := func(x half) error { return &CompactionError{Reason: reasonSplit, Seq: x.seq, CallID: x.callID} }
	for _, c := range p.pending {
		if !slices.Contains(after.pending, c) {
			return split(c)
		}
	}
	for _, c := range after.pending {
		if !slices.Contains(p.pending, c) {
			return split(c)
		}
	}
	for _, r := range after.orphans {
		if !slices.Contains(p.orphans, r) {
			return split(r)
		}
	}
	return nil
}

// outline returns the outline of a message.
func (it *item) outline() (event.Outline, error) {
	o, _, err := event.OutlineOf(&event.Event{Type: event.MessageAdded, Seq: it.seq, Data: it.data})
	return o, err
}
