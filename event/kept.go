package event

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
)

// Structure is the object that a redaction of e keeps: the structural members of
// its type, in the order of the table in docs/FORMAT.md, and its provenance.
// Types, versions and payloads that this program cannot decode keep no members.
// e's data must be there, not in a blob.
func (e *Event) Structure() (jsontext.Value, error) {
	kept, err := e.structure()
	if errors.Is(err, ErrInvalidPayload) {
		kept, err = nil, nil // no member of a broken payload is known to be structure
	}
	if err == nil {
		kept, err = e.withProvenance(kept)
	}
	if err != nil {
		return nil, fmt.Errorf("structure of event %d of session %q: %w", e.Seq, e.SessionID, err)
	}
	return rawjson.Object(kept), nil
}

// structure lists the structural members of the payload.
func (e *Event) structure() (kept []rawjson.Member, err error) {
	info, known := vocabulary[e.Type.Name()]
	if !known || e.Type.Version() > info.version {
		return nil, nil
	}
	members, err := rawjson.Members(e.Data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidPayload, err)
	}
	for _, name := range info.kept {
		value, err := keptMember(e.Type.Name(), members, name)
		if err != nil {
			return nil, fmt.Errorf("%w: member %q: %w", ErrInvalidPayload, name, err)
		}
		if value != nil {
			kept = append(kept, rawjson.Member{Name: name, Value: value})
		}
	}
	return kept, nil
}

// keptMember is the value that redaction keeps of one member; nil if it keeps
// none.
func keptMember(t Type, members []rawjson.Member, name string) (jsontext.Value, error) {
	switch {
	case t == MessageAdded && name == "calls":
		return keptCallIDs(members, ToolCallPart)
	case t == MessageAdded && name == "results":
		return keptCallIDs(members, ToolResultPart)
	case t == CompactionTriggered && name == "entries":
		return keptReferences(members)
	case t == SessionStarted && name == "source":
		return keptFormat(members)
	}
	value, _ := rawjson.Value(members, name)
	return withoutExtra(value)
}

// keptCallIDs lists the call ids of a message's parts of one type.
func keptCallIDs(members []rawjson.Member, t PartType) (jsontext.Value, error) {
	value, ok := rawjson.Value(members, "parts")
	if !ok {
		return nil, nil
	}
	var parts []struct {
		Type   PartType       `json:"type"`
		CallID jsontext.Value `json:"call_id"`
	}
	if err := rawjson.Unmarshal(value, &parts); err != nil {
		return nil, err
	}
	var ids []jsontext.Value
	for _, p := range parts {
		if p.Type == t && p.CallID != nil {
			ids = append(ids, p.CallID)
		}
	}
	return marshalList(ids)
}

// keptReferences lists the entries of a compaction that refer to events. Literal
// messages are content.
func keptReferences(members []rawjson.Member) (jsontext.Value, error) {
	value, ok := rawjson.Value(members, "entries")
	if !ok {
		return nil, nil
	}
	var entries []struct {
		Seq int64 `json:"seq,omitzero"`
	}
	if err := rawjson.Unmarshal(value, &entries); err != nil {
		return nil, err
	}
	var references []jsontext.Value
	for _, entry := range entries {
		if entry.Seq > 0 {
			references = append(references, fmt.Appendf(nil, `{"seq":%d}`, entry.Seq))
		}
	}
	return marshalList(references)
}

// keptFormat keeps the format of a session's source: a second import looks for it.
func keptFormat(members []rawjson.Member) (jsontext.Value, error) {
	source, ok := rawjson.Value(members, "source")
	if !ok {
		return nil, nil
	}
	members, err := rawjson.Members(source)
	if err != nil {
		return nil, err
	}
	format, ok := rawjson.Value(members, "format")
	if !ok {
		return nil, nil
	}
	return rawjson.Object([]rawjson.Member{{Name: "format", Value: format}}), nil
}

// marshalList is nil for an empty list: an absent member means the same.
func marshalList(values []jsontext.Value) (jsontext.Value, error) {
	if len(values) == 0 {
		return nil, nil
	}
	return json.Marshal(values, jsontext.PreserveRawStrings(true))
}

// withoutExtra drops the producer's own members from a structural object: they may
// be content.
func withoutExtra(value jsontext.Value) (jsontext.Value, error) {
	if len(value) == 0 || value[0] != '{' {
		return value, nil
	}
	members, err := rawjson.Members(value)
	if err != nil {
		return nil, err
	}
	return rawjson.Object(slices.DeleteFunc(members, func(m rawjson.Member) bool { return m.Name == "extra" })), nil
}

// Structural reports whether a redaction of an event of type t keeps the string at a
// JSON pointer into the event's data. Other events and programs refer to it, for example
// by the id of a call. Everything is structural in a type that is not Erasable.
func (t Type) Structural(pointer jsontext.Pointer) bool {
	info, known := vocabulary[t.Name()]
	if !known || !t.Erasable() {
		return known
	}
	path := slices.Collect(pointer.Tokens())
	switch {
	case len(path) == 0 || slices.Contains(path, "extra"):
		return false
	case t.Name() == MessageAdded && path[0] == "parts":
		return len(path) == 3 && path[2] == "call_id"
	case t.Name() == CompactionTriggered && path[0] == "entries":
		return false
	case t.Name() == SessionStarted && path[0] == "source":
		return len(path) == 2 && path[1] == "format"
	}
	return slices.Contains(info.kept, path[0])
}
