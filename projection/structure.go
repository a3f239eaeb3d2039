package projection

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/eventlog"
)

// structure decodes what is there of an event's payload: the members that T
// names, of all of it or of what redaction kept. A newer payload version is a
// *eventlog.VersionError, another shape eventlog.ErrInvalidPayload.
func structure[T any](e *eventlog.Event) (payload T, err error) {
	if err := e.Type.CheckVersion(); err != nil {
		return payload, err
	}
	data := e.Data
	if e.Redacted() {
		data = e.Kept()
	}
	if len(data) == 0 {
		return payload, nil
	}
	if err := json.Unmarshal(data, &payload); err != nil {
		return payload, fmt.Errorf("%w: %w", eventlog.ErrInvalidPayload, err)
	}
	return payload, nil
}

// meant is what an event is to a projection: a lost event of a copy is the
// redacted event that it stands for.
func meant(e *eventlog.Event) *eventlog.Event {
	if e.Type.Name() != eventlog.Lost {
		return e
	}
	original, ok := e.Erased()
	if !ok {
		return e
	}
	return &original
}

// isUpkeep reports whether the event is of the log's own housekeeping, which
// says nothing about the conversation and may come and go with it.
func isUpkeep(e *eventlog.Event) bool {
	switch e.Type.Name() {
	case eventlog.ProjectionSnapshotted, eventlog.Redacted, eventlog.AccountingFlushed:
		return true
	}
	return false
}

// isCopied reports whether the event is a copy of another session's; as such it
// shapes no tree.
func isCopied(e *eventlog.Event) bool {
	_, copied := e.MetadataValue("fork_origin")
	return copied
}

// isInherited reports whether what e cost is counted where e is a copy of.
func isInherited(e *eventlog.Event) bool {
	v, ok := e.MetadataValue("inherited")
	return ok && string(v) == "true"
}

// IsContext reports whether a message was said in the user's name by a program, as
// instructions and surroundings are: no view takes it for what a user asked.
func IsContext(e *eventlog.Event) bool {
	v, ok := e.MetadataValue("context")
	return ok && string(v) == "true"
}

// noDigest is the Digest of states that are no content.
func noDigest[S any](*S) (eventlog.Digest, error) { return "", nil }
