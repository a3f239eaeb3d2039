package claude

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop"
)

// facts are the members of a record that decide what becomes of it. They share its
// bytes.
type facts struct {
	Type, Subtype                       string
	UUID, ParentUUID, LogicalParentUUID string
	SessionID, AgentID                  string
	CWD, Version, Timestamp             string
	SourceToolUseID, ParentToolUseID    string
	Summary, CustomTitle, AITitle       string

	IsSidechain, IsCompactSummary, IsMeta bool

	Supersedes, Retracted, Compact, Microcompact, Snapshot jsontext.Value
	Message, ToolUseResult, Data                           jsontext.Value

	// members are all of them, message those of Message if that is an object.
	members, message []rawjson.Member
}

// factsOf reads the facts of a record; a member that is not of its type counts as
// empty. An error says that the record is no object.
func factsOf(record jsontext.Value) (f facts, err error) {
	f.members, err = rawjson.Members(record)
	for i := range f.members {
		f.set(&f.members[i])
	}
	if len(f.Message) > 0 {
		f.message, _ = rawjson.Members(f.Message)
	}
	return f, err
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
		f.ParentUUID = textOf(m)
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
	}
}

func textOf(m *rawjson.Member) string {
	s, _ := rawjson.Text(m.Value)
	return s
}

func isTrue(m *rawjson.Member) bool { return m.Value.Kind() == 't' }

// compactFacts are the compactMetadata of a compaction.
type compactFacts struct {
	Trigger    string `json:"trigger"`
	PreTokens  int64  `json:"preTokens"`
	PostTokens int64  `json:"postTokens"`
	Preserved  struct {
		Head string `json:"headUuid"`
		Tail string `json:"tailUuid"`
	} `json:"preservedSegment"`
}

// microFacts are the microcompactMetadata of a removal of tool results.
type clearFacts struct {
	Trigger     string   `json:"trigger"`
	PreTokens   int64    `json:"preTokens"`
	TokensSaved int64    `json:"tokensSaved"`
	ToolIDs     []string `json:"compactedToolIds"`
}

// text is a string; anything else counts as empty.
type text string

// UnmarshalJSONFrom reads any value.
func (t *text) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	s, _ := rawjson.Text(v)
	*t = text(s)
	return nil
}

// flag is true only where the member is.
type flag bool

// UnmarshalJSONFrom reads any value.
func (f *flag) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	*f = v.Kind() == 't'
	return err
}

// time is when the record was made; zero if it does not say.
func (f *facts) time() time.Time {
	if at := interop.Time(f.Timestamp); !at.IsZero() || len(f.Snapshot) == 0 {
		return at
	}
	var snapshot struct {
		Timestamp text `json:"timestamp"`
	}
	if json.Unmarshal(f.Snapshot, &snapshot) != nil {
		return time.Time{}
	}
	return interop.Time(string(snapshot.Timestamp))
}

// says reports whether the record is a line of conversation.
func (f *facts) isMessage() bool { return f.Type == "user" || f.Type == "assistant" }

// begins reports whether a session begins with the record: with a prompt, an
// assistant line or tool results, not with what Claude Code wrote for itself.
func (f *facts) beginsSession() bool {
	if f.SessionID == "" || f.Type != "user" {
		return f.SessionID != "" && f.Type == "assistant"
	}
	o := f.opening()
	return o.hasResults || o.isPrompt()
}

// kindName is the record's type with its subtype.
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

// content is what a line of the user says; nil for other lines.
func (f *facts) content() jsontext.Value {
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

// prompt is the text that a line of the user begins with.
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

// block is a piece of content.
type block []rawjson.Member

// blocksOf are the pieces of content; none if it is something else than an array
// of them.
func blocksOf(content jsontext.Value) []block {
	elements, err := rawjson.Elements(content)
	if err != nil {
		return nil
	}
	blocks := make([]block, len(elements))
	for i, v := range elements {
		if v.Kind() == 'n' {
			continue
		}
		if blocks[i], err = rawjson.Members(v); err != nil {
			return nil
		}
	}
	return blocks
}

// text is a member that is a string.
func (b block) text(name string) string {
	for i := range b {
		if b[i].Name == name {
			return textOf(&b[i])
		}
	}
	return ""
}

// line is what the tree needs of the record. results says that it carries tool
// results, group is the message it is a piece of.
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

// compaction reads what it can of the metadata of a compaction.
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
