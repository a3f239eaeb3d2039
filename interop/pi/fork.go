package pi

import (
	"errors"

	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/interop/internal/sessions"
)

// search finds the longest common prefix of a copy and its parent.
type search struct {
	parent  *session
	matches []sessions.Match // of the records that the parent has too
	inBoth  map[int64]bool   // seqs in the parent of the matches
}

// startSearch begins the comparison with the parent, if the log has it.
func (im *importer) startSearch(s *session) error {
	if s.parent == "" || s.parent == s.ID {
		return nil
	}
	parent, err := openSession(im.ctx, im.log, s.parent)
	if err != nil || parent.New() || !parent.From(formatName) {
		return err
	}
	s.search = &search{parent: parent, inBoth: map[int64]bool{}}
	return nil
}

// startCopies begins the comparison of a fork, which the log has, with its parent.
func (im *importer) startCopies(s *session) error {
	if s.firstOwn == 0 || len(s.lineage) < 2 {
		return nil
	}
	parent, err := openSession(im.ctx, im.log, s.lineage[len(s.lineage)-2])
	if err != nil || !parent.From(formatName) {
		return err
	}
	s.copies = &search{parent: parent, inBoth: map[int64]bool{}}
	return nil
}

// copied finds the event of a record that the fork shares with its parent. All records
// after the first other record are the fork's own.
func (s *session) copied(f *facts) sessions.Match {
	if s.copies == nil {
		return sessions.Match{}
	}
	if m := s.copies.match(f); 0 < m.Seq && m.Seq < s.firstOwn {
		s.Skip(m.Seq)
		return m
	}
	s.copies = nil
	s.SkipInherited(s.firstOwn)
	return sessions.Match{}
}

// match finds the next record of the file, if it is also the next record of the parent. It
// is not, if the file lacks a message that precedes it in the parent.
func (x *search) match(f *facts) sessions.Match {
	m := x.parent.find(f)
	if n := len(x.matches); m.Seq == 0 || n > 0 && m.Seq <= x.matches[n-1].Seq {
		return sessions.Match{}
	}
	if before := x.parent.trail.TalkBefore(m.Seq); before > 0 && !x.inBoth[before] {
		return sessions.Match{}
	}
	x.inBoth[m.Seq] = true
	x.matches = append(x.matches, m)
	return m
}

// fork makes the session a fork of its parent, after the last common record.
func (im *importer) fork(s *session) (*session, error) {
	x := s.search
	h := s.header
	options := fork.Options{
		ID: s.ID, Reason: "a copy by " + formatName, Force: true, Metadata: map[string]any{records.OriginKey: h.rec.Origin(forkPart)},
		EventID: sessions.ForkID(s.ID, h.facts.at), Time: h.facts.at,
	}
	at := x.matches[len(x.matches)-1].Seq
	_, err := fork.At(im.ctx, im.log, s.parent, fork.AtSeq(at), options)
	if errors.Is(err, fork.Error("inside_append")) { // the tokens of a summary follow it
		_, err = fork.At(im.ctx, im.log, s.parent, fork.AtSeq(at+1), options)
	}
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
	s.Beside = before.Beside
	s.header, s.parent, s.createdAt = before.header, before.parent, before.createdAt
	s.hasCopies, s.name, s.seqs = before.hasCopies, before.name, before.seqs
	s.prompt, s.isPromptCopied = before.prompt, before.isPromptCopied
	s.nodes, s.lastSeq, s.editable, s.edits, s.erased = before.nodes, before.lastSeq, before.editable, before.edits, before.erased
	for _, m := range before.search.matches {
		s.Skip(m.Seq)
	}
	s.SkipInherited(s.firstOwn)
	s.matched = true
}
