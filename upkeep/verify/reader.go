package verify

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
)

// reader reads the storage of a session and checks it: the events by themselves in
// batches, which other goroutines may inspect, and then all pieces in order.
type reader struct {
	*Verifier
	*checker
	torn    *eventlog.Defect // the bytes after the last complete append
	whole   bool             // they end like a finished write
	cause   error            // why readers do not see them
	tornAt  int64            // their offset
	queue   []*batch
	counted int64
}

// batch is a run of pieces and their inspections.
type batch struct {
	buf     []byte // of the events
	pieces  []eventlog.Fragment
	results []inspection
	err     error
	bytes   int64
	done    chan struct{} // closed when the pieces were inspected
}

// ragged reports that there may be bytes after the last complete append.
func (r *reader) ragged() bool {
	return len(r.report.Defects) > 0 || r.damaged || r.last.More > 0 || r.torn != nil
}

func (r *reader) run(ctx context.Context) error {
	err := r.readAll(ctx)
	for _, b := range r.queue {
		<-b.done
	}
	if errors.Is(err, eventlog.ErrNotFound) && r.torn != nil && r.report.Events == 0 {
		err = nil
	}
	if err != nil {
		return err
	}
	return r.end(ctx)
}

// findTail looks for a torn tail.
func (r *reader) findTail(ctx context.Context) error {
	for t, err := range tornTails(ctx, r.log, r.report.Session) {
		if err != nil {
			return err
		}
		r.torn = &eventlog.Defect{Session: r.report.Session, Path: t.Path, Offset: t.Offset, Rule: RuleTorn}
		r.whole, r.tornAt = t.Whole, t.Offset
		if t.Whole {
			r.torn.Detail = fmt.Sprintf("damage in the last append, or a hole before it: readers do not see %d bytes; the next append saves and truncates them", t.Bytes)
		} else {
			r.torn.Detail = fmt.Sprintf("an unfinished write left %d bytes; the next append saves and truncates them", t.Bytes)
		}
	}
	return nil
}

const batchBytes, batchPieces = 256 << 10, 256

// spareBatches are empty.
var spareBatches = sync.Pool{New: func() any {
	return &batch{pieces: make([]eventlog.Fragment, 0, batchPieces), results: make([]inspection, 0, batchPieces)}
}}

func newBatch() *batch { return spareBatches.Get().(*batch) }

// add adds a copy of a piece.
func (b *batch) add(f eventlog.Fragment) {
	f.Event, b.buf = f.Event.CloneTo(b.buf)
	b.pieces = append(b.pieces, f)
	b.bytes += f.Bytes
}

// release makes an inspected batch a spare one. It drops a large buffer.
func (b *batch) release() {
	if cap(b.buf) > 4*batchBytes {
		b.buf = nil
	}
	clear(b.pieces)
	clear(b.results)
	*b = batch{buf: b.buf[:0], pieces: b.pieces[:0], results: b.results[:0]}
	spareBatches.Put(b)
}

// readAll reads and checks all pieces.
func (r *reader) readAll(ctx context.Context) error {
	b := newBatch()
	for f, err := range fragments(ctx, r.log.Store(), r.report.Session) {
		if err != nil {
			return errors.Join(r.checkBatches(ctx, 0), err)
		}
		b.add(f)
		if b.bytes < batchBytes && len(b.pieces) < batchPieces {
			continue
		}
		if err := r.submit(ctx, b); err != nil {
			return err
		}
		b = newBatch()
	}
	if err := r.submit(ctx, b); err != nil {
		return err
	}
	return r.checkBatches(ctx, 0)
}

// fragments are the pieces of a session's storage. A store that cannot read past
// damage gives those up to the first damage.
func fragments(ctx context.Context, s eventlog.Store, session string) iter.Seq2[eventlog.Fragment, error] {
	if salvager, ok := eventlog.As[eventlog.Salvager](s); ok {
		return salvager.Fragments(ctx, session)
	}
	return func(yield func(eventlog.Fragment, error) bool) {
		for e, err := range s.Read(ctx, session, eventlog.Span{Transient: true}) {
			f := eventlog.Fragment{Event: e, Offset: -1, Bytes: int64(len(e.Line())) + 1}
			var corrupt *eventlog.CorruptError
			switch {
			case errors.As(err, &corrupt):
				f = eventlog.Fragment{Path: corrupt.Path, Offset: corrupt.Offset, Seq: corrupt.Seq, Err: corrupt.Cause}
				err = nil
			case errors.Is(err, event.ErrVersion):
				f = eventlog.Fragment{Offset: -1, Err: err}
				err = nil
			}
			if !yield(f, err) {
				return
			}
		}
	}
}

// submit has a batch inspected, by an idle worker if there is one.
func (r *reader) submit(ctx context.Context, b *batch) error {
	const ahead = 4 // batches that may wait for an earlier one
	b.done = make(chan struct{})
	select {
	case r.slots <- struct{}{}:
		go func() {
			r.inspect(ctx, r.Verifier.inspector(), b)
			<-r.slots
		}()
	default:
		r.inspect(ctx, r.checker.inspector, b)
	}
	r.queue = append(r.queue, b)
	return r.checkBatches(ctx, ahead)
}

