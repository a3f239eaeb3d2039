package sink

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// flushAccounting gives the new costs of a session to store, and then appends an
// accounting_flushed event with the ledger's name. If another writer appended events
// meanwhile, it begins anew. store must ignore entries that it has.
func flushAccounting(ctx context.Context, log *eventlog.Log, session, ledger string, store func(context.Context, []LedgerEntry) error) (flush event.AccountingFlush, flushed bool, err error) {
	for {
		flush, flushed, err = flushOnce(ctx, log, session, ledger, store)
		if !errors.Is(err, eventlog.ErrConflict) || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return event.AccountingFlush{}, false, fmt.Errorf("flush accounting of session %q: %w", session, err)
	}
	return flush, flushed, nil
}

func flushOnce(ctx context.Context, log *eventlog.Log, session, ledger string, store func(context.Context, []LedgerEntry) error) (flush event.AccountingFlush, flushed bool, err error) {
	d := due{ledger: ledger}
	if err := d.read(ctx, log, session); err != nil || len(d.entries) == 0 {
		return flush, false, err
	}
	flush = event.AccountingFlush{Ledger: ledger, Through: d.head.Seq}
	for i := range d.entries {
		entry, err := json.Marshal(&d.entries[i], json.Deterministic(true))
		if err != nil {
			return flush, false, err
		}
		flush.Total = flush.Total.Add(d.entries[i].Cost)
		flush.Entries = append(flush.Entries, jsontext.Value(entry))
	}
	if err := store(ctx, d.entries); err != nil {
		return flush, false, err
	}
	_, err = log.Append(ctx, session, eventlog.At(d.head).Durable(), event.New(flush))
	return flush, err == nil, err
}

// due is the costs of a session without an accounting_flushed event of the ledger.
type due struct {
	ledger  string
	entries []LedgerEntry
	head    event.Head
}

func (d *due) read(ctx context.Context, log *eventlog.Log, session string) error {
	var m projection.Meter
	for e, err := range log.Read(ctx, session, eventlog.All()) {
		if err != nil {
			return err
		}
		e := e.Effective()
		inherited := e.SessionID != session || e.Inherited()
		if err := m.Read(e, inherited, func(c projection.Charge) { d.add(e, c) }); err != nil {
			return err
		}
		d.head = e.Head()
		if e.Type.Name() == event.AccountingFlushed && !inherited {
			if err := d.flushed(e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *due) add(e *event.Event, c projection.Charge) {
	if c.Cost == 0 && c.Usage.IsZero() {
		return
	}
	d.entries = append(d.entries, LedgerEntry{SessionID: e.SessionID, Seq: e.Seq, EventID: e.ID, Time: e.Timestamp, TurnID: c.Turn,
		Model: c.Model, Agent: c.Agent, Cost: c.Cost, Usage: c.Usage})
}

// flushed removes the entries that an earlier flush covers.
func (d *due) flushed(e *event.Event) error {
	p, err := event.DecodeKept[event.AccountingFlush](e)
	if err != nil || p.Ledger != d.ledger {
		return err
	}
	n := 0
	for n < len(d.entries) && d.entries[n].Seq <= p.Through {
		n++
	}
	d.entries = d.entries[n:]
	return nil
}
