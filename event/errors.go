package event

import (
	"errors"
	"fmt"
	"strings"

	"github.com/convlog/convlog/internal/line"
)

// The errors of this package and of every rule of an append; match them with errors.Is.
// After an error of a rule, nothing was written.
var (
	// ErrInvalid: an event breaks a rule. Every Rule matches it. Correct the event.
	ErrInvalid = errors.New("invalid event")

	// ErrRedacted: the payload was erased. Skip the event.
	ErrRedacted = errors.New("event is redacted")
	// ErrForeign: a JSON line that no log wrote; it has neither crc nor hash. Import it
	// with logtool import.
	ErrForeign = line.ErrForeign
	// ErrVersion: written by a version that this program does not read. Use a newer
	// program. See VersionError.
	ErrVersion = errors.New("unsupported version")
)

// Rule is the name of the rule that an event breaks. It matches ErrInvalid. Some rules have
// no constant:
//
//   - event_id: the event was read from a log. Make a new event of its payload.
//
//   - timestamp, cost, metadata: the member is out of range, no JSON object, or nested
//     too deeply.
//
//   - unknown_word: this program does not know a word of an open list. Use a constant,
//     or a newer program. The error also matches ErrInvalidPayload.
//
//   - unknown_role: the role is not a constant of Role.
//
//   - empty_message: a message of the assistant has no content. Add a part.
//
//   - duplicate_call: two tool calls of a message have one id.
//
//   - orphan_result (OrphanResult): a result has no pending call, is repeated, or is
//     missing in a tool message. Append the call first, and one result for each call.
//
//     errors.Is(err, event.Rule("cost"))
type Rule string

const (
	// ErrNilArgument: a required argument is nil. The error names the argument.
	ErrNilArgument Rule = "nil_argument"
	// ErrInvalidSession: a session id is malformed, or the event belongs to another
	// session. Choose another id, or make a new event.
	ErrInvalidSession Rule = "session_id"
	// ErrInvalidType: the type is malformed, unknown without a colon, or reserved. Name
	// your types shop:order_placed.
	ErrInvalidType Rule = "event_type"
	// ErrInvalidData: the data is no JSON value, or nested too deeply.
	ErrInvalidData Rule = "data"
	// ErrInvalidPayload: the data is not a valid payload of the event's type. Correct
	// it; after a read, add an upcaster.
	ErrInvalidPayload Rule = "payload"
	// ErrInvalidTree: a fork or a move of the head names an impossible event. Use
	// fork.At and fork.Rewind.
	ErrInvalidTree Rule = "tree"
	// ErrInvalidBlob: a digest is malformed, or its blob is missing. Put the blob first.
	ErrInvalidBlob Rule = "blob"
	// ErrInvalidSize: the event or the append is too large. Put bodies into blobs, or
	// split the append.
	ErrInvalidSize Rule = "size"
	// OrphanResult is the rule of conversations that a tool result answers a pending call.
	// The error reports a result that answers none, or repeats, or is missing in a tool
	// message.
	OrphanResult Rule = "orphan_result"
)

const (
	errTimestamp  Rule = "timestamp"
	errCost       Rule = "cost"
	errMetadata   Rule = "metadata"
	errRole       Rule = "unknown_role"
	duplicateCall Rule = "duplicate_call"
	emptyMessage  Rule = "empty_message"
	unknownWord   Rule = "unknown_word"
)

// ruleTexts are the texts of the errors that are not "invalid" and the rule's name.
var ruleTexts = map[Rule]string{
	ErrNilArgument: "nil argument", ErrInvalidTree: "invalid tree event", errRole: "invalid role",
	OrphanResult: "invalid tool result", duplicateCall: "invalid tool call", emptyMessage: "invalid message", unknownWord: "unknown word",
}

func (r Rule) Error() string {
	if text, ok := ruleTexts[r]; ok {
		return text
	}
	return "invalid " + strings.ReplaceAll(string(r), "_", " ")
}

// Is matches ErrInvalid.
func (r Rule) Is(target error) bool { return target == ErrInvalid }

// Conversation reports whether the rule concerns a conversation, not the structure of an
// event. A lenient append stores an event that breaks such a rule, and names the rule in
// Event.Broken.
func (r Rule) Conversation() bool {
	switch r {
	case OrphanResult, duplicateCall, emptyMessage, unknownWord:
		return true
	}
	return false
}

// nilArgument is the error of a nil argument.
func nilArgument(name string) error { return fmt.Errorf("%w: %s", ErrNilArgument, name) }

// invalidPayload makes the error of a program's own rule match ErrInvalid.
func invalidPayload(err error) error {
	if err == nil || errors.Is(err, ErrInvalid) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrInvalidPayload, err)
}

// VersionError reports a version that this program does not read: a newer one, or that
// of a store from before the first release. It matches ErrVersion.
type VersionError struct {
	// What has the version: "envelope", "sqlite schema", or an event type.
	What     string
	Got, Max int
}

func (e *VersionError) Error() string {
	if e.Got < e.Max {
		return fmt.Sprintf("%s version %d is older than %d, the lowest this program reads: convert the store to a folder with the logtool that wrote it", e.What, e.Got, e.Max)
	}
	return fmt.Sprintf("%s version %d is newer than %d, the highest this program reads", e.What, e.Got, e.Max)
}

// Is matches ErrVersion.
func (e *VersionError) Is(target error) bool { return target == ErrVersion }
