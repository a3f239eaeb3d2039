// Errors appends one event and handles every error of an append: errors DIR SESSION.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	l := eventlog.Open(jsonl.New(os.Args[1]))
	defer l.Close()
	fmt.Println(add(ctx, l, os.Args[2], event.UserMessage("hello")))
}

// add appends e. It returns "stored", or the remedy.
func add(ctx context.Context, l *eventlog.Log, session string, e event.Event) string {
	for {
		_, err := l.Append(ctx, session, eventlog.Any(), e)
		var corrupt *eventlog.CorruptError
		switch {
		case err == nil:
			return "stored"
		case errors.Is(err, eventlog.ErrUnknownOutcome) && ctx.Err() == nil:
			continue // the same event again: it is stored once
		case errors.Is(err, eventlog.ErrUnknownOutcome):
			return "run this again with the same event: it may be stored"
		case errors.Is(err, context.DeadlineExceeded), errors.Is(err, eventlog.ErrLocked):
			return "wait: another process holds the session"
		case errors.As(err, &corrupt):
			return fmt.Sprintf("run logtool store repair %s: %v", corrupt.Session, err)
		case errors.Is(err, eventlog.ErrConflict):
			return "the id of the event belongs to another event"
		case errors.Is(err, eventlog.ErrNotFound):
			return "restore the parent of this fork"
		case errors.Is(err, event.ErrInvalidSession):
			return "choose another session id"
		case errors.Is(err, event.ErrInvalid):
			return "correct the event: " + err.Error()
		case errors.Is(err, eventlog.ErrReadOnly), errors.Is(err, os.ErrPermission):
			return "open the store for writing"
		case errors.Is(err, eventlog.ErrClosed):
			return "open the log again"
		}
		return "nothing was stored: " + err.Error() // for example a full disk
	}
}
