package claude

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/written"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/anthropic"
	"github.com/convlog/convlog/interop/internal/writing"
)

// writtenLine is a line of a written session. Claude Code needs type, uuid, parentUuid, message and
// the message's id. The others are for its list of sessions, and for people.
type writtenLine struct {
	ParentUUID  *string         `json:"parentUuid"`
	IsSidechain bool            `json:"isSidechain"`
	UserType    string          `json:"userType"`
	CWD         string          `json:"cwd"`
	SessionID   string          `json:"sessionId"`
	Version     string          `json:"version"`
	Type        string          `json:"type"`
	IsSummary   bool            `json:"isCompactSummary,omitzero"`
	Message     *writtenMessage `json:"message"`
	UUID        string          `json:"uuid"`
	Timestamp   string          `json:"timestamp"`
}

type writtenMessage struct {
	ID      string         `json:"id,omitzero"`
	Type    string         `json:"type,omitzero"`
	Role    string         `json:"role"`
	Model   string         `json:"model,omitzero"`
	Content jsontext.Value `json:"content"`
}

// customTitle gives a session its title.
type customTitle struct {
	Type        string `json:"type"`
	CustomTitle string `json:"customTitle"`
	SessionID   string `json:"sessionId"`
}

// provider is the provider of the messages.
const provider = "anthropic"

// writtenVersion is the version of Claude Code whose lines Write writes.
const writtenVersion = "2.1.332"

// Write writes the messages as lines of a session. Thinking stays if it has the signature of
// the model of the newest answer: Claude Code drops the thinking of other models.
func (Format) Write(c interop.Conversation) (interop.Written, error) {
	_, model := writing.LastModel(c.History)
	said, losses := writing.Messages(c, writing.Rules{
		Reasoning: func(m *event.Message, p *event.Part) bool {
			return m.Provider == provider && m.Model == model && (p.Signature != "" || p.Encrypted != "")
		},
		Program: formatName, ErrorMarks: true, Documents: true,
		Opaque: func(m *event.Message, _ *event.Part) bool { return m.Provider == provider },
	})
	w := interop.Written{
		Path: path.Join(written.ClaudeFolder(c.CWD), c.ID+".jsonl"), Losses: losses,
		Command: []string{"claude", "--resume", c.ID},
	}
	var lines writing.Lines
	if c.Title != "" {
		lines.Add(customTitle{"custom-title", c.Title, c.ID})
	}
	messages := written.NewIDs(c.ID + " messages")
	n := writing.OfCompaction(said)
	compacted := n > 0 && !slices.ContainsFunc(said[:n], func(s writing.Said) bool { return s.Role == event.Assistant })
	if !compacted || n < len(said) && said[n].Role == event.Assistant {
		n = 0 // the messages need no line of their own
	}
	turns, err := turnsOf(said[:n], model, c, messages)
	if err != nil {
		return w, err
	}
	rest, err := turnsOf(said[n:], model, c, messages)
	if err != nil {
		return w, err
	}
	ids := written.NewIDs(c.ID)
	var parent *string
	for i, t := range append(turns, rest...) {
		id := ids.Next(t.seq)
		lines.Add(writtenLine{
			ParentUUID: parent, UserType: "external", CWD: c.CWD, SessionID: c.ID, Version: writtenVersion,
			Type: t.Role, IsSummary: i == 0 && compacted, Message: &t.writtenMessage, UUID: id, Timestamp: writing.Stamp(t.at),
		})
		parent = &id
	}
	w.Seqs = ids.Seqs
	w.Body, err = lines.Bytes()
	return w, err
}

// turn is the message of a line, its time, and the seq of its last event.
type turn struct {
	writtenMessage
	at  time.Time
	seq int64
}

// turnsOf renders messages for the Messages API, where consecutive messages of a role are one.
func turnsOf(said []writing.Said, model string, c interop.Conversation, ids *written.IDs) (turns []turn, err error) {
	if len(said) == 0 {
		return nil, nil
	}
	var runs []*writing.Said // the last message of each run
	for i := range said {
		if i > 0 && (said[i].Role == event.Assistant) == (said[i-1].Role == event.Assistant) {
			runs[len(runs)-1] = &said[i]
		} else {
			runs = append(runs, &said[i])
		}
	}
	rendered, err := anthropic.Messages(writing.Entries(said), anthropic.Options{Model: model, Blob: c.Blob})
	if err != nil {
		return nil, err
	}
	var body struct {
		Messages []writtenMessage `json:"messages"`
	}
	if err := json.Unmarshal(rendered, &body); err != nil {
		return nil, err
	}
	made := len(body.Messages) - len(runs) // 1 if the history starts with the assistant
	for i, m := range body.Messages {
		t := turn{writtenMessage: m, at: c.At}
		if run := max(i-made, 0); made >= 0 && run < len(runs) {
			t.at, t.seq = runs[run].At, runs[run].Seq
			t.Model = runs[run].Model
		}
		if t.Role == "assistant" {
			t.ID, t.Type = "msg_"+strings.ReplaceAll(ids.Next(0), "-", ""), "message"
		} else {
			t.Model = ""
		}
		turns = append(turns, t)
	}
	return turns, nil
}
