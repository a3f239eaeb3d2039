package eventlog

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/line"
)

// Adopted reports an adoption.
type Adopted struct {
	Session string
	// Read is the number of events in the stream, Stored how many of them were new.
	Read, Stored int64
	Head         event.Head
}

// Errors inside a CorruptError of an adoption.
var (
	errFirst   = errors.New("the first event has neither seq 1 nor is it a session_forked")
	errNoBlob  = errors.New("a blob that the event needs is missing")
	errSpilled = errors.New("an event of this type is never spilled")
)

// Adopt stores finished events of a session as they are: ids, seqs, times and
// hashes stay. Their crc was checked when they were parsed. Adopt checks seqs, the
// chain, the JSON, the rules of payloads, and that blobs and a fork's parent exist,
// before it stores anything. Events that the session has already are skipped; a
// session with another history is a *ConflictError. events is iterated twice.
//
// Data over the log's threshold is spilled, which changes no hash.
func (l *Log) Adopt(ctx context.Context, session string, events iter.Seq2[event.Event, error]) (Adopted, error) {
	adopted, err := l.adopt(ctx, session, events, false)
	if err != nil {
		return Adopted{}, fmt.Errorf("adopt: %w", ofSession(session, err))
	}
	return adopted, nil
}

// adopt is Adopt. If salvaged is true, blobs may be missing, and a fork's parent
// damaged. Errors do not name the session.
func (l *Log) adopt(ctx context.Context, session string, events iter.Seq2[event.Event, error], salvaged bool) (Adopted, error) {
	if err := l.readable(ctx, session); err != nil {
		return Adopted{}, err
	}
	if events == nil {
		return Adopted{}, fmt.Errorf("%w: no events", event.ErrInvalid)
	}
	ctx, unlock, err := l.lockStore(ctx, false)
	if err != nil {
		return Adopted{}, err
	}
	defer unlock()
	a := adoption{log: l, session: session, events: events, salvaged: salvaged}
	if err := a.verify(ctx); err != nil {
		return Adopted{}, err
	}
	if err := a.store(ctx); err != nil {
		return Adopted{}, err
	}
	return Adopted{Session: session, Read: a.read, Stored: a.stored, Head: a.head}, nil
}

type adoption struct {
	log      *Log
	session  string
	events   iter.Seq2[event.Event, error]
	salvaged bool
	read     int64
	stored   int64
	head     event.Head
	existing event.Head // the session's head before
}

// verify checks the whole stream and stores nothing.
func (a *adoption) verify(ctx context.Context) error {
	existing, err := a.log.Head(ctx, a.session)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	a.existing = existing
	var s line.Sequence
	for e, err := range a.events {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = a.check(ctx, &s, &e)
		}
		if err != nil {
			return err
		}
		a.read++
	}
	if err := s.End(); err != nil {
		return damaged(a.session, s.Seq, err)
	}
	a.head = event.Head{Seq: s.Seq, Hash: event.Hash(s.Hash)}
	return a.compareShorter(ctx, a.head)
}

// check checks the next event of the stream.
func (a *adoption) check(ctx context.Context, s *line.Sequence, e *event.Event) error {
	if s.Seq == 0 {
		if err := a.begin(ctx, s, e); err != nil {
			return err
		}
	}
	if e.SessionID != a.session {
		return damaged(a.session, s.Seq+1, event.ErrOtherSession)
	}
	var l line.Line
	if err := l.Parse(e.Line(), line.Strings{Session: a.session}); err != nil {
		return damaged(a.session, s.Seq+1, err)
	}
	if err := s.Next(l.Seq, l.More, l.Link(), l.Hash()); err != nil {
		return damaged(a.session, s.Seq+1, err)
	}
	if err := a.checkContent(ctx, &l, e); err != nil {
		return err
	}
	if e.Seq == a.existing.Seq && e.Hash() != a.existing.Hash {
		return &ConflictError{Session: a.session, Expected: e.Head(), Actual: a.existing}
	}
	return nil
}

// begin checks the first event of the stream against its predecessor.
func (a *adoption) begin(ctx context.Context, s *line.Sequence, first *event.Event) error {
	if first.Type != event.SessionForked {
		if first.Seq > 1 {
			return damaged(a.session, first.Seq, errFirst)
		}
		return nil
	}
	f, _, err := event.Decode[event.Fork](first)
	if err != nil {
		return err
	}
	if f.Seq != first.Seq-1 {
		return damaged(a.session, first.Seq, errFirst)
	}
	s.Seq, s.Hash = f.Seq, line.Hash(f.Hash)
	if a.salvaged {
		return nil
	}
	if err := a.log.checkFork(ctx, a.session, &f); err != nil {
		return err
	}
	return a.log.sync(ctx, f.Parent)
}

// compareShorter makes sure that a stream that ends before the session does is its
// beginning.
func (a *adoption) compareShorter(ctx context.Context, last event.Head) error {
	if last.Seq == 0 || last.Seq >= a.existing.Seq {
		return nil
	}
	for e, err := range a.log.store.Read(ctx, a.session, Span{From: last.Seq, To: last.Seq}) {
		if err != nil {
			return err
		}
		if e.Head() == last {
			a.head = a.existing
			return nil
		}
	}
	return &ConflictError{Session: a.session, Expected: last, Actual: a.existing}
}

