package flowhttp

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/httpapi"
)

// uiMessage is a message of the AI SDK.
type uiMessage struct {
	ID    string   `json:"id"`
	Role  string   `json:"role"`
	Parts []uiPart `json:"parts"`
}

// uiPart is a part of a message. The type decides which members count.
type uiPart struct {
	Type       string         `json:"type"`
	ID         string         `json:"id,omitzero"`
	Text       string         `json:"text,omitzero"`
	State      string         `json:"state,omitzero"`
	ToolCallID string         `json:"toolCallId,omitzero"`
	Input      jsontext.Value `json:"input,omitzero"`
	Output     jsontext.Value `json:"output,omitzero"`
	ErrorText  string         `json:"errorText,omitzero"`
	Approval   *uiApproval    `json:"approval,omitzero"`
	URL        string         `json:"url,omitzero"`
	MediaType  string         `json:"mediaType,omitzero"`
	Data       any            `json:"data,omitzero"`

	key string // of the text while it grows
}

type uiApproval struct {
	ID       string `json:"id"`
	Approved *bool  `json:"approved,omitzero"`
	Reason   string `json:"reason,omitzero"`
}

// event is the message of an input.
func (m *uiMessage) event() (event.Message, error) {
	out := event.Message{Role: event.User}
	if m.Role != "user" {
		return out, httpapi.NewProblem(http.StatusUnprocessableEntity, "the last message has the role "+m.Role, "send a message of the user")
	}
	for _, p := range m.Parts {
		switch p.Type {
		case "text":
			out.Parts = append(out.Parts, event.Text(p.Text))
		case "file":
			part := event.Part{Type: event.DocumentPart, MediaType: p.MediaType, URL: p.URL}
			if strings.HasPrefix(p.MediaType, "image/") {
				part.Type = event.ImagePart
			} else if strings.HasPrefix(p.MediaType, "audio/") {
				part.Type = event.AudioPart
			}
			if _, data, ok := strings.Cut(p.URL, ";base64,"); ok && strings.HasPrefix(p.URL, "data:") {
				raw, err := base64.StdEncoding.DecodeString(data)
				if err != nil {
					return out, httpapi.NewProblem(http.StatusUnprocessableEntity, "a file is not in base64: "+err.Error(), "send it again")
				}
				part.URL, part.Data = "", raw
			}
			out.Parts = append(out.Parts, part)
		case "step-start":
		default:
			return out, httpapi.NewProblem(http.StatusUnprocessableEntity, "a message of the user has a part "+p.Type, "send text and files")
		}
	}
	return out, nil
}

// add adds a chunk to a message, as the client does.
func (m *uiMessage) add(c uiChunk) {
	switch c.Type {
	case "start":
		m.ID = c.MessageID
	case "start-step":
		m.Parts = append(m.Parts, uiPart{Type: "step-start"})
	case "text-start", "reasoning-start":
		p := uiPart{Type: strings.TrimSuffix(c.Type, "-start"), State: "streaming", key: c.ID}
		if p.Type == "reasoning" {
			p.ID = c.ID // the client keeps it
		}
		m.Parts = append(m.Parts, p)
	case "text-delta", "reasoning-delta":
		m.Parts[m.growing(c.ID)].Text += *c.Delta
	case "text-end", "reasoning-end":
		m.Parts[m.growing(c.ID)].State = "done"
	case "tool-input-available":
		m.Parts = append(m.Parts, uiPart{Type: "tool-" + c.ToolName, ToolCallID: c.ToolCallID, State: "input-available", Input: c.Input})
	case "file":
		m.Parts = append(m.Parts, uiPart{Type: "file", URL: c.URL, MediaType: c.MediaType})
	case "data-review":
		m.Parts = append(m.Parts, uiPart{Type: c.Type, ID: c.ID, Data: c.Data})
	case "tool-approval-request", "tool-output-available", "tool-output-error", "tool-output-denied":
		if n := m.call(c.ToolCallID); n >= 0 {
			m.Parts[n].settle(c)
		}
	}
}

