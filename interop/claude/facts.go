package claude

import (
	"cmp"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/records"
)

// facts are the members of a record that the import needs. They share the bytes of the
// record.
type facts struct {
	Type, Subtype                       string
	UUID, ParentUUID, LogicalParentUUID string
	SessionID, AgentID                  string
	CWD, Version, Timestamp             string
	SourceToolUseID, ParentToolUseID    string
	Summary, CustomTitle, AITitle       string
	LeafUUID                            string // of a summary: the last line that it covers
	// OriginKind says who wrote a user line; empty in older versions.
	OriginKind string
	// HasNullParent: parentUuid is null. The line begins a conversation.
	HasNullParent bool

	IsSidechain, IsCompactSummary, IsMeta bool
	// IsQueued: the line is a queued_command, an attachment with a message that arrived
	// while the model worked.
	IsQueued bool

	Supersedes, Retracted, Compact, Microcompact, Snapshot jsontext.Value
	Message, ToolUseResult, Data, Attachment               jsontext.Value

	// members are all members of the record, message the members of its message.
	members, message []rawjson.Member
}

// factsOf reads the facts of a record. A member of the wrong type counts as empty. The
// error is set if the record is not an object.
func factsOf(record jsontext.Value) (f facts, err error) {
	f.members, err = rawjson.Members(record)
	for i := range f.members {
		f.set(&f.members[i])
	}
	if len(f.Message) > 0 {
		f.message, _ = rawjson.Members(f.Message)
	}
	if len(f.Attachment) > 0 {
		f.setQueued()
	}
	return f, err
}

// setQueued reads the facts of a queued_command. Programs queue notifications, people
// prompts.
func (f *facts) setQueued() {
	kind, _, err := rawjson.Lookup(f.Attachment, "type")
	if name, _ := rawjson.Text(kind); err != nil || f.Type != "attachment" || name != "queued_command" {
		return
	}
	var a struct {
		Mode   text `json:"commandMode"`
		IsMeta flag `json:"isMeta"`
		Origin struct {
			Kind text `json:"kind"`
		} `json:"origin"`
	}
	if json.Unmarshal(f.Attachment, &a) != nil {
		return
	}
	f.IsQueued = true
	f.OriginKind = cmp.Or(string(a.Origin.Kind), f.OriginKind)
	f.IsMeta = f.IsMeta || bool(a.IsMeta) || a.Mode != "" && a.Mode != "prompt"
}

func (f *facts) set(m *rawjson.Member) {
	switch m.Name {
	case "type":
		f.Type = textOf(m)
	case "subtype":
		f.Subtype = textOf(m)
	case "uuid":
		f.UUID = textOf(m)
	case "parentUuid":
		f.ParentUUID, f.HasNullParent = textOf(m), m.Value.Kind() == 'n'
	case "logicalParentUuid":
		f.LogicalParentUUID = textOf(m)
	case "sessionId":
		f.SessionID = textOf(m)
	case "agentId":
		f.AgentID = textOf(m)
	case "cwd":
		f.CWD = textOf(m)
	case "version":
		f.Version = textOf(m)
	case "timestamp":
		f.Timestamp = textOf(m)
	case "sourceToolUseID":
		f.SourceToolUseID = textOf(m)
	case "parentToolUseID":
		f.ParentToolUseID = textOf(m)
	case "summary":
		f.Summary = textOf(m)
	case "leafUuid":
		f.LeafUUID = textOf(m)
	case "origin":
		if kind, ok, err := rawjson.Lookup(m.Value, "kind"); ok && err == nil {
			f.OriginKind, _ = rawjson.Text(kind)
		}
	case "customTitle":
		f.CustomTitle = textOf(m)
	case "aiTitle":
		f.AITitle = textOf(m)
	case "isSidechain":
		f.IsSidechain = isTrue(m)
	case "isCompactSummary":
		f.IsCompactSummary = isTrue(m)
	case "isMeta":
		f.IsMeta = isTrue(m)
	case "supersedesUuids":
		f.Supersedes = m.Value
	case "retractedMessageUuids":
		f.Retracted = m.Value
	case "compactMetadata":
		f.Compact = m.Value
	case "microcompactMetadata":
		f.Microcompact = m.Value
	case "snapshot":
		f.Snapshot = m.Value
	case "message":
		f.Message = m.Value
	case "toolUseResult":
		f.ToolUseResult = m.Value
	case "data":
		f.Data = m.Value
	case "attachment":
		f.Attachment = m.Value
	}
}

func textOf(m *rawjson.Member) string {
	s, _ := rawjson.Text(m.Value)
	return s
}

func isTrue(m *rawjson.Member) bool { return m.Value.Kind() == 't' }

