package eventlog

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// keptOf is what redaction leaves of e's payload: the structural members of its
// type, in the order of the table in docs/FORMAT.md. Types and versions that
// this program does not know keep nothing. e's data must be there, not spilled.
func keptOf(e *Event) (jsontext.Value, error) {
	info, known := vocabulary[e.Type.Name()]
	if !known || e.Type.Version() > info.version {
		return jsontext.Value(`{}`), nil
	}
	members, err := splitMembers(e.Data)
	if err != nil {
		return nil, fmt.Errorf("kept members of %s %d: %w: %w", e.Type, e.Seq, ErrInvalidPayload, err)
	}
	var kept []member
	for _, name := range info.kept {
		value, err := keptMember(e, members, name)
		if err != nil {
			return nil, fmt.Errorf("kept member %q of %s %d: %w: %w", name, e.Type, e.Seq, ErrInvalidPayload, err)
		}
		if value != nil {
			kept = append(kept, member{quoted: jsontext.Value(`"` + name + `"`), value: value})
		}
	}
	return joinMembers(kept), nil
}

// keptMember is the value that stays of one member; nil if none does.
func keptMember(e *Event, members []member, name string) (jsontext.Value, error) {
	switch e.Type.Name() {
	case MessageAdded:
		switch name {
		case "calls":
			return keptCallIDs(members, ToolCallPart)
		case "results":
			return keptCallIDs(members, ToolResultPart)
		}
	case CompactionTriggered:
		if name == "entries" {
			return keptReferences(members)
		}
	}
	value, _ := find(members, name)
	return withoutExtra(value)
}

// keptCallIDs are the call ids of a message's parts of one type.
func keptCallIDs(members []member, t PartType) (jsontext.Value, error) {
	value, ok := find(members, "parts")
	if !ok {
		return nil, nil
	}
	var parts []struct {
		Type   PartType       `json:"type"`
		CallID jsontext.Value `json:"call_id"`
	}
	if err := json.Unmarshal(value, &parts); err != nil {
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

// keptReferences are the entries of a compaction that refer to events; literal
// messages are content.
func keptReferences(members []member) (jsontext.Value, error) {
	value, ok := find(members, "entries")
	if !ok {
		return nil, nil
	}
	var entries []struct {
		Seq int64 `json:"seq,omitzero"`
	}
	if err := json.Unmarshal(value, &entries); err != nil {
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

// marshalList is nil for an empty list: absent members mean the same.
func marshalList(values []jsontext.Value) (jsontext.Value, error) {
	if len(values) == 0 {
		return nil, nil
	}
	return json.Marshal(values, jsontext.PreserveRawStrings(true))
}

// withoutExtra drops the producer's own members from a structural object: what
// they say is not known to be structure.
func withoutExtra(value jsontext.Value) (jsontext.Value, error) {
	if len(value) == 0 || value[0] != '{' {
		return value, nil
	}
	members, err := splitMembers(value)
	if err != nil {
		return nil, err
	}
	return joinMembers(slices.DeleteFunc(members, func(m member) bool { return m.name == "extra" })), nil
}
