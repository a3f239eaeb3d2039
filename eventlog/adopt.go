package eventlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Adopted reports what Adopt did with a session.
type Adopted struct {
	Session string
	// Read is how many events came, Stored how many of them were new.
	Read, Stored int64
	Head         Head
}

// Errors inside a CorruptError that Adopt and Verify give.
var (
	errChain     = errors.New("hash does not follow from the event before")
	errGap       = errors.New("seq does not follow from the event before")
	errUnended   = errors.New("the last append is incomplete")
	errCountdown = errors.New("more does not count down within the append")
	errFirst     = errors.New("the first event has neither seq 1 nor is it a session_forked")
	errBlobDue   = errors.New("a blob that the event needs is missing")
	errSpilled   = errors.New("an event of this type is never spilled")
)

// Adopt stores finished events of a session as they are: ids, seqs, times and
// hashes are kept. Every crc was checked when they were parsed; Adopt checks
// seqs, the chain, the JSON and the rules of payloads, and that blobs and a
// fork's parent are there, before it stores anything. Events that the session
// has already are passed over; a session with another history is a
// *ConflictError. events is iterated twice.
//
// Inlined data over the log's threshold is spilled, which changes no hash.
func (l *Log) Adopt(ctx context.Context, session string, events iter.Seq2[Event, error]) (Adopted, error) {
	adopted, err := l.adopt(ctx, session, events)
	if err != nil {
		return Adopted{}, fmt.Errorf("adopt: %w", ofSession(session, err))
	}
	return adopted, nil
}

// adopt is Adopt; its errors do not name the session.
func (l *Log) adopt(ctx context.Context, session string, events iter.Seq2[Event, error]) (Adopted, error) {
	if err := l.usable(ctx); err != nil {
		return Adopted{}, err
	}
	if err := CheckSessionID(session); err != nil {
		return Adopted{}, err
	}
	unlock, err := l.lockStore(ctx, false)
	if err != nil {
		return Adopted{}, err
	}
	defer unlock()
	a := adoption{log: l, session: session, events: events}
	if err := a.verify(ctx); err != nil {
		return Adopted{}, err
	}
	if err := a.store(ctx); err != nil {
		return Adopted{}, err
	}
	return Adopted{Session: session, Read: a.read, Stored: a.stored, Head: a.head}, nil
}

// ofSession names the session in err, unless err does.
func ofSession(session string, err error) error {
	var conflict *ConflictError
	var corrupt *CorruptError
	if errors.As(err, &conflict) && conflict.Session == session ||
		errors.As(err, &corrupt) && corrupt.Path == "" && corrupt.Session == session {
		return err
	}
	return fmt.Errorf("session %q: %w", session, err)
}

type adoption struct {
	log      *Log
	session  string
	events   iter.Seq2[Event, error]
	read     int64
	stored   int64
	head     Head
	existing Head // the session's head before
	// lax adopts what a repair salvaged: blobs may be missing, and a fork's
	// parent be damaged.
	lax bool
}

// verify checks the whole stream and stores nothing.
func (a *adoption) verify(ctx context.Context) error {
	existing, err := a.log.Head(ctx, a.session)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	a.existing = existing
	c := continuity{session: a.session}
	for e, err := range a.events {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if c.last == (Head{}) {
			if err := a.start(ctx, &c, &e); err != nil {
				return err
			}
		}
		if err := c.next(&e); err != nil {
			return err
		}
		if err := a.checkContent(ctx, &e); err != nil {
			return err
		}
		if e.Seq == existing.Seq && e.Hash() != existing.Hash {
			return &ConflictError{Session: a.session, Expected: e.Head(), Actual: existing}
		}
		a.read++
	}
	if err := c.end(); err != nil {
		return err
	}
	a.head = c.last
	return a.compareShorter(ctx, c.last)
}

// start checks the first event of the stream against what it follows.
func (a *adoption) start(ctx context.Context, c *continuity, first *Event) error {
	if first.Seq > 1 && first.Type != SessionForked {
		return &CorruptError{Session: a.session, Offset: -1, Seq: first.Seq, Cause: errFirst}
	}
	if first.Type != SessionForked {
		return nil
	}
	f, _, err := first.Fork()
	if err != nil {
		return err
	}
	if f.Seq != first.Seq-1 {
		return &CorruptError{Session: a.session, Offset: -1, Seq: first.Seq, Cause: errFirst}
	}
	if c.last = (Head{Seq: f.Seq, Hash: f.Hash}); a.lax {
		return nil
	}
	if err := a.log.checkFork(ctx, a.session, &f); err != nil {
		return err
	}
	return a.log.sync(ctx, f.Parent)
}

// compareShorter makes sure that a stream that ends before the session does is
// its beginning.
func (a *adoption) compareShorter(ctx context.Context, last Head) error {
	if last.Seq == 0 || last.Seq >= a.existing.Seq {
		return nil
	}
	e, err := a.log.ownEvent(ctx, a.session, last.Seq)
	begins := errors.Is(err, ErrInvalidTree) // behind the stream's end, as a fork
	if err != nil && !begins {
		return err
	}
	if begins || e.Head() != last {
		return &ConflictError{Session: a.session, Expected: last, Actual: a.existing}
	}
	a.head = a.existing
	return nil
}

