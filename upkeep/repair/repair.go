// Package repair makes damaged sessions readable and appendable again: it truncates
// torn tails, and salvages all readable events of a damaged session.
package repair

import (
	"context"
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
)

// Options say where the events of a damaged session go. The zero value is a new
// session of the same log.
type Options struct {
	// As is the id of the session that is written. By default it is the damaged
	// session's id with "-salvaged", or "-salvaged-2" and so on if that is taken by
	// another session; in another log, the same id.
	As string
	// Into is another log to write to, with the blobs the session needs and, for a
	// fork, its parents.
	Into *eventlog.Log
	// InPlace replaces the damaged session. The store saves a copy of it first.
	InPlace bool
	// DryRun reports what would be done, and does nothing.
	DryRun bool
}

// Action is what a repair does.
type Action string

const (
	// None: the session is sound.
	None Action = "none"
	// Cut: a torn tail is truncated, as the next append would do. It holds nothing
	// that was acknowledged.
	Cut Action = "cut"
	// Salvage: the session is damaged. All readable events are written again, with a
	// lost event for each seq that is missing.
	Salvage Action = "salvage"
)

// Report says what a repair did, or would do.
type Report struct {
	Session string
	Action  Action
	// Path is where the session's lines are stored.
	Path string
	// Torn is the torn tail that was truncated, and Saved the file with its bytes; or
	// the torn tail that a salvage left out.
	Torn  eventlog.TornTail
	Saved string
	// As is the session that was written.
	As string
	// Kept counts the events that were found, Stored those that were new in As.
	Kept, Stored int64
	Lost         []LostRange
	Ignored      []Ignored
	// Resealed is the first seq whose line changed; 0 if none did.
	Resealed int64
	// Copy is the saved copy of the session that was replaced in place.
	Copy string
	// Unmended are defects that remain: missing blobs, and events that are not the
	// ones the chain committed to.
	Unmended []eventlog.Defect
	// Head is the repaired session's.
	Head event.Head
}

// LostRange is a range of events that could not be read.
type LostRange struct {
	From, To int64
	// Offset is -1 if there is no such place.
	Offset, Bytes int64
	Reason        string
}

// Ignored is a range of readable lines that are not salvaged.
type Ignored struct {
	Session       string
	From, To      int64
	Offset, Bytes int64
	Reason        string
}

// Error says why a session cannot be repaired. It matches eventlog.ErrCorrupt.
type Error struct {
	Session, Path, Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("beyond repair: %s: %s", e.Path, e.Reason) }

// Is matches eventlog.ErrCorrupt.
func (e *Error) Is(target error) bool { return target == eventlog.ErrCorrupt }

// maxTries is how often a repair is planned again because the session has changed.
const maxTries = 5

// Session makes a session readable and appendable again. A sound session stays as it
// is; a torn tail is truncated. From a damaged session, all readable events are
// salvaged at their seqs into a new session, and a lost event stands for each
// missing one; the damaged session stays as it is. A torn tail that may hold
// acknowledged events counts as damage. At most one Options is used.
//
// The salvaged session repeats the ids of the damaged one. The same repair gives the
// same lines: repeat an interrupted one to finish it; repeating a finished one
// changes nothing.
//
// eventlog.ErrExists means that As is another session, eventlog.ErrInUse that forks
// share events which an InPlace repair would change, an *Error that nothing can be
// salvaged, and event.ErrVersion that a newer program wrote to the session. A session
// that others change during an InPlace repair is a *eventlog.ConflictError: try again.
func Session(ctx context.Context, log *eventlog.Log, session string, opts ...Options) (Report, error) {
	var o Options
	if len(opts) > 0 {
		o = opts[0]
	}
	if err := o.check(ctx, log, session); err != nil {
		return Report{}, err
	}
	for tries := 1; ; tries++ {
		r := newRepairer(log, o)
		err := r.run(ctx, session)
		if errors.Is(err, eventlog.ErrConflict) && tries < maxTries {
			continue // another process appended meanwhile
		}
		if err != nil {
			return Report{}, fmt.Errorf("repair session %q: %w", session, err)
		}
		return r.report, nil
	}
}

func (o *Options) check(ctx context.Context, log *eventlog.Log, session string) error {
	if err := engine.Of(log).Usable(ctx, session); err != nil {
		return err
	}
	if o.As != "" {
		if err := event.CheckSessionID(o.As); err != nil {
			return err
		}
	}
	if o.InPlace && (o.Into != nil || o.As != "" && o.As != session) {
		return fmt.Errorf("repair session %q: %w: in place and elsewhere", session, event.ErrInvalid)
	}
	return nil
}
