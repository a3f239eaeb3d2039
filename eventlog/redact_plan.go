package eventlog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/oklog/ulid/v2"
)

// redactionPlan finds what goes with the events to be redacted.
type redactionPlan struct {
	log    *Log
	report Redaction
	order  []string           // the sessions to rewrite
	seqs   map[string][]int64 // and which of their events
	picked map[eventKey]bool  // the same
	ids    map[ulid.ULID]bool // the same; a repair leaves two events of one id
	blobs  map[Digest]bool
	shared map[string][]int64 // which events that go the forks share
	told   []string           // forks that share some, and are not rewritten

	// Earlier redactions may have been interrupted before they were durable.
	earlier []string // the sessions that have some
	gone    []Digest // blobs they named that are not there
}

// eventKey names an event by its place.
type eventKey struct {
	session string
	seq     int64
}

func (p *redactionPlan) make(ctx context.Context, session string, seqs []int64) error {
	p.blobs, p.picked, p.ids, p.shared = map[Digest]bool{}, map[eventKey]bool{}, map[ulid.ULID]bool{}, map[string][]int64{}
	seqs = slices.Compact(slices.Sorted(slices.Values(seqs)))
	for _, seq := range seqs {
		e, err := p.log.ownEvent(ctx, session, seq)
		if err != nil {
			return err
		}
		if info := vocabulary[e.Type.Name()]; info != nil && info.fixed {
			return fmt.Errorf("event %d: %w: %s cannot be redacted", seq, ErrInvalidType, e.Type)
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
	if err := p.keepShared(ctx); err != nil {
		return err
	}
	return p.tails(ctx)
}

func (p *redactionPlan) erase(e *Event) {
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

// followUp looks at what came after seq, in the session, in the forks that
// share it, and in copies. Where there is nothing to erase any more, it finds
// only the blobs that an interrupted redaction left.
func (p *redactionPlan) followUp(ctx context.Context, session string, seq int64) error {
	forks, _, err := p.log.forks(ctx)
	if err != nil {
		return err
	}
	goes := slices.Clone(p.seqs[session])
	holders := []forked{{session, math.MaxInt64}}
	for i := 0; i < len(holders); i++ {
		h := holders[i]
		if err := p.later(ctx, h.session, seq, len(goes) > 0); err != nil {
			return err
		}
		if i > 0 {
			p.tell(h, goes)
		}
		for _, f := range forks[h.session] {
			if f.seq >= seq {
				holders = append(holders, forked{f.session, min(f.seq, h.seq)})
			}
		}
	}
	if len(goes) == 0 {
		return nil
	}
	return p.copies(ctx)
}

// tell notes which of the events that go a fork shares: it gets a redacted event
// that names them, so that whoever goes along with it learns of that.
func (p *redactionPlan) tell(f forked, goes []int64) {
	n := 0
	for n < len(goes) && goes[n] <= f.seq {
		n++
	}
	if n == 0 {
		return
	}
	p.shared[f.session] = goes[:n]
	if p.seqs[f.session] == nil {
		p.told = append(p.told, f.session)
	}
}

// later takes in what is left of the blobs that earlier redactions of one
// session named, and, if this one erases anything, the later snapshot bodies;
// it notes the compactions.
func (p *redactionPlan) later(ctx context.Context, session string, seq int64, erases bool) error {
	for e, err := range p.log.store.Read(ctx, session, Span{From: seq + 1}) {
		if err != nil {
			return err
		}
		switch name := e.Type.Name(); {
		case name == Redacted:
			err = p.left(ctx, &e)
		case !erases || e.Redacted() || p.picked[eventKey{session, e.Seq}]:
		case name == CompactionTriggered:
			p.report.Untouched = append(p.report.Untouched, EventRef{session, e.Seq, e.Type})
		case name == ProjectionSnapshotted:
			err = p.snapshot(ctx, &e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// left takes in the blobs that a redaction named and did not come to remove.
// Those that are gone may have been removed without that being durable.
func (p *redactionPlan) left(ctx context.Context, e *Event) error {
	note, _, err := e.RedactionNote()
	if err != nil {
		return err
	}
	if !slices.Contains(p.earlier, e.SessionID) {
		p.earlier = append(p.earlier, e.SessionID)
	}
	for _, d := range note.Blobs {
		if err := p.log.checkBlob(ctx, d); err == nil {
			p.blobs[d] = true
		} else if errors.Is(err, ErrBlobNotFound) {
			p.gone = append(p.gone, d)
		} else {
			return err
		}
	}
	return nil
}

// snapshot takes in a snapshot that has a body, or may have one: it cannot be
// read.
func (p *redactionPlan) snapshot(ctx context.Context, e *Event) error {
	stored := *e
	err := p.log.fetch(ctx, e)
	if err != nil && !errors.Is(err, ErrBlobNotFound) && !errors.Is(err, ErrCorrupt) {
		return err
	}
	snapshot, _, unread := e.Snapshot()
	if err != nil || unread != nil || len(snapshot.State) > 0 || snapshot.Body.Blob != "" {
		p.erase(&stored)
	}
	return nil
}

// tails notes what stands behind the last append of the sessions to rewrite.
func (p *redactionPlan) tails(ctx context.Context) error {
	lister, ok := As[TailLister](p.log.store)
	if !ok {
		return nil
	}
	for _, session := range p.order {
		for t, err := range lister.TornTails(ctx, session) {
			if err != nil {
				return err
			}
			p.report.TornTails = append(p.report.TornTails, t)
		}
	}
	return nil
}

// keepShared leaves in report.Blobs those that no other event of the store
// needs.
func (p *redactionPlan) keepShared(ctx context.Context) error {
	if len(p.blobs) == 0 {
		return nil
	}
	// A torn tail keeps no blob: its events were not acknowledged, or are damaged,
	// and what they would keep is the very content that is to be erased.
	goes := func(session string, seq int64) bool { return seq == tailSeq || p.picked[eventKey{session, seq}] }
	for d, err := range p.log.neededBlobs(ctx, goes) {
		if err != nil {
			return err
		}
		delete(p.blobs, d)
	}
	for _, d := range slices.Sorted(maps.Keys(p.blobs)) {
		size, err := p.log.blobSize(ctx, d)
		if err != nil {
			return err
		}
		p.report.Blobs = append(p.report.Blobs, BlobRef{d, size})
	}
	return nil
}

// note is the payload of the redacted event of a session.
func (p *redactionPlan) note(session, reason string) RedactionNote {
	n := RedactionNote{Seqs: slices.Concat(p.shared[session], p.seqs[session]), Reason: reason}
	if len(p.seqs[session]) > 0 {
		n.Blobs = p.erasedBlobs()
	}
	return n
}

func (p *redactionPlan) erasedBlobs() []Digest {
	var digests []Digest
	for _, b := range p.report.Blobs {
		digests = append(digests, b.Blob)
	}
	return digests
}

// settle finishes what earlier redactions left in the store's files, if there
// were any.
func (p *redactionPlan) settle(ctx context.Context) error {
	sweeper, ok := As[Sweeper](p.log.store)
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

// forked is a fork and the last seq that it shares.
type forked struct {
	session string
	seq     int64
}

// forks lists all forks of the store by their parents, and the sessions of which
// cannot be told whether they are forks.
func (l *Log) forks(ctx context.Context) (forks map[string][]forked, unread []string, err error) {
	forks = map[string][]forked{}
	for info, err := range l.Sessions(ctx) {
		switch {
		case err != nil:
			return nil, nil, err
		case info.First.Seq == 0:
			unread = append(unread, info.ID)
			continue
		case info.First.Type.Name() != SessionForked:
			continue
		}
		f, _, err := info.First.Fork()
		if err != nil {
			return nil, nil, err
		}
		forks[f.Parent] = append(forks[f.Parent], forked{info.ID, f.Seq})
	}
	return forks, unread, nil
}

// forksSharing lists the direct forks of session whose prefix holds seq.
func (l *Log) forksSharing(ctx context.Context, session string, seq int64) (sharing []string, err error) {
	forks, _, err := l.forks(ctx)
	for _, f := range forks[session] {
		if f.seq >= seq {
			sharing = append(sharing, f.session)
		}
	}
	return sharing, err
}
