package transfer

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/storenotes"
	"github.com/convlog/convlog/upkeep/erase"
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
	// LeftOut says that the session was removed from the destination, or is below such a
	// session, or is convlog:store, and that Import stored nothing of it.
	LeftOut bool
}

// Adopt stores finished events of a session as they are: ids, seqs, times and
// hashes stay. event.Parse checked their crc. Adopt checks seqs, the chain, the
// JSON, the rules of payloads, that blobs and a fork's parent exist, and that redacted
// events name the redacted lines, before it stores anything. It iterates events twice.
//
// Adopt does not obey a redaction: if an event of the stream is redacted and the
// session has it in full, Adopt stores nothing, and fails with a *RedactionError.
//
// Adopt skips events that the session has already. A session with another history
// is a *eventlog.ConflictError; damage in events is a *eventlog.CorruptError. Data
// over the log's threshold is spilled, which changes no hash.
func Adopt(ctx context.Context, log *eventlog.Log, session string, events iter.Seq2[event.Event, error]) (Result, error) {
	adopted, err := adopt.Events(ctx, log, session, events, adopt.Options{Explained: true})
	if err != nil {
		return Result{}, fmt.Errorf("adopt: %w", ofSession(session, err))
	}
	return Result{Session: session, Read: adopted.Read, Stored: adopted.Stored, Head: adopted.Head}, nil
}

// RedactionError reports redactions of a stream that were not obeyed: events that are
// redacted in the source, and not in the destination. If it names an Original, it reports copies
// (fork.Copy) of events that are redacted in the destination. Nothing of the session was stored.
type RedactionError = adopt.RedactionError

// source yields finished events of one session. It may be called several times.
type source func(ctx context.Context, yield func(event.Event, error) bool)

// adoptHeld is Adopt under the store lock of log, which the context of events holds
// too. It obeys redactions if follows is set, which reports whether the stream of a
// session is adopted later. Its errors do not name the session.
// damage is the error at which the reading of the session in log ended.
func adoptHeld(ctx context.Context, log *eventlog.Log, session string, opts adopt.Options, follows func(session string) bool, events source, originals *originals) (result Result, damage, err error) {
	var adopted adopt.Result
	erased := false // the stream has redacted events
	try := func(ctx context.Context) (err error) {
		adopted, err = adopt.Events(ctx, log, session, originals.screen(ctx, session, func(yield func(event.Event, error) bool) {
			events(ctx, func(e event.Event, err error) bool {
				erased = erased || err == nil && e.Redacted()
				return yield(e, err)
			})
		}), opts)
		return err
	}
	err = log.Hold(ctx, try)
	var order *RedactionError
	if follows != nil && errors.As(err, &order) && order.Original == "" {
		opts.Redact = erase.Adopted{Log: log, Follows: follows}
		err = engine.Of(log).Locked(ctx, true, try)
	}
	if err == nil && erased {
		err = storenotes.NoteErased(ctx, log, session)
	}
	return Result{Session: session, Read: adopted.Read, Stored: adopted.Stored, Head: adopted.Head}, adopted.Damage, err
}

// ofSession names the session in err, unless err names it already.
func ofSession(session string, err error) error {
	var conflict *eventlog.ConflictError
	var corrupt *eventlog.CorruptError
	var order *RedactionError
	if errors.As(err, &order) || errors.As(err, &conflict) && conflict.Session == session ||
		errors.As(err, &corrupt) && corrupt.Path == "" && corrupt.Session == session {
		return err
	}
	return fmt.Errorf("session %q: %w", session, err)
}
