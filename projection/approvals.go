package projection

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// OpenApproval is an approval request without an answer.
type OpenApproval struct {
	Seq         int64  `json:"seq"`
	InterruptID string `json:"interrupt_id"`
	EffectID    string `json:"effect_id,omitzero"`
	CallID      string `json:"call_id,omitzero"`
	Name        string `json:"name,omitzero"`
	// TurnID, CursorID and Ordinal are the turn that waits, its cursor, and the place of
	// the effect in the turn.
	TurnID          ulid.ULID    `json:"turn_id,omitzero"`
	CursorID        string       `json:"cursor_id,omitzero"`
	Ordinal         string       `json:"ordinal,omitzero"`
	Nonce           string       `json:"nonce,omitzero"`
	ArgumentsDigest event.Digest `json:"arguments_digest,omitzero"`
	ExpiresAt       time.Time    `json:"expires_at,omitzero"`
	// Lapse says what happens after ExpiresAt; it is empty if ExpiresAt is zero.
	Lapse event.Lapse `json:"lapse,omitzero"`
	// SessionID is the child session that asks, if a runner shows the review in its parent.
	SessionID string `json:"session_id,omitzero"`
	// Prompt, Detail and Arguments are what the person is shown. Pending has them; the state
	// of Control does not. They are empty after an erasure.
	Prompt    string         `json:"-"`
	Detail    jsontext.Value `json:"-"`
	Arguments jsontext.Value `json:"-"`
}

// describe reads what the persons are shown.
func (p *Pending) describe(ctx context.Context, log *eventlog.Log, session string) error {
	for i := range p.Approvals {
		a := &p.Approvals[i]
		e, err := log.Event(ctx, session, a.Seq)
		if err != nil {
			return err
		}
		q, err := event.DecodeKept[event.ApprovalRequest](&e)
		if err != nil {
			return err
		}
		a.Prompt, a.Detail, a.Arguments = q.Prompt, q.Detail, q.Arguments
	}
	return nil
}

// Answer is the answer to an approval request of a turn. The log has its reason and
// arguments.
type Answer struct {
	Seq         int64     `json:"seq"`
	InterruptID string    `json:"interrupt_id"`
	EffectID    string    `json:"effect_id,omitzero"`
	TurnID      ulid.ULID `json:"turn_id"`
	CursorID    string    `json:"cursor_id,omitzero"`
	Ordinal     string    `json:"ordinal,omitzero"`
	// Decision is empty if the request was canceled.
	Decision event.Decision `json:"decision,omitzero"`
}

func (o *OpenApproval) lookupKey() (lookupKey, int64) { return lookupKey{id: o.InterruptID}, o.Seq }
func (a *Answer) lookupKey() (lookupKey, int64)       { return lookupKey{id: a.InterruptID}, a.Seq }
func (o *OpenApproval) turn() ulid.ULID               { return o.TurnID }
func (a *Answer) turn() ulid.ULID                     { return a.TurnID }

// binds reports whether the answer is for the effect and the arguments of the request. A
// redaction erases the digest of the arguments.
func (o *OpenApproval) binds(p *event.ApprovalResolution) bool {
	sameEffect := p.EffectID == "" || o.EffectID == "" || p.EffectID == o.EffectID
	return sameEffect && (p.ArgumentsDigest == "" || o.ArgumentsDigest == "" || p.ArgumentsDigest == o.ArgumentsDigest)
}

// requestApproval folds an approval_requested. It replaces a request with the same id,
// and its answer.
func (s *ControlState) requestApproval(e *event.Event) error {
	p, err := event.DecodeKept[event.ApprovalRequest](e)
	if err != nil {
		return err
	}
	s.approvals.remove(&s.Approvals, lookupKey{id: p.InterruptID})
	s.answers.remove(&s.Answers, lookupKey{id: p.InterruptID})
	o := OpenApproval{Seq: e.Seq, InterruptID: p.InterruptID, EffectID: p.EffectID, CallID: p.CallID, Name: p.Name,
		TurnID: p.TurnID, CursorID: p.CursorID, Ordinal: p.Ordinal, Nonce: p.Nonce, ArgumentsDigest: p.ArgumentsDigest, ExpiresAt: p.ExpiresAt}
	if !p.ExpiresAt.IsZero() {
		o.Lapse = p.Lapse.Known()
	}
	s.approvals.add(&s.Approvals, o)
	return nil
}

// answerApproval folds an approval_resolved or approval_canceled. It is void unless the
// request is open and has the same arguments.
func (s *ControlState) answerApproval(e *event.Event) error {
	p, err := event.DecodeKept[event.ApprovalResolution](e)
	i := s.approvals.find(&s.Approvals, lookupKey{id: p.InterruptID})
	if err != nil || i < 0 || !s.Approvals[i].binds(&p) {
		return err
	}
	o := s.approvals.remove(&s.Approvals, lookupKey{id: p.InterruptID})
	if o.TurnID.IsZero() {
		return nil
	}
	a := Answer{Seq: e.Seq, InterruptID: o.InterruptID, EffectID: o.EffectID, TurnID: o.TurnID, CursorID: o.CursorID, Ordinal: o.Ordinal}
	if e.Type.Name() == event.ApprovalResolved {
		a.Decision = p.Decision.Known()
	}
	s.answers.add(&s.Answers, a)
	return nil
}
