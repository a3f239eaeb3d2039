// Package sweagent imports trajectories of SWE-agent (<instance>.traj, one JSON
// document each).
//
// # Events
//
// A document has a history and a trajectory. The history is the list of messages that
// the model gets. The trajectory is the list of steps of the run. Each message of the
// history becomes a message_added. If the agent writes plain text, its action becomes
// a call of the tool "bash", and the next observation becomes the result. The extra
// of the message holds the original text. If the last observation is in its step
// only, it becomes a result too, and so does a last answer. Without a history, the
// messages are made from the steps.
//
// Members of a step that the history lacks are stored raw as "swe-agent:step", after
// the messages of the step. The info is stored raw as "swe-agent:info", at the end.
// Tokens and cost, which cover the whole run, become a step_completed. The extra of
// session_started holds all other members. The folder of the session is the first current
// directory that the agent sees. The result of an edit that SWE-agent refused is an error.
//
// # Attempts
//
// If the agent made several attempts, each attempt is a branch. Its other members are
// stored raw as "swe-agent:attempt". The path ends with the best attempt, or with the
// last one if none is the best yet.
//
// # Session ids
//
// A document holds no session id: the importer makes the id from the file name. A
// truncated document is rejected.
package sweagent

import (
	"context"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/head"
)

const formatName = "swe-agent"

// Format imports trajectories of SWE-agent. The zero value is ready for use.
type Format struct{}

// Name returns "swe-agent".
func (Format) Name() string { return formatName }

// Detect checks that a document starts with a step, or with a message that has an
// agent or a message type.
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

// Import appends the events of the source that are not in the log yet.
func (Format) Import(ctx context.Context, log *eventlog.Log, src interop.Source) (interop.Result, error) {
	return document.Import(ctx, log, src, formatName, read)
}
