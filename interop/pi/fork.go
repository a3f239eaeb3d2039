package pi

import (
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/interop"
)

// search finds the longest common prefix of a copy and its parent.
type search struct {
	parent  *session
	matches []match
	inBoth  map[int64]bool // seqs in the parent of the matches
}

// match is a record that the parent has too.
type match struct {
	id  string
	seq int64
}

// startSearch begins the comparison with the parent, if the log has it.
func (im *importer) startSearch(s *session) error {
	if s.parent == "" || s.parent == s.ID {
		return nil
	}
	parent, err := openSession(im.ctx, im.log, s.parent)
	if err != nil || parent.New() || parent.Format != Name {
		return err
	}
	s.search = &search{parent: parent, inBoth: map[int64]bool{}}
	return nil
}

// match reports whether the next record of the file is also the next record of the
// parent. It is not, if the file lacks a message that precedes it in the parent.
func (x *search) match(f *facts) (ok bool) {
	seq, ok := x.parent.find(f)
	if n := len(x.matches); !ok || n > 0 && seq <= x.matches[n-1].seq {
		return false
	}
	if before := x.parent.trail.TalkBefore(seq); before > 0 && !x.inBoth[before] {
		return false
	}
	x.inBoth[seq] = true
	x.matches = append(x.matches, match{f.id, seq})
	return true
}

// fork makes the session a fork of its parent, after the last common record.
func (im *importer) fork(s *session) (*session, error) {
	x := s.search
	h := s.header
	_, err := fork.At(im.ctx, im.log, s.parent, fork.AtSeq(x.matches[len(x.matches)-1].seq), fork.Options{
		ID: s.ID, Reason: "a copy by " + Name, Force: true, Metadata: map[string]any{interop.OriginKey: h.rec.Origin(forkPart)},
		EventID: interop.FixedKey(s.ID, "session_forked").ID(h.facts.at), Time: h.facts.at,
	})
	if err != nil {
		return nil, err
	}
	im.result.Events++
	forked, err := openSession(im.ctx, im.log, s.ID)
	if err != nil {
		return nil, err
	}
	forked.continueFrom(s)
	return forked, nil
}

// continueFrom takes over the state of the file from before the fork.
func (s *session) continueFrom(before *session) {
	s.header, s.parent, s.createdAt, s.occurrences = before.header, before.parent, before.createdAt, before.occurrences
	s.hasCopies, s.name, s.prompt, s.seqs = before.hasCopies, before.name, before.prompt, before.seqs
	for _, m := range before.search.matches {
		s.indexRecord(&facts{id: m.id}, m.seq)
	}
	s.matched = true
}
