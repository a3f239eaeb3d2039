// Package retire removes sessions that nobody has used for a time, after it has copied
// them to an archive. The archive is a store; transfer.Convert brings sessions back.
//
//	plan, err := retire.NewPlan(ctx, log, time.Now().AddDate(0, 0, -90))
//	err = plan.Archive(ctx, archive, log)        // copies and verifies
//	err = plan.WriteManifest(dir, time.Now())    // says what goes, on disk
//	err = plan.Remove(ctx, log)
//
// Every step may be repeated after a kill: the next plan has the sessions that are not
// removed yet, the archive skips the events that it has, and a session is removed only
// at the head that was archived.
package retire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/storenotes"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/transfer"
	"github.com/convlog/convlog/upkeep/verify"
)

// Session is a session to retire, or an idle session that stays.
type Session struct {
	ID string
	// Parent is the parent of a fork.
	Parent string
	Events int64
	Bytes  int64
	Head   event.Head
	// Last is the time of the newest event.
	Last time.Time
	// Reason is the reason why a session stays.
	Reason string
}

// Plan says which sessions are retired.
type Plan struct {
	// Before is the time before which a retired session was used last.
	Before time.Time
	// Sessions are the sessions to retire, forks before their parents. Archive and Remove
	// take out sessions that were used meanwhile.
	Sessions []Session
	// Kept are the idle sessions that stay, each with the reason.
	Kept []Session
	// Parents are the sessions that Archive copied because forks need them. They stay.
	Parents []string
	// Removed are the sessions that Remove has removed.
	Removed []Session
	// By and Reason are stored in the notes of the store: who retires, and why. Set them before Remove.
	By, Reason string
}

// NewPlan selects the sessions whose newest event is older than before. A session with a
// fork that stays, stays too, and so does a damaged session and a session on hold. If the
// beginning of a session is unreadable, NewPlan fails: the session may be a fork of any
// session.
func NewPlan(ctx context.Context, log *eventlog.Log, before time.Time) (*Plan, error) {
	forest, err := fork.Tree(ctx, log)
	if err != nil {
		return nil, fmt.Errorf("retire: %w", err)
	}
	notes, err := storenotes.Load(ctx, log)
	if err != nil {
		return nil, fmt.Errorf("retire: %w", err)
	}
	p := planning{Plan: &Plan{Before: before}, notes: notes, stays: map[string]bool{}}
	var all []*fork.Node
	for _, n := range forest.All() {
		all = append(all, n)
		if n.Err != nil && n.First == 0 {
			return nil, fmt.Errorf("retire: session %q is unreadable and may be a fork: %w", n.ID, n.Err)
		}
	}
	for _, n := range slices.Backward(all) { // forks before their parents
		p.decide(n)
	}
	return p.Plan, nil
}

type planning struct {
	*Plan
	notes *storenotes.Notes
	stays map[string]bool
}

// decide decides on a session. Its forks are decided already.
func (p *planning) decide(n *fork.Node) {
	if n.ID == storenotes.Session {
		return
	}
	last := n.Active
	reason := ""
	for _, f := range n.Forks() {
		if p.stays[f.ID] {
			reason = fmt.Sprintf("its fork %q stays", f.ID)
			break
		}
	}
	switch {
	case n.Err != nil:
		reason = "it is damaged: " + n.Err.Error()
	case reason == "" && event.Dated(last).IsZero():
		reason = "its source has no dates"
	case len(p.notes.Holds(n.ID)) > 0 && last.Before(p.Before):
		reason = heldReason(p.notes.Holds(n.ID)[0])
	case !last.Before(p.Before):
		p.stays[n.ID] = true
		return
	}
	s := Session{ID: n.ID, Events: n.Events(), Bytes: n.Bytes, Head: n.Last, Last: last, Reason: reason}
	if n.Kind == fork.KindFork {
		s.Parent = n.Parent
	}
	if reason != "" {
		p.stays[n.ID] = true
		p.Kept = append(p.Kept, s)
		return
	}
	p.Sessions = append(p.Sessions, s)
}

