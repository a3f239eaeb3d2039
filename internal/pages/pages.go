// Package pages has what a reader needs in each store that keeps a row for each session
// and a row for each event: its position, its pages of lines, and the checks that rows
// and lines are consistent.
package pages

import (
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
)

// The number of rows of a page grows from FirstRows to MaxRows. A page has about MaxBytes
// at most. A reader that stops early has then read little.
const (
	FirstRows = 64
	MaxRows   = 1000
	MaxBytes  = 1 << 20
)

// LongestLine is the longest line that a reader fetches, in bytes. No append writes a
// line of half of it, so a longer line is damage. Reading it would take its memory
// several times.
const LongestLine = 2 * (4<<20 + 64<<10)

// The causes of damage.
var (
	ErrLongLine = fmt.Errorf("the line is longer than %d bytes", LongestLine)
	ErrMissing  = errors.New("row is missing")
	ErrEnds     = errors.New("the session's row does not match its first or last event")
	ErrNoEnd    = fmt.Errorf("the first or the last event is missing, or longer than %d bytes", LongestLine)
)

// Damage makes the error of damage in a table, at the event seq; 0 if the seq is unknown.
type Damage func(session, table string, seq int64, cause error) error

// Session is a row of table sessions.
type Session struct {
	Key, First int64 // the key in table events, and the seq of the session's own first event
	Head       event.Head
}

// Strays describes n events without a session: table sessions has no row for them. It ends with the
// remedy.
func Strays(key, n, first, last any) string {
	return fmt.Sprintf("%v events (seq %v to %v) have no session: table sessions has no row with key %v; "+
		"copy the other sessions into a new store with logtool store convert, and this one from a backup", n, first, last, key)
}

// Describes reports whether e is consistent with the row: the head has the row's hash,
// and the first event is seq 1 or a fork.
func (s *Session) Describes(e *event.Event) bool {
	return (e.Seq != s.First || e.Seq == 1 || e.Type.Name() == event.SessionForked) && (e.Seq != s.Head.Seq || e.Hash() == s.Head.Hash)
}

// Ends parses the first and the last line of a session. A nil line is missing or too long.
func (s *Session) Ends(session string, first, last []byte, damage Damage) (a, b event.Event, err error) {
	if first == nil || last == nil {
		return a, b, damage(session, "events", 0, ErrNoEnd)
	}
	if a, err = Parse(session, s.First, first, damage); err != nil {
		return a, b, err
	}
	if b = a; s.First < s.Head.Seq {
		if b, err = Parse(session, s.Head.Seq, last, damage); err != nil {
			return a, b, err
		}
	}
	for _, e := range []*event.Event{&a, &b} {
		if !s.Describes(e) {
			return a, b, damage(session, "sessions", e.Seq, ErrEnds)
		}
	}
	return a, b, nil
}

// Parse parses the line of seq. The rows are in the order of their seqs, so the line
// after a missing row has a wrong seq. A nil line is too long.
func Parse(session string, seq int64, line []byte, damage Damage) (event.Event, error) {
	if line == nil {
		return event.Event{}, damage(session, "events", seq, ErrLongLine)
	}
	e, err := event.Parse(line, session)
	if err == nil && e.Seq == seq {
		return e, nil
	}
	var newer *event.VersionError
	if errors.As(err, &newer) {
		return event.Event{}, fmt.Errorf("session %q, seq %d: %w", session, seq, err)
	}
	if err == nil {
		err = fmt.Errorf("the row has the line of seq %d", e.Seq)
	}
	return event.Event{}, damage(session, "events", seq, err)
}

// Position is the position of a reader in a session.
type Position struct {
	From, To int64 // seqs still to read, inclusive
	Backward bool
}

// Restrict leaves at most limit events; 0 is no limit. Seqs are contiguous.
func (p *Position) Restrict(limit int) {
	switch n := int64(limit); {
	case n <= 0 || p.To-p.From < n:
	case p.Backward:
		p.From = p.To - n + 1
	default:
		p.To = p.From + n - 1
	}
}

// Left is the number of events that are not fetched yet.
func (p *Position) Left() int64 { return max(p.To-p.From+1, 0) }

// Next is the seq of the next event to fetch.
func (p *Position) Next() int64 {
	if p.Backward {
		return p.To
	}
	return p.From
}

// Advance moves the position by n fetched events.
func (p *Position) Advance(n int) {
	if p.Backward {
		p.To -= int64(n)
	} else {
		p.From += int64(n)
	}
}

// Page is a series of lines, and the error that ended it early.
type Page struct {
	Due      int64 // seq of the first line
	Backward bool
	Lines    [][]byte
	Err      error
}

// Deliver yields the events of the lines, then the page's error. parse makes the event of
// a seq. It returns false when reading must stop.
func (p *Page) Deliver(parse func(due int64, line []byte) (event.Event, error), yield func(event.Event, error) bool) bool {
	step := int64(1)
	if p.Backward {
		step = -1
	}
	for i, line := range p.Lines {
		e, err := parse(p.Due+int64(i)*step, line)
		if !yield(e, err) || err != nil {
			return false
		}
	}
	if p.Err != nil {
		yield(event.Event{}, p.Err)
	}
	return p.Err == nil
}

// Ahead starts to fetch the next page in another goroutine. The fetching goroutine alone
// uses the reader's position until the page is received.
func Ahead(fetch func() Page) <-chan Page {
	ahead := make(chan Page, 1)
	go func() { ahead <- fetch() }()
	return ahead
}
