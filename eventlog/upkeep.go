package eventlog

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// RedactionNote is the payload of redacted: it names the events whose content
// was erased.
type RedactionNote struct {
	Seqs   []int64 `json:"seqs"`
	Reason string  `json:"reason,omitzero"`
	// By is who erased it.
	By string `json:"by,omitzero"`
	// Blobs are the digests of the blobs that were erased with it.
	Blobs []Digest `json:"blobs,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// NewRedacted makes a redacted event; it erases nothing by itself: use
// Log.Redact.
func NewRedacted(r RedactionNote) (Event, error) { return NewEvent(r) }

// RedactionNote reads a redacted event; ok and err are as for Message.
func (e *Event) RedactionNote() (r RedactionNote, ok bool, err error) {
	return decode[RedactionNote](e, Redacted)
}

// EventType is redacted.
func (r RedactionNote) EventType() Type { return Redacted }

func (r RedactionNote) check() error {
	if len(r.Seqs) == 0 {
		return fmt.Errorf("%w: seqs are missing", ErrInvalidPayload)
	}
	for _, seq := range r.Seqs {
		if err := requireMin("seqs", seq, 1); err != nil {
			return err
		}
	}
	for _, d := range r.Blobs {
		if err := firstError(require("blobs", d), requireDigest("blobs", d)); err != nil {
			return err
		}
	}
	return requireExtra(r.Extra)
}

// needs is empty: the blobs it names are gone.
func (r RedactionNote) needs() []Digest { return nil }

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

// NewAccountingFlushed makes an accounting_flushed. The ledger is required.
func NewAccountingFlushed(a AccountingFlush) (Event, error) { return NewEvent(a) }

// AccountingFlush reads an accounting_flushed; ok and err are as for Message.
func (e *Event) AccountingFlush() (a AccountingFlush, ok bool, err error) {
	return decode[AccountingFlush](e, AccountingFlushed)
}

// EventType is accounting_flushed.
func (a AccountingFlush) EventType() Type { return AccountingFlushed }
func (a AccountingFlush) check() error {
	return firstError(require("ledger", a.Ledger), requireMin("through", a.Through, 0), requireExtra(a.Extra))
}
func (a AccountingFlush) needs() []Digest { return nil }

// Loss is the payload of lost: it stands where salvage found nothing readable.
type Loss struct {
	Reason string     `json:"reason"`
	Source LossSource `json:"source,omitzero"`
	// Extra is an object of the producer's own members, or nil.
	Extra jsontext.Value `json:"extra,omitzero"`
}

// LossSource says which bytes could not be read.
type LossSource struct {
	SessionID string `json:"session_id,omitzero"`
	Offset    int64  `json:"offset"`
	Bytes     int64  `json:"bytes"`
}

// NewLost makes a lost event. The reason is required.
func NewLost(l Loss) (Event, error) { return NewEvent(l) }

// Loss reads a lost event; ok and err are as for Message.
func (e *Event) Loss() (l Loss, ok bool, err error) { return decode[Loss](e, Lost) }

// EventType is lost.
func (l Loss) EventType() Type { return Lost }

func (l Loss) check() error {
	return firstError(
		require("reason", l.Reason),
		requireMin("source.offset", l.Source.Offset, 0),
		requireMin("source.bytes", l.Source.Bytes, 0),
		requireExtra(l.Extra),
	)
}

func (l Loss) needs() []Digest { return nil }
