package eventlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

const tornRule = "torn"

// verifyReader reads what a session's storage holds and has it checked: events
// by themselves in batches, which others may take, and all in order.
type verifyReader struct {
	*Verifier
	*verifier
	torn    *Defect // what stands behind the last complete append
	whole   bool    // it ends like a finished write
	cause   error   // why it is not shown
	tornAt  int64   // its offset
	queue   []*verifyBatch
	counted int64
	spare   []*verifyBatch
}

// verifyBatch is a run of pieces, and what inspecting them told.
type verifyBatch struct {
	pieces  []Fragment
	results []inspection
	err     error
	bytes   int64
	done    chan struct{} // closed when it was inspected
}

// ragged reports that something stands behind the last complete append, or may.
func (r *verifyReader) ragged() bool {
	return len(r.report.Defects) > 0 || r.damaged || r.more > 0 || r.torn != nil
}

func (r *verifyReader) run(ctx context.Context) error {
	err := r.pieces(ctx)
	for _, b := range r.queue {
		<-b.done
	}
	if errors.Is(err, ErrNotFound) && r.torn != nil && r.report.Events == 0 {
		err = nil
	}
	if err != nil {
		return err
	}
	return r.end(ctx)
}

// tail looks at what stands behind the last complete append.
func (r *verifyReader) tail(ctx context.Context) error {
	lister, ok := As[TailLister](r.Verifier.log.store)
	if !ok {
		return nil
	}
	for t, err := range lister.TornTails(ctx, r.report.Session) {
		if err != nil {
			return err
		}
		r.torn = &Defect{r.report.Session, 0, t.Path, t.Offset, tornRule, ""}
		r.whole, r.tornAt = t.Whole, t.Offset
		if t.Whole {
			r.torn.Detail = fmt.Sprintf("damage in the last append, or a hole before it: %d bytes are not shown; the next append saves them and cuts them off", t.Bytes)
		} else {
			r.torn.Detail = fmt.Sprintf("an unfinished write left %d bytes; the next append saves them and cuts them off", t.Bytes)
		}
	}
	return nil
}

const batchBytes, batchPieces = 256 << 10, 256

// batch is an empty one.
func (r *verifyReader) batch() *verifyBatch {
	n := len(r.spare)
	if n == 0 {
		return &verifyBatch{pieces: make([]Fragment, 0, batchPieces), results: make([]inspection, 0, batchPieces)}
	}
	b := r.spare[n-1]
	r.spare = r.spare[:n-1]
	clear(b.pieces)
	b.pieces, b.results, b.bytes = b.pieces[:0], b.results[:0], 0
	return b
}

// pieces reads everything and checks it.
func (r *verifyReader) pieces(ctx context.Context) error {
	b := r.batch()
	for f, err := range fragmentsOf(ctx, r.Verifier.log.store, r.report.Session) {
		if err != nil {
			return errors.Join(r.settle(ctx, 0), err)
		}
		b.pieces = append(b.pieces, f)
		b.bytes += f.Bytes
		if b.bytes < batchBytes && len(b.pieces) < batchPieces {
			continue
		}
		if err := r.pass(ctx, b); err != nil {
			return err
		}
		b = r.batch()
	}
	if err := r.pass(ctx, b); err != nil {
		return err
	}
	return r.settle(ctx, 0)
}

// fragmentsOf are the pieces of a session's storage; of a store that cannot
// read behind damage, those up to the first.
func fragmentsOf(ctx context.Context, s Store, session string) iter.Seq2[Fragment, error] {
	if salvager, ok := As[Salvager](s); ok {
		return salvager.Fragments(ctx, session)
	}
	return func(yield func(Fragment, error) bool) {
		for e, err := range s.Read(ctx, session, Span{}) {
			f := Fragment{Event: e, Offset: -1, Bytes: int64(len(e.Line())) + 1}
			var corrupt *CorruptError
			switch {
			case errors.As(err, &corrupt):
				f = Fragment{Path: corrupt.Path, Offset: corrupt.Offset, Seq: corrupt.Seq, Err: corrupt.Cause}
				err = nil
			case errors.Is(err, ErrVersion):
				f = Fragment{Offset: -1, Err: err}
				err = nil
			}
			if !yield(f, err) {
				return
			}
		}
	}
}

