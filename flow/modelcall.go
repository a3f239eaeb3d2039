package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow/internal/playback"
	"github.com/convlog/convlog/projection"
)

// Model asks a model, appends the answer to the history, and returns it. An answer that
// says nothing is not appended. If r.Messages is nil, the model gets the effective history,
// with the inputs that steer the turn. If the turn is run again, Model returns the recorded
// answer.
//
// The record of a call is compared by model and parameters, so a turn continues after a
// change of the system text or the tools. A call of a model that fails is tried again
// (Options.Retry). It returns the errors of Do, and ErrLimit.
func (t *Turn[S]) Model(ctx context.Context, m Model, r Request) (event.Message, error) {
	return t.t.model(ctx, m, r)
}

// modelArguments are compared with the record of a model call.
type modelArguments struct {
	Model      string         `json:"model,omitzero"`
	Parameters jsontext.Value `json:"parameters,omitzero"`
}

func (t *turn) model(ctx context.Context, m Model, r Request) (event.Message, error) {
	if err := t.checkTools(r.Tools); err != nil {
		return event.Message{}, err
	}
	arguments, err := encode(modelArguments{r.Model, r.Parameters})
	if err != nil {
		return event.Message{}, fmt.Errorf("parameters of model %q: %w", r.Model, err)
	}
	if err := t.steer(ctx); err != nil {
		return event.Message{}, err
	}
	c := &modelCall{turn: t, model: m, request: r, id: event.NewID()}
	s := spec{kind: kindModel, name: cmp.Or(r.Model, "model"), arguments: arguments, class: event.EffectPure, retry: t.r.options.Retry,
		started: c.started, recall: c.complete, request: c.played, run: c.run, finish: c.finish}
	settled, err := t.batch(ctx, false, 1, []spec{s})
	if err != nil {
		return event.Message{}, err
	}
	result := settled[0]
	if err := result.failed(s.name); err != nil {
		return event.Message{}, err
	}
	answer, err := answerOf(result)
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	t.lastStop = answer.StopReason
	return answer, err
}

// answerOf is the answer in the record of a model call.
func answerOf(s settled) (event.Message, error) {
	for i := range s.events {
		if s.events[i].Type.Name() == event.MessageAdded {
			m, _, err := event.Decode[event.Message](&s.events[i])
			return m, err
		}
	}
	var m event.Message
	if s.done.Result == nil {
		return m, fmt.Errorf("the record of a model call has no answer: %w", ErrNeedsReconcile)
	}
	return m, json.Unmarshal(s.done.Result, &m)
}

// modelCall is a call of a model.
type modelCall struct {
	turn    *turn
	model   Model
	request Request
	id      ulid.ULID // of the answer
	step    int
	begun   bool
	given   bool // the turn function gave the messages
	err     error
	answer  Response // of the last attempt, before the hooks
}

// started completes the request and describes it. It is called with r.mu held, when the
// intent is appended.
func (c *modelCall) started(string) []event.Event {
	c.complete()
	s := event.StepStart{Step: c.step, TurnID: c.turn.rec.turn, Agent: c.turn.r.name, Model: c.request.Model, Seen: c.turn.r.live.Head.Seq}
	if d, err := c.digest(); err == nil { // a request that does not encode has none
		s.RequestDigest = d
	}
	if len(c.request.Tools) > 0 {
		if d, err := c.prompt().ToolsDigest(); err == nil {
			s.PromptCache.ToolSchemaHash = d
		}
	}
	return []event.Event{event.New(s)}
}

// complete fills in the history, if the request lacks it, and the reader of blobs. The
// caller holds r.mu.
func (c *modelCall) complete() {
	if c.begun {
		return
	}
	c.begun = true
	t := c.turn
	c.step = t.rec.spent.calls
	c.given = c.request.Messages != nil
	if !c.given {
		c.request.Messages, c.err = t.entries()
	}
	c.request.Blob = t.blob
}

// blob reads the body of an image, a sound or a document.
func (t *turn) blob(ref event.BlobRef) ([]byte, error) {
	body, err := t.r.log.OpenBlob(t.ctx, ref.Blob)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(body)
}

// digest identifies the request. The caller holds r.mu.
func (c *modelCall) digest() (event.Digest, error) {
	var history []event.Digest
	var err error
	if c.given {
		history, err = digestsOf(c.request.Messages)
	} else {
		history, err = c.turn.historyDigests()
	}
	if err != nil {
		return "", err
	}
	return c.prompt().Digest(history)
}

// prompt is the request without its messages.
func (c *modelCall) prompt() playback.Prompt { return promptOf(&c.request) }

