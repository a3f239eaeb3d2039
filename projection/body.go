package projection

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/eventlog"
)

// bodyVersion is that of the form of a snapshot's body.
const bodyVersion = 1

// inlineUpTo is how many bytes of a part's state stand in the event itself; a
// longer one is a blob, so that equal parts of many snapshots are kept once and
// a reader fetches only the parts that it asks for.
const inlineUpTo = 4 << 10

// body is the state of a snapshot: a part for each projection, by name.
type body map[string]part

// part is the state of one projection, inline or as a blob.
type part struct {
	Version int              `json:"version"`
	State   jsontext.Value   `json:"state,omitzero"`
	Body    eventlog.BlobRef `json:"body,omitzero"`
}

// makeBody encodes the states of folds; digests are the blobs it needs.
func makeBody(ctx context.Context, log *eventlog.Log, folds []fold) (b jsontext.Value, digests []eventlog.Digest, size int64, err error) {
	parts := body{}
	for _, f := range folds {
		p := part{Version: f.version()}
		state, err := f.encode()
		if err != nil {
			return nil, nil, 0, fmt.Errorf("encode %s: %w", f.name(), err)
		}
		size += int64(len(state))
		if p.State = state; len(state) > inlineUpTo {
			p.Body, err = log.PutBlob(ctx, bytes.NewReader(state))
			switch {
			case err == nil:
				p.State = nil
				digests = append(digests, p.Body.Blob)
			case !errors.Is(err, eventlog.ErrUnsupported): // a store without blobs keeps it inline
				return nil, nil, 0, fmt.Errorf("keep %s: %w", f.name(), err)
			}
		}
		parts[f.name()] = p
	}
	b, err = json.Marshal(parts, json.Deterministic(true))
	return b, digests, size, err
}

// readBody parses the body of a snapshot and checks it against its digest.
func readBody(ctx context.Context, log *eventlog.Log, s *eventlog.Snapshot) (body, error) {
	raw := s.State
	if !s.Body.IsZero() {
		var err error
		if raw, err = readBlob(ctx, log, s.Body.Blob); err != nil {
			return nil, err
		}
	}
	if s.BodyDigest != "" && eventlog.DigestOf(raw) != s.BodyDigest {
		return nil, ErrBadDigest
	}
	var b body
	if err := json.Unmarshal(raw, &b); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreadableBody, err)
	}
	return b, nil
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
	if err := f.decode(state); err != nil {
		return false, read, fmt.Errorf("%w: %s: %w", ErrUnreadableBody, f.name(), err)
	}
	return true, read, nil
}

// readBlob reads a blob, whose digest the log checks. What is wrong with the
// blob makes the snapshot unreadable; any other error is one of the reading.
func readBlob(ctx context.Context, log *eventlog.Log, d eventlog.Digest) (_ jsontext.Value, err error) {
	r, err := log.OpenBlob(ctx, d)
	if err == nil {
		var b []byte
		b, err = io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err == nil {
			return b, nil
		}
	}
	if errors.Is(err, eventlog.ErrCorrupt) {
		return nil, fmt.Errorf("%w: %w", ErrBadDigest, err)
	}
	if errors.Is(err, eventlog.ErrBlobNotFound) || errors.Is(err, eventlog.ErrInvalidBlob) {
		return nil, fmt.Errorf("%w: %w", ErrUnreadableBody, err)
	}
	return nil, err
}

// passes reports whether err says that a snapshot is to be passed over.
func passes(err error) bool {
	for _, target := range []error{ErrRedactedBody, ErrOtherVersion, ErrBadDigest, ErrUnreadableBody, ErrOffPath} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
