package transfer

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/internal/adopt"
)

// Result reports the copy of one session.
type Result struct {
	Session string
	// Read is the number of events in the source. Stored is the number of events
	// that were new to the destination.
	Read, Stored int64
	// Head is the head of the session in the destination.
	Head event.Head
}

// Adopt stores finished events of a session as they are: ids, seqs, times and
// hashes stay. event.Parse checked their crc. Adopt checks seqs, the chain, the
// JSON, the rules of payloads, and that blobs and a fork's parent exist, before it
// stores anything. It iterates events twice.
//
// Adopt skips events that the session has already. A session with another history
// is a *eventlog.ConflictError; damage in events is a *eventlog.CorruptError. Data
// over the log's threshold is spilled, which changes no hash.
func Adopt(ctx context.Context, log *eventlog.Log, session string, events iter.Seq2[event.Event, error]) (Result, error) {
	adopted, err := adopt.Events(ctx, log, session, events, false)
	if err != nil {
		return Result{}, fmt.Errorf("adopt: %w", ofSession(session, err))
	}
	return Result{Session: session, Read: adopted.Read, Stored: adopted.Stored, Head: adopted.Head}, nil
}

// adoptHeld is Adopt under the store lock of log, which the context of events holds
// too. Its errors do not name the session.
func adoptHeld(ctx context.Context, log *eventlog.Log, session string, events func(ctx context.Context, yield func(event.Event, error) bool)) (Result, error) {
	var adopted adopt.Result
	err := log.Hold(ctx, func(ctx context.Context) (err error) {
		adopted, err = adopt.Events(ctx, log, session, func(yield func(event.Event, error) bool) { events(ctx, yield) }, false)
		return err
	})
	return Result{Session: session, Read: adopted.Read, Stored: adopted.Stored, Head: adopted.Head}, err
}

// ofSession names the session in err, unless err names it already.
func ofSession(session string, err error) error {
	var conflict *eventlog.ConflictError
	var corrupt *eventlog.CorruptError
	if errors.As(err, &conflict) && conflict.Session == session ||
		errors.As(err, &corrupt) && corrupt.Path == "" && corrupt.Session == session {
		return err
	}
	return fmt.Errorf("session %q: %w", session, err)
}
