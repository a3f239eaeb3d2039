// Package repair makes damaged sessions readable and appendable again: it truncates
// torn tails, and salvages all readable events of a damaged session.
//
//	report, err := repair.Session(ctx, log, "order-42") // salvages it as report.As
//
// # Salvage
//
// The same damage gives the same lines. S(n) is the event with seq n of the result.
//
//   - A line is readable if its crc is correct, it belongs to the session, and its spilled
//     data exists. Salvage also looks for lines inside bad lines: a newline may be lost.
//   - The result begins with seq 1, or with the line of the lowest seq if that is a
//     session_forked. It ends with the highest known seq, plus one for each bad line after
//     it, unless the file ends in the middle of a line. A last append without its last line
//     is left out if nothing follows it. Lines of other sessions that follow count as its
//     missing lines.
//   - Of several lines with seq n, S(n) is the one that is chained to S(n-1), else the first
//     in the file. Without a line, S(n) is a lost event.
//   - A line stays byte for byte while the session id is the same and no event before it
//     changed. From the first change on, only hash and crc are computed anew. The events of
//     an incomplete append lose more. Events after a gap keep it, unless their append is
//     known to begin before the gap.
//   - A lost event depends on the id of the damaged session and the seq only. With h =
//     SHA-256 of "lost", NUL, session id, NUL and the seq in 8 bytes (big endian), the random
//     part of its id is the first 10 bytes of h, and its salt the last 16. Its timestamp is
//     the timestamp of the event before, or of the first readable event. Its reason describes
//     the damage, its source the place.
//   - A session_forked gets the new hash of a repaired parent, and the new event_id if the
//     parent's event at the fork point was lost. A redacted line before a lost event needs no
//     redacted event that names it, and a redacted event may name a lost event.
//
// For [1][2][3, bad][4 more 1][5][6 more 1][7, half] the result is 1, 2, lost 3, and 4 and 5
// as one append.
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
	// Backup is another log with an older copy of the session. The events that cannot be
	// read are taken from it, and those after the last event, unless it is another history.
	Backup *eventlog.Log
	// DryRun reports the repair, and changes nothing.
	DryRun bool
}

// Action is the kind of a repair.
type Action string

const (
	// None: the session is sound.
	None Action = "none"
	// Cut: a torn tail is truncated, as the next append would do. The tail has no
	// acknowledged event.
	Cut Action = "cut"
	// Salvage: the session is damaged. All readable events are written again, with a
	// lost event for each missing seq.
	Salvage Action = "salvage"
)

// Report describes a repair, or the repair of a dry run.
type Report struct {
	Session string
	Action  Action
	// Path is where the session's lines are stored.
	Path string
	// Torn is the torn tail that the repair truncated or did not salvage. Saved is the
	// file with the bytes of a truncated tail.
	Torn  eventlog.TornTail
	Saved string
	// As is the session with the salvaged events.
	As string
	// Kept is the number of salvaged events, and Copied the number of events from the
	// backup. Stored is the number of events that were new in session As.
	Kept, Copied, Stored int64
	// Lost are the events that could not be read. Ignored are readable lines that are not
	// salvaged.
	Lost, Ignored []Range
	// Resealed is the seq of the first changed line; 0 if no line changed.
	Resealed int64
	// Copy is the path of the old bytes after a repair in place.
	Copy string
	// Unmended are the remaining defects: missing blobs, and events with another hash
	// than the chain has for them.
	Unmended []eventlog.Defect
	// Head is the head of the repaired session.
	Head event.Head
}

// Range is a range of events, and its place in the storage.
type Range struct {
	// Session is the session of the events.
	Session  string
	From, To int64
	// Offset is -1 if the store has no byte offsets.
	Offset, Bytes int64
	// Reason is the reason why the events are lost or ignored.
	Reason string
}

// Error is the reason why a session cannot be repaired. It matches eventlog.ErrCorrupt.
// Restore a backup.
type Error struct {
	Session, Path, Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("beyond repair: %s: %s", e.Path, e.Reason) }

// Is matches eventlog.ErrCorrupt.
func (e *Error) Is(target error) bool { return target == eventlog.ErrCorrupt }

// maxTries is the number of plans for a session that other processes change.
const maxTries = 5

// Session makes a session readable and appendable again. It does nothing to a sound
// session, and truncates a torn tail. If the session is damaged, Session writes all
// readable events at their seqs into a new session, with a lost event for each missing
// seq; the damaged session does not change. A torn tail that may have acknowledged
// events is damage. Session uses the first Options only.
//
// The salvaged session has the ids of the damaged one. The same repair gives the same
// lines: repeat an interrupted repair to finish it. A finished repair may be repeated,
// and changes nothing.
//
// eventlog.ErrExists means that As is another session. eventlog.ErrInUse means that
// forks share events that an InPlace repair would change. An *Error means that no event
// can be salvaged. event.ErrVersion means that a newer program wrote to the session. If
// another process changes the session during an InPlace repair, Session returns a
// *eventlog.ConflictError: try again.
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