// settle changes the state of a tool call.
func (p *uiPart) settle(c uiChunk) {
	switch c.Type {
	case "tool-approval-request":
		p.State, p.Approval = "approval-requested", &uiApproval{ID: c.ApprovalID}
	case "tool-output-available":
		p.State, p.Output = "output-available", c.Output
	case "tool-output-error":
		p.State, p.ErrorText = "output-error", c.ErrorText
	case "tool-output-denied":
		p.State = "output-denied"
	}
}

func (m *uiMessage) growing(key string) int {
	return slices.IndexFunc(m.Parts, func(p uiPart) bool { return p.key == key })
}

// call is the newest part of a call, or -1.
func (m *uiMessage) call(id string) int {
	for i, p := range slices.Backward(m.Parts) {
		if p.ToolCallID == id {
			return i
		}
	}
	return -1
}

// transcript collects the messages of a session.
type transcript struct {
	all   []uiMessage
	turn  ulid.ULID
	first string     // the input of the turn
	last  string     // the newest input
	open  *uiMessage // the message of the assistant that grows
	enc   *uiEncoder
}

// begin begins a message of the assistant, and ends the one before.
func (t *transcript) begin(id string) error {
	t.end()
	open := &uiMessage{Role: "assistant", Parts: []uiPart{}}
	t.open, t.enc = open, &uiEncoder{send: func(c uiChunk) bool { open.add(c); return true }}
	return t.enc.begin(&segment{id: id})
}

// end ends the message of the assistant. An empty one is none.
func (t *transcript) end() {
	if t.open != nil && len(t.open.Parts) > 0 {
		t.all = append(t.all, *t.open)
	}
	t.open = nil
}

// input adds a message of the user. The assistant's message after it answers it.
func (t *transcript) input(e *event.Event, m *event.Message) error {
	t.end()
	user := newUserMessage(e, m)
	if t.last == user.ID { // the input has several messages
		user.ID = e.ID.String()
	} else {
		t.last = user.ID
	}
	t.all = append(t.all, user)
	id := t.turn.String()
	if m.InputID != "" && m.InputID != t.first {
		id += "-" + m.InputID
	}
	return t.begin(id)
}

// uiMessages are the messages of a session, as a client of the AI SDK has them after it has
// followed each turn.
func (h *handler) uiMessages(ctx context.Context, session string) ([]uiMessage, error) {
	t := &transcript{all: []uiMessage{}}
	for e, err := range h.log.Read(ctx, session, eventlog.All().OnPath()) {
		if err == nil {
			err = h.collect(ctx, session, &e, t)
		}
		if err != nil {
			return nil, err
		}
	}
	t.end()
	return t.all, nil
}

// collect adds an event to the messages.
func (h *handler) collect(ctx context.Context, session string, e *event.Event, t *transcript) error {
	if m := userMessage(e); m != nil {
		return t.input(e, m)
	}
	switch e.Type.Name() {
	case event.TurnStarted:
		p, _, err := event.Decode[event.TurnStart](e)
		if err != nil {
			return err
		}
		t.turn, t.first = e.ID, p.InputID
		return t.begin(t.turn.String())
	case event.TurnHibernated, event.HeadMoved:
		return nil
	case event.MessageAdded:
		if t.open == nil { // of a session that was imported
			if err := t.begin(e.ID.String()); err != nil {
				return err
			}
		}
	}
	if t.open == nil {
		return nil
	}
	ended, err := h.encode(ctx, session, &segment{turn: t.turn, head: e.Seq}, e, t.enc)
	if ended {
		t.end()
	}
	return err
}

// newUserMessage is a message of the user. It has the id that the client gave it.
func newUserMessage(e *event.Event, m *event.Message) uiMessage {
	out := uiMessage{ID: m.InputID, Role: "user", Parts: []uiPart{}}
	if out.ID == "" {
		out.ID = e.ID.String()
	}
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Type {
		case event.TextPart:
			out.Parts = append(out.Parts, uiPart{Type: "text", Text: p.Text})
		case event.ImagePart, event.AudioPart, event.DocumentPart:
			out.Parts = append(out.Parts, uiPart{Type: "file", URL: fileURL(p), MediaType: p.MediaType})
		}
	}
	return out
}
