package erase

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
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

	order  []string           // the sessions to rewrite
	seqs   map[string][]int64 // their events to erase
	picked map[eventKey]bool  // the same events
	ids    map[ulid.ULID]bool // the same events; a repair leaves two events with one id
	blobs  map[event.Digest]bool

	shared   map[string][]int64 // events to erase that a fork shares
	informed []string           // forks that share events, and are not rewritten

	// Earlier redactions may have been interrupted before they were durable.
	earlier []string       // the sessions that have some
	gone    []event.Digest // blobs they named that are missing
}

// eventKey names an event by its place.
type eventKey struct {
	session string
	seq     int64
}

func newPlan(log *eventlog.Log, session string) *plan {
	return &plan{log: log, engine: engine.Of(log), report: Redaction{Session: session},
		seqs: map[string][]int64{}, picked: map[eventKey]bool{}, ids: map[ulid.ULID]bool{}, blobs: map[event.Digest]bool{},
		shared: map[string][]int64{}}
}

func (p *plan) make(ctx context.Context, session string, seqs []int64) error {
	seqs = slices.Compact(slices.Sorted(slices.Values(seqs)))
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
		} else {
			p.erase(&e)
		}
	}
	if len(seqs) == 0 {
		return nil
	}
	if err := p.followUp(ctx, session, seqs[0]); err != nil {
		return err
	}
	if err := p.keepNeeded(ctx); err != nil {
		return err
	}
	return p.tails(ctx)
}

// erase adds an event to the plan.
func (p *plan) erase(e *event.Event) {
	if p.seqs[e.SessionID] == nil {
		p.order = append(p.order, e.SessionID)
	}
	p.seqs[e.SessionID] = append(p.seqs[e.SessionID], e.Seq)
	p.picked[eventKey{e.SessionID, e.Seq}] = true
	p.ids[e.ID] = true
	p.report.Erased = append(p.report.Erased, EventRef{e.SessionID, e.Seq, e.Type})
	for _, d := range e.Blobs() {
		p.blobs[d] = true
	}
}

// followUp examines the events after seq, in the session, in the forks that share
// it, and in copies. If nothing is left to erase, it finds only the blobs that an
// interrupted redaction left.
func (p *plan) followUp(ctx context.Context, session string, seq int64) error {
	forks, err := p.log.Forks(ctx)
	if err != nil {
		return err
	}
	asked := slices.Clone(p.seqs[session])
	holders := []eventlog.ForkInfo{{Session: session, Seq: math.MaxInt64}}
	for i := 0; i < len(holders); i++ {
		h := holders[i]
		if err := p.later(ctx, h.Session, seq, len(asked) > 0); err != nil {
			return err
		}
		if i > 0 {
			p.inform(h, asked)
		}
		for _, f := range forks.ByParent[h.Session] {
			if f.Seq >= seq {
				holders = append(holders, eventlog.ForkInfo{Session: f.Session, Seq: min(f.Seq, h.Seq)})
			}
		}
	}
	if len(asked) == 0 {
		return nil
	}
	return p.copies(ctx)
}

// inform notes the erased events that a fork shares: it gets a redacted event that
// names them, so that readers of the fork learn of the erasure.
func (p *plan) inform(f eventlog.ForkInfo, erased []int64) {
	n := 0
	for n < len(erased) && erased[n] <= f.Seq {
		n++
	}
	if n == 0 {
		return
	}
	p.shared[f.Session] = erased[:n]
	if p.seqs[f.Session] == nil {
		p.informed = append(p.informed, f.Session)
	}
}

// later examines the events of one session after seq: blobs that earlier redactions
// named, and, if this one erases anything, snapshot bodies and compactions.
func (p *plan) later(ctx context.Context, session string, seq int64, erases bool) error {
	for e, err := range p.log.Store().Read(ctx, session, eventlog.Span{From: seq + 1}) {
		if err != nil {
			return err
		}
		switch name := e.Type.Name(); {
		case name == event.Redacted:
			err = p.leftBehind(ctx, &e)
		case !erases || e.Redacted() || p.picked[eventKey{session, e.Seq}]:
		case name == event.CompactionTriggered:
			p.report.Untouched = append(p.report.Untouched, EventRef{session, e.Seq, e.Type})
		case name == event.ProjectionSnapshotted:
			err = p.snapshot(ctx, &e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// leftBehind adds the blobs that an earlier redaction named and did not remove. It adds
// missing blobs too: their removal may not be durable.
func (p *plan) leftBehind(ctx context.Context, e *event.Event) error {
	note, _, err := event.Decode[event.RedactionNote](e)
	if err != nil {
		return err
	}
	if !slices.Contains(p.earlier, e.SessionID) {
		p.earlier = append(p.earlier, e.SessionID)
	}
	for _, d := range note.Blobs {
		if err := checkBlob(ctx, p.log, d); err == nil {
			p.blobs[d] = true
		} else if errors.Is(err, eventlog.ErrBlobNotFound) {
			p.gone = append(p.gone, d)
		} else {
			return err
		}
	}
	return nil
}

func checkBlob(ctx context.Context, log *eventlog.Log, d event.Digest) error {
	body, err := log.OpenBlob(ctx, d)
	if err != nil {
		return err
	}
	return body.Close()
}

// snapshot adds a snapshot that has a body, or may have one because it cannot be
// read.
func (p *plan) snapshot(ctx context.Context, e *event.Event) error {
	stored := *e
	err := p.engine.Fetch(ctx, e)
	if err != nil && !errors.Is(err, eventlog.ErrBlobNotFound) && !errors.Is(err, eventlog.ErrCorrupt) {
		return err
	}
	snapshot, _, unread := event.Decode[event.Snapshot](e)
	if err != nil || unread != nil || len(snapshot.State) > 0 || snapshot.Body.Blob != "" {
		p.erase(&stored)
	}
	return nil
}

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

// keepNeeded leaves in report.Blobs the blobs that no other event needs.
func (p *plan) keepNeeded(ctx context.Context) error {
	if len(p.blobs) == 0 {
		return nil
	}
	// A torn tail keeps no blob: its events were not acknowledged, or are damaged,
	// and the content they would keep is to be erased.
	erased := func(session string, seq int64) bool { return seq == tailSeq || p.picked[eventKey{session, seq}] }
	for d, err := range neededBlobs(ctx, p.log, erased) {
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

// note is the payload of the redacted event of a session.
func (p *plan) note(session, reason string) event.RedactionNote {
	n := event.RedactionNote{Seqs: slices.Concat(p.shared[session], p.seqs[session]), Reason: reason}
	if len(p.seqs[session]) > 0 {
		n.Blobs = p.erasedBlobs()
	}
	return n
}

func (p *plan) erasedBlobs() (digests []event.Digest) {
	for _, b := range p.report.Blobs {
		digests = append(digests, b.Blob)
	}
	return digests
}

// sweep finishes earlier redactions in the store's files, if there were any.
func (p *plan) sweep(ctx context.Context) error {
	sweeper, ok := eventlog.As[eventlog.Sweeper](p.log.Store())
	if !ok || len(p.earlier) == 0 {
		return nil
	}
	for _, err := range sweeper.Sweep(ctx, true) {
		if err != nil {
			return fmt.Errorf("finish earlier redactions: %w", err)
		}
	}
	return nil
}
