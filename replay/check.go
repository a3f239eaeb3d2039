package replay

import (
	"errors"
	"fmt"
	"iter"

	"github.com/convlog/convlog/event"
)

// Options describe the expected sequence of events. The zero value is a lineage or an
// active path, or a part of one, oldest event first.
type Options struct {
	// Session is the session of the lineage: the sequence has events of it and,
	// before them, events of its ancestors. Empty is any session.
	Session string
	// All requires a lineage, as from Log.Read: no seq is missing. Path requires an
	// active path, as from Log.ActivePath: seqs are missing only where a head_moved
	// leaves them. Without All and Path, the first head_moved that leaves events
	// decides which of the two it is.
	All, Path bool
	// Backward expects the newest event first.
	Backward bool
	// Whole requires a sequence from the first event of the lineage.
	Whole bool
	// After is the seq of the event that the oldest event of the sequence follows; 0
	// is any. Whole overrides After.
	After int64
	// Upcasters are applied to each event before the check.
	Upcasters []event.Upcaster
}

// Check yields the events of a sequence and checks each one before it yields it. It
// ends with an error at the first event that does not fit: an *OrderError, or a
// *event.VersionError for an unknown payload version. It also yields an error of the
// sequence itself, and ends.
func Check(events iter.Seq2[event.Event, error], opts ...Options) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if events == nil {
			yield(event.Event{}, errNoSequence)
			return
		}
		o := optionsOf(opts)
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

// optionsOf returns the first of opts, or the zero Options.
func optionsOf(opts []Options) (o Options) {
	if len(opts) > 0 {
		o = opts[0]
	}
	return o
}

// checker checks a sequence event by event.
type checker struct {
	opts     Options
	form     form
	last     link
	started  bool
	finished map[string]bool // sessions whose events have ended
}

// form is the kind of a sequence.
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

// link is an event and the seq of the event before it in the tree.
type link struct {
	event.Event
	after int64 // 0 for the first event
}

// event upcasts and checks the next event.
func (c *checker) event(e *event.Event) error {
	if err := e.Upcast(c.opts.Upcasters...); err != nil {
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
	case !c.started && !c.opts.Backward:
		err = c.first(&next)
	case !c.started:
	case c.opts.Backward:
		err = c.follows(&next, &c.last, e)
	default:
		err = c.follows(&c.last, &next, e)
	}
	c.last, c.started = next, true
	return err
}

// end checks the oldest event of a backward sequence.
func (c *checker) end() error {
	if !c.started || !c.opts.Backward {
		return nil
	}
	return c.first(&c.last)
}

// before returns the seq of the event before e in the tree.
func before(e *event.Event) (int64, error) {
	if e.Seq < 1 {
		return 0, orderError(e, ruleOrder, "it was not appended to a session")
	}
	after, err := e.Parent()
	if errors.Is(err, event.ErrInvalidTree) {
		return 0, orderError(e, ruleCycle, err.Error())
	}
	return after, err
}

// previousSeq is the seq that must come before l in the sequence. actual is the seq
// that does; it decides the form of the sequence.
func (c *checker) previousSeq(l *link, actual int64) int64 {
	if c.form == unknown && l.after < l.Seq-1 {
		c.form = all
		if l.after == actual {
			c.form = path
		}
	}
	if c.form == path {
		return l.after
	}
	return l.Seq - 1
}

// first checks the oldest event.
func (c *checker) first(oldest *link) error {
	after := c.opts.After
	if c.opts.Whole {
		after = 0
	} else if after == 0 {
		return nil
	}
	switch previous := c.previousSeq(oldest, after); {
	case previous > after:
		return orderError(&oldest.Event, ruleGap, fmt.Sprintf("it follows event %d, and the sequence follows event %d", previous, after))
	case previous < after:
		return orderError(&oldest.Event, ruleOrder, fmt.Sprintf("it follows event %d, and the sequence follows event %d", previous, after))
	}
	return nil
}

// follows checks that newer follows older. e is the one of the two that is new.
func (c *checker) follows(older, newer *link, e *event.Event) error {
	switch previous := c.previousSeq(newer, older.Seq); {
	case older.Seq > previous:
		return orderError(e, ruleOrder, fmt.Sprintf("event %d follows event %d, not event %d", newer.Seq, previous, older.Seq))
	case older.Seq < previous:
		return orderError(e, ruleGap, fmt.Sprintf("event %d follows event %d, not event %d", newer.Seq, previous, older.Seq))
	}
	if older.SessionID == newer.SessionID {
		return nil
	}
	return c.forks(older, newer, e)
}

// forks checks that the session of newer is a fork at event older.
func (c *checker) forks(older, newer *link, e *event.Event) error {
	if c.finished == nil {
		c.finished = map[string]bool{}
	}
	c.finished[c.last.SessionID] = true
	if c.finished[e.SessionID] || older.SessionID == c.opts.Session {
		return orderError(e, ruleMixedSessions, fmt.Sprintf("it is next to event %d of session %q", c.last.Seq, c.last.SessionID))
	}
	if c.form == path && newer.after < newer.Seq-1 {
		return nil // the head_moved left the session_forked
	}
	first := newer.Event
	f, forked, err := event.Decode[event.Fork](&first)
	if err != nil {
		return err
	}
	switch {
	case !forked:
		return orderError(e, ruleMixedSessions, fmt.Sprintf("it is next to event %d of session %q", c.last.Seq, c.last.SessionID))
	case f.Parent == newer.SessionID:
		return orderError(e, ruleCycle, "its session is a fork of itself")
	case f.Seq != older.Seq || f.EventID != older.ID || f.Hash != older.Hash():
		return orderError(e, ruleForkPoint, fmt.Sprintf("session %q was forked at event %v, not %v", newer.SessionID, f.EventID, older.ID))
	}
	return nil
}

func orderError(e *event.Event, rule, detail string) *OrderError {
	return &OrderError{Session: e.SessionID, Seq: e.Seq, Rule: rule, Detail: detail}
}
