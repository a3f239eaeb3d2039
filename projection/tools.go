package projection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// ErrToolNotFound: no tool ran under that idempotency key or call id.
var ErrToolNotFound = errors.New("tool execution not found")

// ToolRuns are the executions of tools, in the order they started. What they
// were given and answered stays in the log: see FindTool.
type ToolRuns struct {
	Runs []ToolRun `json:"runs,omitzero"`
}

// ToolRun is one execution of a tool.
type ToolRun struct {
	CallID         string `json:"call_id,omitzero"`
	IdempotencyKey string `json:"idempotency_key,omitzero"`
	Name           string `json:"name,omitzero"`
	// Started and Completed are the seqs of tool_started and tool_completed; 0
	// if there is none.
	Started   int64 `json:"started,omitzero"`
	Completed int64 `json:"completed,omitzero"`
	IsError   bool  `json:"is_error,omitzero"`
	// DurationMS is in milliseconds.
	DurationMS int64 `json:"duration_ms,omitzero"`
}

// Tools are the tool executions that the active path records.
func Tools() Projection[ToolRuns] {
	return Projection[ToolRuns]{builtin: true, Name: "tools", Version: 1, Apply: (*ToolRuns).apply, Digest: noDigest[ToolRuns]}
}

// Find is the newest execution of an idempotency key, or else of a call id.
func (t *ToolRuns) Find(key string) (run ToolRun, ok bool) {
	for _, same := range []func(*ToolRun) string{func(r *ToolRun) string { return r.IdempotencyKey }, func(r *ToolRun) string { return r.CallID }} {
		for _, r := range slices.Backward(t.Runs) {
			if key != "" && same(&r) == key {
				return r, true
			}
		}
	}
	return run, false
}

func (t *ToolRuns) apply(e *event.Event) error {
	switch e.Type.Name() {
	case event.ToolStarted:
		p, err := event.DecodeKept[event.ToolStart](e)
		if err != nil {
			return err
		}
		t.Runs = append(t.Runs, ToolRun{CallID: p.CallID, IdempotencyKey: p.IdempotencyKey, Name: p.Name, Started: e.Seq})
	case event.ToolCompleted:
		p, err := event.DecodeKept[event.ToolCompletion](e)
		if err != nil {
			return err
		}
		r := t.open(&p)
		r.Name, r.Completed, r.IsError = cmp.Or(r.Name, p.Name), e.Seq, p.IsError
		r.DurationMS = p.DurationMS
	}
	return nil
}

// open is the newest execution that the completion ends; one that nobody
// started is added.
func (t *ToolRuns) open(p *event.ToolCompletion) *ToolRun {
	for i := len(t.Runs) - 1; i >= 0; i-- {
		if r := &t.Runs[i]; r.Completed == 0 && r.same(p) {
			return r
		}
	}
	t.Runs = append(t.Runs, ToolRun{CallID: p.CallID, IdempotencyKey: p.IdempotencyKey})
	return &t.Runs[len(t.Runs)-1]
}

func (r *ToolRun) same(p *event.ToolCompletion) bool {
	if p.IdempotencyKey != "" && r.IdempotencyKey != "" {
		return r.IdempotencyKey == p.IdempotencyKey
	}
	return p.CallID != "" && r.CallID == p.CallID
}

// ToolExecution is an execution with what it was given and answered.
type ToolExecution struct {
	ToolRun
	Arguments jsontext.Value
	// Content is what it answered, Error its error; both are empty while it has
	// not completed, and where they were redacted.
	Content []event.Part
	Error   string
}

// FindTool looks for the newest execution on the active path by its idempotency
// key, or else by its call id. ErrToolNotFound if there is none; see Load for
// the other errors.
func FindTool(ctx context.Context, log *eventlog.Log, session, key string) (ToolExecution, error) {
	v, err := Load(ctx, log, session, Tools())
	if err != nil {
		return ToolExecution{}, err
	}
	run, ok := v.State.Find(key)
	if !ok {
		return ToolExecution{}, fmt.Errorf("%w: %q in session %q", ErrToolNotFound, key, session)
	}
	x := ToolExecution{ToolRun: run}
	return x, x.read(ctx, log, session)
}

func (x *ToolExecution) read(ctx context.Context, log *eventlog.Log, session string) error {
	if x.Started > 0 {
		e, err := log.Event(ctx, session, x.Started)
		if err != nil {
			return err
		}
		p, err := event.DecodeKept[event.ToolStart](&e)
		if err != nil {
			return err
		}
		x.Arguments = p.Arguments
	}
	if x.Completed == 0 {
		return nil
	}
	e, err := log.Event(ctx, session, x.Completed)
	if err != nil {
		return err
	}
	p, err := event.DecodeKept[event.ToolCompletion](&e)
	x.Content, x.Error = p.Content, p.Error
	return err
}