// checkContent checks what the chain does not: the JSON of the line, that blobs
// exist, and the rules of payloads.
func (a *adoption) checkContent(ctx context.Context, l *line.Line, e *event.Event) error {
	if _, _, spilled := e.Spilled(); spilled && !e.Type.Erasable() {
		return damaged(a.session, e.Seq, errSpilled)
	}
	if a.salvaged {
		return nil
	}
	for _, d := range e.Blobs() {
		if err := a.log.checkBlob(ctx, d); err != nil {
			return damaged(a.session, e.Seq, fmt.Errorf("%w: %w", errNoBlob, err))
		}
	}
	err := l.CheckJSON()
	if err == nil && !e.Redacted() {
		if err := a.log.fetch(ctx, e); err != nil {
			return err
		}
		if err = line.CheckData(e.Data); err == nil {
			_, err = e.Check()
		}
	}
	if err != nil && !errors.Is(err, event.ErrVersion) {
		return damaged(a.session, e.Seq, err)
	}
	return nil
}

// store writes the events that the session does not have yet, in whole appends.
func (a *adoption) store(ctx context.Context) error {
	if a.read == 0 {
		return nil
	}
	if a.head.Seq <= a.existing.Seq {
		return a.log.sync(ctx, a.session)
	}
	return a.log.exclusively(ctx, a.session, func(ctx context.Context, st *sessionState) error {
		defer st.forget()
		defer a.log.wakeWatchers(a.session)
		b := batcher{adoption: a, head: a.existing}
		for e, err := range a.events {
			if err != nil {
				return err
			}
			if e.Seq <= a.existing.Seq {
				continue
			}
			if err := b.add(ctx, e); err != nil {
				return err
			}
		}
		return b.flush(ctx)
	})
}

// batcher gathers whole appends into writes within the bound of one append.
type batcher struct {
	*adoption
	head  event.Head
	ready []event.Event // whole appends
	open  []event.Event // the append being gathered
	size  int           // bytes of the lines of ready
}

func (b *batcher) add(ctx context.Context, e event.Event) error {
	if b.log.overThreshold(&e) {
		if err := b.log.respill(ctx, &e); err != nil {
			return err
		}
	}
	if b.open = append(b.open, e); e.More() > 0 {
		return nil
	}
	size, err := b.fit(ctx)
	if err != nil {
		return err
	}
	if b.size+size > maxAppend {
		if err := b.flush(ctx); err != nil {
			return err
		}
	}
	b.ready, b.size = append(b.ready, b.open...), b.size+size
	b.open = b.open[:0]
	return nil
}

// fit spills data of the gathered append until it is within the bound, as Append
// did before the data was inlined, and returns its size.
func (b *batcher) fit(ctx context.Context) (size int, err error) {
	for i := range b.open {
		size += len(b.open[i].Line()) + 1
	}
	for size > maxAppend {
		largest := b.largestOpen()
		if largest == nil {
			return 0, fmt.Errorf("%w: the append's lines take %d bytes, at most %d", event.ErrInvalidSize, size, maxAppend)
		}
		size -= len(largest.Line())
		if err := b.log.respill(ctx, largest); err != nil {
			return 0, err
		}
		size += len(largest.Line())
	}
	return size, nil
}

func (b *batcher) largestOpen() (largest *event.Event) {
	for i := range b.open {
		e := &b.open[i]
		_, _, spilled := e.Spilled()
		if spilled || len(e.Data) <= minSpill || !e.Type.Erasable() {
			continue
		}
		if largest == nil || len(e.Data) > len(largest.Data) {
			largest = e
		}
	}
	return largest
}

func (b *batcher) flush(ctx context.Context) error {
	if len(b.ready) == 0 {
		return nil
	}
	err := b.log.store.Append(ctx, b.session, b.head, b.ready, false)
	var conflict *ConflictError
	if errors.As(err, &conflict) && conflict.Cut != nil && conflict.Actual == b.head {
		err = b.forgetCut(ctx)
	}
	if err != nil {
		return err
	}
	b.head = b.ready[len(b.ready)-1].Head()
	b.stored += int64(len(b.ready))
	b.ready, b.size = b.ready[:0], 0
	return nil
}

// forgetCut appends after a torn tail was cut, such as one that an interrupted
// adoption left.
func (b *batcher) forgetCut(ctx context.Context) error {
	tails, ok := As[TailKeeper](b.log.store)
	if !ok {
		return fmt.Errorf("settle a cut: %w", ErrUnsupported)
	}
	if err := tails.ForgetCut(ctx, b.session, b.head); err != nil {
		return err
	}
	return b.log.store.Append(ctx, b.session, b.head, b.ready, false)
}

// respill moves the data of a stored line into a blob. No hash changes.
func (l *Log) respill(ctx context.Context, e *event.Event) error {
	ref, err := l.spillData(ctx, e.Data)
	if err != nil {
		return err
	}
	var stored line.Line
	if err := stored.Parse(e.Line(), line.Strings{Session: e.SessionID}); err != nil {
		return err
	}
	stored.Digest, stored.Bytes = string(ref.Blob), ref.Bytes
	stored.Blobs = digestStrings(withDigest(e.Blobs(), ref.Blob))
	*e, err = event.Parse(stored.Relocate(), e.SessionID)
	return err
}
