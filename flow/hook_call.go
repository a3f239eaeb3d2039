package flow

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// hooks are the hooks of an agent.
type hooks []Hook

// check returns an error for a hook without a name.
func (hs hooks) check() error {
	for i := range hs {
		if hs[i].Name == "" {
			return fmt.Errorf("%w: Options.Hooks[%d] needs a Name", ErrStart, i)
		}
	}
	return nil
}

// beforeModel returns the request that is sent: r as the hooks change it.
func (hs hooks) beforeModel(ctx context.Context, r Request) (*Request, error) {
	if slices.ContainsFunc(hs, func(h Hook) bool { return h.BeforeModel != nil || h.AfterModel != nil }) {
		r.Messages, r.Tools = cloneEntries(r.Messages), slices.Clone(r.Tools)
	}
	for i := range hs {
		if h := &hs[i]; h.BeforeModel != nil {
			err := h.call(ctx, "before the call of the model, which was not asked", func(ctx context.Context) error { return h.BeforeModel(ctx, &r) })
			if err != nil {
				return nil, err
			}
		}
	}
	return &r, nil
}

// afterModel returns the answer as the hooks change it.
func (hs hooks) afterModel(ctx context.Context, r *Request, a Response) (Response, error) {
	a.Message.Parts = cloneParts(a.Message.Parts)
	for i := range slices.Backward(hs) {
		if h := &hs[i]; h.AfterModel != nil {
			err := h.call(context.WithoutCancel(ctx), "after the call of the model, whose answer is withheld", func(ctx context.Context) error { return h.AfterModel(ctx, r, &a) })
			if err != nil {
				return Response{}, err
			}
		}
	}
	return a, nil
}

// holdBack reports whether deltas wait until the hooks have seen the answer.
func (hs hooks) holdBack() bool {
	return slices.ContainsFunc(hs, func(h Hook) bool { return h.AfterModel != nil && !h.StreamFirst })
}

// beforeTool returns the call that runs: call with the arguments that the hooks give it.
func (hs hooks) beforeTool(ctx context.Context, call event.Part, approved bool) (event.Part, error) {
	for i := range hs {
		h := &hs[i]
		if h.BeforeTool == nil {
			continue
		}
		when := fmt.Sprintf("before the call of tool %q, which has not run", call.Name)
		changed := call
		changed.Arguments = bytes.Clone(call.Arguments)
		if err := h.call(ctx, when, func(ctx context.Context) error { return h.BeforeTool(ctx, &changed) }); err != nil {
			return call, err
		}
		if approved && !bytes.Equal(changed.Arguments, call.Arguments) {
			return call, h.failed(when, "it changed arguments that a person approved")
		}
		call.Arguments = changed.Arguments
	}
	return call, nil
}

// afterTool returns the outcome of a tool as the hooks change it.
func (hs hooks) afterTool(ctx context.Context, call event.Part, parts []event.Part, failed error) ([]event.Part, error) {
	if !slices.ContainsFunc(hs, func(h Hook) bool { return h.AfterTool != nil }) {
		return parts, failed
	}
	result := event.ToolResult(call.CallID, call.Name, cloneParts(parts)...)
	if failed != nil {
		result.IsError, result.Content = true, []event.Part{event.Text(clean(failed))}
	}
	for i := range slices.Backward(hs) {
		if h := &hs[i]; h.AfterTool != nil {
			when := fmt.Sprintf("after the call of tool %q, whose result is withheld", call.Name)
			err := h.call(context.WithoutCancel(ctx), when, func(ctx context.Context) error { return h.AfterTool(ctx, call, &result) })
			if err != nil {
				return nil, err
			}
		}
	}
	switch text := (event.Message{Parts: result.Content}).Text(); {
	case !result.IsError:
		return result.Content, nil
	case failed == nil:
		return nil, Permanent(errors.New(text))
	case text != clean(failed):
		return nil, &rewordedError{text, failed}
	}
	return nil, failed
}

// rewordedError is an error whose text a hook changed.
type rewordedError struct {
	text string
	err  error
}

func (e *rewordedError) Error() string { return e.text }

func (e *rewordedError) Unwrap() error { return e.err }

var errHookTimeout = errors.New("the hook did not return in time")

// call calls f, a function of the hook, and waits for it until the bound.
func (h *Hook) call(ctx context.Context, when string, f func(context.Context) error) error {
	limit := cmp.Or(h.Timeout, defaultHookTimeout)
	bounded, cancel := context.WithTimeoutCause(ctx, limit, errHookTimeout)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		err := errGoexit
		defer func() { ended <- err }()
		defer catch(&err)
		err = f(bounded)
	}()
	var err error
	select {
	case err = <-ended:
	case <-bounded.Done():
		err = bounded.Err()
	}
	var panicked *panicError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &panicked):
		return h.failed(when, panicked.Error())
	case err == errGoexit:
		return h.failed(when, "it ended its goroutine")
	case ctx.Err() != nil:
		return ctx.Err()
	case context.Cause(bounded) == errHookTimeout:
		return h.failed(when, fmt.Sprintf("it did not return within %v", limit))
	}
	return Permanent(&EffectError{Code: codeRefused, Message: fmt.Sprintf("refused by hook %q %s: %s", h.Name, when, clean(err))})
}

// failed is the error of a hook that did not decide.
func (h *Hook) failed(when, problem string) error {
	return Permanent(&EffectError{Code: codeHook, Message: fmt.Sprintf("hook %q failed %s: %s. Repair the hook, or remove it from Options.Hooks", h.Name, when, problem)})
}

func cloneEntries(entries []projection.Entry) []projection.Entry {
	entries = slices.Clone(entries)
	for i := range entries {
		entries[i].Message.Parts = cloneParts(entries[i].Message.Parts)
	}
	return entries
}

func cloneParts(parts []event.Part) []event.Part {
	parts = slices.Clone(parts)
	for i := range parts {
		parts[i].Content = cloneParts(parts[i].Content)
	}
	return parts
}

// emitParts emits the parts of an answer, each at once.
func emitParts(parts []event.Part, emit func(eventlog.Delta)) {
	for i := range parts {
		if text := cmp.Or(parts[i].Text, string(parts[i].Arguments)); text != "" {
			emit(eventlog.Delta{Part: i, Kind: parts[i].Type, Text: text})
		}
	}
}
