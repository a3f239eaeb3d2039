// Package sweagent imports the trajectories that SWE-agent leaves behind
// (<instance>.traj, one JSON document each).
//
// A document has a history, which the model is shown, and a trajectory: the
// steps that it was made of. Each message of the history becomes a message_added.
// Where the agent speaks in plain text, the action that was found in it becomes a
// call of the tool "bash", and the observation behind it the call's result; the
// text stays in the extra. An observation that ended the run, and stands in its
// step alone, becomes a result too. What steps tell beyond the history is kept raw
// as "swe-agent:step" behind what they are about, and the info as "swe-agent:info" at the end; tokens and
// cost, which are told of the run as a whole, become a step_completed. All other
// members are in the extra of session_started.
//
// Where the agent tried several times, each attempt is a branch, with what is known of
// it kept raw as "swe-agent:attempt", and the path ends with the best; without one
// yet, with the last.
//
// A document without a history is read from its steps. There is no id in it: the
// session is named by its file. A document that is cut off is refused.
package sweagent

import (
	"context"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/head"
)

// Name is the name of the format.
const Name = "swe-agent"

// Format imports trajectories of SWE-agent. The zero value is ready for use.
type Format struct{}

// Name is "swe-agent".
func (Format) Name() string { return Name }

// Detect looks for a step, or for a message that an agent's name stands at.
func (Format) Detect(_ string, begin []byte) bool {
	h := head.Begins(begin)
	if attempts := h.In(attemptsName); !head.IsArray(begin) && attempts != nil {
		h = attempts
	}
	if head.IsArray(begin) || !h.Has("trajectory") && !h.Has("history") {
		return false
	}
	step, message := h.In("trajectory"), h.In("history")
	return step.Has("action", "observation") && !step.Has("source") ||
		message.Has("role", "agent") || message.Has("role", "message_type")
}

// Import appends what the source holds and the log does not have yet.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	return document.Import(ctx, log, src, Name, read)
}
