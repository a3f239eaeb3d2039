package projection

import (
	"bytes"
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// tracked is a fold that a replay carries along.
type tracked struct {
	fold
	// failed says that an event before could not be folded.
	failed bool
	// encoded is the state as of seq at.
	encoded jsontext.Value
	at      int64
}

// replay folds the lineage once, and compares the suspects at what they cover.
func (v *snapshotVerifier) replay(ctx context.Context) error {
	v.track()
	left := v.suspects
	if err := v.compare(ctx, &left); err != nil || len(left) == 0 {
		return err
	}
	last := left[len(left)-1].ref.Covers
	for e, err := range v.log.Read(ctx, v.session, eventlog.Between(1, last)) {
		if err != nil {
			return err
		}
		if e.Seq != v.seq+1 {
			return &eventlog.CorruptError{Session: v.session, Offset: -1, Seq: v.seq + 1, Cause: fmt.Errorf("event %d is in its place", e.Seq)}
		}
		v.fold(&e)
		v.seq = e.Seq
		if err := v.compare(ctx, &left); err != nil {
			return err
		}
	}
	return nil
}

// track begins the folds that the suspects need.
func (v *snapshotVerifier) track() {
	begun := map[string]bool{}
	for i := range v.suspects {
		for _, name := range v.suspects[i].parts {
			if !begun[name] {
				begun[name] = true
				v.states = append(v.states, &tracked{fold: v.parts[name].begin(), at: -1})
			}
		}
	}
}

// fold takes in an event: folds of session scope each, the others those that lead
// to a suspect.
func (v *snapshotVerifier) fold(e *event.Event) {
	needed, begins, parent := v.paths.at(e.Seq)
	if needed && begins {
		v.goBack(parent)
	}
	e = e.Effective()
	for _, s := range v.states {
		if !s.failed && inScope(s.scope(), e.Type, needed) {
			s.failed = s.apply(e) != nil
		}
	}
	if v.paths.uses[e.Seq] > 0 {
		v.keep(e.Seq)
	}
}

// keep keeps the states of path scope, to go on from here again.
func (v *snapshotVerifier) keep(seq int64) {
	back := make([]func() error, len(v.states))
	for i, s := range v.states {
		if s.failed || s.scope() == event.SessionScope {
			continue
		}
		if to, err := s.save(); err == nil {
			back[i] = to
		}
	}
	v.kept[seq] = back
}

// goBack puts the folds of path scope to what they were behind seq.
func (v *snapshotVerifier) goBack(seq int64) {
	for i, s := range v.states {
		if s.scope() == event.SessionScope {
			continue
		}
		if s.failed = false; seq == 0 {
			s.reset()
		} else if back := v.kept[seq][i]; back == nil || back() != nil {
			s.failed = true
		}
	}
	if v.paths.uses[seq]--; v.paths.uses[seq] == 0 {
		delete(v.kept, seq)
	}
}

// compare takes the suspects that cover what was folded off the list.
func (v *snapshotVerifier) compare(ctx context.Context, left *[]suspect) error {
	for len(*left) > 0 && (*left)[0].ref.Covers == v.seq {
		s := &(*left)[0]
		*left = (*left)[1:]
		before := len(v.report.Findings)
		if err := v.body(ctx, s); err != nil {
			return err
		}
		if s.digest == "" || len(v.report.Findings) > before {
			continue
		}
		if err := v.digest(s); err != nil {
			return err
		}
	}
	return nil
}

// body compares the states in a body.
func (v *snapshotVerifier) body(ctx context.Context, s *suspect) error {
	if s.mark {
		return nil
	}
	e, err := v.log.Event(ctx, v.session, s.ref.Seq)
	if err != nil {
		return err
	}
	if e.Redacted() { // just now
		s.digest = ""
		v.report.Skipped.Redacted += s.weight()
		return nil
	}
	snap, err := v.payload(ctx, &e)
	if err != nil {
		return v.find(s, "", err)
	}
	b, _, err := readBody(ctx, v.log, &snap)
	if err != nil {
		return v.find(s, "", err)
	}
	for _, name := range s.parts {
		if err := v.part(ctx, s, b, name); err != nil {
			return err
		}
	}
	return nil
}

// part compares the state of one projection.
func (v *snapshotVerifier) part(ctx context.Context, s *suspect, b body, name string) error {
	want, ok := v.state(name).now(v.seq)
	if !ok {
		v.report.Skipped.Unfolded++
		return nil
	}
	v.report.Checked++
	stored := v.parts[name].begin()
	if _, _, err := b.restore(ctx, v.log, stored); err != nil {
		return v.find(s, name, err)
	}
	got, err := stored.encode()
	if err == nil && sameJSON(want, got) {
		return nil
	}
	return v.find(s, name, ErrOtherState)
}

// digest compares the digest of the states.
func (v *snapshotVerifier) digest(s *suspect) error {
	var l Loaded
	for _, name := range s.parts {
		state := v.state(name)
		if state.failed {
			if s.mark {
				v.report.Skipped.Unfolded++
			}
			return nil
		}
		l.folds = append(l.folds, state.fold)
	}
	if s.mark {
		v.report.Checked++
	}
	if d, err := l.Digest(); err != nil || d != s.digest {
		return v.find(s, "", ErrOtherDigest)
	}
	return nil
}

func (v *snapshotVerifier) state(name string) *tracked {
	for _, s := range v.states {
		if s.name() == name {
			return s
		}
	}
	return nil
}

// now is the encoded state as of seq; ok is false when there is none.
func (s *tracked) now(seq int64) (state jsontext.Value, ok bool) {
	if s.failed {
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

// neededPaths are the paths of a tree that a replay has to follow: those that end
// with an event which a snapshot covers.
type neededPaths struct {
	tree event.Tree
	// last is the newest needed event of a stretch, by the stretch's first seq.
	last map[int64]int64
	// uses is how many needed stretches continue after an event.
	uses map[int64]int
}

// need adds the path that ends with event seq. All paths together take as long as
// there are stretches.
func (n *neededPaths) need(seq int64) {
	for seq > 0 {
		run, parent := n.tree.Run(seq)
		known := n.last[run.From]
		n.last[run.From] = max(known, seq)
		if known > 0 || parent == 0 {
			return
		}
		seq = parent
		n.uses[seq]++
	}
}

// at reports whether an event is on a needed path, and whether a stretch of it
// begins there, which continues after event parent.
func (n *neededPaths) at(seq int64) (needed, begins bool, parent int64) {
	run, parent := n.tree.Run(seq)
	return seq <= n.last[run.From], seq > 1 && run.From == seq, parent
}
