package event

import (
	"errors"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// The payloads without a test of their own encode as the format says, decode to
// equal payloads, and are refused without a required member.
func TestSeldomPayloads(t *testing.T) {
	digest := DigestOf([]byte("erased"))
	for _, tt := range []struct {
		of            Type
		whole, broken Payload
		data          string
	}{
		{ApprovalCanceled, ApprovalCancelation{InterruptID: "i1", Reason: "too late"}, ApprovalCancelation{Reason: "too late"},
			`{"interrupt_id":"i1","reason":"too late"}`},
		{ContextAdded, ContextEntry{Kind: "rules", Placement: AsPrefix, Parts: []Part{Text("be kind")}}, ContextEntry{Kind: "rules", Parts: []Part{Text("be kind")}},
			`{"kind":"rules","placement":"prefix","parts":[{"type":"text","text":"be kind"}]}`},
		{HandoffMade, Handoff{FromAgent: "a", ToAgent: "b", Input: jsontext.Value(`{"n":9007199254740993}`)}, Handoff{FromAgent: "a"},
			`{"from_agent":"a","to_agent":"b","input":{"n":9007199254740993}}`},
		{EscalationRetried, Escalation{Agent: "a", Scope: "turn", Attempt: 2, Error: "busy"}, Escalation{Attempt: -1},
			`{"agent":"a","scope":"turn","attempt":2,"error":"busy"}`},
		{Redacted, RedactionNote{Seqs: []int64{3, 4}, Reason: "asked", By: "dpo", Kept: digest}, RedactionNote{Reason: "asked"},
			`{"seqs":[3,4],"reason":"asked","by":"dpo","kept":"` + string(digest) + `"}`},
		{AccountingFlushed, AccountingFlush{Ledger: "month", Through: 7, Total: 1_500_000_000, Entries: []jsontext.Value{jsontext.Value(`{"seq":7}`)}},
			AccountingFlush{Through: 7}, `{"ledger":"month","through":7,"total":1.5,"entries":[{"seq":7}]}`},
	} {
		e := New(tt.whole)
		if e.Type != tt.of || e.ID.IsZero() || string(e.Data) != tt.data || e.Normalize() != nil {
			t.Errorf("New made %s with id %v and %s, want %s with %s: %v", e.Type, e.ID, e.Data, tt.of, tt.data, e.Normalize())
		}
		p, err := e.Payload()
		if again := New(p); err != nil || string(again.Data) != tt.data {
			t.Errorf("%s reads as %+v, %v", tt.of, p, err)
		}
		refused := New(tt.broken)
		if f, err := refused.Facts(); err != nil || !errors.Is(f.Invalid, ErrInvalidPayload) {
			t.Errorf("%s without what it requires: %v, %v", tt.of, f.Invalid, err)
		}
	}
}

// orderPlaced is a program's own payload.
type orderPlaced struct {
	Order string   `json:"order"`
	Files []Digest `json:"files,omitzero"`
}

func (orderPlaced) EventType() Type   { return "shop:order_placed" }
func (p orderPlaced) Blobs() []Digest { return p.Files }
func (p orderPlaced) Validate() error {
	if p.Order == "" {
		return errors.New("order is empty")
	}
	return nil
}

// A payload of a program is made, checked and decoded like the vocabulary.
func TestOwnPayload(t *testing.T) {
	file := DigestOf([]byte("file"))
	e := New(orderPlaced{Order: "A1001", Files: []Digest{file}})
	if e.Type != "shop:order_placed" || len(e.Blobs()) != 1 || e.Blobs()[0] != file {
		t.Errorf("New made %s that needs %v", e.Type, e.Blobs())
	}
	p, ok, err := Decode[orderPlaced](&e)
	if !ok || err != nil || p.Order != "A1001" {
		t.Errorf("decoded %+v, %v, %v", p, ok, err)
	}
	if _, ok, err := Decode[Message](&e); ok || err != nil {
		t.Errorf("decoded as a message: %v, %v", ok, err)
	}
	wrong := New(&orderPlaced{})
	if f, err := wrong.Facts(); err != nil || !errors.Is(f.Invalid, ErrInvalidPayload) {
		t.Errorf("a rule that is broken: %v, %v", f.Invalid, err)
	}
	later := Event{Type: "shop:order_placed/2", Data: jsontext.Value(`{}`)}
	if _, ok, err := Decode[orderPlaced](&later); !ok || !errors.Is(err, ErrVersion) {
		t.Errorf("a later version: %v, %v", ok, err)
	}
}

// An append stores the bytes that New encoded, even if the caller changes the bytes
// of the payload later.
func TestNewKeepsNoBytesOfThePayload(t *testing.T) {
	extra := jsontext.Value(`{"a":1}`)
	e := New(Session{Title: "t", Extra: extra})
	copy(extra, `broken!`)
	f, err := e.Facts()
	p, ok, bad := Decode[Session](&e)
	if err != nil || f.Invalid != nil || !ok || bad != nil || string(p.Extra) != `{"a":1}` || e.Normalize() != nil {
		t.Errorf("%s, %v, %v, %v", e.Data, err, f.Invalid, bad)
	}
}

// New cannot fail: the append reports a payload that cannot be encoded.
func TestNewOfNothing(t *testing.T) {
	for name, p := range map[string]Payload{"nil": nil, "a nil pointer": (*Message)(nil)} {
		e := New(p)
		if err := e.Normalize(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