// pass has a batch inspected, by somebody idle if there is one.
func (r *verifyReader) pass(ctx context.Context, b *verifyBatch) error {
	const most = 4 // batches that wait for an earlier one
	b.done = make(chan struct{})
	select {
	case r.seats <- struct{}{}:
		go func() {
			r.inspect(ctx, &inspector{log: r.Verifier.log, blobs: &r.blobs}, b)
			<-r.seats
		}()
	default:
		r.inspect(ctx, r.inspector, b)
	}
	r.queue = append(r.queue, b)
	return r.settle(ctx, most)
}

func (r *verifyReader) inspect(ctx context.Context, by *inspector, b *verifyBatch) {
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

// settle takes what was inspected in order, until no more than so many batches
// wait for it.
func (r *verifyReader) settle(ctx context.Context, most int) error {
	for len(r.queue) > most {
		b := r.queue[0]
		<-b.done
		if b.err != nil {
			return b.err
		}
		for i := range b.pieces {
			if err := r.piece(ctx, &b.pieces[i], &b.results[i]); err != nil {
				return err
			}
		}
		r.counted += b.bytes
		r.bytes.Add(b.bytes)
		r.queue = r.queue[1:]
		r.spare = append(r.spare, b)
	}
	return nil
}

// piece takes one that was inspected. What stands behind the last complete
// append is told as a whole.
func (r *verifyReader) piece(ctx context.Context, f *Fragment, n *inspection) error {
	switch {
	case f.Offset < r.tornAt && !f.Unended:
		return r.take(ctx, f, n)
	case r.torn == nil:
		r.torn = &Defect{r.report.Session, 0, f.Path, f.Offset, tornRule, fmt.Sprintf("an unfinished write left %d bytes", f.Bytes)}
	case r.whole && r.cause == nil && f.Err != nil:
		r.cause = f.Err
		r.torn.Detail += fmt.Sprintf("; at byte %d: %v", f.Offset, f.Err)
	}
	return nil
}

// end checks what only the end shows.
func (r *verifyReader) end(ctx context.Context) error {
	if err := r.compare(ctx); err != nil {
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

// compare makes sure that readers are shown what was checked, at both ends.
func (r *verifyReader) compare(ctx context.Context) error {
	for _, span := range []Span{{Limit: 1}, {Backward: true, Limit: 1}} {
		if len(r.report.Defects) > 0 {
			break
		}
		for e, err := range r.Verifier.log.store.Read(ctx, r.report.Session, span) {
			if err := r.shown(&e, err, span.Backward); err != nil {
				return err
			}
		}
	}
	return nil
}

// shown takes the first or the newest event that readers are shown.
func (r *verifyReader) shown(e *Event, err error, newest bool) error {
	var corrupt *CorruptError
	switch {
	case errors.As(err, &corrupt):
		r.at.Path, r.at.Offset = corrupt.Path, corrupt.Offset
		r.defect(corrupt.Seq, "line", corrupt.Cause.Error())
	case errors.Is(err, ErrVersion):
		r.defect(0, "version", err.Error())
	case errors.Is(err, ErrNotFound) && r.torn != nil && r.report.Events == 0:
	case err != nil:
		return err
	case newest && (e.Seq < r.last.Seq || e.Seq == r.last.Seq && e.Hash() != r.last.Hash):
		r.defect(r.last.Seq, "head", fmt.Sprintf("readers are shown events up to %v only", e.Head()))
	}
	return nil
}

// namedSince takes in the redacted events that were appended while the session
// was read, if one of its events was redacted meanwhile.
func (r *verifyReader) namedSince(ctx context.Context) error {
	if len(r.unnamed()) == 0 || r.damaged {
		return nil
	}
	for e, err := range r.Verifier.log.store.Read(ctx, r.report.Session, Span{From: r.last.Seq + 1}) {
		if err != nil {
			return err
		}
		if note, ok, err := e.RedactionNote(); ok && err == nil {
			for _, seq := range note.Seqs {
				r.named[seq] = true
			}
		}
	}
	return nil
}
