package main

import (
	"context"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// answered waits until somebody answers a review, after an event.
func answered(ctx context.Context, l *eventlog.Log, after event.Head) error {
	for e, err := range l.Watch(ctx, *session, after.Seq+1) {
		if err != nil {
			return err
		}
		if e.Type.Name() == event.ApprovalResolved {
			return nil
		}
	}
	return ctx.Err()
}
