package eventlog

import (
	"context"
	"errors"
	"fmt"
)

// RepairOptions say where the events of a damaged session go. The zero value is
// a new session of the same log.
type RepairOptions struct {
	// As is the id of the session that is written. By default it is the damaged
	// session's with "-salvaged" behind it, or "-salvaged-2" and so on where that
	// is taken by something else; in another log, the same id.
	As string
	// Into is another log to write to, with the blobs that are needed and, for a
	// fork, its parents.
	Into *Log
	// InPlace puts the repaired session in the place of the damaged one, of
	// which the store keeps a copy first.
	InPlace bool
}

// RepairAction is what a repair does.
type RepairAction string

const (
	// RepairNone: the session is sound.
	RepairNone RepairAction = "none"
	// RepairCut: a torn tail is cut off, as the next append would; nothing that
	// was acknowledged is in it.
	RepairCut RepairAction = "cut"
	// RepairSalvage: the session is damaged. What stands before and after the
	// damage is written anew, with a lost event for each seq that is not there.
	RepairSalvage RepairAction = "salvage"
)

// Repair reports what a repair did, or would do.
type Repair struct {
	Session string
	Action  RepairAction
	// Path is where the session's lines are.
	Path string
	// Torn is the torn tail that was cut off, and Saved the file it was saved
	// to; or the one that salvage left out.
	Torn  TornTail
	Saved string
	// As is the session that was written.
	As string
	// Kept events were found, Stored of As were not there yet.
	Kept, Stored int64
	Lost         []LostRange
	Ignored      []Ignored
	// Resealed is the seq from which on lines are not what they were, 0 if none.
	Resealed int64
	// Copy is where what an InPlace repair replaced is kept.
	Copy string
	// Unmended are defects that stay: blobs that are missing, and events that are
	// not what the chain committed to.
	Unmended []Defect
	// Head is the repaired session's.
	Head Head
}

// LostRange are events that could not be read, and where they must have been.
type LostRange struct {
	From, To int64
	// Offset is -1 where there is no such place.
	Offset, Bytes int64
	Reason        string
}

// Ignored are lines that can be read and stay out.
type Ignored struct {
	Session       string
	From, To      int64
	Offset, Bytes int64
	Reason        string
}

// RepairError says why a session cannot be repaired. It matches ErrCorrupt.
type RepairError struct {
	Session, Path, Reason string
}

func (e *RepairError) Error() string {
	return fmt.Sprintf("beyond repair: %s: %s", e.Path, e.Reason)
}

// Is matches ErrCorrupt.
func (e *RepairError) Is(target error) bool { return target == ErrCorrupt }

// Repair makes a session readable and appendable again. A sound one is left
// alone; a torn tail is cut off. From a damaged one, all events that can be read
// are salvaged at their seqs into a new session (RepairOptions), and a lost event
// stands for each that cannot; the damaged session is not touched. A torn tail
// that acknowledged events may be in counts as damage.
//
// The salvaged session repeats the ids of the damaged one. The same repair gives
// the same lines, so one that was interrupted is finished by repeating it, and
// repeating one that is done changes nothing.
//
// ErrExists says that As is another session, ErrInUse that forks share events
// which an InPlace repair would change, a *RepairError that there is nothing to
// salvage, and ErrVersion that a newer program wrote to the session. A session
// that is changed by others during an InPlace repair is a *ConflictError: try
// again.
func (l *Log) Repair(ctx context.Context, session string, opts RepairOptions) (Repair, error) {
	return l.repair(ctx, session, opts, false)
}

// PlanRepair is Repair without doing it.
func (l *Log) PlanRepair(ctx context.Context, session string, opts RepairOptions) (Repair, error) {
	return l.repair(ctx, session, opts, true)
}

func (l *Log) repair(ctx context.Context, session string, opts RepairOptions, dry bool) (Repair, error) {
	if err := l.readable(ctx, session); err != nil {
		return Repair{}, err
	}
	if opts.As != "" {
		if err := CheckSessionID(opts.As); err != nil {
			return Repair{}, err
		}
	}
	if opts.InPlace && (opts.Into != nil || opts.As != "" && opts.As != session) {
		return Repair{}, fmt.Errorf("repair session %q: %w: in place and elsewhere", session, ErrInvalid)
	}
	for tries := 1; ; tries++ {
		r := repairer{log: l, into: l, opts: opts, dry: dry, report: Repair{Session: session, Action: RepairNone}}
		if opts.Into != nil {
			r.into = opts.Into
		}
		err := r.run(ctx, session)
		if errors.Is(err, ErrConflict) && tries < repairTries {
			continue // somebody appended meanwhile
		}
		if err != nil {
			return Repair{}, fmt.Errorf("repair session %q: %w", session, err)
		}
		return r.report, nil
	}
}

// repairTries is how often a repair is planned anew because the session has
// changed.
const repairTries = 5
