package runlog

import (
	"cmp"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// Attempt is an attempt of an effect without a result: another one followed, or is due.
type Attempt struct {
	Number  int       `json:"attempt"`
	Seq     int64     `json:"seq"` // of the event that ended it; of an interrupted attempt, of the event that began it
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
	// Error is empty if the attempt was interrupted.
	Error string `json:"error,omitzero"`
	// RetryAt is when the next attempt was due.
	RetryAt time.Time `json:"retry_at,omitzero"`
	// By is the person who recorded that the attempt did not happen, and Reason why.
	By     string `json:"by,omitzero"`
	Reason string `json:"reason,omitzero"`
}

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

// effect folds effect_intended and effect_completed. An effect has an op of its own,
// except if a step, a tool execution or a wait uses it.
func (b *runBuilder) effect() (*Op, error) {
	if b.e.Type.Name() == event.EffectIntended {
		return b.intend()
	}
	p, err := event.DecodeKept[event.EffectCompletion](b.e)
	if err != nil {
		return nil, err
	}
	op := b.keys[p.Key]
	if op == nil {
		op = b.begin(SystemOp, p.Key, "effect")
		b.keys[p.Key] = op
	}
	switch {
	case op.hasResult && !p.RetryAt.IsZero() && p.Attempt == op.attempt:
		op.hasResult = false // another attempt follows, as an op of its own
	case op.hasResult: // void: the first result counts
	case !p.RetryAt.IsZero():
		b.failAttempt(op, &p)
	default:
		b.complete(op, &p)
	}
	return op, nil
}

func (b *runBuilder) intend() (*Op, error) {
	p, err := event.DecodeKept[event.EffectIntent](b.e)
	if err != nil {
		return nil, err
	}
	if b.turn != nil {
		b.turn.effects = true
	}
	b.starts[b.e.ID] = [2]string{p.Key}
	op := b.keys[p.Key]
	if op == nil && p.Kind == "wait" {
		var id string
		if json.Unmarshal(p.Arguments, &id) == nil {
			op = b.waiting["wait "+id]
		}
		if op != nil { // the effect records how the wait ended
			b.keys[p.Key] = op
			return op, nil
		}
	}
	if op != nil && op.hasResult && !p.TurnID.IsZero() {
		return op, nil // void
	}
	if op == nil || op.Status != OpOpen {
		op = b.begin(effectKind(p.Kind), p.Key, cmp.Or(p.Name, p.Kind))
		b.keys[p.Key] = op
	}
	if op.effect {
		b.beginAttempt(op, p.Attempt)
		return op, nil
	}
	op.effect, op.attempt, op.attempted, op.began = true, p.Attempt, b.e.Timestamp, b.e.Seq
	if len(op.Reviews) > 0 {
		op.Started = b.e.Timestamp
	}
	switch {
	case op.Kind == LLMOp:
		op.ask(b.content(b.e.Data))
		b.llm = op
	case len(op.Request) == 0:
		op.Request = b.content(p.Arguments)
	}
	return op, nil
}

// beginAttempt begins another attempt. An attempt before it that has no end was
// interrupted.
func (b *runBuilder) beginAttempt(op *Op, number int) {
	if n := len(op.Attempts); n == 0 || op.Attempts[n-1].Number != op.attempt {
		op.Attempts = append(op.Attempts, Attempt{Number: op.attempt, Seq: op.began, Started: op.attempted})
	}
	op.attempt, op.attempted, op.began = number, b.e.Timestamp, b.e.Seq
	if op.Kind == LLMOp {
		op.ask(b.content(b.e.Data))
		b.llm = op
	}
}

// failAttempt ends an attempt that another one follows.
func (b *runBuilder) failAttempt(op *Op, p *event.EffectCompletion) {
	a := Attempt{Number: max(op.attempt, p.Attempt), Seq: b.e.Seq, Started: op.attempted, Ended: b.e.Timestamp, RetryAt: p.RetryAt, By: p.By, Reason: p.Reason}
	if p.Error != nil {
		a.Error = p.Error.Message
	}
	op.Attempts = append(op.Attempts, a)
}

// complete folds the result of an effect.
func (b *runBuilder) complete(op *Op, p *event.EffectCompletion) {
	op.hasResult = true
	switch {
	case op.Kind == LLMOp:
		op.respond(b.content(b.e.Data))
	case len(op.Response) == 0:
		op.Response = b.content(p.Result)
	}
	if p.Error != nil {
		op.Error = p.Error.Message
	}
	op.By, op.Reason = p.By, p.Reason
	if op.Status == OpOpen {
		op.end(b.e, statusOf(p.Error != nil))
	}
	if b.llm == op {
		b.llm = nil
	}
}

func effectKind(kind string) OpKind {
	switch kind {
	case "model", "llm":
		return LLMOp
	case "tool":
		return ToolOp
	}
	return SystemOp
}

// approval folds a review. A review of an effect belongs to the op of the effect. Any
// other one has an op of its own.
func (b *runBuilder) approval() (*Op, error) {
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

func (b *runBuilder) requestApproval(p *event.ApprovalRequest) *Op {
	op := b.opByID(p.EffectID, p.CallID)
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

func (b *runBuilder) wait() (*Op, error) {
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
func (b *runBuilder) waitOp(kind, id, name string, starts bool) *Op {
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
func (b *runBuilder) hibernate() error {
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
		op = b.opByID(c.EffectID)
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

func (b *runBuilder) resume() error {
	p, err := event.DecodeKept[event.TurnResumption](b.e)
	if pause := b.pauses[p.CursorID]; pause != nil {
		pause.Resumed = b.e.Timestamp
	}
	return err
}
