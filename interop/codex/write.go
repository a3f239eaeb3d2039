package codex

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/written"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/writing"
	"github.com/convlog/convlog/interop/openai"
)

// writtenLine is a line of a written session.
type writtenLine struct {
	Timestamp string `json:"timestamp"`
	Type      string `json:"type"`
	Payload   any    `json:"payload"`
}

// writtenMeta begins a session. Without a provider and instructions, Codex takes those of the
// user.
type writtenMeta struct {
	ID         string `json:"id"`
	Timestamp  string `json:"timestamp"`
	CWD        string `json:"cwd"`
	Originator string `json:"originator"`
	CLIVersion string `json:"cli_version"`
	Source     string `json:"source"`
}

// shown is a message as the terminal and the list of sessions show it.
type shown struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// writtenCompaction is a compaction: the messages that it made, and its summary.
type writtenCompaction struct {
	Message string           `json:"message"`
	History []jsontext.Value `json:"replacement_history"`
}

// writtenVersion is the version of Codex whose lines Write writes.
const writtenVersion = "0.171.0"

// Write writes the messages as items of the Responses API, and beside each message the line
// that Codex shows. Reasoning is left out: another request cannot read it.
func (Format) Write(c interop.Conversation) (interop.Written, error) {
	said, losses := writing.Messages(c, writing.Rules{Program: formatName, Documents: true})
	at := c.At.UTC()
	w := interop.Written{
		Losses: losses, Command: []string{"codex", "resume", c.ID},
		Path: fileName(c.ID, at),
	}
	n := writing.OfCompaction(said)
	replacement, err := itemsOf(said[:n], c)
	if err != nil {
		return w, err
	}
	items, err := itemsOf(said[n:], c)
	if err != nil {
		return w, err
	}
	var lines writing.Lines
	add := func(at time.Time, kind string, payload any) {
		lines.Add(writtenLine{writing.Stamp(at), kind, payload})
	}
	add(at, "session_meta", writtenMeta{c.ID, writing.Stamp(at), c.CWD, "codex_cli_rs", writtenVersion, "cli"})
	header, err := lines.Bytes()
	if err != nil {
		return w, err
	}
	w.Header = int64(len(header))
	if len(replacement) > 0 {
		compacted := writtenCompaction{}
		for _, item := range replacement {
			compacted.History = append(compacted.History, item.value)
			if item.role == "user" {
				compacted.Message = item.text // the summary is the last one
			}
		}
		add(at, "compacted", compacted)
	}
	for _, item := range items {
		add(at, "response_item", item.value)
		if item.text != "" {
			add(at, "event_msg", shown{map[string]string{"user": "user_message", "assistant": "agent_message"}[item.role], item.text})
		}
	}
	ids := written.NewIDs(c.ID) // of messages: items need none
	for i := range said {
		ids.Next(said[i].Seq)
	}
	ids.Next(0) // the end of the file
	w.Seqs = ids.Seqs
	w.Body, err = lines.Bytes()
	return w, err
}

// writtenItem is an item, and its role and text if it is a message.
type writtenItem struct {
	value      jsontext.Value
	role, text string
}

// itemsOf renders messages for the Responses API.
func itemsOf(said []writing.Said, c interop.Conversation) ([]writtenItem, error) {
	if len(said) == 0 {
		return nil, nil
	}
	rendered, err := openai.Responses(writing.Entries(said), openai.Options{Blob: c.Blob})
	if err != nil {
		return nil, err
	}
	var body struct {
		Input []jsontext.Value `json:"input"`
	}
	if err := json.Unmarshal(rendered, &body); err != nil {
		return nil, err
	}
	var items []writtenItem
	for _, value := range body.Input {
		var m struct {
			Type    string         `json:"type"`
			Role    event.Role     `json:"role"`
			Content jsontext.Value `json:"content"`
		}
		if err := json.Unmarshal(value, &m); err != nil {
			return nil, fmt.Errorf("an item of the history: %w", err)
		}
		item := writtenItem{value: value}
		if m.Role != "" {
			item.role, item.text = string(m.Role), textOf(m.Content)
			if m.Content.Kind() == '"' {
				value, err := json.Marshal(plain{"message", m.Role, []plainText{{textType(m.Role), item.text}}})
				if err != nil {
					return nil, err
				}
				item.value = value
			}
		}
		items = append(items, item)
	}
	return items, nil
}

// plain is a message of text: Codex reads lists of parts only.
type plain struct {
	Type    string      `json:"type"`
	Role    event.Role  `json:"role"`
	Content []plainText `json:"content"`
}

type plainText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func textType(r event.Role) string {
	if r == event.Assistant {
		return "output_text"
	}
	return "input_text"
}

// textOf is the text of the content of a message.
func textOf(content jsontext.Value) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []plainText
	_ = json.Unmarshal(content, &parts) // a text or a list of parts, as Responses renders it
	var all []string
	for _, p := range parts {
		if p.Text != "" {
			all = append(all, p.Text)
		}
	}
	return strings.Join(all, "\n")
}
