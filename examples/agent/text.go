package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/flow"
)

// text is what the terminal shows of a chunk: pieces of answers, calls, and results.
func text(c flow.Chunk) string {
	var b strings.Builder
	b.WriteString(c.Text())
	switch {
	case c.Message != nil && c.Message.Role == event.Assistant:
		b.WriteString("\n")
		for _, call := range c.Message.ToolCalls() {
			fmt.Fprintf(&b, "  → %s %s\n", call.Name, call.Arguments)
		}
	case c.Message != nil && c.Message.Role == event.Tool:
		for _, r := range c.Message.ToolResults() {
			fmt.Fprintf(&b, "  ← %s\n", r.Content[0].Text)
		}
	}
	return b.String()
}

// question lists the open reviews, with the command that answers them.
func question(h *flow.Hibernated) string {
	var b strings.Builder
	for _, r := range h.Reviews {
		fmt.Fprintf(&b, "  %s waits for a person, in another terminal:\n    logtool --store %s agent approve %s\n", r.Name, *dir, h.Ref.Session)
	}
	return b.String()
}

// advice adds to an error what a person can do.
func advice(err error) error {
	switch {
	case errors.Is(err, flow.ErrNeedsReconcile):
		return fmt.Errorf("%w\nlook whether the bank has the refund, and record it with the KEY that logtool --store %[2]s agent runs lists:\n  logtool --store %[2]s agent reconcile %[3]s KEY --result paid (or --did-not-run)", err, *dir, *session)
	case errors.Is(err, flow.ErrAlreadyRunning):
		return fmt.Errorf("%w\nend the other process first", err)
	}
	return err
}
