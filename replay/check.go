package replay

import (
	"errors"
	"fmt"
	"iter"

	"github.com/convlog/convlog/event"
)

// Options say what a sequence of events should be. The zero value is a
// lineage or an active path, or a part of one, oldest first.
type Options struct {
	// Session is the session whose lineage it is: events of it, and before them
	// those it shares with its ancestors. Empty is whichever session comes.
	Session string
	// All demands a lineage, as of Log.Read: no seq is left out. Path demands an
	// active path, as of Log.ActivePath: seqs are left out where a head_moved
	// leaves them, and only there. Without either, the first head_moved that
	// leaves any tells which of the two it is.
	All, Path bool
	// Backward says that the newest event comes first.
	Backward bool
	// Whole demands that it reaches back to the beginning of the lineage.
	Whole bool
	// After is the seq of the event that the oldest one of the sequence goes on
	// from; 0 is any. Whole goes before it.
	After int64
	// Upcasters are applied to each event before it is checked.
	Upcasters []event.Upcaster
}

// Check passes events on, and ends the sequence with an error at the first one
// that does not belong there: an *OrderError with ErrMixedSessions, ErrGap,
// ErrOrder, ErrCycle or ErrForkPoint, or a *event.VersionError for a payload
// version that this program does not know. Errors of the sequence itself are
// passed on and end it. What comes before the error has been checked.
func Check(events iter.Seq2[event.Event, error], opts ...Options) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if events == nil {
			yield(event.Event{}, errNoSequence)
			return
		}
		o := one(opts)
		c := checker{opts: o, form: formOf(o)}
		for e, err := range events {
			if err == nil {
				err = c.event(&e)
			}
			if err != nil {
				yield(event.Event{}, err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
		if err := c.end(); err != nil {
			yield(event.Event{}, err)
		}
	}
}

var errNoSequence = errors.New("replay: the sequence of events is nil")

// one is the options of a call: the first of opts, or the zero Options.
func one(opts []Options) (o Options) {
	if len(opts) > 0 {
		o = opts[0]
	}
	return o
}

// checker checks a sequence event by event.
type checker struct {
	opts  Options
	form  form
	last  link
	begun bool
	left  map[string]bool // sessions that the sequence has left
}

// form is what a sequence has turned out to be.
type form int

const (
	unknown form = iota
	all
	path
)

func formOf(opts Options) form {
	switch {
	case opts.All:
		return all
	case opts.Path:
		return path
	}
	return unknown
}

// link is an event and what it goes on from.
type link struct {
	event.Event
	after int64 // the seq of the event before it in the tree
}

// event checks the next event, and upcasts it.
func (c *checker) event(e *event.Event) error {
	if err := event.Upcast(e, c.opts.Upcasters...); err != nil {
		return err
	}
	if err := e.Type.CheckVersion(); err != nil {
		return fmt.Errorf("event %d of session %q: %w", e.Seq, e.SessionID, err)
	}
	after, err := before(e)
	if err != nil {
		return err
	}
	next := link{*e, after}
	switch {
	case !c.begun && !c.opts.Backward:
		err = c.begins(&next)
	case !c.begun:
	case c.opts.Backward:
		err = c.joins(&next, &c.last, e)
	default:
		err = c.joins(&c.last, &next, e)
	}
	c.last, c.begun = next, true
	return err
}

// end checks what only the end of a sequence shows.
func (c *checker) end() error {
	if !c.begun || !c.opts.Backward {
		return nil
	}
	return c.begins(&c.last)
}

// before is the seq of the event that e goes on from in the tree.
func before(e *event.Event) (int64, error) {
	if e.Seq < 1 {
		return 0, wrong(e, ErrOrder, "it was not appended to a session")
	}
	after, err := e.Parent()
	if errors.Is(err, event.ErrInvalidTree) {
		return 0, wrong(e, ErrCycle, err.Error())
	}
	return after, err
}

// due is the seq of the event that is to come before l in the sequence; found is
// that of the one that does, which tells what the sequence is.
func (c *checker) due(l *link, found int64) int64 {
	if c.form == unknown && l.after < l.Seq-1 {
		c.form = all
		if l.after == found {
			c.form = path
		}
	}
	if c.form == path {
		return l.after
	}
	return l.Seq - 1
}

// begins checks the oldest event.
func (c *checker) begins(oldest *link) error {
	after := c.opts.After
	if c.opts.Whole {
		after = 0
	} else if after == 0 {
		return nil
	}
	switch due := c.due(oldest, after); {
	case due > after:
		return wrong(&oldest.Event, ErrGap, fmt.Sprintf("it goes on from %d, the sequence from %d", due, after))
	case due < after:
		return wrong(&oldest.Event, ErrOrder, fmt.Sprintf("it goes on from %d, the sequence from %d", due, after))
	}
	return nil
}

// joins checks that newer follows older; e is the one of them that is new.
func (c *checker) joins(older, newer *link, e *event.Event) error {
	switch due := c.due(newer, older.Seq); {
	case older.Seq > due:
		return wrong(e, ErrOrder, fmt.Sprintf("%d goes on from %d and not from %d", newer.Seq, due, older.Seq))
	case older.Seq < due:
		return wrong(e, ErrGap, fmt.Sprintf("%d goes on from %d and not from %d", newer.Seq, due, older.Seq))
	}
	if older.SessionID == newer.SessionID {
		return nil
	}
	return c.forks(older, newer, e)
}

// forks checks that the session of newer is a fork of what older is the end of.
func (c *checker) forks(older, newer *link, e *event.Event) error {
	if c.left == nil {
		c.left = map[string]bool{}
	}
	c.left[c.last.SessionID] = true
	if c.left[e.SessionID] || older.SessionID == c.opts.Session {
		return wrong(e, ErrMixedSessions, fmt.Sprintf("it stands next to %d of session %q", c.last.Seq, c.last.SessionID))
	}
	if c.form == path && newer.after < newer.Seq-1 {
		return nil // the session_forked is among what the head_moved left
	}
	first := newer.Event
	f, forked, err := event.Decode[event.Fork](&first)
	if err != nil {
		return err
	}
	switch {
	case !forked:
		return wrong(e, ErrMixedSessions, fmt.Sprintf("it stands next to %d of session %q", c.last.Seq, c.last.SessionID))
	case f.Parent == newer.SessionID:
		return wrong(e, ErrCycle, "its session is a fork of itself")
	case f.Seq != older.Seq || f.EventID != older.ID || f.Hash != older.Hash():
		return wrong(e, ErrForkPoint, fmt.Sprintf("session %q goes on from event %v, not %v", newer.SessionID, f.EventID, older.ID))
	}
	return nil
}

func wrong(e *event.Event, rule error, detail string) *OrderError {
	return &OrderError{Session: e.SessionID, Seq: e.Seq, Rule: rule, Detail: detail}
}
