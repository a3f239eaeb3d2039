package repair

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/line"
	"github.com/convlog/convlog/upkeep/transfer"
)

// complete takes the events that cannot be read from a backup, and those after the last
// event. An event that was erased in one of the two is not taken unerased from the other.
// The backup is refused if it has another event than a readable line.
func (s *salvage) complete(ctx context.Context) error {
	own := s.chosen
	if len(own) == 0 {
		s.last, s.lost = 0, nil
	}
	var merged []foundLine
	var withheld []Range
	var prev line.Hash // of the event before
	var end int64
	for e, err := range s.backup.Store().Read(ctx, s.session, eventlog.Span{}) {
		if errors.Is(err, eventlog.ErrNotFound) {
			return nil
		}
		if err == nil && end > 0 {
			err = checkFollows(&e, s.session, prev)
		}
		if err != nil {
			return fmt.Errorf("read the backup: %w", err)
		}
		if end == 0 {
			s.start, s.fork = e.Seq, nil
			if e.Seq > 1 {
				s.fork = beginsFork(&e)
			}
		}
		end, prev = e.Seq, line.Hash(e.Hash())
		readable := len(own) > 0 && own[0].seq <= e.Seq
		switch {
		case readable && (own[0].seq < e.Seq || own[0].hash != prev):
			return s.differs(own[0].seq)
		case !readable && s.erased[e.Seq] && !e.Redacted():
			withheld = append(withheld, Range{Session: s.session, From: e.Seq, To: e.Seq, Offset: -1,
				Reason: "it was erased, and the backup has its text"})
			continue
		}
		f := foundLine{seq: e.Seq, hash: prev, stored: int32(e.More()), copied: true}
		if readable && !e.Redacted() {
			f = own[0]
		}
		if readable {
			own = own[1:]
		}
		f.more = f.stored
		merged = append(merged, f)
	}
	if len(merged) == 0 {
		return nil
	}
	if len(own) > 0 && own[0].seq == end+1 && !own[0].linked && s.links[own[0].place].After(prev) != own[0].hash {
		return s.differs(own[0].seq)
	}
	if end > s.last && !slices.ContainsFunc(s.lines, func(f foundLine) bool { return f.seq > end }) {
		s.torn = eventlog.TornTail{} // the backup has its events
	}
	for _, r := range s.lost {
		if r.To > end {
			r.From = max(r.From, end+1)
			withheld = append(withheld, r)
		}
	}
	s.chosen, s.lost, s.last = append(merged, own...), withheld, max(s.last, end)
	s.unchained = slices.DeleteFunc(s.unchained, func(d eventlog.Defect) bool { return d.Seq <= end+1 })
	s.loosen(s.regroup(), len(s.chosen))
	s.findLate()
	return nil
}

// checkFollows checks that the event of a backup is chained to the event before it.
func checkFollows(e *event.Event, session string, prev line.Hash) error {
	var l line.Line
	if err := l.Parse(e.Line(), line.Strings{Session: session}); err != nil {
		return err
	}
	if !l.Follows(prev) {
		return fmt.Errorf("event %d: %w: %w", e.Seq, eventlog.ErrCorrupt, line.ErrChain)
	}
	return nil
}

// copied is the number of events from the backup.
func (s *salvage) copied() (n int64) {
	for i := range s.chosen {
		if s.chosen[i].copied {
			n++
		}
	}
	return n
}

func (s *salvage) differs(seq int64) error {
	return &Error{Session: s.session, Path: s.path, Reason: fmt.Sprintf("the backup has another event %d", seq)}
}

// backedUp reads the events of a backup in the order of their seqs.
type backedUp struct {
	pull func() (event.Event, error, bool)
	stop func()
	next *event.Event // was read already
}

// read reads a copied line.
func (b *backedUp) read(ctx context.Context, s *salvage, f *foundLine) (event.Event, error) {
	if e := b.next; e != nil && e.Seq == f.seq {
		b.next = nil
		return *e, nil
	}
	if b.stop == nil {
		b.pull, b.stop = iter.Pull2(s.backup.Store().Read(ctx, s.session, eventlog.Span{}))
	}
	for {
		e, err, ok := b.pull()
		switch {
		case err != nil:
			return e, err
		case !ok || e.Seq > f.seq || e.Seq == f.seq && line.Hash(e.Hash()) != f.hash:
			return e, &eventlog.ConflictError{Session: s.session}
		case e.Seq == f.seq:
			return e.Clone(), nil
		}
	}
}

func (b *backedUp) close() {
	if b.stop != nil {
		b.stop()
	}
}

// bringBlobs copies the blobs of the copied events.
func (r *repairer) bringBlobs(ctx context.Context) error {
	if r.copied() == 0 || r.opts.DryRun {
		return nil
	}
	var b backedUp
	defer b.close()
	for i := range r.chosen {
		if !r.chosen[i].copied {
			continue
		}
		e, err := b.read(ctx, r.salvage, &r.chosen[i])
		if err != nil {
			return err
		}
		for _, d := range e.Blobs() {
			if err := transfer.CopyBlob(ctx, r.into, r.backup, d); err != nil && !errors.Is(err, eventlog.ErrBlobNotFound) {
				return err
			}
		}
	}
	return nil
}