func (r *reader) inspect(ctx context.Context, by *inspector, b *batch) {
	defer close(b.done)
	for i := range b.pieces {
		if b.err = ctx.Err(); b.err != nil {
			return
		}
		b.results = append(b.results, inspection{})
		f := &b.pieces[i]
		if f.Err != nil || f.Event.SessionID != r.report.Session || f.Offset >= r.tornAt {
			continue
		}
		if b.err = by.inspect(ctx, &f.Event, &b.results[i]); b.err != nil {
			return
		}
	}
}

// checkBatches checks inspected batches in order. It waits for inspections while more than
// ahead are left.
func (r *reader) checkBatches(ctx context.Context, ahead int) error {
	for len(r.queue) > 0 {
		b := r.queue[0]
		if len(r.queue) > ahead {
			<-b.done
		}
		select {
		case <-b.done:
		default:
			return nil
		}
		if b.err != nil {
			return b.err
		}
		for i := range b.pieces {
			if err := r.check(ctx, &b.pieces[i], &b.results[i]); err != nil {
				return err
			}
		}
		r.counted += b.bytes
		r.bytes.Add(b.bytes)
		r.queue = r.queue[1:]
		b.release()
	}
	return nil
}

// check checks an inspected piece. Pieces after the last complete append are
// reported together.
func (r *reader) check(ctx context.Context, f *eventlog.Fragment, n *inspection) error {
	switch {
	case f.Offset < r.tornAt && !f.Unended:
		return r.piece(ctx, f, n)
	case r.torn == nil:
		r.torn = &eventlog.Defect{Session: r.report.Session, Path: f.Path, Offset: f.Offset, Rule: RuleTorn,
			Detail: fmt.Sprintf("an unfinished write left %d bytes", f.Bytes)}
	case r.whole && r.cause == nil && f.Err != nil:
		r.cause = f.Err
		r.torn.Detail += fmt.Sprintf("; at byte %d: %v", f.Offset, f.Err)
	}
	return nil
}

// end makes the checks at the end of the storage.
func (r *reader) end(ctx context.Context) error {
	if err := errors.Join(r.compare(ctx), r.compareIndex(ctx)); err != nil {
		return err
	}
	if err := r.namedSince(ctx); err != nil {
		return err
	}
	r.finish()
	switch {
	case r.torn == nil:
	case r.whole:
		r.report.addDefect(*r.torn)
	default:
		r.report.addNote(*r.torn)
	}
	return nil
}

// compare makes sure that readers see the events that were checked, at both ends.
func (r *reader) compare(ctx context.Context) error {
	for _, span := range []eventlog.Span{{Limit: 1}, {Backward: true, Limit: 1}} {
		if len(r.report.Defects) > 0 {
			break
		}
		for e, err := range r.log.Store().Read(ctx, r.report.Session, span) {
			if err := r.seen(&e, err, span.Backward); err != nil {
				return err
			}
		}
	}
	return nil
}

// compareIndex reports the snapshots and the head_moved events that the store's index of them
// lacks. Nothing is reported for a store without an index.
func (r *reader) compareIndex(ctx context.Context) error {
	left := r.indexed
	if len(left) == 0 || len(r.report.Defects) > 0 {
		return nil
	}
	reportAfter := func(seq int64) {
		for ; len(left) > 0 && left[len(left)-1] > seq; left = left[:len(left)-1] {
			r.defect(left[len(left)-1], ruleIndex, "the index of snapshots and head_moved events lacks it: copy the store with logtool store convert")
		}
	}
	span := eventlog.Span{To: r.last.Seq, Backward: true, Snapshots: true, Transient: true}
	for e, err := range r.log.Store().Read(ctx, r.report.Session, span) {
		if err != nil {
			return r.seen(&e, err, false)
		}
		if !engine.IsIndexed(e.Type) {
			return nil // the store has no index
		}
		reportAfter(e.Seq)
		left = left[:max(0, len(left)-1)]
	}
	reportAfter(0)
	return nil
}

// seen checks the first or the newest event that readers see.
func (r *reader) seen(e *event.Event, err error, newest bool) error {
	var corrupt *eventlog.CorruptError
	switch {
	case errors.As(err, &corrupt):
		r.at.Path, r.at.Offset = corrupt.Path, corrupt.Offset
		r.defect(corrupt.Seq, ruleLine, corrupt.Cause.Error())
	case errors.Is(err, event.ErrVersion):
		r.defect(0, RuleVersion, err.Error())
	case errors.Is(err, eventlog.ErrNotFound) && r.torn != nil && r.report.Events == 0:
	case err != nil:
		return err
	case newest && (e.Seq < r.last.Seq || e.Seq == r.last.Seq && e.Hash() != event.Hash(r.last.Hash)):
		r.defect(r.last.Seq, ruleHead, fmt.Sprintf("readers see events up to %v only", e.Head()))
	}
	return nil
}

// namedSince notes the redacted events that were appended while the session was
// read, if one of its events was redacted meanwhile.
func (r *reader) namedSince(ctx context.Context) error {
	if len(r.unnamed()) == 0 || r.damaged {
		return nil
	}
	for e, err := range r.log.Store().Read(ctx, r.report.Session, eventlog.Span{From: r.last.Seq + 1}) {
		if err != nil {
			return err
		}
		if note, ok, err := event.Decode[event.RedactionNote](&e); ok && err == nil {
			for _, seq := range note.Seqs {
				r.named[seq] = true
			}
		}
	}
	return nil
}
