package projection

import (
	"cmp"
	"slices"

	"github.com/convlog/convlog/event"
)

// ToolRuns is the tool executions, in the order they started. The events Started and
// Completed of a run have its arguments and its result.
type ToolRuns struct {
	Runs []ToolRun `json:"runs,omitzero"`

	open index[ToolRun, toolKey, []int]
}

// toolKey is the idempotency key or the call id of an execution.
type toolKey struct{ idempotency, call string }

// ToolRun is one execution of a tool.
type ToolRun struct {
	CallID         string `json:"call_id,omitzero"`
	IdempotencyKey string `json:"idempotency_key,omitzero"`
	Name           string `json:"name,omitzero"`
	// Started and Completed are the seqs of tool_started and tool_completed; 0 if
	// there is none.
	Started   int64 `json:"started,omitzero"`
	Completed int64 `json:"completed,omitzero"`
	IsError   bool  `json:"is_error,omitzero"`
	// DurationMS is in milliseconds.
	DurationMS int64 `json:"duration_ms,omitzero"`
}

// Tools is the tool executions that the active path records.
func Tools() Projection[ToolRuns] {
	return Projection[ToolRuns]{builtin: true, Name: "tools", Version: 1, Apply: (*ToolRuns).apply, Digest: noDigest[ToolRuns]}
}

// Find returns the newest execution with the idempotency key or, if there is none,
// with the call id.
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
		t.add(ToolRun{CallID: p.CallID, IdempotencyKey: p.IdempotencyKey, Name: p.Name, Started: e.Seq})
	case event.ToolCompleted:
		p, err := event.DecodeKept[event.ToolCompletion](e)
		if err != nil {
			return err
		}
		r := t.completed(&p)
		r.Name, r.Completed, r.IsError = cmp.Or(r.Name, p.Name), e.Seq, p.IsError
		r.DurationMS = p.DurationMS
	}
	return nil
}

// add adds an open execution.
func (t *ToolRuns) add(r ToolRun) *ToolRun {
	open := t.open.of(&t.Runs, t.indexOpen)
	t.Runs = append(t.Runs, r)
	t.indexOpen(open, len(t.Runs)-1)
	return &t.Runs[len(t.Runs)-1]
}

// indexOpen adds the keys of the execution at i to an index, if the execution is open.
func (t *ToolRuns) indexOpen(open map[toolKey][]int, i int) {
	r := &t.Runs[i]
	if r.Completed != 0 {
		return
	}
	for _, key := range toolKeys(r.IdempotencyKey, r.CallID) {
		open[key] = append(open[key], i)
	}
}

func toolKeys(idempotency, call string) (keys []toolKey) {
	if idempotency != "" {
		keys = append(keys, toolKey{idempotency: idempotency})
	}
	if call != "" {
		keys = append(keys, toolKey{call: call})
	}
	return keys
}

// completed returns the newest open execution that the completion ends. Without one it
// adds an execution.
func (t *ToolRuns) completed(p *event.ToolCompletion) *ToolRun {
	open := t.open.of(&t.Runs, t.indexOpen)
	newest := -1
	for _, key := range toolKeys(p.IdempotencyKey, p.CallID) {
		open[key] = slices.DeleteFunc(open[key], func(i int) bool { return t.Runs[i].Completed != 0 })
		for _, i := range slices.Backward(open[key]) {
			if t.Runs[i].same(p) {
				newest = max(newest, i)
				break
			}
		}
		if len(open[key]) == 0 {
			delete(open, key)
		}
	}
	if newest < 0 {
		return t.add(ToolRun{CallID: p.CallID, IdempotencyKey: p.IdempotencyKey})
	}
	return &t.Runs[newest]
}

func (r *ToolRun) same(p *event.ToolCompletion) bool {
	if p.IdempotencyKey != "" && r.IdempotencyKey != "" {
		return r.IdempotencyKey == p.IdempotencyKey
	}
	return p.CallID != "" && r.CallID == p.CallID
}
