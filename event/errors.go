package event

import (
	"errors"
	"fmt"

	"github.com/convlog/convlog/internal/line"
)

var (
	// ErrNilArgument: a required argument is nil. The error names the argument. It
	// matches ErrInvalid.
	ErrNilArgument = rule("nil argument")
	// ErrRedacted: the payload was erased.
	ErrRedacted = errors.New("event is redacted")
	// ErrForeign: a JSON line that no log wrote; it has neither crc nor hash.
	ErrForeign = line.ErrForeign
	// ErrVersion: written by a newer version. See VersionError.
	ErrVersion = errors.New("unsupported version")
	// ErrChecksum: the crc of a line is not the checksum of its bytes.
	ErrChecksum = line.ErrCRC
	// ErrOtherSession: a line names another session than it is stored for.
	ErrOtherSession = line.ErrSession
)

// ErrInvalid is matched by every error of validation. Each rule has a sentinel of
// its own. Nothing was written.
var ErrInvalid = errors.New("invalid event")

// The rules of validation, one sentinel each.
var (
	ErrInvalidSession   = rule("session id")
	ErrInvalidID        = rule("event id")
	ErrInvalidType      = rule("event type")
	ErrInvalidTimestamp = rule("timestamp")
	ErrInvalidCost      = rule("cost")
	ErrInvalidMetadata  = rule("metadata")
	ErrInvalidData      = rule("data")
	ErrInvalidPayload   = rule("payload")
	ErrInvalidRole      = rule("role")
	ErrInvalidMessage   = rule("message")
	ErrInvalidCall      = rule("tool call")
	ErrInvalidResult    = rule("tool result")
	ErrInvalidTree      = rule("tree event")
	ErrInvalidBlob      = rule("blob")
	ErrInvalidSize      = rule("size")
)

type ruleError struct{ rule string }

func rule(name string) error              { return &ruleError{name} }
func (e *ruleError) Error() string        { return "invalid " + e.rule }
func (e *ruleError) Is(target error) bool { return target == ErrInvalid }

// invalidPayload makes the error of an app's own rule match ErrInvalid.
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
// duplicate_call or empty_message. A lenient append marks such a rule (BrokenKey)
// and stores the event.
func ConversationRule(err error) (name string, ok bool) {
	switch {
	case errors.Is(err, ErrInvalidResult):
		return OrphanResult, true
	case errors.Is(err, ErrInvalidCall):
		return "duplicate_call", true
	case errors.Is(err, ErrInvalidMessage):
		return "empty_message", true
	default:
		return "", false
	}
}

// OrphanResult is the rule that a tool result answers a pending call.
const OrphanResult = "orphan_result"
