package runlog

import (
	"cmp"
	"time"

	"github.com/go-json-experiment/json"

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

// effects makes the ops of effects. An effect has an op of its own, except if a step, a tool
// execution or a wait uses it.
type effects struct {
	*current
	*opIndex
	models *modelCalls
}

// fold folds effect_intended and effect_completed.
func (b *effects) fold() (*Op, error) {
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

func (b *effects) intend() (*Op, error) {
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
		b.models.open = op
	case len(op.Request) == 0:
		op.Request = b.content(p.Arguments)
	}
	return op, nil
}

// beginAttempt begins another attempt. An attempt before it that has no end was
// interrupted.
func (b *effects) beginAttempt(op *Op, number int) {
	if n := len(op.Attempts); n == 0 || op.Attempts[n-1].Number != op.attempt {
		op.Attempts = append(op.Attempts, Attempt{Number: op.attempt, Seq: op.began, Started: op.attempted})
	}
	op.attempt, op.attempted, op.began = number, b.e.Timestamp, b.e.Seq
	if op.Kind == LLMOp {
		op.ask(b.content(b.e.Data))
		b.models.open = op
	}
}

// failAttempt ends an attempt that another one follows.
func (b *effects) failAttempt(op *Op, p *event.EffectCompletion) {
	a := Attempt{Number: max(op.attempt, p.Attempt), Seq: b.e.Seq, Started: op.attempted, Ended: b.e.Timestamp, RetryAt: p.RetryAt, By: p.By, Reason: p.Reason}
	if p.Error != nil {
		a.Error = p.Error.Message
	}
	op.Attempts = append(op.Attempts, a)
}

// complete folds the result of an effect.
func (b *effects) complete(op *Op, p *event.EffectCompletion) {
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
	if b.models.open == op {
		b.models.open = nil
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
