package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// salvage is what can be read of a damaged session: which event stands where,
// and for which seqs there is none. It holds no lines; those are read again
// when they are written.
type salvage struct {
	log     *Log
	session string
	end     int64 // offset at which a torn tail begins that is left out, if over 0

	// What the storage holds, in order of place.
	lines   []found
	links   map[int64]link  // by place: of lines that do not follow the line before
	forks   map[int64]*Fork // by place: of those that may begin a session
	ruins   []ruin
	ignored []Ignored
	next    int64 // the place that comes next
	path    string
	size    int64 // where the last fragment ends
	unended bool  // in the middle of a line
	glued   bool  // a line lacks its newline

	// What comes of it, in order of seq.
	start  int64 // seq of the first event
	last   int64 // and of the last
	fork   *Fork // of a session that begins as one
	chosen []found
	lost   []LostRange
	torn   TornTail       // the remains of an unfinished append that were left out
	loose  bool           // an event of chosen has another more than its line
	doubts []Defect       // lines that do not follow from the one before
	late   map[int64]bool // places that come after later events of chosen
}

// found is a line that can be read.
type found struct {
	seq           int64
	place         int64 // among the fragments
	offset, bytes int64
	hash          Hash
	more          int32 // what it is to have, when that was decided
	linked        bool  // it follows from the line before
}

func (f *found) head() Head { return Head{Seq: f.seq, Hash: f.hash} }

// ruin is a piece of the storage that is no event of the session.
type ruin struct {
	place         int64
	offset, bytes int64
	seq           int64 // that the storage has for it, or 0
	reason        string
	alien         bool // a line of another session or another seq
}

// maxLost bounds how many lost events are written, unless the bytes that cannot
// be read may have held more.
const maxLost = 100_000

// leastLine is about the length of the shortest line.
const leastLine = 256

// survey reads all that the storage of a session holds before a torn tail that
// begins at end (0 for none), and decides what stands at each seq.
func (l *Log) survey(ctx context.Context, session string, end int64) (*salvage, error) {
	salvager, ok := As[Salvager](l.store)
	if !ok {
		return nil, fmt.Errorf("read behind damage: %w", ErrUnsupported)
	}
	s := &salvage{log: l, session: session, end: end, links: map[int64]link{}, forks: map[int64]*Fork{}}
	var before Event
	for f, err := range salvager.Fragments(ctx, session) {
		if err != nil {
			return nil, err
		}
		if end > 0 && f.Offset >= end {
			break
		}
		if before, err = s.take(ctx, &f, &before); err != nil {
			return nil, err
		}
	}
	return s, s.decide()
}

// take notes one fragment; before is the line that stands right before it, if
// any, and what it returns the line for the next call.
func (s *salvage) take(ctx context.Context, f *Fragment, before *Event) (Event, error) {
	s.path, s.size = cmp.Or(s.path, f.Path), f.Offset+f.Bytes
	place, e := s.next, &f.Event
	s.next++
	switch {
	case f.Unended:
		s.unended = true
		s.spoil(f, place, errUnendedLine)
		return Event{}, nil
	case errors.Is(f.Err, ErrVersion):
		return Event{}, fmt.Errorf("%s at byte %d: %w", f.Path, f.Offset, f.Err)
	case f.Err != nil:
		s.spoil(f, place, f.Err)
		return Event{}, nil
	case e.SessionID != s.session:
		s.alien(f, place)
		return Event{}, nil
	}
	fault, err := s.log.unreadable(ctx, e)
	if fault != nil {
		f.Seq = e.Seq
		s.spoil(f, place, fault)
	}
	if err != nil || fault != nil {
		return Event{}, err
	}
	s.line(f, place, before)
	return *e, nil
}

var errUnendedLine = errors.New("the line has no end")

// line notes a line that can be read.
func (s *salvage) line(f *Fragment, place int64, before *Event) {
	e := &f.Event
	s.glued = s.glued || f.Bytes == int64(len(e.Line()))
	l := found{seq: e.Seq, place: place, offset: f.Offset, bytes: f.Bytes, hash: e.Hash(), more: e.more}
	l.linked = before.Seq > 0 && before.Seq == e.Seq-1 && e.chainsFrom(before.Hash())
	if !l.linked {
		s.links[place] = e.link()
		if fork := e.forks(); fork != nil {
			s.forks[place] = fork
		}
	}
	s.lines = append(s.lines, l)
	s.loose = s.loose || f.Bytes <= int64(len(e.Line()))
	if f.Seq > 0 && f.Seq != e.Seq {
		s.ruins = append(s.ruins, ruin{place: place, offset: f.Offset, seq: f.Seq, alien: true,
			reason: fmt.Sprintf("the line of seq %d stands there", e.Seq)})
	}
}

// forks reads the fork that e begins a session with; nil if it does not.
func (e *Event) forks() *Fork {
	f, ok, err := e.Fork()
	if _, copied := e.MetadataValue(forkOriginKey); !ok || err != nil || copied || f.Seq != e.Seq-1 {
		return nil
	}
	return &f
}

// spoil notes a piece that cannot be read. Pieces without number are counted
// together.
func (s *salvage) spoil(f *Fragment, place int64, cause error) {
	const most = 2 * maxLost
	if n := len(s.ruins); n >= most && f.Seq == 0 {
		last := &s.ruins[n-1]
		last.place, last.bytes = place, f.Offset+f.Bytes-last.offset
		return
	}
	s.ruins = append(s.ruins, ruin{place: place, offset: f.Offset, bytes: f.Bytes, seq: f.Seq, reason: reasonOf(cause)})
}

// reasonOf is why something was lost, as a lost event says it.
func reasonOf(cause error) string {
	const most = 200
	text := cause.Error()
	return strings.ToValidUTF8(text[:min(len(text), most)], "\uFFFD")
}

// alien notes a line of another session, which stays out.
func (s *salvage) alien(f *Fragment, place int64) {
	e := &f.Event
	s.ignored = appendIgnored(s.ignored, Ignored{Session: e.SessionID, From: e.Seq, To: e.Seq,
		Offset: f.Offset, Bytes: f.Bytes, Reason: "line of another session"})
	s.ruins = append(s.ruins, ruin{place: place, offset: f.Offset, bytes: f.Bytes, seq: f.Seq, alien: true,
		reason: fmt.Sprintf("a line of session %q stands there", clip(e.SessionID))})
}

// appendIgnored joins what goes on where the last one ends.
func appendIgnored(all []Ignored, i Ignored) []Ignored {
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

// unreadable says why an event whose line is sound cannot be kept: its JSON is
// none, or its data is gone. err is what kept it from being looked at.
func (l *Log) unreadable(ctx context.Context, e *Event) (fault, err error) {
	if err := e.checkForm(); err != nil {
		return err, nil
	}
	d, _, spilled := e.Spilled()
	switch {
	case spilled && !e.Type.spillable():
		return errSpilled, nil
	case e.Data != nil:
		return checkData(e.Data), nil
	case !spilled:
		return nil, nil
	}
	body, err := l.readBlob(ctx, d)
	switch {
	case err == nil:
		return checkData(body), nil
	case errors.Is(err, ErrBlobNotFound):
		return fmt.Errorf("its data, blob %s, is missing", d), nil
	case errors.Is(err, ErrCorrupt), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("its data, blob %s, is damaged", d), nil
	}
	return nil, fmt.Errorf("data of event %d: %w", e.Seq, err)
}