// heldReason is the reason why a session on hold stays.
func heldReason(h storenotes.Hold) string {
	held := erase.HeldError{Since: h.Time, By: h.By, Reason: h.Reason}
	return held.Why()
}

// Archive copies the sessions of the plan to the log dst, with the parents that forks
// need, and verifies the copies. It changes nothing in src. If Archive fails, do not call
// Remove. Close dst before Remove, so that everything is on disk.
func (p *Plan) Archive(ctx context.Context, dst, src *eventlog.Log) error {
	var ids []string
	for _, s := range p.Sessions {
		ids = append(ids, s.ID)
	}
	if len(ids) == 0 {
		return nil
	}
	p.Parents = nil
	for copied, err := range transfer.Convert(ctx, dst, src, transfer.Options{Sessions: ids, ApplyRedactions: true}) {
		if err != nil {
			return fmt.Errorf("archive: %w", err)
		}
		if !slices.Contains(ids, copied.Session) && !slices.Contains(p.Parents, copied.Session) {
			p.Parents = append(p.Parents, copied.Session)
		}
	}
	verifier := verify.New(dst)
	for _, s := range slices.Clone(p.Sessions) {
		head, err := dst.Head(ctx, s.ID)
		if err != nil {
			return fmt.Errorf("archive: %w", err)
		}
		if head != s.Head {
			p.keep(s, "it has new events")
			continue
		}
		report, err := verifier.Session(ctx, s.ID)
		if err == nil && report.Damaged() > 0 {
			err = fmt.Errorf("the copy of session %q is damaged: %v", s.ID, report.Defects[0])
		}
		if err != nil {
			return fmt.Errorf("archive: %w", err)
		}
	}
	return nil
}

// keep takes a session out of the plan, and its ancestors.
func (p *Plan) keep(s Session, reason string) {
	p.Sessions = slices.DeleteFunc(p.Sessions, func(x Session) bool { return x.ID == s.ID })
	s.Reason = reason
	p.Kept = append(p.Kept, s)
	if i := slices.IndexFunc(p.Sessions, func(x Session) bool { return x.ID == s.Parent }); i >= 0 {
		p.keep(p.Sessions[i], fmt.Sprintf("its fork %q stays", s.ID))
	}
}

// Remove removes the sessions of the plan, forks first, each at the head of the plan. A
// session that another process has used or forked meanwhile stays. After an error, the
// sessions that are not removed are in the store. Blobs stay until erase.Collect.
func (p *Plan) Remove(ctx context.Context, log *eventlog.Log) error {
	for len(p.Sessions) > 0 {
		err := p.removeEach(ctx, log)
		var held *erase.HeldError
		switch {
		case err == nil:
		case errors.As(err, &held):
			p.keep(p.find(held.Session), held.Why())
		case errors.Is(err, eventlog.ErrConflict):
			p.keep(p.Sessions[0], "it has new events")
		case errors.Is(err, eventlog.ErrInUse):
			p.keep(p.Sessions[0], "it has a new fork")
		case errors.Is(err, eventlog.ErrNotFound):
			p.removed()
		default:
			return fmt.Errorf("retire: %w", err)
		}
	}
	return nil
}

// removeEach removes sessions up to the first one that cannot be removed, which is then
// the first session of the plan.
func (p *Plan) removeEach(ctx context.Context, log *eventlog.Log) error {
	var ids []string
	heads := map[string]event.Head{}
	for _, s := range p.Sessions {
		ids = append(ids, s.ID)
		heads[s.ID] = s.Head
	}
	done := func(string) error {
		p.removed()
		return nil
	}
	return erase.RemoveEach(ctx, log, ids, done, erase.RemoveOptions{Heads: heads, Retired: true, By: p.By, Reason: p.Reason})
}

// find is the session of an id.
func (p *Plan) find(id string) Session {
	return p.Sessions[slices.IndexFunc(p.Sessions, func(s Session) bool { return s.ID == id })]
}

// removed moves the first session to Removed.
func (p *Plan) removed() {
	p.Removed = append(p.Removed, p.Sessions[0])
	p.Sessions = p.Sessions[1:]
}
