package repair

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/line"
)

// salvage describes the readable part of a damaged session: the place of each readable
// event, and the missing seqs. It has no lines; a collector reads them again.
type salvage struct {
	log     *eventlog.Log
	backup  *eventlog.Log // nil if there is none
	session string
	end     int64 // offset of a torn tail that is left out, if over 0

	// The storage, in order of place.
	lines     []foundLine
	links     map[int64]line.Link   // by place: of lines that do not follow the line before
	forks     map[int64]*event.Fork // by place: of lines that may begin a session
	pieces    []piece               // that are no events of the session, unreadable or foreign
	ignored   []Range
	next      int64 // the place that comes next
	path      string
	size      int64 // where the last fragment ends
	unended   bool  // the storage ends inside a line
	noNewline bool  // a line has no newline

	// The decision, in order of seq.
	start     int64       // the first seq
	last      int64       // the last seq
	fork      *event.Fork // of a session that begins as a fork
	chosen    []foundLine
	lost      []Range
	torn      eventlog.TornTail // an unfinished append that is left out
	loose     bool              // an event of chosen has another more than its line
	unchained []eventlog.Defect // chosen lines that do not follow from the event before
	late      map[int64]bool    // places that come after later events of chosen
	erased    map[int64]bool    // seqs that a redacted event names
}

// foundLine is a readable line.
type foundLine struct {
	seq           int64
	place         int64 // among the fragments
	offset, bytes int64
	hash          line.Hash
	stored        int32 // how many events of its append follow it, as the line says
	more          int32 // of the salvaged event, once that was decided
	linked        bool  // it follows from the line before
	copied        bool  // the line is in the backup
}

func (f *foundLine) head() event.Head { return event.Head{Seq: f.seq, Hash: event.Hash(f.hash)} }

// piece is a piece of the storage that is no event of the session.
type piece struct {
	place         int64
	offset, bytes int64
	seq           int64 // that the storage has for it, or 0
	reason        string
	foreign       bool // a line of another session or another seq; else the piece is unreadable
}

// maxLost bounds how many lost events are written, unless the unreadable bytes may
// have held more.
const maxLost = 100_000

// leastLine is about the length of the shortest line.
const leastLine = 256

// survey reads all fragments of a session before a torn tail at end (0 for none),
// and decides which event each seq has. backup may be nil.
func survey(ctx context.Context, log, backup *eventlog.Log, session string, end int64) (*salvage, error) {
	salvager, ok := eventlog.As[eventlog.Salvager](log.Store())
	if !ok {
		return nil, fmt.Errorf("read past damage: %w", eventlog.ErrUnsupported)
	}
	s := &salvage{log: log, backup: backup, session: session, end: end, links: map[int64]line.Link{}, forks: map[int64]*event.Fork{}, erased: map[int64]bool{}}
	var before event.Head
	for f, err := range salvager.Fragments(ctx, session) {
		if err != nil {
			return nil, err
		}
		if end > 0 && f.Offset >= end {
			break
		}
		if before, err = s.add(ctx, &f, before); err != nil {
			return nil, err
		}
	}
	err := s.decide()
	if backup == nil || err != nil && len(s.chosen) > 0 {
		return s, err
	}
	if failed := s.complete(ctx); failed != nil || s.copied() > 0 {
		return s, failed
	}
	return s, err
}

// add notes one fragment. before is the head at the line directly before it, if any;
// the result is that head for the next call.
func (s *salvage) add(ctx context.Context, f *eventlog.Fragment, before event.Head) (event.Head, error) {
	s.path, s.size = cmp.Or(s.path, f.Path), f.Offset+f.Bytes
	place, e := s.next, &f.Event
	s.next++
	switch {
	case f.Unended:
		s.unended = true
		s.addUnreadable(f, place, errUnendedLine)
		return event.Head{}, nil
	case errors.Is(f.Err, event.ErrVersion):
		return event.Head{}, fmt.Errorf("%s at byte %d: %w", f.Path, f.Offset, f.Err)
	case f.Err != nil:
		s.addUnreadable(f, place, f.Err)
		return event.Head{}, nil
	case e.SessionID != s.session:
		s.addForeign(f, place)
		return event.Head{}, nil
	}
	var l line.Line
	fault := l.Parse(e.Line(), line.Strings{Session: s.session})
	var err error
	if fault == nil {
		fault, err = faultOf(ctx, s.log, e, &l)
	}
	if fault != nil {
		f.Seq = e.Seq
		s.addUnreadable(f, place, fault)
	}
	if err != nil || fault != nil {
		return event.Head{}, err
	}
	s.addLine(f, &l, place, before)
	return event.Head{Seq: e.Seq, Hash: e.Hash()}, nil
}

var errUnendedLine = errors.New("the last line has no newline")

