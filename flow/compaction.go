package flow

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// Defaults of Options.Compact and Options.KeepTurns.
const (
	defaultCompactTokens = 100_000
	defaultKeepTurns     = 2
)

// compactionPrompt asks a model for a summary.
const compactionPrompt = "Summarize the conversation so far for your own use. Keep goals, decisions, facts, names, file paths and open tasks. Answer with the summary only."

// Compact replaces the messages before the last keep turns by a summary that the model
// writes. The log keeps the messages. The summary is an effect: if the turn is run again,
// the model is not asked again. If there is nothing to replace, the error is a
// *projection.CompactionError with the reason "empty", and nothing happens.
func (t *Turn[S]) Compact(ctx context.Context, m Model, r Request, keep int) error {
	return t.t.compact(ctx, m, r, keep)
}

func (t *turn) compact(ctx context.Context, m Model, r Request, keep int) error {
	if err := t.canCompact(keep); err != nil {
		return err
	}
	c := &compactionCall{turn: t, model: m, request: r, keep: keep}
	arguments, err := encode(map[string]int{"keep_turns": keep})
	if err != nil {
		return err
	}
	settled, err := t.batch(ctx, false, 1, []spec{{kind: kindCompaction, name: "compact", arguments: arguments, class: event.EffectPure,
		retry: t.r.options.Retry, request: c.played, run: c.run, finish: c.finish}})
	if err != nil {
		return err
	}
	return settled[0].failed("compact")
}

// canCompact returns an error if the turn has nothing to compact.
func (t *turn) canCompact(keep int) error {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	h, _ := projection.State(t.states(), projection.History())
	_, err := h.KeepTurns(keep, "summary")
	return err
}

// compactionCall is a call of a model that writes a summary.
type compactionCall struct {
	turn    *turn
	model   Model
	request Request
	keep    int
}

// complete fills in the history and the question, for each attempt. The caller holds r.mu.
func (c *compactionCall) complete() error {
	entries, err := c.turn.entries()
	r := &c.request
	r.Tools, r.Output, r.Blob = nil, nil, c.turn.blob
	r.Messages = append(slices.Clone(entries), projection.Entry{Message: Text(compactionPrompt).Messages[0]})
	return err
}

func (c *compactionCall) run(ctx context.Context) (outcome, error) {
	c.turn.r.mu.Lock()
	err := c.complete()
	c.turn.r.mu.Unlock()
	if err != nil {
		return outcome{}, Permanent(err)
	}
	hooks := hooks(c.turn.r.options.Hooks)
	request, err := hooks.beforeModel(ctx, c.request)
	if err != nil {
		return outcome{}, err
	}
	answer, err := c.model.Generate(ctx, request, func(eventlog.Delta) {})
	if err != nil {
		return outcome{}, err
	}
	o := outcome{usage: answer.Message.Usage, cost: answer.Cost}
	if answer, err = hooks.afterModel(ctx, request, answer); err != nil {
		return o, err
	}
	summary := answer.Message.Text()
	if summary == "" {
		return o, fmt.Errorf("the summary is empty")
	}
	o.answer = answer
	o.result, err = encode(summary)
	return o, err
}

// finish makes the compaction of the history at the head.
func (c *compactionCall) finish(_ string, o outcome, failed *event.EffectError, _ time.Duration) []event.Event {
	if failed != nil {
		return nil
	}
	h, _ := projection.State(c.turn.r.live, projection.History())
	k, err := h.KeepTurns(c.keep, o.answer.Message.Text())
	if err != nil {
		return nil // nothing to replace any more
	}
	k.Trigger = "agent"
	return []event.Event{event.New(k)}
}

// needsCompaction reports whether the history is too long, by Options.Compact.
func (t *turn) needsCompaction() (bool, error) {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	h, _ := projection.State(t.states(), projection.History())
	size, err := h.Size()
	return err == nil && size.Exceeds(t.r.options.Compact), err
}
