package projection

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// bodyVersion is that of the form of a snapshot's body.
const bodyVersion = 1

// inlineUpTo is how many bytes of a part's state stand in the event itself; a
// longer one is a blob, so that equal parts of many snapshots are kept once and
// a reader fetches only the parts that it asks for.
const inlineUpTo = 4 << 10

// bodyUpTo is how many bytes of parts stand in the event itself; more of them
// are a blob. So the event needs none to be read: a snapshot that lost a blob can
// be passed over.
const bodyUpTo = 64 << 10

// body is the state of a snapshot: a part for each projection, by name.
type body map[string]part

// part is the state of one projection, inline or as a blob.
type part struct {
	Version int            `json:"version"`
	State   jsontext.Value `json:"state,omitzero"`
	Body    event.BlobRef  `json:"body,omitzero"`
}

// makeBody gives s the states of folds; digests are the blobs that they need.
func makeBody(ctx context.Context, log *eventlog.Log, s *event.Snapshot, folds []fold) (digests []event.Digest, err error) {
	parts := body{}
	for _, f := range folds {
		p, err := makePart(ctx, log, f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name(), err)
		}
		if !p.Body.IsZero() {
			digests = append(digests, p.Body.Blob)
		}
		parts[f.name()] = p
	}
	b, err := json.Marshal(parts, json.Deterministic(true), jsontext.PreserveRawStrings(true))
	if err != nil {
		return nil, err
	}
	s.BodyDigest = event.DigestOf(b)
	s.State, s.Body, err = aside(ctx, log, b, bodyUpTo)
	return digests, err
}

func makePart(ctx context.Context, log *eventlog.Log, f fold) (p part, err error) {
	state, err := f.encode()
	if err == nil && !state.IsValid() {
		err = fmt.Errorf("%w: %.40q is not one JSON value", ErrInvalidState, state)
	}
	if err != nil {
		return p, fmt.Errorf("encode: %w", err)
	}
	p.Version = f.version()
	p.State, p.Body, err = aside(ctx, log, state, inlineUpTo)
	return p, err
}

// aside keeps a long value as a blob, if the store can.
func aside(ctx context.Context, log *eventlog.Log, v jsontext.Value, upTo int) (jsontext.Value, event.BlobRef, error) {
	if len(v) <= upTo {
		return v, event.BlobRef{}, nil
	}
	ref, err := log.PutBlob(ctx, bytes.NewReader(v))
	switch {
	case err == nil:
		return nil, ref, nil
	case errors.Is(err, eventlog.ErrUnsupported):
		return v, ref, nil
	default:
		return nil, ref, fmt.Errorf("keep: %w", err)
	}
}

// readBody parses the body of a snapshot and checks it against its digest. read
// is how many bytes of it are not in the event.
func readBody(ctx context.Context, log *eventlog.Log, s *event.Snapshot) (b body, read int64, err error) {
	raw := s.State
	if !s.Body.IsZero() {
		if raw, err = readBlob(ctx, log, s.Body.Blob); err != nil {
			return nil, 0, err
		}
		read = int64(len(raw))
	}
	if s.BodyDigest != "" && event.DigestOf(raw) != s.BodyDigest {
		return nil, read, ErrBadDigest
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		return nil, read, fmt.Errorf("%w: %w", ErrUnreadableBody, err)
	}
	return b, read, nil
}

// checkPast makes sure that a snapshot was taken of the events that stand before
// it: mostly its own link of the hash chain tells. An event that has to be read
// is counted.
func checkPast(ctx context.Context, log *eventlog.Log, session string, e *event.Event, s *event.Snapshot, x *Explain) error {
	if s.Seq == e.Seq-1 {
		if e.Follows(s.Hash) {
			return nil
		}
		return ErrOtherPast
	}
	hash, err := hashOf(ctx, log, session, s.Seq, x)
	if errors.Is(err, eventlog.ErrCorrupt) && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", ErrOtherPast, err)
	}
	if err == nil && hash != s.Hash {
		return ErrOtherPast
	}
	return err
}

// hashOf is the hash of an event of the lineage; that of 0 is zero.
func hashOf(ctx context.Context, log *eventlog.Log, session string, seq int64, x *Explain) (h event.Hash, err error) {
	if seq == 0 {
		return h, nil
	}
	for e, err := range log.Read(ctx, session, eventlog.Between(seq, seq).Bare()) {
		if err != nil {
			return h, err
		}
		x.read(&e)
		h = e.Hash()
	}
	return h, nil
}

// serves reports whether b has a part for each fold of path scope.
func serves[F fold](b body, folds []F) bool {
	for _, f := range folds {
		if p, ok := b[f.name()]; f.scope() != event.SessionScope && (!ok || p.Version != f.version()) {
			return false
		}
	}
	return true
}

// size is how many bytes the states of all parts have.
func (b body) size() (n int64) {
	for _, p := range b {
		n += int64(len(p.State)) + p.Body.Bytes
	}
	return n
}

// restore gives f the state that b has for it. ok is false, without an error,
// when b has no part for it. read is how many bytes of blobs were read.
func (b body) restore(ctx context.Context, log *eventlog.Log, f fold) (ok bool, read int64, err error) {
	p, found := b[f.name()]
	if !found {
		return false, 0, nil
	}
	if p.Version != f.version() {
		return false, 0, fmt.Errorf("%w: version %d of %s, not %d", ErrOtherVersion, p.Version, f.name(), f.version())
	}
	state := p.State
	if !p.Body.IsZero() {
		if state, err = readBlob(ctx, log, p.Body.Blob); err != nil {
			return false, 0, err
		}
		read = int64(len(state))
	}
	if len(state) == 0 {
		return false, read, fmt.Errorf("%w: %s: no state", ErrUnreadableBody, f.name())
	}
	if err := f.decode(state); err != nil {
		return false, read, fmt.Errorf("%w: %s: %w", ErrUnreadableBody, f.name(), err)
	}
	return true, read, nil
}

// readBlob reads a blob, whose digest the log checks. Whatever keeps it from
// being read makes the snapshot unreadable, unless nothing can be read any more.
func readBlob(ctx context.Context, log *eventlog.Log, d event.Digest) (_ jsontext.Value, err error) {
	r, err := log.OpenBlob(ctx, d)
	if err == nil {
		var b []byte
		b, err = io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err == nil {
			return b, nil
		}
	}
	switch {
	case ctx.Err() != nil || errors.Is(err, eventlog.ErrClosed):
		return nil, err
	case errors.Is(err, eventlog.ErrCorrupt):
		return nil, fmt.Errorf("%w: %w", ErrBadDigest, err)
	default:
		return nil, fmt.Errorf("%w: %w", ErrUnreadableBody, err)
	}
}

// passes reports whether err says that a snapshot is to be passed over.
func passes(err error) bool {
	for _, target := range []error{ErrRedactedBody, ErrOtherVersion, ErrBadDigest, ErrUnreadableBody, ErrCopiedBody, ErrOffPath, ErrOtherPast} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
