package runlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// ErrRunCycle means that a session is a child run of itself. Load it without children;
// export the sessions by name, not as a tree.
var ErrRunCycle = errors.New("a session is its own child run")

// Options configure Load. The zero value loads the whole tree.
type Options struct {
	// NoChildren does not load the sessions of children.
	NoChildren bool
	// Own leaves out the prefix that a fork shares with its parent. It is always left
	// out of children.
	Own bool
	// From and To bound the events that are read; 0 is no bound. The run has the ops that begin
	// there, and their sums. They do not bound the events of children.
	From, To int64
	// Outline loads the tree without its content: no requests, responses, log lines,
	// contexts and accounting entries, and of the input and the output of a turn the
	// beginning of the text only. The totals are the same.
	Outline bool
	// Estimate estimates the costs of unpriced answers, see projection.Spend.Estimate; nil
	// estimates nothing. prices.Table has the method Cost for it.
	Estimate func(model string, at time.Time, u event.Usage) (event.Cost, bool)
}

// Load reads a session and the sessions of its child runs into a tree, each session
// once. ChildOp.Missing marks a child whose session is missing. The error is
// ErrRunCycle if a session is its own child, and eventlog.ErrNotFound if the session
// is missing. A load with several options uses the first.
func Load(ctx context.Context, log *eventlog.Log, session string, opts ...Options) (*Run, error) {
	l := runLoader{log: log, loaded: map[string]bool{}}
	if len(opts) > 0 {
		l.opts = opts[0]
	}
	run, err := l.load(ctx, session, l.opts)
	if err != nil {
		return nil, fmt.Errorf("runs of session %q: %w", session, err)
	}
	return run, nil
}

type runLoader struct {
	log    *eventlog.Log
	opts   Options
	stack  []string
	loaded map[string]bool
}

func (l *runLoader) load(ctx context.Context, session string, o Options) (*Run, error) {
	l.stack = append(l.stack, session)
	l.loaded[session] = true
	run, err := l.read(ctx, session, o)
	if err != nil {
		return nil, err
	}
	run.Totals.Tree = run.Totals.Own
	for op := range run.ops() {
		for _, c := range op.Children {
			if err := l.open(ctx, run, c); err != nil {
				return nil, err
			}
		}
	}
	l.stack = l.stack[:len(l.stack)-1]
	return run, nil
}

// read makes the run of one session.
func (l *runLoader) read(ctx context.Context, session string, o Options) (*Run, error) {
	path, err := l.log.Path(ctx, session, 0)
	if err != nil {
		return nil, err
	}
	to := path[len(path)-1].To
	if o.To > 0 {
		to = min(to, o.To)
	}
	all := eventlog.Between(o.From, to)
	if o.Outline {
		all = all.Transient() // an outline keeps no bytes of an event
	}
	b := newRunBuilder(session, o, path)
	for e, err := range l.log.Read(ctx, session, all) {
		if err == nil {
			err = b.add(e.Effective())
		}
		if err != nil {
			return nil, err
		}
	}
	return b.done()
}

// open loads the session of a child.
func (l *runLoader) open(ctx context.Context, run *Run, c *ChildOp) error {
	run.Totals.Children++
	if l.opts.NoChildren || c.SessionID == "" || c.Inherited {
		return nil
	}
	if slices.Contains(l.stack, c.SessionID) {
		return fmt.Errorf("%w: %q", ErrRunCycle, c.SessionID)
	}
	if l.loaded[c.SessionID] {
		c.Elsewhere = true
		return nil
	}
	o := l.opts
	o.Own, o.From, o.To = true, 0, 0
	child, err := l.load(ctx, c.SessionID, o)
	if errors.Is(err, eventlog.ErrNotFound) && len(l.stack) > 0 && l.stack[len(l.stack)-1] == c.SessionID {
		c.Missing = true
		l.stack = l.stack[:len(l.stack)-1]
		return nil
	}
	if err != nil {
		return err
	}
	c.Run = child
	run.Totals.Tree = run.Totals.Tree.Add(child.Totals.Tree)
	return nil
}

// ops yields all ops of a run, without the ops of children.
func (r *Run) ops() func(yield func(*Op) bool) {
	return func(yield func(*Op) bool) {
		for _, op := range r.Ops {
			if !yield(op) {
				return
			}
		}
		for _, t := range r.Turns {
			for _, op := range t.Ops {
				if !yield(op) {
					return
				}
			}
		}
	}
}
