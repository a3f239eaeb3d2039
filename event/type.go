package event

import (
	"strconv"
	"strings"
)

// Type is the type of an event: a name, or name/2 for a later version of its
// payload. Events of unknown types are stored, hashed, copied and shown.
type Type string

// The vocabulary. docs/FORMAT.md, chapter 7, lists for each type the payload, the
// scope, and the members that redaction keeps.
const (
	MessageAdded        Type = "message_added"
	ContextAdded        Type = "context_added"
	CompactionTriggered Type = "compaction_triggered"
	ExternalInput       Type = "external_input"
	HandoffMade         Type = "handoff"

	SessionStarted    Type = "session_started"
	SessionUpdated    Type = "session_updated"
	TurnStarted       Type = "turn_started"
	TurnCompleted     Type = "turn_completed"
	TurnHibernated    Type = "turn_hibernated"
	TurnResumed       Type = "turn_resumed"
	StepStarted       Type = "step_started"
	StepCompleted     Type = "step_completed"
	ToolStarted       Type = "tool_started"
	ToolCompleted     Type = "tool_completed"
	ApprovalRequested Type = "approval_requested"
	ApprovalResolved  Type = "approval_resolved"
	ApprovalCanceled  Type = "approval_canceled"
	WaitStarted       Type = "wait_started"
	WaitResolved      Type = "wait_resolved"
	EscalationRetried Type = "escalation_retried"
	OpLogged          Type = "op_logged"

	RunClaimed      Type = "run_claimed"
	RunReleased     Type = "run_released"
	AbortRequested  Type = "abort_requested"
	EffectIntended  Type = "effect_intended"
	EffectCompleted Type = "effect_completed"

	ArtifactRecorded Type = "artifact_recorded"
	CustomPatched    Type = "custom_patched"

	ProjectionSnapshotted Type = "projection_snapshotted"
	SessionForked         Type = "session_forked"
	HeadMoved             Type = "head_moved"

	Redacted          Type = "redacted"
	AccountingFlushed Type = "accounting_flushed"
	Lost              Type = "lost"
)

// Name is the type without its payload version: "message_added" for
// "message_added/2".
func (t Type) Name() Type {
	name, _, _ := t.split()
	return name
}

// Version is the payload version: 1 unless the type ends in /n with n ≥ 2.
func (t Type) Version() int {
	_, version, _ := t.split()
	return version
}

func (t Type) split() (name Type, version int, versioned bool) {
	i := strings.LastIndexByte(string(t), '/')
	if i < 0 {
		return t, 1, false
	}
	digits := string(t[i+1:])
	n, err := strconv.Atoi(digits)
	if err != nil || n < 2 || strconv.Itoa(n) != digits {
		return t, 1, false
	}
	return t[:i], n, true
}

// Scope says which events count where (docs/FORMAT.md, chapter 7).
type Scope int

const (
	// PathScope events count only on the active path. Unknown types are PathScope.
	PathScope Scope = iota
	// SessionScope events are facts that no rewind undoes.
	SessionScope
	// TreeScope events shape the path itself.
	TreeScope
)

func (s Scope) String() string {
	switch s {
	case SessionScope:
		return "session"
	case TreeScope:
		return "tree"
	default:
		return "path"
	}
}

// Upkeep reports whether the log's own maintenance writes events of the type. They say
// nothing about the conversation, and may come and go.
func (t Type) Upkeep() bool {
	switch t.Name() {
	case ProjectionSnapshotted, Redacted, AccountingFlushed:
		return true
	}
	return false
}
