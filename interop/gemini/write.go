package gemini

import (
	"crypto/sha256"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/written"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/render"
	"github.com/convlog/convlog/interop/internal/writing"
)

type writtenHeader struct {
	SessionID   string `json:"sessionId"`
	ProjectHash string `json:"projectHash"`
	StartTime   string `json:"startTime"`
	LastUpdated string `json:"lastUpdated"`
	Kind        string `json:"kind"`
	Summary     string `json:"summary,omitzero"`
}

type writtenMessage struct {
	ID        string         `json:"id"`
	Timestamp string         `json:"timestamp"`
	Type      string         `json:"type"`
	Content   []any          `json:"content"`
	ToolCalls []*writtenCall `json:"toolCalls,omitzero"`
	Model     string         `json:"model,omitzero"`
	seq       int64          // of its last event
}

type writtenCall struct {
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	Args      jsontext.Value `json:"args"`
	Result    []any          `json:"result"`
	Status    string         `json:"status"`
	Timestamp string         `json:"timestamp"`
	of        *writtenMessage
}

// The parts of a content and of a result.
type (
	writtenText struct {
		Text string `json:"text"`
	}
	writtenFile struct {
		InlineData writtenData `json:"inlineData"`
	}
	writtenData struct {
		MIMEType string `json:"mimeType"`
		Data     string `json:"data"`
	}
	writtenResponse struct {
		FunctionResponse writtenAnswer `json:"functionResponse"`
	}
	writtenAnswer struct {
		ID       string            `json:"id"`
		Name     string            `json:"name"`
		Response map[string]string `json:"response"`
	}
)

// Write writes the messages as lines of a session. A result is in the record of its call.
// Reasoning is left out: the program does not send it again.
func (Format) Write(c interop.Conversation) (interop.Written, error) {
	said, losses := writing.Messages(c, writing.Rules{ErrorMarks: true, Documents: true})
	at := c.At.UTC()
	slug, err := slugOf(c.Folder, c.CWD)
	if err != nil {
		return interop.Written{}, err
	}
	w := interop.Written{
		Path:   path.Join(slug, "chats", "session-"+at.Format("2006-01-02T15-04")+"-"+c.ID+".jsonl"),
		Losses: losses, Command: []string{"gemini", "--resume", c.ID},
	}
	d := drafting{c: c, calls: map[string]*writtenCall{}}
	for i := range said {
		if err := d.add(&said[i]); err != nil {
			return w, err
		}
	}
	var lines writing.Lines
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(c.CWD)))
	lines.Add(writtenHeader{c.ID, hash, writing.Stamp(at), writing.Stamp(at), "main", c.Title})
	ids := written.NewIDs(c.ID)
	for _, m := range d.messages {
		m.ID = ids.Next(m.seq)
		lines.Add(m)
	}
	w.Seqs = ids.Seqs
	w.Body, err = lines.Bytes()
	w.Header = int64(len(w.Body)) // the program repeats the messages when it goes on
	return w, err
}

// drafting makes the messages of a file.
type drafting struct {
	c        interop.Conversation
	messages []*writtenMessage
	group    string // of the newest message, if it can grow
	calls    map[string]*writtenCall
}

// add adds a message. A result goes to its call.
func (d *drafting) add(s *writing.Said) error {
	var rest []event.Part
	for i := range s.Parts {
		p := &s.Parts[i]
		call := d.calls[p.CallID]
		if p.Type != event.ToolResultPart || call == nil {
			rest = append(rest, *p)
			continue
		}
		if err := d.answer(call, p); err != nil {
			return err
		}
		call.of.seq = max(call.of.seq, s.Seq)
	}
	if len(rest) == 0 {
		return nil
	}
	m := d.message(s, rest)
	for i := range rest {
		if err := d.part(m, &rest[i], s.At); err != nil {
			return err
		}
	}
	if m.Type == "user" && isIgnored(m.Content) {
		m.Content = append([]any{writtenText{lead}}, m.Content...)
	}
	return nil
}

// message is the message that gets the parts: the newest one, if the parts are of the same
// answer, or a new one.
func (d *drafting) message(s *writing.Said, parts []event.Part) *writtenMessage {
	kind := "user"
	if s.Role == event.Assistant {
		kind = "gemini"
	}
	if n := len(d.messages); n > 0 && kind == "gemini" {
		last := d.messages[n-1]
		joins := last.Type == kind && (len(last.ToolCalls) == 0 || onlyCalls(parts))
		if joins && (s.Group != "" && s.Group == d.group || !isAnswered(last)) {
			last.seq = max(last.seq, s.Seq)
			return last
		}
	}
	m := &writtenMessage{Timestamp: writing.Stamp(s.At), Type: kind, Content: []any{}, seq: s.Seq}
	if kind == "gemini" {
		m.Model = s.Model
	}
	d.messages, d.group = append(d.messages, m), s.Group
	return m
}

func onlyCalls(parts []event.Part) bool {
	for i := range parts {
		if parts[i].Type != event.ToolCallPart {
			return false
		}
	}
	return true
}

func isAnswered(m *writtenMessage) bool {
	for _, call := range m.ToolCalls {
		if call.Status != "" {
			return true
		}
	}
	return false
}

// part adds a part to a message.
func (d *drafting) part(m *writtenMessage, p *event.Part, at time.Time) error {
	if p.Type == event.ToolCallPart {
		call := &writtenCall{ID: p.CallID, Name: p.Name, Args: render.Arguments(p.Arguments), Result: []any{}, Timestamp: writing.Stamp(at), of: m}
		d.calls[p.CallID], m.ToolCalls = call, append(m.ToolCalls, call)
		return nil
	}
	part, err := d.content(p)
	if part != nil {
		m.Content = append(m.Content, part)
	}
	return err
}

// content renders a text or a file; nil for a part without content.
func (d *drafting) content(p *event.Part) (any, error) {
	if p.Type == event.ImagePart || p.Type == event.DocumentPart {
		m, ok, err := render.Load(p, d.c.Blob)
		if err != nil {
			return nil, err
		}
		if ok && len(m.Data) > 0 {
			return writtenFile{writtenData{m.Type, m.Base64()}}, nil
		}
	}
	if text := render.Words(p); text != "" {
		return writtenText{text}, nil
	}
	return nil, nil
}

// answer adds a result to its call: the texts as a response, and the files after it.
func (d *drafting) answer(call *writtenCall, p *event.Part) error {
	var texts []string
	var files []any
	for i := range p.Content {
		part, err := d.content(&p.Content[i])
		if err != nil {
			return err
		}
		if text, ok := part.(writtenText); ok {
			texts = append(texts, text.Text)
		} else if part != nil {
			files = append(files, part)
		}
	}
	member := "output"
	call.Status = "success"
	if p.IsError {
		member, call.Status = "error", "error"
	}
	response := writtenAnswer{call.ID, call.Name, map[string]string{member: strings.Join(texts, "\n")}}
	call.Result = append([]any{writtenResponse{response}}, files...)
	return nil
}

// lead begins a message that the program would leave out.
const lead = "The user's message:\n"

// isIgnored reports whether the program leaves a message of the user out when it goes on: it
// takes the message for a command or a context, or finds no text.
func isIgnored(content []any) bool {
	var all strings.Builder
	for _, part := range content {
		if t, ok := part.(writtenText); ok {
			all.WriteString(t.Text)
		}
	}
	text := strings.TrimSpace(all.String())
	for _, mark := range []string{"/", "?", "<session_context>", "<hook_context>"} {
		if strings.HasPrefix(text, mark) {
			return true
		}
	}
	return text == ""
}
