package claude

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/interop"
)

// facts are the members of a record that decide what becomes of it.
type facts struct {
	Type              text           `json:"type"`
	Subtype           text           `json:"subtype"`
	UUID              text           `json:"uuid"`
	ParentUUID        text           `json:"parentUuid"`
	LogicalParentUUID text           `json:"logicalParentUuid"`
	SessionID         text           `json:"sessionId"`
	AgentID           text           `json:"agentId"`
	CWD               text           `json:"cwd"`
	Version           text           `json:"version"`
	Timestamp         text           `json:"timestamp"`
	SourceToolUseID   text           `json:"sourceToolUseID"`
	Summary           text           `json:"summary"`
	CustomTitle       text           `json:"customTitle"`
	AITitle           text           `json:"aiTitle"`
	IsSidechain       flag           `json:"isSidechain"`
	IsCompactSummary  flag           `json:"isCompactSummary"`
	IsMeta            flag           `json:"isMeta"`
	Supersedes        jsontext.Value `json:"supersedesUuids"`
	Retracted         jsontext.Value `json:"retractedMessageUuids"`
	Compact           jsontext.Value `json:"compactMetadata"`
	Microcompact      jsontext.Value `json:"microcompactMetadata"`
	Snapshot          jsontext.Value `json:"snapshot"`
	Message           jsontext.Value `json:"message"`
	ToolUseResult     jsontext.Value `json:"toolUseResult"`
	ParentToolUseID   text           `json:"parentToolUseID"`
	Data              jsontext.Value `json:"data"`
}

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
type microFacts struct {
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
	s, _ := interop.Text(v)
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
	if at := interop.Time(string(f.Timestamp)); !at.IsZero() || len(f.Snapshot) == 0 {
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
func (f *facts) says() bool { return f.Type == "user" || f.Type == "assistant" }

// begins reports whether a session begins with the record: with a prompt, an
// assistant line or tool results, not with what Claude Code wrote for itself.
func (f *facts) begins() bool {
	if f.SessionID == "" || f.Type != "user" {
		return f.SessionID != "" && f.Type == "assistant"
	}
	o := f.opening()
	return o.results || o.prompts()
}

// kindName is the record's type with its subtype.
func (f *facts) kindName() string {
	name := string(f.Type)
	if name == "" {
		name = "untyped"
	}
	if f.Subtype != "" {
		name += ":" + string(f.Subtype)
	}
	return name
}

// prompt is the text that a line of the user begins with.
func (f *facts) prompt() string {
	var message struct {
		Content jsontext.Value `json:"content"`
	}
	if f.Type != "user" || len(f.Message) == 0 || json.Unmarshal(f.Message, &message) != nil {
		return ""
	}
	if s, ok := interop.Text(message.Content); ok {
		return s
	}
	var blocks []struct {
		Text text `json:"text"`
	}
	if json.Unmarshal(message.Content, &blocks) != nil || len(blocks) == 0 {
		return ""
	}
	return string(blocks[0].Text)
}

// line is what the tree needs of the record. results says that it carries tool
// results, group is the message it is a piece of.
func (f *facts) line(results bool, group string) line {
	l := line{uuid: string(f.UUID), parent: string(f.ParentUUID), group: group}
	l.retracts = append(stringsOf(f.Supersedes), stringsOf(f.Retracted)...)
	switch {
	case f.Type == "assistant":
		l.kind = reply
	case f.Type == "user" && (results || f.SourceToolUseID != "" || bool(f.IsCompactSummary)):
		l.kind = answer
	case f.Type == "user":
		l.kind = prompt
	case f.compacts():
		l.kind = barrier
		if l.parent == "" {
			l.parent = string(f.LogicalParentUUID)
		}
		l.tail = f.compaction().Preserved.Tail
	}
	return l
}

func (f *facts) compacts() bool { return f.Type == "system" && f.Subtype == "compact_boundary" }

func (f *facts) clears() bool { return f.Type == "system" && f.Subtype == "microcompact_boundary" }

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
	elements, err := interop.Elements(array)
	if err != nil {
		return nil
	}
	for _, v := range elements {
		if s, ok := interop.Text(v); ok && s != "" {
			all = append(all, s)
		}
	}
	return all
}
