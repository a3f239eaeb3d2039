package projection

import (
	"bytes"
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/eventlog"
)

// replay folds the lineage once, and compares each candidate at the event that it
// covers.
func (v *snapshotVerifier) replay(ctx context.Context) error {
	v.track()
	rest := v.candidates
	if err := v.compare(ctx, &rest); err != nil || len(rest) == 0 {
		return err
	}
	last := rest[len(rest)-1].ref.Covers
	for e, err := range v.log.Read(ctx, v.session, eventlog.Between(1, last)) {
		if err != nil {
			return err
		}
		if e.Seq != v.seq+1 {
			return &eventlog.CorruptError{Session: v.session, Offset: -1, Seq: v.seq + 1, Cause: fmt.Errorf("event %d is in its place", e.Seq)}
		}
		v.branches.fold(&e)
		v.seq = e.Seq
		if err := v.compare(ctx, &rest); err != nil {
			return err
		}
	}
	return nil
}

// track makes the folds that the candidates need.
func (v *snapshotVerifier) track() {
	started := map[string]bool{}
	for i := range v.candidates {
		for _, name := range v.candidates[i].parts {
			if !started[name] {
				started[name] = true
				v.branches.states = append(v.branches.states, &replayFold{fold: v.parts[name].begin(), at: -1})
			}
		}
	}
}

// compare compares the candidates that cover the last folded event, and removes them
// from rest.
func (v *snapshotVerifier) compare(ctx context.Context, rest *[]candidate) error {
	for len(*rest) > 0 && (*rest)[0].ref.Covers == v.seq {
		s := &(*rest)[0]
		*rest = (*rest)[1:]
		before := len(v.result.Findings)
		if err := v.body(ctx, s); err != nil {
			return err
		}
		if s.digest == "" || len(v.result.Findings) > before {
			continue
		}
		if err := v.digest(s); err != nil {
			return err
		}
	}
	return nil
}

// body compares the states in a body.
func (v *snapshotVerifier) body(ctx context.Context, s *candidate) error {
	if s.mark {
		return nil
	}
	e, err := v.log.Event(ctx, v.session, s.ref.Seq)
	if err != nil {
		return err
	}
	if e.Redacted() { // redacted during the verification
		s.digest = ""
		v.skip(string(redactedSnapshot), s.weight())
		return nil
	}
	snap, err := v.payload(ctx, &e)
	if err != nil {
		return v.report(s, "", err)
	}
	b, _, err := readBody(ctx, v.log, &snap)
	if err != nil {
		return v.report(s, "", err)
	}
	for _, name := range s.parts {
		if err := v.part(ctx, s, b, name); err != nil {
			return err
		}
	}
	return nil
}

// part compares the state of one projection.
func (v *snapshotVerifier) part(ctx context.Context, s *candidate, b body, name string) error {
	want, ok := v.state(name).encodedAt(v.seq)
	if !ok {
		v.skip(unfolded, 1)
		return nil
	}
	v.result.Checked++
	stored := v.parts[name].begin()
	if _, _, err := b.restore(ctx, v.log, stored); err != nil {
		return v.report(s, name, err)
	}
	got, err := stored.encode()
	if err == nil && sameJSON(want, got) {
		return nil
	}
	return v.report(s, name, otherState)
}

// digest compares the digest of the states.
func (v *snapshotVerifier) digest(s *candidate) error {
	var l Loaded
	for _, name := range s.parts {
		state := v.state(name)
		if state.failed != nil {
			if s.mark {
				v.skip(unfolded, 1)
			}
			return nil
		}
		l.folds = append(l.folds, state.fold)
	}
	if s.mark {
		v.result.Checked++
	}
	if d, err := l.Digest(); err != nil || d != s.digest {
		return v.report(s, "", otherDigest)
	}
	return nil
}

func (v *snapshotVerifier) state(name string) *replayFold {
	for _, s := range v.branches.states {
		if s.name() == name {
			return s
		}
	}
	return nil
}

// encodedAt returns the encoded state as of seq; ok is false if the fold failed.
func (s *replayFold) encodedAt(seq int64) (state jsontext.Value, ok bool) {
	if s.failed != nil {
		return nil, false
	}
	if s.at != seq {
		state, err := s.encode()
		if err != nil {
			return nil, false
		}
		s.encoded, s.at = state, seq
	}
	return s.encoded, true
}

// sameJSON reports whether two values have the same canonical form.
func sameJSON(a, b jsontext.Value) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, err := Canonical(a)
	if err != nil {
		return false
	}
	y, err := Canonical(b)
	return err == nil && bytes.Equal(x, y)
}