func promptOf(r *Request) playback.Prompt {
	p := playback.Prompt{Model: r.Model, System: r.System, Parameters: r.Parameters, Output: r.Output, Tools: make([]playback.Tool, len(r.Tools))}
	for i, t := range r.Tools {
		p.Tools[i] = playback.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters}
	}
	return p
}

// historyDigests identify the effective history with the messages that are not appended
// yet.
func (t *turn) historyDigests() ([]event.Digest, error) {
	h, _ := projection.State(t.states(), projection.History())
	d, err := h.Digest()
	digests := []event.Digest{d}
	for i := range t.pending {
		digests = append(digests, event.DigestOf(t.pending[i].Data))
	}
	return digests, err
}

func digestsOf(entries []projection.Entry) (digests []event.Digest, err error) {
	for _, x := range entries {
		raw, err := json.Marshal(x.Message, json.Deterministic(true))
		if err != nil {
			return nil, err
		}
		digests = append(digests, event.DigestOf(raw))
	}
	return digests, nil
}

func (c *modelCall) run(ctx context.Context) (outcome, error) {
	c.turn.r.mu.Lock()
	c.complete()
	c.turn.r.mu.Unlock()
	if c.err != nil {
		return outcome{}, Permanent(c.err)
	}
	response, err := c.ask(ctx)
	if err != nil {
		return outcome{}, err
	}
	response.Message.Role = event.Assistant
	o := outcome{answer: response}
	err = event.Validate(response.Message)
	if errors.Is(err, event.Rule("empty_message")) { // it says nothing, for example because it was blocked
		o.result, err = encode(response.Message)
	}
	if err != nil {
		return outcome{}, fmt.Errorf("answer of model %q: %w", c.request.Model, err)
	}
	return o, nil
}

// ask asks the model, with the hooks before and after it.
func (c *modelCall) ask(ctx context.Context) (Response, error) {
	c.answer = Response{}
	hooks := hooks(c.turn.r.options.Hooks)
	request, err := hooks.beforeModel(ctx, c.request)
	if err != nil {
		return Response{}, err
	}
	running, _ := FromContext(ctx)
	lengths := map[int]int{} // of the parts so far
	publish := func(d eventlog.Delta) {
		d.Message, d.Attempt, d.Offset = c.id, running.Attempt, lengths[d.Part]
		lengths[d.Part] += len(d.Text)
		c.turn.publish(d)
	}
	emit := publish
	if hooks.holdBack() {
		emit = func(eventlog.Delta) {}
	}
	if c.answer, err = c.model.Generate(ctx, request, emit); err != nil {
		return Response{}, err
	}
	response, err := hooks.afterModel(ctx, request, c.answer)
	if err == nil && hooks.holdBack() {
		emitParts(response.Message.Parts, publish)
	}
	return response, err
}

func (c *modelCall) finish(_ string, o outcome, failed *event.EffectError, _ time.Duration) []event.Event {
	done := event.StepCompletion{Step: c.step, TurnID: c.turn.rec.turn, Agent: c.turn.r.name, Model: c.request.Model}
	if failed != nil {
		done.Error, done.Usage = failed.Message, c.answer.Message.Usage
		e := event.New(done)
		e.Cost = c.answer.Cost
		return []event.Event{e}
	}
	m := o.answer.Message
	done.Provider, done.Model, done.ResponseID, done.StopReason, done.Usage = m.Provider, cmp.Or(m.Model, done.Model), m.ResponseID, m.StopReason, m.Usage
	answer, e := event.New(m), event.New(done)
	answer.ID, e.Cost = c.id, o.answer.Cost
	if o.result != nil {
		return []event.Event{e}
	}
	return []event.Event{answer, e}
}

// steer adds the inputs that steer the running turn to the history, unless the next call
// of a model is recorded.
func (t *turn) steer(ctx context.Context) error {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	if t.rec.step(t.next) {
		return nil
	}
	if p := t.r.player; p != nil {
		for _, in := range p.Steer(t.next) {
			t.pending = append(t.pending, Input{ID: in.ID, Messages: in.Messages}.messages()...)
		}
		return nil
	}
	control, _ := projection.State(t.r.live, projection.Control())
	for _, in := range control.Inbox {
		if !in.Steer || t.steered[in.InputID] {
			continue
		}
		x, _, err := t.r.posted(ctx, in.Seq)
		if err != nil {
			return t.stopLocked(err)
		}
		t.steered[in.InputID], t.r.steered[in.InputID] = true, true
		t.pending = append(t.pending, Input{ID: in.InputID, Messages: x.Messages}.messages()...)
	}
	return nil
}
