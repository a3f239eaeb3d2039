package eventlog_test

import (
	"errors"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/eventlog"
)

// Constructors that nothing here calls make events that are read as they were
// made, and refuse a payload that lacks what they require.
func TestConstructorsOfSeldomEvents(t *testing.T) {
	digest := eventlog.DigestOf([]byte("erased"))
	for _, tt := range []struct {
		of   eventlog.Type
		make func(whole bool) (eventlog.Event, error)
		data string
		read func(e *eventlog.Event) (bool, error)
	}{
		{eventlog.ApprovalCanceled, func(whole bool) (eventlog.Event, error) {
			return eventlog.NewApprovalCanceled(eventlog.ApprovalCancelation{InterruptID: one(whole, "i1"), Reason: "too late"})
		}, `{"interrupt_id":"i1","reason":"too late"}`, reads((*eventlog.Event).ApprovalCancelation)},
		{eventlog.ContextAdded, func(whole bool) (eventlog.Event, error) {
			place := one(whole, eventlog.AsPrefix)
			return eventlog.NewContextAdded(eventlog.ContextEntry{Kind: "rules", Placement: place, Parts: []eventlog.Part{eventlog.Text("be kind")}})
		}, `{"kind":"rules","placement":"prefix","parts":[{"type":"text","text":"be kind"}]}`, reads((*eventlog.Event).ContextEntry)},
		{eventlog.HandoffMade, func(whole bool) (eventlog.Event, error) {
			return eventlog.NewHandoff(eventlog.Handoff{FromAgent: "a", ToAgent: one(whole, "b"), Input: jsontext.Value(`{"n":9007199254740993}`)})
		}, `{"from_agent":"a","to_agent":"b","input":{"n":9007199254740993}}`, reads((*eventlog.Event).Handoff)},
		{eventlog.EscalationRetried, func(whole bool) (eventlog.Event, error) {
			attempt := 2
			if !whole {
				attempt = -1
			}
			return eventlog.NewEscalationRetried(eventlog.Escalation{Agent: "a", Scope: "turn", Attempt: attempt, Error: "busy"})
		}, `{"agent":"a","scope":"turn","attempt":2,"error":"busy"}`, reads((*eventlog.Event).Escalation)},
		{eventlog.Redacted, func(whole bool) (eventlog.Event, error) {
			seqs := []int64{3, 4}
			if !whole {
				seqs = nil
			}
			return eventlog.NewRedacted(eventlog.RedactionNote{Seqs: seqs, Reason: "asked", By: "dpo", Blobs: []eventlog.Digest{digest}})
		}, `{"seqs":[3,4],"reason":"asked","by":"dpo","blobs":["` + string(digest) + `"]}`, reads((*eventlog.Event).RedactionNote)},
		{eventlog.AccountingFlushed, func(whole bool) (eventlog.Event, error) {
			return eventlog.NewAccountingFlushed(eventlog.AccountingFlush{
				Ledger: one(whole, "month"), Through: 7, Total: 1_500_000_000,
				Entries: []jsontext.Value{jsontext.Value(`{"seq":7}`)},
			})
		}, `{"ledger":"month","through":7,"total":1.5,"entries":[{"seq":7}]}`, reads((*eventlog.Event).AccountingFlush)},
	} {
		e, err := tt.make(true)
		if err != nil {
			t.Errorf("%s: %v", tt.of, err)
			continue
		}
		if e.Type != tt.of || e.ID.IsZero() {
			t.Errorf("made %s with id %v, want %s", e.Type, e.ID, tt.of)
		}
		if diff := cmp.Diff(tt.data, string(e.Data)); diff != "" {
			t.Errorf("%s:\n%s", tt.of, diff)
		}
		if ok, err := tt.read(&e); !ok || err != nil {
			t.Errorf("%s is read back: %v, %v", tt.of, ok, err)
		}
		if _, err := tt.make(false); !errors.Is(err, eventlog.ErrInvalidPayload) {
			t.Errorf("%s without what it requires: %v", tt.of, err)
		}
	}
}

// one is the value, or nothing.
func one[T any](whole bool, v T) (value T) {
	if whole {
		return v
	}
	return value
}

// reads reads an event and encodes it again: what was read is all there was.
func reads[P eventlog.Payload](read func(*eventlog.Event) (P, bool, error)) func(*eventlog.Event) (bool, error) {
	return func(e *eventlog.Event) (bool, error) {
		p, ok, err := read(e)
		if !ok || err != nil {
			return ok, err
		}
		again, err := eventlog.NewEvent(p)
		return string(again.Data) == string(e.Data), err
	}
}