// checkContent checks what the chain does not: the form of the line's JSON, that
// blobs are there, and the rules of payloads.
func (a *adoption) checkContent(ctx context.Context, e *Event) error {
	if _, _, spilled := e.Spilled(); spilled && !e.Type.spillable() {
		return &CorruptError{Session: a.session, Offset: -1, Seq: e.Seq, Cause: errSpilled}
	}
	if a.lax {
		return nil
	}
	for _, d := range e.Blobs() {
		if err := a.log.checkBlob(ctx, d); err != nil {
			return &CorruptError{Session: a.session, Offset: -1, Seq: e.Seq, Cause: fmt.Errorf("%w: %w", errBlobDue, err)}
		}
	}
	return a.checkRules(ctx, e)
}

// checkRules checks the JSON of the line and the rules of its payload.
func (a *adoption) checkRules(ctx context.Context, e *Event) error {
	err := e.checkForm()
	if err == nil && !e.Redacted() {
		if err := a.log.fetch(ctx, e); err != nil {
			return err
		}
		if err = checkData(e.Data); err == nil {
			_, err = e.checkPayload()
		}
	}
	if err != nil && !errors.Is(err, ErrVersion) {
		return &CorruptError{Session: a.session, Offset: -1, Seq: e.Seq, Cause: err}
	}
	return nil
}

// store writes what the session does not have yet, in whole appends.
func (a *adoption) store(ctx context.Context) error {
	if a.read == 0 {
		return nil
	}
	if a.head.Seq <= a.existing.Seq {
		return a.log.sync(ctx, a.session)
	}
	return a.log.alone(ctx, a.session, func(ctx context.Context, st *state) error {
		defer st.drop()
		defer a.log.disturb(a.session)
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
	head  Head
	ready []Event // whole appends
	open  []Event // the append being gathered
	size  int     // of the lines of ready
}

func (b *batcher) add(ctx context.Context, e Event) error {
	if b.log.spills(&e) {
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

// fit brings the append that was gathered within the bound, as Append did when
// its data was not inlined yet, and returns its size.
func (b *batcher) fit(ctx context.Context) (size int, err error) {
	for i := range b.open {
		size += len(b.open[i].Line()) + 1
	}
	for size > maxAppend {
		largest := largestInline(b.open)
		if largest == nil {
			return 0, fmt.Errorf("%w: the append's lines take %d bytes, at most %d", ErrInvalidSize, size, maxAppend)
		}
		size -= len(largest.Line())
		if err := b.log.respill(ctx, largest); err != nil {
			return 0, err
		}
		size += len(largest.Line())
	}
	return size, nil
}

func (b *batcher) flush(ctx context.Context) error {
	if len(b.ready) == 0 {
		return nil
	}
	err := b.log.store.Append(ctx, b.session, b.head, b.ready, false)
	var conflict *ConflictError
	if errors.As(err, &conflict) && conflict.Cut != nil && conflict.Actual == b.head {
		err = b.withoutCut(ctx)
	}
	if err != nil {
		return err
	}
	b.head = b.ready[len(b.ready)-1].Head()
	b.stored += int64(len(b.ready))
	b.ready, b.size = b.ready[:0], 0
	return nil
}

// withoutCut appends behind a torn tail that was cut, as one that an earlier
// adoption left when it was killed.
func (b *batcher) withoutCut(ctx context.Context) error {
	forgetter, ok := As[CutForgetter](b.log.store)
	if !ok {
		return fmt.Errorf("settle a cut: %w", ErrUnsupported)
	}
	if err := forgetter.ForgetCut(ctx, b.session, b.head); err != nil {
		return err
	}
	return b.log.store.Append(ctx, b.session, b.head, b.ready, false)
}

// respill turns a line with inlined data into one that names a blob. No hash
// changes.
func (l *Log) respill(ctx context.Context, e *Event) error {
	if err := l.spill(ctx, e); err != nil {
		return err
	}
	return e.rebuild()
}

// rebuild renders e's line anew from its header, salt, hash and content.
func (e *Event) rebuild() error {
	h, salt := e.Hash(), e.salt()
	line := append([]byte(`{"crc":"00000000",`), e.header()...)
	line = append(append(line, `,"salt":"`...), salt...)
	line = append(append(append(line, `","hash":"`...), h.String()...), '"')
	line = appendBlobs(line, e.Blobs())
	line, _ = e.appendMeta(line, 0)
	line, _ = e.appendPayload(line)
	line = append(line, '}')
	finish(line)
	fresh, err := ParseLine(line, e.SessionID)
	if err != nil {
		return fmt.Errorf("rebuild line of event %d: %w", e.Seq, err)
	}
	*e = fresh
	return nil
}

// continuity checks that events follow each other: session, seq, chain, and
// the countdown within appends.
type continuity struct {
	session string
	last    Head
	more    int
}

func (c *continuity) next(e *Event) error {
	cause := error(nil)
	switch {
	case e.SessionID != c.session:
		cause = errWrongSession
	case e.Seq != c.last.Seq+1:
		cause = errGap
	case !e.chainsFrom(c.last.Hash):
		cause = errChain
	case c.more > 0 && e.More() != c.more-1:
		cause = errCountdown
	}
	if cause != nil {
		return &CorruptError{Session: c.session, Offset: -1, Seq: c.last.Seq + 1, Cause: cause}
	}
	c.last, c.more = e.Head(), e.More()
	return nil
}

func (c *continuity) end() error {
	if c.more > 0 {
		return &CorruptError{Session: c.session, Offset: -1, Seq: c.last.Seq, Cause: errUnended}
	}
	return nil
}
