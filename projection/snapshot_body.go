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
	"github.com/convlog/convlog/internal/engine"
)

// bodyVersion is the version of the format of a body with several parts.
const bodyVersion = 1

// partInline is the size up to which the state of a part is stored in the body. A
// longer state is a blob: snapshots with equal parts share it, and a reader fetches
// only the parts that it needs. A blob costs several syncs, so the states that do not grow
// with the session stay below, for example the newest answers of models in Usage.
const partInline = 12 << 10

// bodyInline is the size up to which a body is stored in the snapshot event. A longer
// body is a blob. The event itself needs no blob, so a snapshot without its blobs can
// be skipped.
const bodyInline = 64 << 10

// body is the states of a snapshot: a part for each projection, by name.
type body map[string]part

// part is the state of one projection, inline or as a blob.
type part struct {
	Version int            `json:"version"`
	State   jsontext.Value `json:"state,omitzero"`
	Body    event.BlobRef  `json:"body,omitzero"`
}

// makeBody sets the body of s to the states of folds. digests are the blobs of the
// parts.
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
	s.State, s.Body, err = inlineOrBlob(ctx, log, b, bodyInline)
	return digests, err
}

func makePart(ctx context.Context, log *eventlog.Log, f fold) (p part, err error) {
	state, err := f.encode()
	if err == nil && !state.IsValid() {
		err = fmt.Errorf("%w: %.40q is not one JSON value", errInvalidState, state)
	}
	if err != nil {
		return p, fmt.Errorf("encode: %w", err)
	}
	p.Version = f.version()
	p.State, p.Body, err = inlineOrBlob(ctx, log, state, partInline)
	return p, err
}

// inlineOrBlob stores a value longer than upTo as a blob, if the store has blobs, and
// returns a shorter one as is.
func inlineOrBlob(ctx context.Context, log *eventlog.Log, v jsontext.Value, upTo int) (jsontext.Value, event.BlobRef, error) {
	if len(v) <= upTo {
		return v, event.BlobRef{}, nil
	}
	ref, err := engine.Of(log).PutBlob(ctx, bytes.NewReader(v))
	switch {
	case err == nil:
		return nil, ref, nil
	case errors.Is(err, eventlog.ErrUnsupported):
		return v, ref, nil
	default:
		return nil, ref, fmt.Errorf("store as a blob: %w", err)
	}
}

// readBody reads and parses the body of a snapshot, and checks its digest. read is
// the number of bytes that it read from a blob.
func readBody(ctx context.Context, log *eventlog.Log, s *event.Snapshot) (b body, read int64, err error) {
	raw := s.State
	if !s.Body.IsZero() {
		if raw, err = readBlob(ctx, log, s.Body.Blob); err != nil {
			return nil, 0, err
		}
		read = int64(len(raw))
	}
	if s.BodyDigest != "" && event.DigestOf(raw) != s.BodyDigest {
		return nil, read, badDigest
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		return nil, read, fmt.Errorf("%w: %w", unreadable, err)
	}
	return b, read, nil
}

// checkCovered returns otherEvents if the snapshot was not made from the events
// that are stored before it. A snapshot of the event directly before it needs no
// read: its own link in the hash chain proves it. In other cases it reads the last
// covered event, and adds it to x.
func checkCovered(ctx context.Context, log *eventlog.Log, session string, e *event.Event, s *event.Snapshot, x *Explain) error {
	if s.Seq == e.Seq-1 {
		if e.Follows(s.Hash) {
			return nil
		}
		return otherEvents
	}
	hash, err := hashOf(ctx, log, session, s.Seq, x)
	if errors.Is(err, eventlog.ErrCorrupt) && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", otherEvents, err)
	}
	if err == nil && hash != s.Hash {
		return otherEvents
	}
	return err
}

// hashOf returns the hash of an event of the lineage. The hash of event 0 is zero.
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

// hasPathParts reports whether b has a part of the right version for each fold of
// path scope.
func hasPathParts[F fold](b body, folds []F) bool {
	for _, f := range folds {
		if p, ok := b[f.name()]; f.scope() != event.SessionScope && (!ok || p.Version != f.version()) {
			return false
		}
	}
	return true
}

// size is the size in bytes of the states of all parts.
func (b body) size() (n int64) {
	for _, p := range b {
		n += int64(len(p.State)) + p.Body.Bytes
	}
	return n
}

// restore sets the state of f from its part of the body. ok is false, without an
// error, if the body has no part for f. read is the number of bytes that it read from
// blobs.
func (b body) restore(ctx context.Context, log *eventlog.Log, f fold) (ok bool, read int64, err error) {
	p, found := b[f.name()]
	if !found {
		return false, 0, nil
	}
	if p.Version != f.version() {
		return false, 0, fmt.Errorf("%w: %s has version %d, want %d", otherVersion, f.name(), p.Version, f.version())
	}
	if !p.Body.IsZero() {
		read, err = withBlob(ctx, log, p.Body.Blob, func(r io.Reader) error { return named(f, f.decodeFrom(r)) })
		if err != nil {
			f.reset() // the blob may fail after the decoding
		}
		return err == nil, read, err
	}
	if len(p.State) == 0 {
		return false, 0, fmt.Errorf("%w: %s: no state", unreadable, f.name())
	}
	if err := named(f, f.decode(p.State)); err != nil {
		return false, 0, fmt.Errorf("%w: %w", unreadable, err)
	}
	return true, 0, nil
}

// named adds the name of a fold to an error.
func named(f fold, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", f.name(), err)
	}
	return nil
}

// readBlob reads a blob. The errors are the errors of withBlob.
func readBlob(ctx context.Context, log *eventlog.Log, d event.Digest) (v jsontext.Value, err error) {
	_, err = withBlob(ctx, log, d, func(r io.Reader) (err error) {
		v, err = engine.ReadBlob(r)
		return err
	})
	return v, err
}

// withBlob calls use with a blob, and returns the number of bytes that use read. The log
// checks the digest when use reads to the end. An error is a reason to skip the snapshot,
// except when the context is canceled or the log is closed. A store that may show other
// bytes than it has (engine.CheckedBlobs) is a reason too: masks in the text of a body are
// not the masks in the events.
func withBlob(ctx context.Context, log *eventlog.Log, d event.Digest, use func(r io.Reader) error) (read int64, err error) {
	if _, ok := eventlog.As[engine.CheckedBlobs](log.Store()); ok {
		return 0, fmt.Errorf("%w: the store may show other bytes", unreadable)
	}
	r, err := log.OpenBlob(ctx, d)
	if err == nil {
		counted := &countedReader{Reader: r}
		err = errors.Join(use(counted), r.Close())
		read = counted.bytes
	}
	switch {
	case err == nil || ctx.Err() != nil || errors.Is(err, eventlog.ErrClosed):
		return read, err
	case errors.Is(err, eventlog.ErrCorrupt):
		return read, fmt.Errorf("%w: %w", badDigest, err)
	default:
		return read, fmt.Errorf("%w: %w", unreadable, err)
	}
}

// countedReader counts the bytes that are read.
type countedReader struct {
	io.Reader
	bytes int64
}

// Size implements engine.Sized; 0 is unknown.
func (r *countedReader) Size() int64 {
	if s, ok := r.Reader.(engine.Sized); ok {
		return s.Size()
	}
	return 0
}

func (r *countedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.bytes += int64(n)
	return n, err
}
