package event

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// RedactionNote is the payload of redacted: it names the events with erased content.
type RedactionNote struct {
	Seqs   []int64 `json:"seqs"`
	Reason string  `json:"reason,omitzero"`
	// By is the person or program that erased the content.
	By string `json:"by,omitzero"`
	// Kept is the digest of the members that redaction kept of the session's own events in
	// Seqs (docs/FORMAT.md, chapter 7). With it, the hash chain
	// covers the members that redaction keeps.
	Kept Digest `json:"kept,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// EventType is redacted.
func (r RedactionNote) EventType() Type { return Redacted }

// Validate applies the rules of RedactionNote that need no other event.
func (r RedactionNote) Validate() error {
	if len(r.Seqs) == 0 {
		return fmt.Errorf("%w: seqs are missing", ErrInvalidPayload)
	}
	for _, seq := range r.Seqs {
		if err := requireMin("seqs", seq, 1); err != nil {
			return err
		}
	}
	return firstError(requireDigest("kept", r.Kept), requireExtra(r.Extra))
}

// AccountingFlush is the payload of accounting_flushed: costs were handed to a
// ledger.
type AccountingFlush struct {
	Ledger string `json:"ledger"`
	// Through is the seq of the last event that is accounted for.
	Through int64 `json:"through,omitzero"`
	// Total is the sum of the entries.
	Total Cost `json:"total,omitzero"`
	// Entries are the ledger's own, any JSON values, verbatim.
	Entries []jsontext.Value `json:"entries,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// EventType is accounting_flushed.
func (a AccountingFlush) EventType() Type { return AccountingFlushed }

// Validate applies the rules of AccountingFlush that need no other event.
func (a AccountingFlush) Validate() error {
	return firstError(require("ledger", a.Ledger), requireMin("through", a.Through, 0), requireExtra(a.Extra))
}

// Loss is the payload of lost: it replaces an event that salvage could not read.
type Loss struct {
	Reason string `json:"reason"`
	// Source says which bytes could not be read.
	Source struct {
		SessionID string `json:"session_id,omitzero"`
		Offset    int64  `json:"offset"`
		Bytes     int64  `json:"bytes"`
	} `json:"source,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// EventType is lost.
func (l Loss) EventType() Type { return Lost }

// Validate applies the rules of Loss that need no other event.
func (l Loss) Validate() error {
	return firstError(
		require("reason", l.Reason),
		requireMin("source.offset", l.Source.Offset, 0),
		requireMin("source.bytes", l.Source.Bytes, 0),
		requireExtra(l.Extra),
	)
}