// addLine notes a readable line.
func (s *salvage) addLine(f *eventlog.Fragment, l *line.Line, place int64, before event.Head) {
	e := &f.Event
	s.noNewline = s.noNewline || f.Bytes == int64(len(e.Line()))
	fresh := foundLine{seq: e.Seq, place: place, offset: f.Offset, bytes: f.Bytes, hash: l.Hash(), stored: l.More, more: l.More}
	fresh.linked = before.Seq > 0 && before.Seq == e.Seq-1 && l.Follows(line.Hash(before.Hash))
	if !fresh.linked {
		s.links[place] = l.Link()
		if fork := beginsFork(e); fork != nil {
			s.forks[place] = fork
		}
	}
	s.lines = append(s.lines, fresh)
	if note, ok, err := event.Decode[event.RedactionNote](e); s.backup != nil && ok && err == nil {
		for _, seq := range note.Seqs {
			s.erased[seq] = true
		}
	}
	s.loose = s.loose || f.Bytes <= int64(len(e.Line()))
	if f.Seq > 0 && f.Seq != e.Seq {
		s.pieces = append(s.pieces, piece{place: place, offset: f.Offset, seq: f.Seq, foreign: true,
			reason: fmt.Sprintf("the line of seq %d is stored there", e.Seq)})
	}
}

// beginsFork is the fork that e begins a session with; nil if it does not.
func beginsFork(e *event.Event) *event.Fork {
	f, ok, err := event.Decode[event.Fork](e)
	if !ok || err != nil || e.Copied() || f.Seq != e.Seq-1 {
		return nil
	}
	return &f
}

// addUnreadable notes an unreadable piece. Beyond a bound, pieces without a seq count as
// one.
func (s *salvage) addUnreadable(f *eventlog.Fragment, place int64, cause error) {
	const most = 2 * maxLost
	if n := len(s.pieces); n >= most && f.Seq == 0 {
		last := &s.pieces[n-1]
		last.place, last.bytes = place, f.Offset+f.Bytes-last.offset
		return
	}
	s.pieces = append(s.pieces, piece{place: place, offset: f.Offset, bytes: f.Bytes, seq: f.Seq, reason: reasonOf(cause)})
}

// reasonOf is the reason that a lost event gives.
func reasonOf(cause error) string {
	const most = 200
	text := cause.Error()
	return strings.ToValidUTF8(text[:min(len(text), most)], "\uFFFD")
}

// addForeign notes a foreign line, of another session, which is left out.
func (s *salvage) addForeign(f *eventlog.Fragment, place int64) {
	e := &f.Event
	s.ignored = appendIgnored(s.ignored, Range{Session: e.SessionID, From: e.Seq, To: e.Seq,
		Offset: f.Offset, Bytes: f.Bytes, Reason: "line of another session"})
	s.pieces = append(s.pieces, piece{place: place, offset: f.Offset, bytes: f.Bytes, seq: f.Seq, foreign: true,
		reason: fmt.Sprintf("a line of session %q is stored there", line.Clip(e.SessionID))})
}

// appendIgnored appends a range, or extends the last one if it continues it.
func appendIgnored(all []Range, i Range) []Range {
	if n := len(all); n > 0 {
		last := &all[n-1]
		if last.Session == i.Session && last.Reason == i.Reason && last.To+1 == i.From &&
			(i.Offset < 0 || last.Offset+last.Bytes == i.Offset) {
			last.To, last.Bytes = i.To, last.Bytes+i.Bytes
			return all
		}
	}
	return append(all, i)
}

var errSpilled = errors.New("an event of this type is never spilled")

// faultOf returns a fault if an event with a sound line cannot be salvaged: its JSON
// is invalid, or its data is missing. err means that the check could not be made.
func faultOf(ctx context.Context, log *eventlog.Log, e *event.Event, l *line.Line) (fault, err error) {
	if err := l.CheckJSON(); err != nil {
		return err, nil
	}
	d, _, spilled := e.Spilled()
	switch {
	case spilled && !e.Type.Spillable():
		return errSpilled, nil
	case e.Data != nil:
		return line.CheckData(e.Data), nil
	case !spilled:
		return nil, nil
	}
	body, err := readBlob(ctx, log, d)
	switch {
	case err == nil:
		return line.CheckData(body), nil
	case errors.Is(err, eventlog.ErrBlobNotFound):
		return fmt.Errorf("its data, blob %s, is missing", d), nil
	case errors.Is(err, eventlog.ErrCorrupt), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("its data, blob %s, is damaged", d), nil
	}
	return nil, fmt.Errorf("data of event %d: %w", e.Seq, err)
}

func readBlob(ctx context.Context, log *eventlog.Log, d event.Digest) ([]byte, error) {
	r, err := log.OpenBlob(ctx, d)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(r)
	return body, errors.Join(err, r.Close())
}
