package event

import (
	"errors"
	"fmt"

	"github.com/convlog/convlog/internal/line"
)

// The errors of this package and of every rule of an append; match them with errors.Is.
// After an error of a rule, nothing was written.
var (
	// ErrInvalid: an event breaks a rule. Every error named ErrInvalid… matches it, and
	// so does ErrNilArgument.
	ErrInvalid = errors.New("invalid event")
	// ErrNilArgument: a required argument is nil. The error names the argument.
	ErrNilArgument = rule("nil argument")

	// ErrRedacted: the payload was erased.
	ErrRedacted = errors.New("event is redacted")
	// ErrForeign: a JSON line that no log wrote; it has neither crc nor hash.
	ErrForeign = line.ErrForeign
	// ErrVersion: written by a newer version. See VersionError.
	ErrVersion = errors.New("unsupported version")

	// ErrInvalidSession: a session id is malformed, or the event belongs to another
	// session.
	ErrInvalidSession = rule("session id")
	// ErrInvalidID: the event was read from a log, and cannot be appended again.
	ErrInvalidID = rule("event id")
	// ErrInvalidType: the type is malformed, unknown without a colon, or reserved.
	ErrInvalidType = rule("event type")
	// ErrInvalidTimestamp: the format cannot express the year.
	ErrInvalidTimestamp = rule("timestamp")
	// ErrInvalidCost: the cost is negative, or no valid amount.
	ErrInvalidCost = rule("cost")
	// ErrInvalidMetadata: the metadata is no JSON object, or nested too deeply.
	ErrInvalidMetadata = rule("metadata")
	// ErrInvalidData: the data is no JSON value, or nested too deeply.
	ErrInvalidData = rule("data")
	// ErrInvalidPayload: the data is not a valid payload of the event's type.
	ErrInvalidPayload = rule("payload")
	// ErrUnknownWord: a word of an open list is unknown to this program. It also matches
	// ErrInvalidPayload.
	ErrUnknownWord = errors.New("unknown word")
	// ErrInvalidRole: the role of a message is unknown.
	ErrInvalidRole = rule("role")
	// ErrInvalidMessage: a message of the assistant has no content.
	ErrInvalidMessage = rule("message")
	// ErrInvalidCall: two tool calls of a message have one id.
	ErrInvalidCall = rule("tool call")
	// ErrInvalidResult: a tool result answers no pending call, or repeats, or is missing
	// in a tool message.
	ErrInvalidResult = rule("tool result")
	// ErrInvalidTree: a fork or a move of the head names an impossible event.
	ErrInvalidTree = rule("tree event")
	// ErrInvalidBlob: a digest is malformed, or its blob is missing.
	ErrInvalidBlob = rule("blob")
	// ErrInvalidSize: the event or the append is too large.
	ErrInvalidSize = rule("size")
)

// nilArgument is the error of a nil argument.
func nilArgument(name string) error { return fmt.Errorf("%w: %s", ErrNilArgument, name) }

// ruleError is the error of a rule. It matches ErrInvalid.
type ruleError struct{ rule string }

func rule(name string) error              { return &ruleError{name} }
func (e *ruleError) Error() string        { return "invalid " + e.rule }
func (e *ruleError) Is(target error) bool { return target == ErrInvalid }

// invalidPayload makes the error of a program's own rule match ErrInvalid.
func invalidPayload(err error) error {
	if err == nil || errors.Is(err, ErrInvalid) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrInvalidPayload, err)
}

// VersionError reports a version that is newer than this program reads. It
// matches ErrVersion.
type VersionError struct {
	// What has the version: "envelope", "sqlite schema", or an event type.
	What     string
	Got, Max int
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("%s version %d is newer than %d, the highest this program reads", e.What, e.Got, e.Max)
}

// Is matches ErrVersion.
func (e *VersionError) Is(target error) bool { return target == ErrVersion }

// ConversationRule names the rule of conversation that an error reports: orphan_result,
// duplicate_call, empty_message or unknown_word. A lenient append marks such a rule (Event.Broken)
// and stores the event.
func ConversationRule(err error) (name string, ok bool) {
	switch {
	case errors.Is(err, ErrInvalidResult):
		return OrphanResult, true
	case errors.Is(err, ErrInvalidCall):
		return "duplicate_call", true
	case errors.Is(err, ErrInvalidMessage):
		return "empty_message", true
	case errors.Is(err, ErrUnknownWord):
		return "unknown_word", true
	default:
		return "", false
	}
}

// OrphanResult is the rule that a tool result answers a pending call.
const OrphanResult = "orphan_result"