// compactFacts is the compactMetadata of a compact_boundary.
type compactFacts struct {
	Trigger    string `json:"trigger"`
	PreTokens  int64  `json:"preTokens"`
	PostTokens int64  `json:"postTokens"`
	Preserved  struct {
		Head string `json:"headUuid"`
		Tail string `json:"tailUuid"`
	} `json:"preservedSegment"`
}

// clearFacts is the microcompactMetadata of a microcompact_boundary.
type clearFacts struct {
	Trigger     string   `json:"trigger"`
	PreTokens   int64    `json:"preTokens"`
	TokensSaved int64    `json:"tokensSaved"`
	ToolIDs     []string `json:"compactedToolIds"`
}

// text decodes a string; any other value is empty.
type text string

// UnmarshalJSONFrom accepts any value.
func (t *text) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	s, _ := rawjson.Text(v)
	*t = text(s)
	return nil
}

// flag decodes true; any other value is false.
type flag bool

// UnmarshalJSONFrom accepts any value.
func (f *flag) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	*f = v.Kind() == 't'
	return err
}

// time is the timestamp of the record or of its snapshot; zero if it has none.
func (f *facts) time() time.Time {
	if at := records.Time(f.Timestamp); !at.IsZero() || len(f.Snapshot) == 0 {
		return at
	}
	var snapshot struct {
		Timestamp text `json:"timestamp"`
	}
	if json.Unmarshal(f.Snapshot, &snapshot) != nil {
		return time.Time{}
	}
	return records.Time(string(snapshot.Timestamp))
}

// timeOr is the time of the record, or another if it has none.
func (f *facts) timeOr(other time.Time) time.Time {
	if at := f.time(); !at.IsZero() {
		return at
	}
	return other
}

// isMessage reports whether the record is a user or assistant line.
func (f *facts) isMessage() bool { return f.Type == "user" || f.Type == "assistant" || f.IsQueued }

// beginsSession reports whether a session can begin with the record: a prompt, an
// assistant line or tool results, but not a note that Claude Code wrote for itself.
func (f *facts) beginsSession() bool {
	if f.SessionID == "" || f.Type != "user" {
		return f.SessionID != "" && f.Type == "assistant"
	}
	o := f.opening()
	return o.hasResults || o.isPrompt()
}

// typeName is the type of the record, with its subtype.
func (f *facts) typeName() string {
	name := f.Type
	if name == "" {
		name = "untyped"
	}
	if f.Subtype != "" {
		name += ":" + f.Subtype
	}
	return name
}

// content is the content of a user line, or of a queued message; nil for other lines.
func (f *facts) content() jsontext.Value {
	if f.IsQueued {
		prompt, _, _ := rawjson.Lookup(f.Attachment, "prompt")
		return prompt
	}
	if f.Type != "user" {
		return nil
	}
	for i := range f.message {
		if f.message[i].Name == "content" {
			return f.message[i].Value
		}
	}
	return nil
}

// prompt is the first text of a user line, or of a queued message.
func (f *facts) prompt() string {
	content := f.content()
	if s, ok := rawjson.Text(content); ok {
		return s
	}
	blocks := blocksOf(content)
	if len(blocks) == 0 {
		return ""
	}
	return blocks[0].text("text")
}

// treeLine returns the line for the tree. results is true if the line carries tool
// results. group is the id of the assistant message that the line is a part of.
func (f *facts) treeLine(results bool, group string) line {
	l := line{uuid: f.UUID, parent: f.ParentUUID, group: group}
	l.retracts = append(stringsOf(f.Supersedes), stringsOf(f.Retracted)...)
	switch {
	case f.Type == "assistant":
		l.kind = assistantLine
	case f.Type == "user" && (results || f.SourceToolUseID != "" || f.IsCompactSummary):
		l.kind = toolLine
	case f.Type == "user":
		l.kind = promptLine
	case f.isCompaction():
		l.kind = boundaryLine
		if l.parent == "" {
			l.parent = f.LogicalParentUUID
		}
		l.tail = f.compaction().Preserved.Tail
	}
	return l
}

func (f *facts) isCompaction() bool { return f.Type == "system" && f.Subtype == "compact_boundary" }

func (f *facts) isClearing() bool { return f.Type == "system" && f.Subtype == "microcompact_boundary" }

// compaction reads the compactMetadata; zero if it is malformed.
func (f *facts) compaction() (c compactFacts) {
	if len(f.Compact) > 0 && json.Unmarshal(f.Compact, &c) != nil {
		return compactFacts{}
	}
	return c
}

func stringsOf(array jsontext.Value) (all []string) {
	if len(array) == 0 {
		return nil
	}
	elements, err := rawjson.Elements(array)
	if err != nil {
		return nil
	}
	for _, v := range elements {
		if s, ok := rawjson.Text(v); ok && s != "" {
			all = append(all, s)
		}
	}
	return all
}
