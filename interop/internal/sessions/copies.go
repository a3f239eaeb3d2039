package sessions

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/importrun"
)

// Copy is a record that another session owns.
type Copy struct {
	// Session is the owner; empty if the record is no copy.
	Session string
	// Withheld says that the owner's event is redacted, or that the owner was removed: the
	// import must store nothing of the record.
	Withheld bool
	// Removed says that the owner was removed.
	Removed bool
}

// Elsewhere finds the owner of a record that Find has not found, if that is another session.
// at is the time of the record. The caller marks the events of a copy as inherited. With a digest
// in the key, the owner has a record of this digest and time, or a redacted one with this own id
// and time.
//
// Programs copy records when they begin a session. So while the files grow, Elsewhere lists
// the sessions of the log only for a new session, before the first message of its own, and
// for a time long before its newest message.
func (s *Session) Elsewhere(ctx context.Context, k Key, at time.Time) (Copy, error) {
	if s.Program == "" || s.removed {
		return Copy{}, nil
	}
	if _, isOwn := s.index.places[ownPlace(s.ID, k.Own, 0, 0)]; isOwn && k.Own != "" {
		return Copy{}, nil
	}
	anywhere := s.file == nil || !s.file.Growing || s.isNew || !s.hasOwn || at.Before(s.newest.Add(-late))
	c, err := s.owners.find(ctx, s.Program, k, at, anywhere)
	switch {
	case err != nil:
		return Copy{}, err
	case c.Session != "" && c.Session != s.ID && !s.isBeside(c):
		return c, nil
	case k.Digest == "" && s.LacksBeginning && s.index.last == 0 && !s.isNew && s.file != nil && !s.file.Again:
		return Copy{Session: s.ID, Withheld: true, Removed: true}, nil
	}
	return Copy{}, nil
}

// isBeside reports whether the owner of a record is another session of the same file. What a
// program writes into one file twice is no copy, unless the first one must stay away.
func (s *Session) isBeside(c Copy) bool { return !c.Withheld && s.Beside != nil && s.Beside(c.Session) }

// LeaveOut notes that the import stores nothing of a record, because its owner's event is
// redacted, or its owner was removed. It reports whether the owner was removed; then the
// caller counts the record as imported, and the table of the import corrects it.
func (s *Session) LeaveOut(c Copy) (removed bool) {
	if !c.Removed {
		return false
	}
	s.LacksBeginning = s.LacksBeginning || s.New()
	s.file.AddLeftOut(c.Session, importrun.Counts{Imported: 1})
	return true
}

// Members of the metadata of a session's first event.
const (
	leftOut    = "left_out"
	fromOthers = "copied_from"
)

// MarkStart marks the first event of a session with LacksBeginning and CopiedFrom.
func (s *Session) MarkStart(e *event.Event) (err error) {
	if s.LacksBeginning {
		err = e.SetMetadata(leftOut, true)
	}
	if err == nil && s.CopiedFrom != nil {
		s.owners.mu.Lock()
		s.owners.noteCopies(s.ID, s.CopiedFrom)
		s.owners.mu.Unlock()
		err = e.SetMetadata(fromOthers, s.CopiedFrom)
	}
	return err
}

// copiedFrom is the CopiedFrom in a session's first event.
func copiedFrom(e *event.Event) (ids []string) {
	if v, ok := e.MetadataValue(fromOthers); ok {
		_ = json.Unmarshal(v, &ids) // another program wrote it
	}
	return ids
}

// Relatives returns the other sessions whose beginning is copied from one of the sessions, or
// from a relative of them. While the files grow, it returns relatives of a new session only.
func (s *Session) Relatives(ctx context.Context, of ...string) (all []string, err error) {
	if s.file != nil && s.file.Growing && !s.isNew {
		return nil, nil
	}
	s.owners.mu.Lock()
	defer s.owners.mu.Unlock()
	if err := s.owners.list(ctx); err != nil {
		return nil, err
	}
	for next := of; len(next) > 0; next = next[1:] {
		for _, id := range s.owners.copiesOf[next[0]] {
			if id != s.ID && !slices.Contains(all, id) {
				all, next = append(all, id), append(next, id)
			}
		}
	}
	return all, nil
}

// FileRecord is a record of a file, for Fork.
type FileRecord struct {
	Own string
	At  time.Time
}

