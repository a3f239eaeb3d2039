package main

import (
	"context"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// orphans tells which events of a session were rewound. It reads back from the
// head as far as it is asked, and no further.
type orphans struct {
	log     *eventlog.Log
	session string
	begun   bool
	path    []event.Stretch // of the active path, newest first
	next    int64           // the seq of the next event of the path
}

func newOrphans(log *eventlog.Log, session string) *orphans {
	return &orphans{log: log, session: session}
}

// has reports whether an event counts on a path, and is not on the active one.
// Of no orphans that is never so.
func (o *orphans) has(ctx context.Context, e *event.Event) (bool, error) {
	if o == nil || e.Type.Scope() != event.PathScope {
		return false, nil
	}
	if err := o.reach(ctx, e.Seq); err != nil {
		return false, err
	}
	for _, s := range o.path {
		if s.From <= e.Seq && e.Seq <= s.To {
			return false, nil
		}
	}
	return true, nil
}

// reach follows the path back until it is at seq or before it.
func (o *orphans) reach(ctx context.Context, seq int64) error {
	if !o.begun {
		head, err := o.log.Head(ctx, o.session)
		if err != nil {
			return err
		}
		o.begun, o.next = true, head.Seq
	}
	if o.next < seq {
		return nil
	}
	for e, err := range o.log.Read(ctx, o.session, eventlog.Between(seq, o.next).Backward()) {
		if err != nil {
			return err
		}
		if e.Seq > o.next {
			continue
		}
		if err := o.step(&e); err != nil {
			return err
		}
		if o.next < seq {
			return nil
		}
	}
	return nil
}

// step goes to the event before e in the tree.
func (o *orphans) step(e *event.Event) error {
	if n := len(o.path); n > 0 && o.path[n-1].From == e.Seq+1 {
		o.path[n-1].From = e.Seq
	} else {
		o.path = append(o.path, event.Stretch{From: e.Seq, To: e.Seq})
	}
	next, err := e.Parent()
	o.next = next
	return err
}
