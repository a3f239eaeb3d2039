package erase

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
)

// plan finds the events and blobs to erase with the requested events.
type plan struct {
	log    *eventlog.Log
	engine engine.Engine
	report Redaction

	requests []request
	exact    bool               // a pattern finds the events: no text of them is looked for
	order    []string           // the sessions to rewrite
	seqs     map[string][]int64 // their events to erase
	picked   map[eventKey]bool  // the same events
	ids      map[ulid.ULID]bool // the same events; a repair leaves two events with one id
	blobs    map[event.Digest]bool
	listed   map[eventKey]bool // the events in report.Untouched
	unread   map[string]bool   // the sessions in report.Unread

	shared map[string][]int64 // events to erase that a fork shares

	// ledgers are the files of costs that may have a line of an event to erase, and the
	// sessions of these events.
	ledgers map[string]map[string]bool

	// earlier are sessions with redactions that may have been interrupted before they
	// were durable.
	earlier map[string]bool
}

// request has the events of one session that the caller asked to erase.
type request struct {
	session string
	first   int64   // the first requested seq
	seqs    []int64 // the requested seqs that are not redacted yet
}

// eventKey names an event by its place.
type eventKey struct {
	session string
	seq     int64
}

func newPlan(log *eventlog.Log) *plan {
	return &plan{log: log, engine: engine.Of(log),
		seqs: map[string][]int64{}, picked: map[eventKey]bool{}, ids: map[ulid.ULID]bool{}, blobs: map[event.Digest]bool{},
		listed: map[eventKey]bool{}, unread: map[string]bool{}, shared: map[string][]int64{}, earlier: map[string]bool{}, ledgers: map[string]map[string]bool{}}
}

// ask adds events of a session to the plan. All events are asked for before the plan is
// completed.
func (p *plan) ask(ctx context.Context, session string, seqs []int64) error {
	seqs = slices.Compact(slices.Sorted(slices.Values(seqs)))
	if len(seqs) == 0 {
		return nil
	}
	r := request{session: session, first: seqs[0]}
	for _, seq := range seqs {
		e, err := ownEvent(ctx, p.log, session, seq)
		if err != nil {
			return err
		}
		if !e.Type.Erasable() {
			return fmt.Errorf("event %d: %w: %s cannot be redacted", seq, event.ErrInvalidType, e.Type)
		}
		if e.Redacted() {
			p.report.Already = append(p.report.Already, seq)
			continue
		}
		p.erase(&e)
		r.seqs = append(r.seqs, seq)
	}
	p.requests = append(p.requests, r)
	return nil
}

// complete adds what goes along, and finds the blobs, the torn tails and the places that
// keep erased bytes.
func (p *plan) complete(ctx context.Context) error {
	if err := p.along(ctx); err != nil {
		return err
	}
	if len(p.picked) > 0 {
		if err := p.copies(ctx); err != nil {
			return err
		}
	}
	p.report.Forks = p.informed()
	if err := p.keepNeeded(ctx); err != nil {
		return err
	}
	if err := p.retained(ctx); err != nil {
		return err
	}
	return p.tails(ctx)
}

// erase adds an event to the plan.
func (p *plan) erase(e *event.Event) {
	key := eventKey{e.SessionID, e.Seq}
	if p.picked[key] {
		return
	}
	if p.seqs[e.SessionID] == nil {
		p.order = append(p.order, e.SessionID)
	}
	p.seqs[e.SessionID] = append(p.seqs[e.SessionID], e.Seq)
	p.picked[key] = true
	p.ids[e.ID] = true
	p.report.Erased = append(p.report.Erased, EventRef{e.SessionID, e.Seq, e.Type})
	for _, d := range e.Blobs() {
		p.blobs[d] = true
	}
}

// list adds an event that stays to the report.
func (p *plan) list(session string, seq int64, t event.Type) {
	key := eventKey{session, seq}
	if p.picked[key] || p.listed[key] {
		return
	}
	p.listed[key] = true
	p.report.Untouched = append(p.report.Untouched, EventRef{session, seq, t})
}

// informed are the forks that share events to erase, and are not rewritten, sorted.
func (p *plan) informed() (forks []string) {
	for _, fork := range slices.Sorted(maps.Keys(p.shared)) {
		if p.seqs[fork] == nil {
			forks = append(forks, fork)
		}
	}
	return forks
}

// sessions are the sessions that lose events: they have them, or share them with a parent.
func (p *plan) sessions() []string { return slices.Concat(p.order, p.informed()) }

// tails notes the torn tails of the sessions to rewrite.
func (p *plan) tails(ctx context.Context) error {
	tails, ok := eventlog.As[eventlog.TailKeeper](p.log.Store())
	if !ok {
		return nil
	}
	for _, session := range p.order {
		for t, err := range tails.TornTails(ctx, session) {
			if err != nil {
				return err
			}
			p.report.TornTails = append(p.report.TornTails, t)
		}
	}
	return nil
}

// retained notes the places outside the store that keep the erased bytes or name the events.
func (p *plan) retained(ctx context.Context) (err error) {
	if len(p.report.Erased) == 0 {
		return nil
	}
	if retainer, ok := eventlog.As[eventlog.Retainer](p.log.Store()); ok {
		p.report.Retained, err = retainer.Retained(ctx)
	}
	for _, ledger := range slices.Sorted(maps.Keys(p.ledgers)) {
		for _, session := range slices.Sorted(maps.Keys(p.ledgers[ledger])) {
			p.report.Retained = append(p.report.Retained, eventlog.Retained{
				Where:  fmt.Sprintf("ledger %q, lines of session %q", ledger, session),
				Remedy: "they have no text, but ids, times, models, agents and costs of events: delete them there if these are to go too",
			})
		}
	}
	return err
}

// keepNeeded leaves in report.Blobs the blobs that no other event needs.
func (p *plan) keepNeeded(ctx context.Context) error {
	if len(p.blobs) == 0 {
		return nil
	}
	// A torn tail keeps no blob: its events were not acknowledged, or are damaged,
	// and the content they would keep is to be erased.
	erased := func(session string, seq int64) bool { return seq == tailSeq || p.picked[eventKey{session, seq}] }
	for d, err := range neededBlobs(ctx, p.log, slices.Sorted(maps.Keys(p.blobs)), erased) {
		if err != nil {
			return err
		}
		delete(p.blobs, d)
	}
	for _, d := range slices.Sorted(maps.Keys(p.blobs)) {
		size, err := blobSize(ctx, p.log, d)
		if err != nil {
			return err
		}
		p.report.Blobs = append(p.report.Blobs, event.BlobRef{Blob: d, Bytes: size})
	}
	return nil
}

func (p *plan) erasedBlobs() (digests []event.Digest) {
	for _, b := range p.report.Blobs {
		digests = append(digests, b.Blob)
	}
	return digests
}
