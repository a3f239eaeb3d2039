package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// Status of a session or a snapshot. It is derived from the log and the lease, and never
// stored.
type Status string

// The statuses.
const (
	// StatusNew: no turn began.
	StatusNew Status = "new"
	// StatusRunning: a turn is open, and its runner is alive.
	StatusRunning Status = "running"
	// StatusHibernated: the turn waits for reviews or for the next Resume.
	StatusHibernated Status = "hibernated"
	// StatusWaiting: the turn waits for a signal or a time.
	StatusWaiting Status = "waiting"
	// StatusExpired: a turn is open and has no runner. The next Resume or Serve continues it, after
	// Reconcile if the outcome of an effect is unknown (ErrNeedsReconcile).
	StatusExpired Status = "expired"
	// StatusFailed, StatusAborted and StatusFinished: how the last turn ended.
	StatusFailed   Status = "failed"
	StatusAborted  Status = "aborted"
	StatusFinished Status = "finished"
)

// RunInfo is the state of the runs of a session: its status, runner, and open reviews,
// waits and effects.
type RunInfo struct {
	Session string
	Status  Status
	// Agent is the agent of the open turn.
	Agent string
	// Pending is the open work. Its Approvals have the reviews of children too.
	projection.Pending
	// Epoch is the number of claims so far; 0 if no runner had the session.
	Epoch int64
	// Runner is the runner that is alive, empty if there is none.
	Runner string
	// Since is the time of the newest event.
	Since time.Time
	// Due is when a timer ends or a retry is due; zero if there is none.
	Due time.Time
	// Parent is the session that runs this one as a child, empty if there is none.
	Parent string

	hibernated *Hibernated // nil if the turn does not hibernate
}

// Info returns the status of a session, its runner, and the reasons why it waits.
func Info(ctx context.Context, log *eventlog.Log, session string) (RunInfo, error) {
	for {
		l, err := projection.LoadSet(ctx, log, session, infoSet)
		if err != nil {
			return RunInfo{}, err
		}
		info, err := infoOf(ctx, log, l)
		if err != nil || info.Claim == nil || info.Runner != "" {
			return info, err
		}
		// The runner was killed, or released its claim after the states were read.
		if head, err := log.Head(ctx, session); err != nil || head == l.Head {
			return info, err
		}
	}
}

var infoSet = projection.Of("flow:info", projection.Calls(), projection.Control(), projection.Info())

// Runs yields the sessions of a log that a runner had, or that have posted inputs, ordered
// by id. A session that cannot be read has its error, and the listing continues.
func Runs(ctx context.Context, log *eventlog.Log) iter.Seq2[RunInfo, error] {
	return func(yield func(RunInfo, error) bool) {
		for s, err := range log.Sessions(ctx) {
			if err != nil {
				yield(RunInfo{}, err)
				return
			}
			info, err := Info(ctx, log, s.ID)
			info.Session = s.ID
			if err == nil && info.Epoch == 0 && len(info.Inbox) == 0 {
				continue
			}
			if !yield(info, err) || ctx.Err() != nil {
				return
			}
		}
	}
}

func infoOf(ctx context.Context, log *eventlog.Log, l *projection.Loaded) (RunInfo, error) {
	p, err := projection.PendingOf(ctx, log, l)
	if err != nil {
		return RunInfo{}, err
	}
	meta, _ := projection.State(l, projection.Info())
	control, _ := projection.State(l, projection.Control())
	info := RunInfo{Session: l.Session, Pending: p, Epoch: control.Epoch, Since: meta.Updated, Agent: meta.Agent, Parent: meta.Parent.SessionID}
	ended := control.Ended
	if meta.Fork.Child.ChildID != "" {
		info.Parent = meta.Fork.Parent
		ended = info.dropParent(meta.Fork.Seq, ended)
	}
	held, err := alive(ctx, log, info.Session, p.Claim)
	if err != nil && !errors.Is(err, eventlog.ErrUnsupported) {
		return info, err
	}
	if held {
		info.Runner = p.Claim.Runner
	}
	info.Status, err = statusOf(ctx, log, &info, ended)
	return info, err
}

// dropParent drops the turns of the parent from the state of a child that is a fork: the
// turn that is open at the fork point runs in the parent.
func (i *RunInfo) dropParent(fork int64, ended []projection.EndedTurn) []projection.EndedTurn {
	if i.Turn != nil && i.Turn.Seq <= fork {
		i.Turn, i.Effects, i.Calls = nil, nil, nil
	}
	return slices.DeleteFunc(slices.Clone(ended), func(x projection.EndedTurn) bool { return x.Seq <= fork })
}

func statusOf(ctx context.Context, log *eventlog.Log, info *RunInfo, ended []projection.EndedTurn) (Status, error) {
	if t := info.Turn; t != nil {
		info.Agent = t.Agent
		if !hibernates(&info.Pending) {
			if err := info.addReviewsBelow(ctx, log); err != nil {
				return "", err
			}
			if info.Runner != "" {
				return StatusRunning, nil
			}
			return StatusExpired, nil
		}
		h, err := hibernationOf(ctx, log, info.Session, &info.Pending)
		if err != nil {
			return "", err
		}
		info.hibernated, info.Due = h, h.Until
		info.Approvals = append(info.Approvals, h.ofChildren()...)
		waits := h.Cursor.Kind == pauseWait || h.Cursor.Kind == pauseEffect && !h.Until.IsZero() || h.Cursor.Kind == pauseChild && len(h.Reviews) == 0
		if waits {
			return StatusWaiting, nil
		}
		return StatusHibernated, nil
	}
	if len(ended) == 0 {
		return StatusNew, nil
	}
	return endedStatus(ended[len(ended)-1].Status), nil
}

// addReviewsBelow adds the reviews of blocked children to a turn that does not hibernate,
// for example because another child runs.
func (i *RunInfo) addReviewsBelow(ctx context.Context, log *eventlog.Log) error {
	for _, c := range childrenOf(&i.Pending) {
		if c.State != event.ChildBlocked {
			continue
		}
		child, err := Info(ctx, log, c.SessionID)
		if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
			return fmt.Errorf("child session %q: %w", c.SessionID, err)
		}
		for _, r := range child.Approvals {
			r.SessionID = cmp.Or(r.SessionID, c.SessionID)
			i.Approvals = append(i.Approvals, r)
		}
	}
	return nil
}

func endedStatus(s event.TurnStatus) Status {
	switch s {
	case event.TurnStatusCompleted:
		return StatusFinished
	case event.TurnStatusFailed:
		return StatusFailed
	default:
		return StatusAborted
	}
}