// Fork makes a new session a fork of the session whose records its file begins with. file
// yields the records with own ids, in order; Fork stops at the first one that no other
// session owns. The session is a fork if the file has all messages that the model saw at
// the last common record. Fork reports whether it made a fork: then the caller opens the
// session anew.
func (s *Session) Fork(ctx context.Context, file iter.Seq[FileRecord], o fork.Options) (bool, error) {
	if s.Program == "" || s.removed || !s.New() {
		return false, nil
	}
	var ids []string
	var from []string // the owners, in the order of appearance
	for r := range file {
		c, err := s.owners.find(ctx, s.Program, Key{Own: r.Own}, r.At, true)
		if err != nil {
			return false, err
		}
		if c.Session == "" || c.Removed || c.Session == s.ID || s.isBeside(c) {
			break
		}
		if ids = append(ids, r.Own); !slices.Contains(from, c.Session) {
			from = append(from, c.Session)
		}
	}
	parent, best := "", forkPoint{}
	for _, session := range slices.Backward(from) { // a later one may be a fork of an earlier one
		p, err := findForkPoint(ctx, s.log, session, ids)
		if err != nil {
			return false, err
		}
		if p.records > best.records {
			parent, best = session, p
		}
		if p.records == len(ids) {
			break
		}
	}
	if parent == "" {
		return false, nil
	}
	o.ID, o.Force, o.EventID, o.Time = s.ID, true, ForkID(s.ID, best.at), best.at
	_, err := fork.At(ctx, s.log, parent, fork.AtSeq(best.seq), o)
	if errors.Is(err, eventlog.ErrExists) {
		return true, nil // another import has made it
	}
	return err == nil, err
}

// forkPoint is an event of a session up to which a file has all messages that the model saw.
type forkPoint struct {
	seq     int64
	at      time.Time
	records int // the records that the file begins with and the session has; 0 if there is no such event
}

// findForkPoint finds the newest event of a session up to which a file with the records has
// all messages that the model saw.
func findForkPoint(ctx context.Context, log *eventlog.Log, session string, ids []string) (p forkPoint, err error) {
	w := walk{{complete: true}}
	s, err := Open(ctx, log, session, w.add)
	if errors.Is(err, eventlog.ErrCorrupt) {
		return p, nil // nobody can fork it
	}
	if err != nil {
		return p, fmt.Errorf("compare a file with session %q: %w", session, err)
	}
	records := 0
	for ; records < len(ids); records++ {
		seqs := s.index.variants(ids[records])
		for _, seq := range seqs {
			w[seq].copied = true
		}
		if len(seqs) == 0 {
			break
		}
	}
	for seq := 1; seq < len(w); seq++ {
		w[seq].complete = w.isComplete(&w[seq])
	}
	for seq := len(w) - 1; seq > 0; seq-- {
		if e := &w[seq]; e.copied && w[e.end].complete && w[e.end].talk > 0 {
			return forkPoint{e.end, e.at, records}, nil
		}
	}
	return p, nil
}

// variants are the seqs of the events with an own id.
func (x *index) variants(own string) (seqs []int64) {
	for _, session := range x.sessions {
		for v := 0; ; v++ {
			seq, ok := x.places[ownPlace(session, own, v, 0)]
			if !ok {
				break
			}
			seqs = append(seqs, int64(seq))
		}
	}
	return seqs
}

// walk are the events of a session by seq. The first is the root.
type walk []walked

// walked is an event in a walk.
type walked struct {
	parent, end int64 // end is the last event of its append
	at          time.Time
	isTalk      bool
	covers      bool // all events before it
	copied      bool // the file has the record
	// complete says that the file has the messages on the path to the event that the model
	// saw. talk counts them.
	complete bool
	talk     int
}

// add adds the next event.
func (w *walk) add(e *event.Event) error {
	parent, err := e.Parent()
	if err != nil {
		return err
	}
	next := walked{parent: parent, end: e.Seq + int64(e.More()), at: e.Timestamp}
	switch e.Type.Name() {
	case event.MessageAdded, event.ContextAdded:
		next.isTalk = true
	case event.CompactionTriggered:
		c, err := event.DecodeKept[event.Compaction](e)
		next.isTalk = true
		next.covers = err == nil && (c.Replace || c.Covers.From == 1)
	}
	*w = append(*w, next)
	return nil
}

// isComplete sets talk of an event, whose parent is complete or not.
func (w walk) isComplete(e *walked) bool {
	before := &w[e.parent]
	e.talk = before.talk
	switch {
	case !e.isTalk:
		return before.complete
	case e.covers && e.copied:
		e.talk = 1
		return true
	case e.copied:
		e.talk++
	case !e.covers:
		return false
	}
	return before.complete
}
