package runlog

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// Review is a question to a person about an effect, and the answer.
type Review struct {
	InterruptID string    `json:"interrupt_id"`
	Seq         int64     `json:"seq"`
	Asked       time.Time `json:"asked"`
	Prompt      string    `json:"prompt,omitzero"`
	ExpiresAt   time.Time `json:"expires_at,omitzero"`
	// Answered is the time of the answer or of the cancelation. Decision is empty if the
	// review is open or was canceled.
	Answered time.Time      `json:"answered,omitzero"`
	Decision event.Decision `json:"decision,omitzero"`
	By       string         `json:"by,omitzero"`
	Reason   string         `json:"reason,omitzero"`
	// Arguments are what the effect was approved with, if they are not the arguments that
	// it asked for.
	Arguments jsontext.Value `json:"arguments,omitzero"`
}

// Pause is a hibernation of a turn.
type Pause struct {
	Seq        int64     `json:"seq"`
	Hibernated time.Time `json:"hibernated"`
	Kind       string    `json:"kind,omitzero"` // of the cursor
	// Resumed is zero while the turn hibernates.
	Resumed time.Time `json:"resumed,omitzero"`
}

// waits makes the reviews and pauses of ops, and the ops of other approvals and waits.
type waits struct {
	*current
	*opIndex
	reviewed map[string]*Op    // by the interrupt of a review
	cursors  map[string]*Op    // by the cursor of a review
	pauses   map[string]*Pause // by cursor
}

// approval folds a review. A review of an effect belongs to the op of the effect. Any
// other one has an op of its own.
func (b *waits) approval() (*Op, error) {
	p, err := event.DecodeKept[event.ApprovalRequest](b.e)
	if err != nil {
		return nil, err
	}
	if b.e.Type.Name() == event.ApprovalRequested {
		return b.requestApproval(&p), nil
	}
	r, err := event.DecodeKept[event.ApprovalResolution](b.e)
	if err != nil {
		return nil, err
	}
	op := b.reviewed[p.InterruptID]
	if op == nil {
		op = b.waitOp("approval", p.InterruptID, "", false)
		if op.Status == OpOpen {
			op.end(b.e, statusOf(r.Decision.Known() == event.Denied))
		}
		return op, nil
	}
	for i := range op.Reviews {
		if x := &op.Reviews[i]; x.InterruptID == p.InterruptID && x.Answered.IsZero() {
			x.Answered, x.Decision, x.By, x.Reason, x.Arguments = b.e.Timestamp, r.Decision, r.By, r.Reason, r.Arguments
		}
	}
	if !op.effect && op.Kind == SystemOp && r.Decision == "" { // canceled before the effect began
		op.end(b.e, OpFailed)
	}
	return op, nil
}

func (b *waits) requestApproval(p *event.ApprovalRequest) *Op {
	op := b.find(p.EffectID, p.CallID)
	if op == nil || op.Status != OpOpen && !op.effect && op.Kind != ToolOp {
		op = nil
	}
	if op == nil && p.EffectID == "" {
		return b.waitOp("approval", p.InterruptID, "", true)
	}
	if op == nil {
		op = b.begin(SystemOp, p.EffectID, p.Name)
		op.Request = b.content(p.Arguments)
	}
	if p.EffectID != "" {
		b.keys[p.EffectID] = op
	}
	if op.Status != OpOpen { // canceled, and asked anew
		op.Status, op.Ended = OpOpen, time.Time{}
	}
	op.Reviews = append(op.Reviews, Review{InterruptID: p.InterruptID, Seq: b.e.Seq, Asked: b.e.Timestamp, Prompt: p.Prompt, ExpiresAt: p.ExpiresAt})
	b.reviewed[p.InterruptID], b.cursors[p.CursorID] = op, op
	return op
}

func (b *waits) wait() (*Op, error) {
	p, err := event.DecodeKept[event.Wait](b.e)
	if err != nil {
		return nil, err
	}
	started := b.e.Type.Name() == event.WaitStarted
	op := b.waitOp("wait", p.WaitID, p.Reason, started)
	if !started && op.Status == OpOpen {
		op.end(b.e, statusOf(p.Outcome == event.WaitExpired || p.Outcome == event.WaitCanceled))
	}
	return op, nil
}

// waitOp returns the op of an approval or a wait, with the event as its request if the
// event starts it, and as its response otherwise.
func (b *waits) waitOp(kind, id, name string, starts bool) *Op {
	key := kind + " " + id
	op := b.waiting[key]
	if starts || op == nil {
		text := kind
		if name != "" {
			text += " " + name
		}
		op = b.begin(SystemOp, id, text)
		b.waiting[key] = op
	}
	switch {
	case starts:
		op.Request = b.content(b.e.Data)
	case op.Status == OpOpen: // the first answer counts
		op.Response = b.content(b.e.Data)
	}
	return op
}

// hibernate folds a turn_hibernated. The pause belongs to the op that the turn waits for,
// else to the turn.
func (b *waits) hibernate() error {
	p, err := event.DecodeKept[event.TurnHibernation](b.e)
	if err != nil {
		return err
	}
	c := &p.Cursor
	pause := &Pause{Seq: b.e.Seq, Hibernated: b.e.Timestamp, Kind: c.Kind}
	op := b.cursors[c.ID]
	if op == nil && c.InterruptID != "" {
		op = b.waiting["wait "+c.InterruptID]
	}
	if op == nil {
		op = b.find(c.EffectID)
	}
	switch {
	case op != nil:
		op.Pauses = append(op.Pauses, pause)
	case b.turn != nil:
		b.turn.Pauses = append(b.turn.Pauses, pause)
	}
	b.pauses[c.ID] = pause
	return nil
}

func (b *waits) resume() error {
	p, err := event.DecodeKept[event.TurnResumption](b.e)
	if pause := b.pauses[p.CursorID]; pause != nil {
		pause.Resumed = b.e.Timestamp
	}
	return err
}
